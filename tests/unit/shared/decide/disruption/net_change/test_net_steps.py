"""Steps of a simulated disruption are merged, so that no node is launched by one step and removed by a later one."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.net_change.net_command import build_net_command
from shared.decide.disruption.net_change.net_steps import merge_commands
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT, EVICTION_PRICE, ZONE
from shared.model.core.metadata import build_pairs
from shared.model.core.resources import parse_resources
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.command import MAX_TARGETS_PER_COMMAND
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import SpreadConstraint
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_instance_type, make_node_pool
from tests.support.disruption_fleet import (
    FREE,
    OPTIONS,
    STAGES,
    Machine,
    decide_disruption,
    make_budgeted_pool,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)

TYPES = (
    make_instance_type("m.02", 2, price=0.1),
    make_instance_type("m.04", 4, price=0.17),
    make_instance_type("m.08", 8, price=0.3),
    make_instance_type("m.16", 16, price=0.45),
    make_instance_type("old.4", 4, price=0.9),
)
FREES_LIMITS = DisruptionSettings(frees_limits=True)
NEW = "new"
"""In a stage: the nodes that earlier stages have launched."""


def make_old_node(name: str, cpu: str, **fields: object) -> Machine:
    """Return an expensive node with one pod."""
    return make_node_with_pods(name, make_web_pod(f"on-{name}", cpu), kind="old.4", **fields)  # type: ignore[arg-type]


def make_small_node(name: str, pod_cpu: str, *, cpu: int = 4, **fields: object) -> Machine:
    return make_node_with_pods(name, make_web_pod(f"on-{name}", pod_cpu), cpu=cpu, **fields)  # type: ignore[arg-type]


def build_cluster(*machines: Machine, pool: NodePool = FREE, pools: Iterable[NodePool] = ()) -> ClusterSnapshot:
    return make_fleet(*machines, pools=tuple(pools) or (pool,), types=TYPES)


def take_steps(
    cluster: ClusterSnapshot, *stages: set[str], terms: DisruptionSettings = FREES_LIMITS
) -> list[ProposedCommand]:
    """Return the steps of *stages*, each from the result of the previous ones: only its nodes may be disrupted."""
    old_names = {node.name for node in cluster.nodes}
    steps: list[ProposedCommand] = []
    for stage in stages:

        def protect(node: Node, stage: set[str] = stage) -> Node:
            is_movable = node.name in stage or (NEW in stage and node.name not in old_names)
            protection = build_pairs({} if is_movable else {DO_NOT_DISRUPT: "true"})
            return replace(node, meta=replace(node.meta, annotations=protection))

        held_cluster = replace(cluster, nodes=tuple(map(protect, cluster.nodes)))
        proposed_commands = decide_disruption(held_cluster, terms).proposed_commands
        assert proposed_commands
        steps += proposed_commands
        cluster = predict_cluster_after(cluster, proposed_commands)
    return steps


def list_targets(steps: Iterable[ProposedCommand]) -> list[list[str]]:
    return [sorted(target.name for target in step.targets) for step in steps]


def test_node_that_the_next_step_removes_is_never_launched() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"))
    first, second = steps = take_steps(cluster, {"a"}, {"b", NEW})
    [node] = first.new_nodes
    assert list_targets(steps) == [["a"], sorted(("b", node.name))]
    [net_step] = merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)
    assert list_targets([net_step]) == [["a", "b"]]
    assert [new.name for new in net_step.new_nodes] == [new.name for new in second.new_nodes]
    assert dict(net_step.moves) == dict(second.moves)
    assert len(net_step.moves) == 2
    assert net_step.message == "replaces 2 nodes ($1.0700/h) with m.08 on-demand in a ($0.3000/h)"
    assert net_step.savings_usd_per_hour == pytest.approx(0.77)
    assert net_step.value is not None
    assert net_step.value.cost.evictions == 2


def test_replacement_that_is_deleted_later_leaves_a_deletion() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"), make_node_with_pods("c", cpu=4))
    busy = replace(cluster, nodes=tuple(node for node in cluster.nodes if node.name != "c"))
    [replacement] = take_steps(busy, {"a"})
    after = predict_cluster_after(cluster, (replacement,))
    [deletion] = take_steps(after, {replacement.new_nodes[0].name})
    [net_step] = merge_commands(cluster, (replacement, deletion), OPTIONS, FREES_LIMITS)
    assert (list_targets([net_step]), net_step.new_nodes) == ([["a"]], ())
    assert net_step.moves == (("shop/on-a", "c"),)
    assert net_step.message == "its pods fit on other nodes; saves $0.9000/h"


@pytest.mark.parametrize(("budget", "expected_steps"), [("2", 2), ("3", 1), ("60%", 2), ("100%", 1)])
def test_steps_that_a_budget_does_not_allow_together_stay_separate(budget: str, expected_steps: int) -> None:
    cluster = build_cluster(
        make_old_node("a", "3"), make_old_node("c", "3"), make_small_node("b", "3"), pool=make_budgeted_pool(budget)
    )
    steps = take_steps(cluster, {"a", "c"}, {"b", NEW})
    assert len(steps) == 2
    net_steps = merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)
    assert len(net_steps) == expected_steps
    assert expected_steps == 1 or net_steps == tuple(steps)


def test_step_in_between_that_needs_nothing_of_the_merged_steps_comes_first() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"), make_small_node("d", "100m", cpu=2))
    steps = take_steps(cluster, {"a"}, {"d"}, {"b", NEW})
    assert steps[1].moves == (("shop/on-d", "b"),)
    net_steps = merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)
    assert list_targets(net_steps) == [["d"], ["a", "b"]]
    assert net_steps[0].moves == steps[1].moves
    assert {pod for pod, _ in net_steps[1].moves} == {"shop/on-a", "shop/on-b", "shop/on-d"}


def test_step_that_uses_a_node_of_the_merged_steps_is_merged_too() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("z", "3"), make_small_node("y", "100m", cpu=2))
    steps = take_steps(cluster, {"a"}, {"y"}, {"z", NEW})
    assert steps[1].moves == (("shop/on-y", steps[0].new_nodes[0].name),)
    net_steps = merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)
    assert list_targets(net_steps) == [["a", "y", "z"]]


def test_steps_without_intermediate_nodes_are_not_changed() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"), make_node_with_pods("c"))
    steps = take_steps(cluster, {"c"}, {"a"})
    assert merge_commands(cluster, steps, OPTIONS, FREES_LIMITS) == tuple(steps)
    assert merge_commands(cluster, (), OPTIONS, FREES_LIMITS) == ()


def test_steps_stay_separate_if_the_evictions_would_not_pay_together() -> None:
    """The second step evicts for free, but its nodes have just changed: together, the savings may not last."""
    quiet_conditions = tuple(
        replace(condition, since=NOW - timedelta(days=2)) for condition in make_conditions(*STAGES)
    )
    paid = make_node_pool("paid", budgets=())
    free = replace(FREE, weight=10, meta=replace(FREE.meta, annotations=build_pairs({EVICTION_PRICE: "0"})))
    terms = replace(FREES_LIMITS, eviction_price_usd=0.1)
    cluster = build_cluster(
        make_old_node("a", "3", pool="paid", conditions=quiet_conditions), make_small_node("b", "3"), pools=(free, paid)
    )
    steps = take_steps(cluster, {"a"}, {"b", NEW}, terms=terms)
    assert merge_commands(cluster, steps, OPTIONS, terms) == tuple(steps)
    assert len(merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)) == 1


def make_drifted_node(name: str, cpu: str) -> Machine:
    return make_small_node(name, cpu, conditions=make_conditions(*STAGES, "Drifted", reason="AMIDrift"))


def test_replacements_of_drifted_nodes_that_are_consolidated_later_are_not_launched() -> None:
    cluster = build_cluster(make_drifted_node("a", "3"), make_drifted_node("b", "3"))
    steps = take_steps(cluster, {"a"}, {"b"}, {NEW})
    assert [step.reason for step in steps] == ["Drifted", "Drifted", "Underutilized"]
    [net_step] = merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)
    assert (net_step.reason, net_step.method, net_step.value) == ("Drifted", "Drift", None)
    assert list_targets([net_step]) == [["a", "b"]]
    assert [node.name for node in net_step.new_nodes] == [node.name for node in steps[2].new_nodes]
    assert net_step.message == "drifted: AMIDrift"


def test_drifted_and_underutilized_nodes_are_not_removed_by_one_step() -> None:
    """Budgets and pauses have reasons, so a step has one."""
    cluster = build_cluster(make_drifted_node("a", "3"), make_small_node("b", "3"))
    steps = take_steps(cluster, {"a"}, {"b", NEW})
    assert [step.reason for step in steps] == ["Drifted", "Underutilized"]
    assert merge_commands(cluster, steps, OPTIONS, FREES_LIMITS) == tuple(steps)


def test_limits_of_the_node_pool_hold_for_the_merged_step() -> None:
    """In a live cluster, the new nodes are launched beside the old ones."""
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"))
    steps = take_steps(cluster, {"a"}, {"b", NEW})
    limited = replace(cluster, node_pools=(replace(FREE, limits=parse_resources({"cpu": "12"})),))
    assert len(merge_commands(limited, steps, OPTIONS, FREES_LIMITS)) == 1
    assert merge_commands(limited, steps, OPTIONS, DisruptionSettings()) == tuple(steps)


def test_new_node_is_restricted_to_what_all_of_its_pods_need() -> None:
    zonal_pod = make_web_pod("zonal", "900m", node_selector=((ZONE, "a"),))
    cluster = build_cluster(make_old_node("a", "3"), make_node_with_pods("b", zonal_pod, cpu=2))
    [replacement] = take_steps(cluster, {"a"})
    assert replacement.new_nodes[0].requirements[ZONE].has("b")
    [deletion] = take_steps(predict_cluster_after(cluster, (replacement,)), {"b"})
    net_step = build_net_command(ClusterState(cluster), (replacement, deletion), OPTIONS, FREES_LIMITS)
    assert net_step is not None
    [node] = net_step.new_nodes
    assert node.pods == ("shop/on-a", "shop/zonal")
    assert node.requirements[ZONE].values == {"a"}
    assert node.cheapest == replacement.new_nodes[0].cheapest


def test_new_node_keeps_the_zone_of_its_cheapest_offering() -> None:
    """Spread constraints alone would choose a zone with fewer pods, so the node would differ from the simulated one."""
    spread = SpreadConstraint(topology_key=ZONE, max_skew=2, selector=build_label_selector({"app": "even"}))
    first_pod, second_pod = (
        make_web_pod(name, cpu, labels={"app": "even"}, spread=(spread,))
        for name, cpu in (("x", "1900m"), ("y", "900m"))
    )
    cluster = build_cluster(
        make_old_node("a", "3"), make_node_with_pods("b", second_pod, cpu=2), make_node_with_pods("c", first_pod, cpu=2)
    )
    [replacement] = take_steps(cluster, {"a"})
    [deletion] = take_steps(predict_cluster_after(cluster, (replacement,)), {"b"})
    assert deletion.moves == (("shop/y", replacement.new_nodes[0].name),)
    net_step = build_net_command(ClusterState(cluster), (replacement, deletion), OPTIONS, FREES_LIMITS)
    assert net_step is not None
    assert net_step.new_nodes[0].requirements[ZONE].values == {"a"}


def test_rules_of_the_reason_apply_to_every_node_of_a_merged_step() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"))
    steps = take_steps(cluster, {"a"}, {"b", NEW})
    state = ClusterState(replace(cluster, node_pools=(replace(FREE, consolidation_policy="WhenEmpty"),)))
    assert build_net_command(state, steps, OPTIONS, FREES_LIMITS) is None
    drifted = build_cluster(make_drifted_node("a", "3"), make_drifted_node("b", "3"))
    drift_steps = take_steps(drifted, {"a"}, {"b"}, {NEW})
    assert build_net_command(ClusterState(drifted), drift_steps, OPTIONS, FREES_LIMITS) is not None
    assert build_net_command(ClusterState(cluster), drift_steps, OPTIONS, FREES_LIMITS) is None


def test_protected_node_is_not_removed_by_a_merged_step() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"))
    steps = take_steps(cluster, {"a"}, {"b", NEW})
    annotations = build_pairs({DO_NOT_DISRUPT: "true"})
    nodes = tuple(replace(node, meta=replace(node.meta, annotations=annotations)) for node in cluster.nodes)
    assert build_net_command(ClusterState(replace(cluster, nodes=nodes)), steps, OPTIONS, FREES_LIMITS) is None


def test_merged_step_has_no_more_nodes_than_a_command() -> None:
    cluster = build_cluster(*(make_node_with_pods(f"a{number:03}") for number in range(MAX_TARGETS_PER_COMMAND + 1)))
    first, second = decide_disruption(cluster, FREES_LIMITS).proposed_commands
    largest = build_net_command(ClusterState(cluster), (first,), OPTIONS, FREES_LIMITS)
    assert largest is not None
    assert len(largest.targets) == MAX_TARGETS_PER_COMMAND
    larger = replace(first, targets=(*first.targets, *second.targets))
    assert build_net_command(ClusterState(cluster), (larger,), OPTIONS, FREES_LIMITS) is None


def test_empty_node_is_removed_before_the_merged_step() -> None:
    cluster = build_cluster(make_old_node("a", "3"), make_small_node("b", "3"), make_node_with_pods("e", cpu=2))
    steps = take_steps(cluster, {"a"}, {"e"}, {"b", NEW})
    assert [step.reason for step in steps] == ["Underutilized", "Empty", "Underutilized"]
    net_steps = merge_commands(cluster, steps, OPTIONS, FREES_LIMITS)
    assert list_targets(net_steps) == [["e"], ["a", "b"]]
