"""Rules of disruption that no sweep of a whole fleet shows by itself."""

import pytest
from msgspec.structs import replace

from shared.disruption.balanced import BALANCED, Worthwhile
from shared.disruption.candidates import Candidate, assess, field_of
from shared.disruption.eligibility import kept_from_consolidation, refuses_pods
from shared.disruption.terms import Terms
from shared.model.catalogue import InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.nodes import NodeClaim
from shared.model.objects import Condition, pairs
from shared.model.taints import Taint
from tests.unit.catalogues import NOW, instance_type, needs, node_class, pool
from tests.unit.disruption_fleet import (
    MANY_SPOT,
    STAGES,
    TYPES,
    Machine,
    fleet,
    gone,
    machine,
    swept,
    true,
    verdict,
    web,
)

BALANCED_POOLS = tuple(pool(name, budgets=(), consolidation_policy=BALANCED) for name in ("one", "two"))


def candidates_of(cluster: Cluster) -> dict[str, Candidate]:
    field = field_of(cluster)
    judged = {one.name: assess(one, field) for one in field.states}
    return {name: one for name, one in judged.items() if isinstance(one, Candidate)}


def judged(cluster: Cluster) -> Worthwhile:
    return Worthwhile(field_of(cluster), candidates_of(cluster))


def two_pools() -> Cluster:
    """`one` has a dear node with few pods and another, `two` a cheap node with many and another."""
    many = [web(f"m{number}", "100m") for number in range(9)]
    return fleet(
        machine("a", web("1"), cpu=16, own="one"),
        machine("b", web("2"), cpu=4, own="one"),
        machine("c", *many, cpu=2, own="two"),
        machine("d", web("3"), cpu=16, own="two"),
        pools=BALANCED_POOLS,
    )


def test_every_balanced_pool_of_a_command_is_asked() -> None:
    cluster = two_pools()
    found, mine = judged(cluster), candidates_of(cluster)
    assert found.refusal((mine["a"],), 0.8) is None
    together = found.refusal((mine["a"], mine["c"]), 0.9)
    assert together is not None
    assert together.reason == "NotBalanced"


def test_what_a_command_saves_is_shared_by_what_its_nodes_cost() -> None:
    cluster = two_pools()
    found, mine = judged(cluster), candidates_of(cluster)
    some = (mine["a"], mine["c"])
    price = sum(one.price_usd_per_hour for one in some)
    assert price == pytest.approx(0.9)
    alone = found.score("one", (mine["a"],), 0.8, 0.8)
    assert found.score("one", some, 0.9, price) == pytest.approx(alone)
    assert alone == pytest.approx((0.8 / 1.0) / (2 / 4))


def test_where_claims_do_not_say_what_they_are_their_nodes_prices_count() -> None:
    cluster = two_pools()
    mute = tuple(without(one, INSTANCE_TYPE) for one in cluster.node_claims)
    assert judged(replace(cluster, node_claims=mute)).score(
        "one", (candidates_of(cluster)["a"],), 0.8, 0.8
    ) == pytest.approx(1.6)


def without(claim: NodeClaim, label: str) -> NodeClaim:
    own = {key: value for key, value in claim.meta.labels if key != label}
    return replace(claim, meta=replace(claim.meta, labels=pairs(own)))


@pytest.mark.parametrize("label", [ZONE, CAPACITY_TYPE])
def test_a_node_that_does_not_say_what_it_is_is_not_consolidated(label: str) -> None:
    node, claim, pods = machine("a", web("1"))
    own = {key: value for key, value in node.meta.labels if key != label}
    cluster = fleet((replace(node, meta=replace(node.meta, labels=pairs(own))), claim, pods))
    [one] = candidates_of(cluster).values()
    kept = kept_from_consolidation(one, field_of(cluster))
    assert kept is not None
    assert (kept.reason, kept.message) == ("LabelMissing", f"the node has no label {label}")


