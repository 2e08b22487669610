"""What holds for merged disruption steps, for any fleet: the same final nodes, no higher costs, and each step valid."""

from collections.abc import Sequence

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.methods.proposed_command import ProposedCommand, convert_to_command
from shared.decide.disruption.net_change.net_steps import merge_commands
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, EVICTION_PRICE, HOSTNAME, ZONE
from shared.model.core.metadata import build_pairs
from shared.model.core.selectors import build_label_selector
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from shared.state.cluster_state import ClusterState
from shared.state.node_prices import PriceList
from tests.support.catalogues import make_instance_type, make_node_pool
from tests.support.disruption_fleet import (
    OPTIONS,
    Machine,
    decide_disruption,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)
from tests.support.snapshot_decisions import validate_command

CPUS = (2, 4, 8, 16)
PRICES = {2: 0.1, 4: 0.17, 8: 0.3, 16: 0.7}
"""In USD per hour. A larger node costs less for each CPU, but not the largest, so that several steps are needed."""
TYPES = tuple(
    make_instance_type(f"m.{cpu:02d}", cpu, capacity_types=("spot", "on-demand"), price=price)
    for cpu, price in PRICES.items()
)
SIZES = (100, 500, 900, 1500, 3000)
APART = AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "apart"}))
EVEN = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector({"app": "even"}))
RULES: dict[str, dict[str, object]] = {
    "plain": {},
    "zonal": {"node_selector": ((ZONE, "b"),)},
    "paid": {"node_selector": ((CAPACITY_TYPE, "on-demand"),)},
    "apart": {"labels": {"app": "apart"}, "pod_anti_affinity": (APART,)},
    "even": {"labels": {"app": "even"}, "spread": (EVEN,)},
}


@st.composite
def generate_machine(draw: st.DrawFn, number: int) -> Machine:
    """Draw a node with pods that it has room for and that may be there."""
    cpu, zone = draw(st.sampled_from(CPUS)), draw(st.sampled_from("abc"))
    capacity_type = draw(st.sampled_from(("on-demand", "on-demand", "spot")))
    free_cpu_milli, pods, rules = cpu * 1000, list[Pod](), set[str]()
    for place in range(draw(st.integers(1, 4))):
        rule, size = draw(st.sampled_from(("plain", "plain", *RULES))), draw(st.sampled_from(SIZES))
        is_possible = size <= free_cpu_milli and not (rule == "apart" and rule in rules)
        if is_possible and (rule != "zonal" or zone == "b") and (rule != "paid" or capacity_type == "on-demand"):
            free_cpu_milli -= size
            rules.add(rule)
            pods.append(make_web_pod(f"{rule}-{number}-{place}", f"{size}m", **RULES[rule]))
    return make_node_with_pods(f"n{number}", *pods, cpu=cpu, capacity_type=capacity_type, zone=zone)


@st.composite
def generate_case(draw: st.DrawFn) -> tuple[ClusterSnapshot, DisruptionSettings]:
    """Draw a cluster, with or without a tight budget and a price of evictions."""
    machines = [draw(generate_machine(number)) for number in range(draw(st.integers(2, 9)))]
    pool = make_node_pool(budgets=(DisruptionBudget(nodes=draw(st.sampled_from(("100%", "100%", "40%", "2")))),))
    if draw(st.booleans()):
        pool = replace(pool, meta=replace(pool.meta, annotations=build_pairs({EVICTION_PRICE: "0"})))
    eviction_price_usd = draw(st.sampled_from((0.0, 0.0, 0.001, 0.02)))
    return make_fleet(*machines, pools=(pool,), types=TYPES), DisruptionSettings(eviction_price_usd=eviction_price_usd)


class Steps(msgspec.Struct, frozen=True):
    """The steps of a simulated disruption, each from the result of the previous ones, and the merged steps."""

    before: list[ProposedCommand]
    merged: tuple[ProposedCommand, ...]


def take_steps(cluster: ClusterSnapshot, terms: DisruptionSettings) -> Steps:
    """Disrupt *cluster* until there is no further command, and merge the steps."""
    now, steps = cluster, list[ProposedCommand]()
    while proposed_commands := decide_disruption(now, terms).proposed_commands:
        steps.extend(proposed_commands)
        now = predict_cluster_after(now, proposed_commands)
    return Steps(before=steps, merged=merge_commands(cluster, steps, OPTIONS, terms))


