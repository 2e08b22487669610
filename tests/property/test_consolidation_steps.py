"""A small fuzz of `joiner consolidate`: whatever the fleet, each step keeps every rule, by a judge of its own.

The judge knows nodes, pods and prices; it shares no code with the search. What it looks at is the cluster before and
after each step.
"""

from collections import Counter
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.steps import Consolidated, consolidate
from shared.disruption.aftermath import after
from shared.disruption.drafts import Draft
from shared.disruption.terms import Terms
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodepools import Budget
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.resources import CPU, parse_resources
from shared.model.selectors import selector
from shared.model.taints import Taint, Toleration
from shared.scheduling.placement import Options
from tests.unit.catalogues import ZONES, daemon, pool
from tests.unit.disruption_fleet import BOTH, Machine, fleet, guard, machine, web

CPUS = (2, 4, 8, 16)
SIZES = (100, 500, 900, 1500, 3000)
TAINT = Taint(key="batch", effect="NoSchedule")
TOLERATION = Toleration(key="batch", operator="Exists")
APART = AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "apart"}))
EVEN = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector({"app": "even"}))
RULES: dict[str, dict[str, object]] = {
    "plain": {},
    "guarded": {"labels": {"app": "guarded"}},
    "apart": {"labels": {"app": "apart"}, "pod_anti_affinity": (APART,)},
    "even": {"labels": {"app": "even"}, "spread": (EVEN,)},
    "batch": {"labels": {"app": "batch"}, "tolerations": (TOLERATION,)},
    "paid": {"labels": {"app": "paid"}, "node_selector": ((CAPACITY_TYPE, "on-demand"),)},
}


