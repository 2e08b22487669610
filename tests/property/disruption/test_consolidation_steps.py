"""A fuzz test of `joiner consolidate`: an independent judge checks every rule after each step.

The judge knows nodes, pods and prices; it shares no code with the search. It compares the cluster before and after each
step.
"""

from collections import Counter
from math import ceil

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.consolidate.steps import ConsolidationResult, consolidate
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.resources import CPU, parse_resources
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import Taint, Toleration
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from tests.support.catalogues import ZONES, make_daemon_set, make_node_pool
from tests.support.disruption_fleet import (
    BOTH,
    Machine,
    make_fleet,
    make_node_with_pods,
    make_pod_disruption_budget,
    make_web_pod,
)
from tests.support.hypothesis_profiles import limit_examples

CPUS = (2, 4, 8, 16)
SIZES = (100, 500, 900, 1500, 3000)
TAINT = Taint(key="batch", effect="NoSchedule")
TOLERATION = Toleration(key="batch", operator="Exists")
APART = AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "apart"}))
EVEN = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector({"app": "even"}))
RULES: dict[str, dict[str, object]] = {
    "plain": {},
    "guarded": {"labels": {"app": "guarded"}},
    "apart": {"labels": {"app": "apart"}, "pod_anti_affinity": (APART,)},
    "even": {"labels": {"app": "even"}, "spread": (EVEN,)},
    "batch": {"labels": {"app": "batch"}, "tolerations": (TOLERATION,)},
    "paid": {"labels": {"app": "paid"}, "node_selector": ((CAPACITY_TYPE, "on-demand"),)},
}


@st.composite
def generate_machine(draw: st.DrawFn, number: int) -> Machine:
    """A node with pods that it has room for and that may be there."""
    cpu, kind = draw(st.sampled_from(CPUS)), draw(st.sampled_from(("spot", "on-demand")))
    pool = draw(st.sampled_from(("default", "default", "batch")))
    free_cpu_milli, pods, rules = cpu * 1000, list[Pod](), set[str]()
    for place in range(draw(st.integers(0, 5))):
        rule = "batch" if pool == "batch" else draw(st.sampled_from(sorted(RULES)))
        size = draw(st.sampled_from(SIZES))
        alone = rule == "apart" and rule in rules
        if size <= free_cpu_milli and not alone and not (rule == "paid" and kind == "spot"):
            free_cpu_milli -= size
            rules.add(rule)
            pods.append(make_web_pod(f"{rule}-{number}-{place}", f"{size}m", **RULES[rule]))
    annotations = {DO_NOT_DISRUPT: "true"} if draw(st.integers(0, 7)) == 0 else {}
    zone = draw(st.sampled_from(ZONES))
    node, claim, placed_pods = make_node_with_pods(
        f"n{number}", *pods, cpu=cpu, capacity_type=kind, zone=zone, pool=pool, annotations=annotations
    )
    return replace(node, taints=(TAINT,) if pool == "batch" else ()), claim, placed_pods


@st.composite
def generate_cluster(draw: st.DrawFn) -> ClusterSnapshot:
    """A fleet of up to eight nodes of two NodePools, with budgets, limits, a guard and a DaemonSet."""
    machines = [draw(generate_machine(number)) for number in range(draw(st.integers(0, 8)))]
    allowed = draw(st.sampled_from(("100%", "50%", "1")))
    limits = draw(st.sampled_from((None, "2", "8", "16", "40")))
    policy = draw(st.sampled_from(("WhenEmptyOrUnderutilized", "WhenEmpty")))
    pools = (
        make_node_pool(
            "batch", budgets=(DisruptionBudget(nodes="100%"),), taints=(TAINT,), consolidation_policy=policy
        ),
        make_node_pool(
            budgets=(DisruptionBudget(nodes=allowed),), limits=parse_resources({"cpu": limits}) if limits else None
        ),
    )
    agents = (make_daemon_set("agent", tolerations=(TOLERATION,)),) if draw(st.booleans()) else ()
    guards = (make_pod_disruption_budget("guarded", {"app": "guarded"}, 0),)
    return make_fleet(*machines, pools=pools, types=BOTH, budgets=guards, daemon_sets=agents)


def run_consolidation(
    cluster: ClusterSnapshot,
) -> tuple[ConsolidationResult, list[tuple[ProposedCommand, ClusterSnapshot, ClusterSnapshot]]]:
    """Return the result and all steps, each with the cluster before and after it."""
    result, now = consolidate(cluster, SchedulingOptions(), DisruptionSettings(frees_limits=True)), cluster
    played = []
    for step in result.steps:
        last, now = now, predict_cluster_after(now, (step.proposed_command,))
        played.append((step.proposed_command, last, now))
    return result, played


def compute_price(cluster: ClusterSnapshot) -> float:
    """Compute the price of the nodes in $/h from the catalogue, by their labels."""
    assert cluster.catalog is not None
    price_by_offering = {
        (sold.name, offering.zone, offering.capacity_type): offering.price_usd_per_hour
        for sold in cluster.catalog.instance_types
        for offering in sold.offerings
    }
    labels = (dict(node.meta.labels) for node in cluster.nodes)
    return sum(
        price_by_offering[node_labels[INSTANCE_TYPE], node_labels[ZONE], node_labels[CAPACITY_TYPE]]
        for node_labels in labels
    )


