"""Which nodes go, with what in their place, and what is said of the others."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.disruption.terms import EVERYTHING, Terms
from shared.model.labels import (
    CAPACITY_TYPE,
    DISRUPTION_WINDOWS,
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    HOSTNAME,
    INSTANCE_TYPE,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
    NOMINATED_UNTIL,
    ZONE,
)
from shared.model.nodepools import Budget
from shared.model.objects import Meta, pairs
from shared.model.pods import AffinityTerm, SpreadConstraint
from shared.model.selectors import selector
from shared.model.units import instant_text
from tests.unit.catalogues import NOW, ZONES, instance_type, needs, pod, pool
from tests.unit.disruption_fleet import (
    BOTH,
    FREE,
    MANY_SPOT,
    STAGES,
    TYPES,
    fleet,
    gone,
    guard,
    machine,
    percent,
    swept,
    true,
    verdict,
    web,
)


def test_an_empty_node_goes_and_a_full_one_stays() -> None:
    found = swept(fleet(machine("a"), machine("b", web("1", "3500m"), cpu=4)))
    assert gone(found) == [("Emptiness", ["a"], [])]
    assert verdict(found, "a")[:2] == ("disrupted", "Empty")


def test_all_empty_nodes_go_at_once_in_commands_of_a_hundred() -> None:
    found = swept(fleet(*(machine(f"n{number:03d}") for number in range(130))))
    assert [(method, len(nodes)) for method, nodes, _ in gone(found)] == [("Emptiness", 100), ("Emptiness", 30)]


def test_a_node_whose_pods_have_room_elsewhere_goes() -> None:
    found = swept(fleet(machine("a", web("1")), machine("b", web("2", "2"))))
    assert gone(found) == [("SingleNode", ["a"], [])]
    assert found.commands[0].homes == (("shop/1", "b"),)
    assert found.commands[0].savings_usd_per_hour == pytest.approx(0.2)


def test_several_nodes_go_together_if_all_their_pods_find_room() -> None:
    some = [machine(f"n{number}", web(str(number), "500m")) for number in range(8)]
    found = swept(fleet(*some))
    assert [(method, len(nodes)) for method, nodes, _ in gone(found)] == [("MultiNode", 7)]


def test_a_node_that_is_too_large_is_replaced_by_a_smaller_one() -> None:
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=16)))
    assert gone(found) == [("SingleNode", ["a"], ["m.02", "m.04", "m.08"])]
    made = found.commands[0].replacements[0]
    assert made.pods == ("shop/1",)
    assert found.commands[0].homes == (("shop/1", made.claim.name),)
    assert found.commands[0].savings_usd_per_hour == pytest.approx(0.8 - 0.1)


def test_a_node_is_never_replaced_by_one_of_the_same_price() -> None:
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=2)))
    assert gone(found) == []
    kind, reason, message = verdict(found, "a")
    assert (kind, reason) == ("kept", "NoCheaperOffering")
    assert "1 pods need 1500m cpu and 1.0 GiB" in message


def test_two_nodes_that_could_not_go_alone_are_replaced_by_one() -> None:
    large = instance_type("m.06", 6, price=0.35)
    some = [machine(name, web(name, "2500m")) for name in ("a", "b")]
    found = swept(fleet(*some, types=(*TYPES, large)))
    assert gone(found) == [("MultiNode", ["a", "b"], ["m.06"])]


def test_one_of_two_goes_where_a_new_node_would_be_like_the_other() -> None:
    some = [
        machine("a", web("a", "2500m")),
        machine("b", web("b", "1500m"), cpu=2),
        machine("c", web("c", "1500m"), cpu=2),
    ]
    found = swept(fleet(*some, types=TYPES))
    assert all("m.04" not in kinds or "a" not in nodes for _, nodes, kinds in gone(found))


def test_several_nodes_are_replaced_by_several_that_cost_less() -> None:
    kind = instance_type("c.05", 5, price=0.15)
    some = [machine(f"n{number}", web(str(number), "2400m")) for number in range(9)]
    found = swept(fleet(*some, types=(*TYPES, kind)))
    assert sum(one.savings_usd_per_hour for one in found.commands) == pytest.approx(9 * 0.2 - 5 * 0.15)


def test_pods_go_only_where_their_own_rules_let_them() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "web"})),)
    mine = [web(str(number), "500m", pod_anti_affinity=apart) for number in range(3)]
    found = swept(fleet(*(machine(f"n{number}", one, cpu=2) for number, one in enumerate(mine))))
    assert gone(found) == []


def test_spread_holds_after_a_node_has_gone() -> None:
    rule = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector({"app": "web"})),)
    some = [machine(f"n{zone}", web(zone, "500m", spread=rule), zone=zone, cpu=2) for zone in ZONES]
    found = swept(fleet(*some, machine("big", pod("big", "1"), cpu=16, annotations={DO_NOT_DISRUPT: "true"})))
    assert all(verdict(found, f"n{zone}")[0] == "kept" for zone in "bc")


def test_a_follower_goes_with_whom_it_follows() -> None:
    near = (AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "web"})),)
    pair = (web("1", "1"), web("2", "1", pod_affinity=near))
    found = swept(fleet(machine("a", *pair), machine("b", pod("x", "1", labels={"app": "x"}), cpu=8)))
    homes = dict(found.commands[0].homes)
    assert homes.get("shop/1") == homes.get("shop/2")


def test_a_pod_that_waits_is_reckoned_with() -> None:
    waiting = pod("waits", "3")
    found = swept(fleet(machine("a", web("1", "500m")), machine("b", web("2", "500m")), pods=(waiting,)))
    assert gone(found) == [("SingleNode", ["b"], [])] or gone(found) == []
    assert verdict(found, "a")[:2] == ("blocked", "Nominated")


def test_nodes_that_are_not_fit_take_nothing() -> None:
    fresh = machine("b", conditions=true("Launched", "Registered"))
    unfit = replace(fresh[0], meta=replace(fresh[0].meta, labels=tuple(fresh[0].meta.labels[:-1])))
    labels = pairs({key: value for key, value in fresh[0].meta.labels if key != "karpenter.sh/initialized"})
    unfit = replace(fresh[0], meta=replace(fresh[0].meta, labels=labels))
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=2), (unfit, fresh[1], ())))
    assert gone(found) == []


# Who may not be touched, or is not worth it.


@pytest.mark.parametrize(
    ("one", "more", "reason", "message"),
    [
        (machine("a", web("1"), annotations={DO_NOT_DISRUPT: "true"}), {}, "DoNotDisrupt", "do-not-disrupt"),
        (machine("a", web("1"), annotations={DO_NOT_CONSOLIDATE: "true"}), {}, "DoNotDisrupt", "do-not-disrupt"),
        (
            machine("a", web("1"), annotations={NOMINATED_UNTIL: instant_text(NOW + timedelta(minutes=1))}),
            {},
            "Nominated",
            "nominated",
        ),
        (machine("a", web("1")), {"budgets": (guard("web", {"app": "web"}, 0),)}, "PodBlocksEviction", "shop/web"),
        (
            machine("a", web("1")),
            {"budgets": (guard("web", {"app": "web"}, 1), guard("too", {"app": "web"}, 1))},
            "PodBlocksEviction",
            "2 pod disruption budgets",
        ),
        (machine("a", web("1"), own="other"), {}, "NodePoolNotFound", "other"),
    ],
)
def test_why_a_node_must_not_be_touched(one: object, more: dict[str, object], reason: str, message: str) -> None:
    found = swept(fleet(one, machine("b"), **more))  # type: ignore[arg-type]
    kind, why, words = verdict(found, "a")
    assert (kind, why) == ("blocked", reason)
    assert message in words


@pytest.mark.parametrize(
    ("annotations", "started", "blocks"),
    [
        ({DO_NOT_DISRUPT: "true"}, None, True),
        ({DO_NOT_EVICT: "true"}, None, True),
        ({DO_NOT_EVICT: "false"}, None, False),
        ({DO_NOT_DISRUPT: "false"}, None, False),
        ({DO_NOT_DISRUPT: "10m"}, NOW - timedelta(minutes=5), True),
        ({DO_NOT_DISRUPT: "10m"}, NOW - timedelta(minutes=15), False),
        ({DO_NOT_DISRUPT: "-10m"}, NOW, False),
    ],
)
def test_a_pod_may_forbid_it(annotations: dict[str, str], started: object, *, blocks: bool) -> None:
    one = web("1")
    one = replace(one, meta=replace(one.meta, annotations=pairs(annotations)), started_at=started)
    found = swept(fleet(machine("a", one), machine("b", web("2", "2"))))
    assert (verdict(found, "a")[1] == "PodBlocksEviction") is blocks


def test_a_pdb_that_allows_one_lets_the_node_go() -> None:
    found = swept(fleet(machine("a", web("1")), machine("b", web("2", "2")), budgets=(guard("g", {"app": "web"}, 1),)))
    assert gone(found) == [("SingleNode", ["a"], [])]


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (pool(budgets=(), consolidation_policy="WhenEmpty"), "PolicyWhenEmpty"),
        (pool(budgets=(), consolidate_after=None), "ConsolidationDisabled"),
        (pool(budgets=(), replicas=2), "StaticPool"),
    ],
)
def test_why_a_pool_keeps_its_nodes(own: object, reason: str) -> None:
    found = swept(fleet(machine("a", web("1")), machine("b", web("2", "2")), pools=(own,)))  # type: ignore[arg-type]
    assert gone(found) == []
    assert verdict(found, "a")[:2] == ("kept", reason)


def test_an_empty_node_goes_whatever_the_policy() -> None:
    found = swept(fleet(machine("a"), pools=(pool(budgets=(), consolidation_policy="WhenEmpty"),)))
    assert gone(found) == [("Emptiness", ["a"], [])]


def test_a_node_must_have_been_quiet() -> None:
    found = swept(fleet(machine("a", web("1"), conditions=true(*STAGES[:3])), machine("b", web("2", "2"))))
    assert verdict(found, "a")[:2] == ("kept", "NotConsolidatable")


@pytest.mark.parametrize("key", [CAPACITY_TYPE, ZONE, INSTANCE_TYPE])
def test_a_node_that_nothing_is_known_of_is_not_consolidated(key: str) -> None:
    there, claim, pods = machine("a", web("1"))
    labels = tuple(pair for pair in there.meta.labels if pair[0] != key)
    bare = (replace(there, meta=replace(there.meta, labels=labels)), claim, pods)
    found = swept(fleet(bare, machine("b", web("2", "2"))))
    assert verdict(found, "a")[0] == "kept"
    assert gone(found) in ([], [("SingleNode", ["b"], [])])


def test_a_node_inside_its_own_window_takes_no_pods() -> None:
    slow = pool("slow", budgets=(), consolidate_after=timedelta(hours=1))
    event = NOW - timedelta(minutes=1)
    young = machine("b", web("2", "2"), own="slow", last_pod_event_at=event, conditions=true(*STAGES[:3]))
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=2), young, pools=(FREE, slow)))
    assert gone(found) == []


def test_a_node_that_has_been_quiet_for_long_takes_them() -> None:
    slow = pool("slow", budgets=(), consolidate_after=timedelta(hours=1))
    old = machine("b", web("2", "2"), own="slow", last_pod_event_at=NOW - timedelta(hours=2))
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=2), old, pools=(FREE, slow)))
    assert gone(found) == [("SingleNode", ["a"], [])]


# Budgets, pauses, thresholds.


@pytest.mark.parametrize(
    ("own", "count"),
    [
        (percent("1"), 1),
        (percent("50%"), 2),
        (percent("10%"), 1),
        (percent("0"), 0),
        (percent("0", reasons=("Drifted",)), 4),
        (percent("0", reasons=("Empty",)), 0),
        (percent("110%"), 0),
        (pool(budgets=()), 4),
        (pool(budgets=(Budget(nodes="0", schedule="0 12 * * *", duration=timedelta(hours=1)),)), 0),
        (pool(budgets=(Budget(nodes="0", schedule="0 11 * * *", duration=timedelta(hours=1)),)), 4),
        (pool(budgets=(Budget(nodes="0", schedule="what", duration=timedelta(hours=1)),)), 0),
    ],
)
def test_budgets_say_how_many_go(own: object, count: int) -> None:
    found = swept(fleet(*(machine(f"n{number}") for number in range(4)), pools=(own,)))  # type: ignore[arg-type]
    assert sum(len(one.targets) for one in found.commands) == count
    assert sum(one.reason == "Budget" for one in found.verdicts) == 4 - count


def test_what_goes_already_counts() -> None:
    some = [machine(f"n{number}") for number in range(4)]
    found = swept(fleet(*some, pools=(percent("2"),)), busy=frozenset({"n0"}))
    assert [len(one.targets) for one in found.commands] == [1]
    assert "n0" not in {one.node for one in found.verdicts}


def test_one_budget_is_for_all_methods_of_a_sweep() -> None:
    found = swept(fleet(machine("a"), machine("b", web("1")), machine("c", web("2", "2")), pools=(percent("1"),)))
    assert sum(len(one.targets) for one in found.commands) == 1


def test_the_cluster_has_a_budget_of_its_own() -> None:
    some = [machine(f"n{number}", own=f"p{number % 2}") for number in range(6)]
    pools = tuple(pool(f"p{number}", budgets=()) for number in range(2))
    found = swept(fleet(*some, pools=pools), Terms(budgets=(Budget(nodes="50%"),)))
    assert sum(len(one.targets) for one in found.commands) == 3
    assert any("the cluster allows 3" in one.message for one in found.verdicts)


def test_the_clusters_budget_is_bad() -> None:
    found = swept(fleet(machine("a")), Terms(budgets=(Budget(nodes="many"),)))
    assert found.commands == ()
    assert verdict(found, "a")[2].startswith("joiner:disruption-budgets[0]: nodes 'many'")


@pytest.mark.parametrize("paused", [{"Empty"}, {EVERYTHING}, {"default/Empty"}])
def test_what_is_paused_stays(paused: set[str]) -> None:
    found = swept(fleet(machine("a")), paused=paused)
    assert found.commands == ()
    assert verdict(found, "a")[:2] == ("kept", "Paused")
    assert ("NodePool default" in verdict(found, "a")[2]) == ("default/Empty" in paused)


def test_a_budget_that_holds_a_pod_is_named_with_what_it_allows() -> None:
    found = swept(fleet(machine("a", web("1")), machine("b"), budgets=(guard("web", {"app": "web"}, 0),)))
    assert verdict(found, "a")[2].endswith("(0 allowed)")


@pytest.mark.parametrize("paused", [{"Drifted"}, {"other/Empty"}, set[str]()])
def test_what_is_not_paused_goes(paused: set[str]) -> None:
    assert swept(fleet(machine("a")), paused=paused).commands


def noted(**annotations: str) -> object:
    return pool(budgets=(), meta=Meta(name="default", annotations=pairs(annotations)))


@pytest.mark.parametrize(
    ("key", "value", "goes", "message"),
    [
        (MINIMUM_SAVINGS_USD, "0.69", True, ""),
        (MINIMUM_SAVINGS_USD, "0.71", False, "would save $0.7000 per hour, threshold $0.71"),
        (MINIMUM_SAVINGS_PERCENT, "85%", True, ""),
        (MINIMUM_SAVINGS_PERCENT, "90", False, "would save 88 %, threshold 90 %"),
        (MINIMUM_SAVINGS_PERCENT, "900", False, "NodePool default: joiner.dev/minimum-savings-percent"),
        (DISRUPTION_WINDOWS, "0 22 * * * 8h", False, "no window is open"),
        (DISRUPTION_WINDOWS, "0 22 * * * 8h; 0 12 * * * 5m", True, ""),
        (DISRUPTION_WINDOWS, "whenever", False, "is not a schedule and a duration"),
    ],
)
def test_annotations_of_a_pool_are_heeded(key: str, value: str, message: str, *, goes: bool) -> None:
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=16), pools=(noted(**{key: value}),)))  # type: ignore[arg-type]
    assert bool(found.commands) is goes
    assert message in verdict(found, "a")[2]


def test_time_is_up_and_the_next_sweep_begins_where_this_one_ended() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "web"})),)
    some = [machine(f"n{number}", web(str(number), "500m", pod_anti_affinity=apart), cpu=2) for number in range(9)]
    looks = iter([False] * 4 + [True] * 99)
    first = swept(fleet(*some), is_over=lambda: next(looks))
    assert first.cursor == "n4"
    seen: list[str] = []

    def is_over() -> bool:
        seen.append("")
        return len(seen) > 2

    assert swept(fleet(*some), cursor=first.cursor, is_over=is_over).cursor == "n6"


def test_every_node_has_one_verdict() -> None:
    some = [machine(f"n{number}", web(str(number), "1500m"), cpu=(2, 4, 16)[number % 3]) for number in range(12)]
    found = swept(fleet(*some, machine("empty"), pools=(percent("30%"),)))
    assert [one.node for one in found.verdicts] == sorted(["empty", *(f"n{number}" for number in range(12))])


def test_the_same_look_is_the_same_decision() -> None:
    cluster = fleet(*(machine(f"n{number}", web(str(number), "700m"), cpu=8) for number in range(6)))
    turned = replace(cluster, pods=cluster.pods[::-1], nodes=cluster.nodes[::-1], node_claims=cluster.node_claims[::-1])
    assert swept(cluster).commands == swept(turned).commands


def test_commands_are_disjoint_and_none_takes_what_another_counts_on() -> None:
    some = [machine(f"n{number:02d}", web(str(number), "1700m"), cpu=(2, 4, 8, 16)[number % 4]) for number in range(24)]
    found = swept(fleet(*some, types=BOTH))
    targets = [node for one in found.commands for node in one.nodes()]
    assert len(targets) == len(set(targets))
    assert not {home for one in found.commands for _, home in one.homes} & set(targets)


# Prices.


def test_on_demand_is_replaced_by_spot_and_by_nothing_dearer() -> None:
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=2), types=BOTH))
    [made] = found.commands[0].replacements
    assert made.claim.requirements[CAPACITY_TYPE].values == {"spot"}
    assert made.claim.requirements[INSTANCE_TYPE].values == {"m.02", "m.04"}


def test_a_spot_node_is_replaced_only_if_that_is_asked_for() -> None:
    one = machine("a", web("1", "1500m"), cpu=16, capacity_type="spot")
    found = swept(fleet(one, types=BOTH))
    assert verdict(found, "a")[1] == "SpotToSpotDisabled"


def test_a_spot_node_may_always_be_deleted() -> None:
    other = machine("b", web("2", "2"), annotations={DO_NOT_DISRUPT: "true"})
    found = swept(fleet(machine("a", web("1"), capacity_type="spot"), other, types=BOTH))
    assert gone(found) == [("SingleNode", ["a"], [])]


def test_a_spot_node_is_replaced_where_fifteen_types_are_cheaper() -> None:
    one = machine("a", web("1", "500m"), cpu=16, kind="ma.16", capacity_type="spot")
    found = swept(fleet(one, types=MANY_SPOT), Terms(spot_to_spot=True))
    assert len(found.commands[0].replacements[0].claim.requirements[INSTANCE_TYPE].values) == 15
    few = swept(fleet(one, types=[one for one in MANY_SPOT if one.name[1] in "abc"]), Terms(spot_to_spot=True))
    assert verdict(few, "a")[1] == "TooFewSpotTypes"


def test_min_values_are_kept() -> None:
    wanted = needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 4})
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=16), pools=(replace(FREE, requirements=wanted),)))
    assert gone(found) == []
    assert verdict(found, "a")[1] == "MinValuesNotMet"


def test_a_node_without_a_price_may_go_but_not_be_replaced() -> None:
    odd = machine("a", web("1", "500m"), kind="m.04", zone="z", cpu=4)
    assert gone(swept(fleet(odd))) == []
    other = machine("b", web("2", "2"), annotations={DO_NOT_DISRUPT: "true"})
    assert gone(swept(fleet(odd, other))) == [("SingleNode", ["a"], [])]


def test_a_limit_is_not_exceeded_while_both_nodes_are_there() -> None:
    from shared.model.resources import parse_resources  # noqa: PLC0415 - only here

    own = pool(budgets=(), limits=parse_resources({"cpu": "17"}))
    found = swept(fleet(machine("a", web("1", "1500m"), cpu=16), pools=(own,)))
    assert gone(found) == []


@pytest.mark.parametrize(("pods", "goes"), [(0, True), (9, False)])
def test_balanced_asks_that_savings_are_worth_the_disruption(pods: int, *, goes: bool) -> None:
    own = pool(budgets=(), consolidation_policy="Balanced")
    many = [web(f"x{number}", "10m") for number in range(pods)]
    held = {DO_NOT_DISRUPT: "true"}
    others = [machine(f"n{number}", web(f"n{number}", "15"), cpu=16, annotations=held) for number in range(2)]
    found = swept(fleet(machine("a", web("1", "1500m"), *many, cpu=16), *others, pools=(own,)))
    assert bool(found.commands) is goes
    if not goes:
        assert verdict(found, "a")[1] == "NotBalanced"