@st.composite
def machines(draw: st.DrawFn, number: int) -> Machine:
    """A node with pods that it has room for and that may be there."""
    cpu, kind = draw(st.sampled_from(CPUS)), draw(st.sampled_from(("spot", "on-demand")))
    own = draw(st.sampled_from(("default", "default", "batch")))
    left, pods, rules = cpu * 1000, list[Pod](), set[str]()
    for place in range(draw(st.integers(0, 5))):
        rule = "batch" if own == "batch" else draw(st.sampled_from(sorted(RULES)))
        size = draw(st.sampled_from(SIZES))
        alone = rule == "apart" and rule in rules
        if size <= left and not alone and not (rule == "paid" and kind == "spot"):
            left -= size
            rules.add(rule)
            pods.append(web(f"{rule}-{number}-{place}", f"{size}m", **RULES[rule]))
    held = {DO_NOT_DISRUPT: "true"} if draw(st.integers(0, 7)) == 0 else {}
    zone = draw(st.sampled_from(ZONES))
    made, claim, some = machine(f"n{number}", *pods, cpu=cpu, capacity_type=kind, zone=zone, own=own, annotations=held)
    return replace(made, taints=(TAINT,) if own == "batch" else ()), claim, some


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A fleet of up to eight nodes of two NodePools, with budgets, limits, a guard and a DaemonSet."""
    some = [draw(machines(number)) for number in range(draw(st.integers(0, 8)))]
    allowed = draw(st.sampled_from(("100%", "50%", "1")))
    limits = draw(st.sampled_from((None, "2", "8", "16", "40")))
    policy = draw(st.sampled_from(("WhenEmptyOrUnderutilized", "WhenEmpty")))
    pools = (
        pool("batch", budgets=(Budget(nodes="100%"),), taints=(TAINT,), consolidation_policy=policy),
        pool(budgets=(Budget(nodes=allowed),), limits=parse_resources({"cpu": limits}) if limits else None),
    )
    agents = (daemon("agent", tolerations=(TOLERATION,)),) if draw(st.booleans()) else ()
    guards = (guard("guarded", {"app": "guarded"}, 0),)
    return fleet(*some, pools=pools, types=BOTH, budgets=guards, daemon_sets=agents)


def consolidated(cluster: Cluster) -> tuple[Consolidated, list[tuple[Draft, Cluster, Cluster]]]:
    """Answer all steps, and each with the clusters before and after it."""
    found, now = consolidate(cluster, Options(), Terms(frees_limits=True)), cluster
    played = []
    for one in found.steps:
        last, now = now, after(now, (one.draft,))
        played.append((one.draft, last, now))
    return found, played


def price(cluster: Cluster) -> float:
    """Answer what the nodes cost, looked up in the catalogue by their labels."""
    assert cluster.catalogue is not None
    known = {
        (sold.name, one.zone, one.capacity_type): one.price_usd_per_hour
        for sold in cluster.catalogue.instance_types
        for one in sold.offerings
    }
    labels = (dict(one.meta.labels) for one in cluster.nodes)
    return sum(known[some[INSTANCE_TYPE], some[ZONE], some[CAPACITY_TYPE]] for some in labels)


def there(cluster: Cluster) -> dict[str, list[Pod]]:
    """Answer the pods on each node."""
    found: dict[str, list[Pod]] = {one.name: [] for one in cluster.nodes}
    for pod in cluster.pods:
        found[pod.node_name].append(pod)
    return found


def app(pod: Pod) -> str:
    return pod.meta.label("app")


def skew(cluster: Cluster) -> int:
    """Answer by how many pods the zones differ."""
    zones = {one.name: one.meta.label(ZONE) for one in cluster.nodes}
    pods = Counter(zones[pod.node_name] for pod in cluster.pods if app(pod) == "even")
    return max(pods[zone] for zone in ZONES) - min(pods[zone] for zone in ZONES)


def cpu_of(cluster: Cluster, own: str) -> int:
    return sum(one.capacity[CPU] for one in cluster.nodes if one.meta.label(NODEPOOL) == own)


@settings(max_examples=30)
@given(clusters())
def test_pods_fit_and_may_be_where_they_are(cluster: Cluster) -> None:
    agents = bool(cluster.daemon_sets)
    for draft, _, now in consolidated(cluster)[1]:
        nodes = {one.name: one for one in now.nodes}
        made = {one.name for one in draft.new_nodes}
        for name, pods in there(now).items():
            node, used = nodes[name], sum(pod.spec.requests[CPU] for pod in pods)
            assert used + (100 if agents and name in made else 0) <= node.allocatable[CPU]
            assert Counter(map(app, pods))["apart"] < 2
            assert not node.taints or all(pod.spec.tolerations for pod in pods)
            assert all(node.meta.label(CAPACITY_TYPE) == "on-demand" for pod in pods if app(pod) == "paid")


@settings(max_examples=30)
@given(clusters())
def test_no_pod_is_lost_and_only_those_of_nodes_that_go_move(cluster: Cluster) -> None:
    for draft, last, now in consolidated(cluster)[1]:
        gone = {one.name for one in draft.targets}
        old, new = there(last), there(now)
        assert sorted(pod.name for pod in now.pods) == sorted(pod.name for pod in last.pods)
        for name in old.keys() - gone:
            assert {pod.name for pod in old[name]} <= {pod.name for pod in new[name]}
        assert {pod for pod, _ in draft.moves} == {pod.name for name in gone for pod in old[name]}


@settings(max_examples=30)
@given(clusters())
def test_who_is_held_stays_and_zones_stay_even(cluster: Cluster) -> None:
    for draft, last, now in consolidated(cluster)[1]:
        pods = there(last)
        for one in draft.targets:
            assert not one.node.meta.annotation(DO_NOT_DISRUPT)
            assert "guarded" not in map(app, pods[one.name])
            assert draft.reason == "Empty" or one.pool.consolidation_policy != "WhenEmpty"
            assert draft.reason != "Empty" or not pods[one.name]
        assert skew(now) <= max(1, skew(last)) or not any(pod.startswith("shop/even") for pod, _ in draft.moves)


@settings(max_examples=30)
@given(clusters())
def test_savings_are_real_however_nodes_are_launched(cluster: Cluster) -> None:
    found, played = consolidated(cluster)
    for draft, last, now in played:
        assert abs(price(last) - price(now) - draft.savings_usd_per_hour) < 1e-9
        assert draft.savings_usd_per_hour > 0
        assert {one.name for one in draft.targets}.isdisjoint(one.name for one in draft.new_nodes)
    assert abs(found.after.price_usd_per_hour - price(found.cluster)) < 1e-9
    assert found.ideal_usd_per_hour <= found.after.price_usd_per_hour


@settings(max_examples=30)
@given(clusters())
def test_budgets_and_limits_hold_at_every_step(cluster: Cluster) -> None:
    assert cluster.catalogue is not None
    sizes = {one.name: one.capacity[CPU] for one in cluster.catalogue.instance_types}
    for draft, last, now in consolidated(cluster)[1]:
        for own in cluster.node_pools:
            nodes = [one for one in last.nodes if one.meta.label(NODEPOOL) == own.name]
            gone = sum(one.pool.name == own.name for one in draft.targets)
            most = own.budgets[0].nodes
            assert gone <= (ceil(len(nodes) * int(most[:-1]) / 100) if most.endswith("%") else int(most))
            new = [one for one in draft.new_nodes if one.node_pool == own.name]
            worst = sum(
                max(sizes[name] for name in one.instance_types) - sizes[one.cheapest.instance_type] for one in new
            )
            if own.limits is not None and new:
                assert cpu_of(now, own.name) + worst <= own.limits[CPU]