@pytest.mark.parametrize(("replicas", "refuses"), [(None, True), (2, False)])
def test_nodes_of_static_pools_take_pods_at_any_time(replicas: int | None, *, refuses: bool) -> None:
    own = pool(budgets=(), consolidate_after=NOW - NOW.replace(hour=1), replicas=replicas)
    field = field_of(fleet(machine("a", web("1"), last_pod_event_at=NOW), pools=(own,)))
    assert refuses_pods(field.states[0], field) is refuses


@pytest.mark.parametrize(("ready", "goes"), [("True", True), ("False", False)])
def test_a_static_pool_that_cannot_be_used_replaces_nothing(ready: str, *, goes: bool) -> None:
    own = pool(budgets=(), replicas=1)
    classes = (replace(node_class(), conditions=(Condition(type="Ready", status=ready, reason="Test"),)),)
    drifted = machine("a", web("1"), conditions=true(*STAGES[:3], "Drifted"))
    found = swept(fleet(drifted, pools=(own,), node_classes=classes))
    assert bool(gone(found)) is goes
    if not goes:
        assert verdict(found, "a") == ("blocked", "Budget", "NodePool default has no room for a replacement")


def tainted(some: Machine) -> Machine:
    """Answer a machine that takes no pod any more, those on it are there."""
    node, claim, pods = some
    return replace(node, taints=(Taint(key="old", effect="NoSchedule"),)), claim, pods


def test_several_nodes_never_go_for_one_that_is_like_them() -> None:
    some = [tainted(machine(name, web(name, "1500m"))) for name in ("a", "b")]
    large = tuple(one for one in TYPES if one.name in ("m.04", "m.08"))
    assert gone(swept(fleet(*some, types=large))) == []
    assert [method for method, _, _ in gone(swept(fleet(*some)))] == ["SingleNode", "SingleNode"]


def priced(kind: str, cpu: int, *offerings: tuple[str, str, float]) -> InstanceType:
    sold = tuple(
        Offering(zone=zone, capacity_type=capacity_type, price_usd_per_hour=price)
        for zone, capacity_type, price in offerings
    )
    return replace(instance_type(kind, cpu), offerings=sold)


def test_where_a_zone_is_too_dear_the_replacement_is_bought_in_another() -> None:
    small = priced("m.02", 2, ("a", "on-demand", 0.1), ("b", "on-demand", 0.5))
    large = priced("m.08", 8, ("a", "on-demand", 0.4), ("b", "on-demand", 0.4))
    [command] = swept(fleet(machine("a", web("1"), cpu=8), types=(small, large))).commands
    asked = command.replacements[0].claim.requirements
    assert (sorted(asked[INSTANCE_TYPE].values), sorted(asked[ZONE].values)) == (["m.02"], ["a"])


def test_what_spot_costs_counts_where_spot_would_be_bought() -> None:
    small = priced("m.02", 2, ("a", "spot", 0.05), ("b", "spot", 0.06), ("a", "on-demand", 0.9))
    large = priced("m.08", 8, ("a", "on-demand", 0.4))
    [command] = swept(fleet(machine("a", web("1"), cpu=8), types=(small, large))).commands
    asked = command.replacements[0].claim.requirements
    assert asked[CAPACITY_TYPE].values == {"spot"}
    assert ZONE not in asked


@pytest.mark.parametrize(("least", "goes"), [(16, True), (17, False)])
def test_spot_goes_for_spot_only_where_min_values_are_kept(least: int, *, goes: bool) -> None:
    """Sixteen types are cheaper: those with two and with four cpus."""
    various = needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: least})
    own = pool(budgets=(), requirements=various)
    spot = machine("a", web("1", "100m"), cpu=8, kind="ma.08", capacity_type="spot")
    found = swept(fleet(spot, pools=(own,), types=MANY_SPOT), Terms(spot_to_spot=True))
    assert bool(found.commands) is goes
    if goes:
        assert len(found.commands[0].replacements[0].claim.requirements[INSTANCE_TYPE].values) == least
    else:
        assert verdict(found, "a")[1] == "MinValuesNotMet"
