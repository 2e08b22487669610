"""What holds after every disruption step, for any fleet: pods fit, savings are real, budgets hold."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.disruption_controller import DisruptionDecision
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT, HOSTNAME
from shared.model.core.selectors import build_label_selector
from shared.model.kubernetes.pod import AffinityTerm, Pod
from shared.state.cluster_state import ClusterState
from shared.state.node_prices import PriceList
from tests.support.disruption_fleet import (
    BOTH,
    Machine,
    decide_disruption,
    make_budgeted_pool,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)
from tests.support.hypothesis_profiles import limit_examples
from tests.support.snapshot_decisions import validate_command

CPUS = (2, 4, 8, 16)
SIZES = ("100m", "500m", "900m", "1500m", "3")
APART = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "apart"})),)


@st.composite
def generate_machine(draw: st.DrawFn, number: int) -> Machine:
    """A node with some pods that it has room for."""
    cpu = draw(st.sampled_from(CPUS))
    sizes = draw(st.lists(st.sampled_from(SIZES), max_size=5))
    free_cpu_milli, pods = cpu * 1000, list[Pod]()
    for place, size in enumerate(sizes):
        milli = int(size[:-1]) if size.endswith("m") else int(size) * 1000
        if milli <= free_cpu_milli:
            free_cpu_milli -= milli
            rules = {"pod_anti_affinity": APART, "labels": {"app": "apart"}} if draw(st.integers(0, 5)) == 0 else {}
            if not rules or not any(placed_pod.spec.pod_anti_affinity for placed_pod in pods):
                pods.append(make_web_pod(f"{number}-{place}", size, **rules))
    annotations = {DO_NOT_DISRUPT: "true"} if draw(st.integers(0, 7)) == 0 else {}
    kind = draw(st.sampled_from(("spot", "on-demand")))
    zone = draw(st.sampled_from("abc"))
    return make_node_with_pods(f"n{number}", *pods, cpu=cpu, capacity_type=kind, zone=zone, annotations=annotations)


@st.composite
def generate_fleet(draw: st.DrawFn) -> tuple[ClusterSnapshot, int]:
    """A cluster, and what its budget allows in per cent."""
    machines = [draw(generate_machine(number)) for number in range(draw(st.integers(1, 7)))]
    share = draw(st.sampled_from((20, 50, 100)))
    return make_fleet(*machines, pools=(make_budgeted_pool(f"{share}%"),), types=BOTH), share


def compute_price(cluster: ClusterSnapshot) -> float:
    prices = PriceList(cluster.catalog)
    return sum(prices.get_price(one.meta, "default") for one in ClusterState(cluster).nodes)


def is_feasible(cluster: ClusterSnapshot) -> bool:
    """Whether no node has more than it can hold, and no two pods that are to be apart are together."""
    states = ClusterState(cluster).nodes
    apart = [sum(bool(pod.spec.pod_anti_affinity) for pod in state.pods) for state in states]
    return (
        all(amount >= 0 for state in states for _, amount in state.compute_available().amounts)
        and max(apart, default=0) < 2
    )


def predict_clusters(decision: DisruptionDecision, cluster: ClusterSnapshot) -> list[ClusterSnapshot]:
    clusters = [cluster]
    for draft in decision.proposed_commands:
        clusters.append(predict_cluster_after(clusters[-1], (draft,)))
    return clusters


@limit_examples(60)
@given(generate_fleet())
def test_every_pod_runs_and_fits_after_every_disruption_step(fleet_and_share: tuple[ClusterSnapshot, int]) -> None:
    cluster, _ = fleet_and_share
    for later_cluster in predict_clusters(decide_disruption(cluster), cluster):
        assert is_feasible(later_cluster)
        assert all(pod.node_name in {node.name for node in later_cluster.nodes} for pod in later_cluster.pods)


@limit_examples(60)
@given(generate_fleet())
def test_reported_savings_equal_the_difference_in_offering_prices(fleet_and_share: tuple[ClusterSnapshot, int]) -> None:
    cluster, _ = fleet_and_share
    decision = decide_disruption(cluster)
    clusters = predict_clusters(decision, cluster)
    for draft, old, new in zip(decision.proposed_commands, clusters, clusters[1:], strict=False):
        assert abs(compute_price(old) - compute_price(new) - draft.savings_usd_per_hour) < 1e-9
        assert draft.savings_usd_per_hour > 0


@limit_examples(60)
@given(generate_fleet())
def test_disruption_respects_budgets_and_do_not_disrupt_nodes(fleet_and_share: tuple[ClusterSnapshot, int]) -> None:
    cluster, share = fleet_and_share
    disrupted_nodes = {node for command in decide_disruption(cluster).commands for node in command.list_node_names()}
    assert len(disrupted_nodes) <= ceil(len(cluster.nodes) * share / 100)
    assert not disrupted_nodes & {
        listed_node.name for listed_node in cluster.nodes if listed_node.meta.get_annotation(DO_NOT_DISRUPT)
    }


@limit_examples(60)
@given(generate_fleet())
def test_every_command_stays_valid_next_to_the_other_commands(fleet_and_share: tuple[ClusterSnapshot, int]) -> None:
    cluster, _ = fleet_and_share
    commands = decide_disruption(cluster).commands
    for command in commands:
        other_commands = [other_command for other_command in commands if other_command is not command]
        other_nodes = frozenset(node for other_command in other_commands for node in other_command.list_node_names())
        homes = {pod: home for other_command in other_commands for pod, home in other_command.nominations}
        assert validate_command(cluster, command, other_nodes, node_by_pod=homes) is None


@limit_examples(40)
@given(generate_fleet())
def test_consolidation_terminates(fleet_and_share: tuple[ClusterSnapshot, int]) -> None:
    cluster, _ = fleet_and_share
    last = compute_price(cluster)
    for _ in range(40):
        decision = decide_disruption(cluster)
        if not decision.proposed_commands:
            return
        cluster = predict_cluster_after(cluster, decision.proposed_commands)
        assert compute_price(cluster) < last
        last = compute_price(cluster)
    raise AssertionError("it goes on and on")