def predict_clusters(cluster: ClusterSnapshot, steps: Sequence[ProposedCommand]) -> list[ClusterSnapshot]:
    """Return the cluster before and after each of *steps*."""
    clusters = [cluster]
    for step in steps:
        clusters.append(predict_cluster_after(clusters[-1], (step,)))
    return clusters


def count_intermediate_nodes(steps: Sequence[ProposedCommand]) -> int:
    """Return how many nodes are launched by one of *steps* and removed by a later one."""
    new_names = {node.name for step in steps for node in step.new_nodes}
    return len(new_names & {target.name for step in steps for target in step.targets})


def compute_price(cluster: ClusterSnapshot) -> float:
    """Return what the nodes cost in USD per hour, by their labels."""
    prices = PriceList(cluster.catalog)
    return sum(prices.get_price(state.meta, "default") for state in ClusterState(cluster).nodes)


@settings(max_examples=30)
@given(generate_case())
def test_merged_steps_lead_to_the_same_nodes_and_pods_in_no_more_steps(
    case: tuple[ClusterSnapshot, DisruptionSettings],
) -> None:
    cluster, terms = case
    steps = take_steps(cluster, terms)
    merged = steps.merged
    event(f"merged: {len(merged) < len(steps.before)}")
    final, net_final = predict_clusters(cluster, steps.before)[-1], predict_clusters(cluster, merged)[-1]
    assert [node.name for node in net_final.nodes] == [node.name for node in final.nodes]
    assert {pod.name: pod.node_name for pod in net_final.pods} == {pod.name: pod.node_name for pod in final.pods}
    assert len(merged) <= len(steps.before)
    assert count_intermediate_nodes(merged) <= count_intermediate_nodes(steps.before)
    assert len(merged) < len(steps.before) or merged == tuple(steps.before)


@settings(max_examples=30)
@given(generate_case())
def test_merging_increases_neither_the_price_nor_the_evictions(
    case: tuple[ClusterSnapshot, DisruptionSettings],
) -> None:
    cluster, terms = case
    steps = take_steps(cluster, terms)
    merged = steps.merged
    clusters = predict_clusters(cluster, merged)
    assert abs(compute_price(clusters[-1]) - compute_price(predict_clusters(cluster, steps.before)[-1])) < 1e-9
    assert sum(len(step.moves) for step in merged) <= sum(len(step.moves) for step in steps.before)
    for step, before, after in zip(merged, clusters, clusters[1:], strict=False):
        assert abs(compute_price(before) - compute_price(after) - step.savings_usd_per_hour) < 1e-9
        assert step.savings_usd_per_hour > 0
        assert len({pod for pod, _ in step.moves}) == len(step.moves)


@settings(max_examples=30)
@given(generate_case())
def test_value_of_a_merged_step_is_its_own_and_pays(case: tuple[ClusterSnapshot, DisruptionSettings]) -> None:
    for step in take_steps(*case).merged:
        if step.value is not None:
            assert step.value.is_worthwhile()
            assert abs(step.value.savings_usd_per_hour - step.savings_usd_per_hour) < 1e-9
            assert step.value.cost.evictions == len(step.moves)


@settings(max_examples=30)
@given(generate_case())
def test_each_merged_step_passes_the_validation_of_a_command(case: tuple[ClusterSnapshot, DisruptionSettings]) -> None:
    """Validation covers candidates, budgets, and the constraints of pods for every instance type of the new nodes."""
    cluster, terms = case
    steps = take_steps(cluster, terms)
    merged = steps.merged
    for step, before in zip(merged, predict_clusters(cluster, merged), strict=False):
        assert validate_command(before, convert_to_command(step, before), settings=terms) is None
        homes = {pod.name: pod.node_name for pod in before.pods}
        targets = {target.name for target in step.targets}
        assert {pod for pod, _ in step.moves} == {pod for pod, home in homes.items() if home in targets}


@settings(max_examples=30)
@given(generate_case())
def test_one_run_neither_removes_nor_fills_a_node_that_another_of_its_commands_launches(
    case: tuple[ClusterSnapshot, DisruptionSettings],
) -> None:
    """So the commands that `disrupt` starts in one run have no intermediate nodes."""
    proposed_commands = decide_disruption(*case).proposed_commands
    for command in proposed_commands:
        other_names = {node.name for other in proposed_commands if other is not command for node in other.new_nodes}
        assert other_names.isdisjoint(target.name for target in command.targets)
        assert other_names.isdisjoint(node for _, node in command.moves)