def group_pods_by_node(cluster: ClusterSnapshot) -> dict[str, list[Pod]]:
    """Return the pods of each node."""
    pods_by_node: dict[str, list[Pod]] = {node.name: [] for node in cluster.nodes}
    for pod in cluster.pods:
        pods_by_node[pod.node_name].append(pod)
    return pods_by_node


def get_app(pod: Pod) -> str:
    return pod.meta.get_label("app")


def compute_zone_skew(cluster: ClusterSnapshot) -> int:
    """Compute the difference between the largest and the smallest number of pods in a zone."""
    zones = {node.name: node.meta.get_label(ZONE) for node in cluster.nodes}
    pods = Counter(zones[pod.node_name] for pod in cluster.pods if get_app(pod) == "even")
    return max(pods[zone] for zone in ZONES) - min(pods[zone] for zone in ZONES)


def compute_cpu_capacity(cluster: ClusterSnapshot, pool: str) -> int:
    return sum(node.capacity[CPU] for node in cluster.nodes if node.meta.get_label(NODEPOOL) == pool)


@limit_examples(30)
@given(generate_cluster())
def test_pods_fit_and_satisfy_their_constraints_after_every_step(cluster: ClusterSnapshot) -> None:
    agents = bool(cluster.daemon_sets)
    for draft, _, now in run_consolidation(cluster)[1]:
        nodes = {listed_node.name: listed_node for listed_node in now.nodes}
        new_node_names = {new_node.name for new_node in draft.new_nodes}
        for name, pods in group_pods_by_node(now).items():
            node, used = nodes[name], sum(pod.spec.requests[CPU] for pod in pods)
            assert used + (100 if agents and name in new_node_names else 0) <= node.allocatable[CPU]
            assert Counter(map(get_app, pods))["apart"] < 2
            assert not node.taints or all(pod.spec.tolerations for pod in pods)
            assert all(node.meta.get_label(CAPACITY_TYPE) == "on-demand" for pod in pods if get_app(pod) == "paid")


@limit_examples(30)
@given(generate_cluster())
def test_no_pod_is_lost_and_only_pods_of_removed_nodes_move(cluster: ClusterSnapshot) -> None:
    for draft, last, now in run_consolidation(cluster)[1]:
        removed_names = {target.name for target in draft.targets}
        old, new = group_pods_by_node(last), group_pods_by_node(now)
        assert sorted(pod.name for pod in now.pods) == sorted(pod.name for pod in last.pods)
        for name in old.keys() - removed_names:
            assert {pod.name for pod in old[name]} <= {pod.name for pod in new[name]}
        assert {pod for pod, _ in draft.moves} == {pod.name for name in removed_names for pod in old[name]}


@limit_examples(30)
@given(generate_cluster())
def test_protected_nodes_stay_and_zone_skew_does_not_increase(cluster: ClusterSnapshot) -> None:
    for draft, last, now in run_consolidation(cluster)[1]:
        pods = group_pods_by_node(last)
        for target in draft.targets:
            assert not target.node.meta.get_annotation(DO_NOT_DISRUPT)
            assert "guarded" not in map(get_app, pods[target.name])
            assert draft.reason == "Empty" or target.pool.consolidation_policy != "WhenEmpty"
            assert draft.reason != "Empty" or not pods[target.name]
        assert compute_zone_skew(now) <= max(1, compute_zone_skew(last)) or not any(
            pod.startswith("shop/even") for pod, _ in draft.moves
        )


@limit_examples(30)
@given(generate_cluster())
def test_reported_savings_are_real_and_never_below_the_ideal_price(cluster: ClusterSnapshot) -> None:
    result, played = run_consolidation(cluster)
    for draft, last, now in played:
        assert abs(compute_price(last) - compute_price(now) - draft.savings_usd_per_hour) < 1e-9
        assert draft.savings_usd_per_hour > 0
        assert {target.name for target in draft.targets}.isdisjoint(new_node.name for new_node in draft.new_nodes)
    assert abs(result.after.price_usd_per_hour - compute_price(result.cluster)) < 1e-9
    assert result.ideal_usd_per_hour <= result.after.price_usd_per_hour


@limit_examples(30)
@given(generate_cluster())
def test_budgets_and_limits_hold_after_every_step(cluster: ClusterSnapshot) -> None:
    assert cluster.catalog is not None
    sizes = {instance_type.name: instance_type.capacity[CPU] for instance_type in cluster.catalog.instance_types}
    for draft, last, now in run_consolidation(cluster)[1]:
        for node_pool in cluster.node_pools:
            nodes = [node for node in last.nodes if node.meta.get_label(NODEPOOL) == node_pool.name]
            removed_count = sum(target.pool.name == node_pool.name for target in draft.targets)
            budget = node_pool.budgets[0].nodes
            assert removed_count <= (ceil(len(nodes) * int(budget[:-1]) / 100) if budget.endswith("%") else int(budget))
            new = [new_node for new_node in draft.new_nodes if new_node.node_pool == node_pool.name]
            worst = sum(
                max(sizes[name] for name in new_node.instance_types) - sizes[new_node.cheapest.instance_type]
                for new_node in new
            )
            if node_pool.limits is not None and new:
                assert compute_cpu_capacity(now, node_pool.name) + worst <= node_pool.limits[CPU]
