"""What a sweep tells of nodes and NodePools, to whom, and when it is to look again."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.candidates import Blocked
from shared.disruption.events import MOST, describe_verdicts
from shared.disruption.scenes import homes, spared
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.disruption.wakes import wakes
from shared.model import labels
from shared.model.action import FollowUp, PublishEvent
from shared.model.catalogue import Catalogue
from shared.model.commands import Pause, Pauses
from shared.model.nodepools import Budget
from shared.model.state import pod_digest
from shared.report import notes
from shared.report.counts import of_placement, of_prices
from shared.report.journal import Note
from shared.report.notes import LAGS, Told, news, of_commands, of_nodes, of_pauses, of_places, told_by, voiced
from shared.scheduling.placement import Choice, Fit, NewNode, Placement, Unschedulable
from tests.unit.command_cases import order, seen, stands, substitute, there
from tests.unit.lifecycle_cases import NOW, POOL, STAGES, Case, ago, changed, claim, node, of, pod, true

KEPT = Kept(node="node-a", reason="NotEmpty", message="2 pods")
BLOCKED = Blocked(node="node-a", reason="DoNotDisrupt", message="annotated")


def none(**fields: Case) -> Case:
    return changed(POOL, budgets=(Budget(nodes="0"),), **fields)


# Events


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (BLOCKED, "DisruptionBlocked: Cannot disrupt: annotated"),
        (KEPT, "Unconsolidatable: Kept: 2 pods"),
        (Disrupted(node="node-a", reason="Empty", message="x"), ""),
        (Blocked(node="node-a", reason="NotInitialized", message="x"), ""),
        (Kept(node="node-a", reason="NotConsolidatable", message="x"), ""),
        (Blocked(node="node-a", reason="Nominated", message="for seconds"), ""),
        (Kept(node="node-a", reason="Expecting", message="until they are there"), ""),
        (Kept(node="node-z", reason="NotEmpty", message="of nobody"), ""),
    ],
)
def test_a_machine_is_told_what_is_new_and_lasts(verdict: Case, said: str) -> None:
    events = of(PublishEvent, describe_verdicts([verdict], [verdict], seen((claim(), node()))))
    told = [(one.kind, one.name, f"{one.reason}: {one.message}") for one in events]
    assert told == ([("NodeClaim", "a", said), ("Node", "node-a", said)] if said else [])
    assert describe_verdicts([], [verdict], seen((claim(), node()))) == ()


def test_a_node_of_nobody_is_told_nothing() -> None:
    assert describe_verdicts([BLOCKED], [BLOCKED], seen((None, node()))) == ()
    alone = seen((claim("a", conditions=true("Launched")), None))
    [event] = of(PublishEvent, describe_verdicts([changed(BLOCKED, node="a")], [], alone))
    assert event.kind == "NodeClaim"


def test_no_more_are_told_at_once_than_there_is_time_for() -> None:
    machines = [(claim(f"n{number}"), node(f"n{number}")) for number in range(MOST + 1)]
    verdicts = [changed(BLOCKED, node=f"node-n{number}") for number in range(MOST + 1)]
    assert len(describe_verdicts(verdicts, verdicts, seen(*machines))) == 2 * MOST


def test_a_pool_is_told_which_budget_stands_in_the_way() -> None:
    stopped = [Blocked(node="node-a", reason="Budget", message="none")]
    shut = seen((claim(), node()), node_pools=(none(),))
    events = of(PublishEvent, describe_verdicts(stopped, stopped, shut))
    assert {(one.kind, one.reason) for one in events} == {("NodePool", "DisruptionBlocked")}
    assert "No allowed disruptions for disruption reason Empty due to blocking budget" in {
        one.message for one in events
    }
    by_reason = changed(POOL, budgets=(Budget(nodes="0", reasons=("Drifted",)),))
    [event] = of(PublishEvent, describe_verdicts([], stopped, seen((claim(), node()), node_pools=(by_reason,))))
    assert "reason Drifted" in event.message
    odd = changed(POOL, budgets=(Budget(nodes="many"),))
    [event] = of(PublishEvent, describe_verdicts([], stopped, seen((claim(), node()), node_pools=(odd,))))
    assert (event.type, event.message[:37]) == ("Warning", "No disruption is allowed: spec.disrup")
    assert describe_verdicts([], [KEPT], shut) == ()


def test_why_a_machine_stays_is_said_anew_after_a_while_though_it_changes_with_every_pod() -> None:
    memory: dict[str, object] = {}

    def heard(minutes: float, verdict: Case) -> bool:
        now = NOW + timedelta(minutes=minutes)
        return voiced(news([verdict], memory, now), [verdict], memory, now) == (verdict,)

    more, most = changed(KEPT, message="3 pods"), changed(KEPT, message="4 pods")
    assert [heard(minutes, one) for minutes, one in ((0, KEPT), (1, more), (14, most), (15, most))] == [1, 0, 0, 1]
    assert [heard(minutes, one) for minutes, one in ((16, more), (17, most), (50, most))] == [0, 0, 0]
    assert [heard(minutes, one) for minutes, one in ((60, most), (61, BLOCKED), (62, BLOCKED), (62.5, KEPT))] == [
        1,
        0,
        1,
        0,
    ]
    assert heard(77, KEPT)


def test_what_there_is_no_time_for_is_said_by_the_next_cycle_if_something_else_was_said_before() -> None:
    names = [f"node-{number:02}" for number in range(MOST + 1)]
    memory: dict[str, object] = {"verdicts": Told(since=NOW, events=dict.fromkeys(names, ("x", NOW - 2 * LAGS)))}
    some: list[Verdict] = [changed(KEPT, node=name) for name in names]
    assert len(voiced(news(some, memory, NOW), some, memory, NOW)) == MOST
    assert voiced(news(some, memory, NOW), some, memory, NOW) == (some[-1],)


def test_a_machine_that_goes_is_heard_of_once_and_what_passes_by_itself_never() -> None:
    gone, fleeting = Disrupted(node="node-b", reason="Empty", message="x"), changed(BLOCKED, reason="Nominated")
    some: list[Verdict] = [gone, fleeting]
    memory = dict[str, object]()
    assert voiced(news(some, memory, NOW), some, memory, NOW) == (gone,)
    assert voiced(news(some, memory, NOW), some, memory, NOW) == ()


def test_a_copy_of_what_was_told_is_nobody_elses() -> None:
    memory: dict[str, object] = {"verdicts": Told(since=NOW)}
    copy = told_by(memory)
    voiced(news([KEPT], memory, NOW), [KEPT], memory, NOW)
    assert copy is not None
    assert (copy.events, copy.verdicts) == ({}, {})


# Notes


def test_a_verdict_is_told_once_until_it_changes_and_all_once_an_hour() -> None:
    memory: dict[str, object] = {}
    other = changed(KEPT, node="node-b")
    assert news([other, KEPT], memory, NOW) == (KEPT, other)
    assert news([KEPT, other], memory, NOW) == ()
    more = changed(KEPT, message="3 pods")
    assert news([more, other], memory, NOW) == (more,)
    assert news([more, other], memory, NOW + timedelta(minutes=59)) == ()
    assert news([more, other], memory, NOW + timedelta(hours=1)) == (more, other)
    assert news([KEPT], None, NOW) == news([KEPT], None, NOW) == (KEPT,)


def test_what_an_entry_has_no_room_for_is_told_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST", 2)
    memory: dict[str, object] = {"verdicts": Told(since=NOW)}
    some = [changed(KEPT, node=f"node-{number}") for number in range(3)]
    assert [len(news(some, memory, NOW)) for _ in range(3)] == [2, 1, 0]


def test_a_note_has_the_words_that_the_verdict_carries() -> None:
    assert list(of_nodes([BLOCKED])) == [
        Note(kind="Node", name="node-a", verdict="blocked", why="DoNotDisrupt: annotated")
    ]


def test_every_step_of_a_command_is_told_of_it_and_of_its_nodes() -> None:
    one = changed(order("a", "b", by=("new",)), savings_usd_per_hour=0.25)
    first, last = stands(one, why="why"), stands(one, "ROLLED_BACK", why="replacement new is gone")
    summary = "SingleNode (Underutilized) of node-a, node-b by new, saves $0.2500/h: why"
    about: dict[str, Any] = {
        "links": ("Node/node-a", "NodeClaim/a", "Node/node-b", "NodeClaim/b"),
        "replaced_by": ("new",),
        "usd_per_hour": 0.25,
    }
    mine: dict[str, Any] = {"links": (f"Command/{one.command_id}",)}
    undone = "replacement new is gone"
    assert list(of_commands([first, last])) == [
        Note(kind="Command", name=one.command_id, verdict="PROPOSED", why=summary, **about),
        Note(kind="Node", name="node-a", verdict="PROPOSED", why=f"{one.command_id}: why", **mine),
        Note(kind="Node", name="node-b", verdict="PROPOSED", why=f"{one.command_id}: why", **mine),
        Note(kind="Command", name=one.command_id, verdict="ROLLED_BACK", why=f"{undone}; {summary}", **about),
        Note(kind="Node", name="node-a", verdict="ROLLED_BACK", why=f"{one.command_id}: {undone}", **mine),
        Note(kind="Node", name="node-b", verdict="ROLLED_BACK", why=f"{one.command_id}: {undone}", **mine),
    ]
    plain = changed(order("a"), why="")
    assert next(iter(of_commands([stands(plain)]))).why == "SingleNode (Underutilized) of node-a"


def test_a_pause_is_told() -> None:
    found = Pauses(items=(Pause(why="x"), Pause(pool="a", reason="Drifted", why="y")))
    assert [(one.kind, one.name, one.why) for one in of_pauses(found)] == [
        ("NodePool", "*", "All disruption is paused: x"),
        ("NodePool", "a", "Drifted disruption is paused: y"),
    ]


# Where pods are expected


def test_pods_of_open_commands_are_expected_on_nodes_by_the_names_that_these_have_by_now() -> None:
    one = changed(order("a", by=("new",)), homes=(("shop/cart", "node-b"), ("shop/till", "new")))
    joined = seen((substitute(fit=True), node("new")))
    assert homes(joined, [stands(one, "LAUNCHED")]) == {"shop/cart": "node-b", "shop/till": "node-new"}
    assert homes(seen(), [stands(one)]) == {"shop/cart": "node-b", "shop/till": "new"}
    assert homes(joined, [stands(one, "DONE")]) == {}


# When to look again


def quiet(seconds: float, *, pods: Case = (), digest: str | None = None, **fields: Case) -> Case:
    known = {labels.POD_DIGEST: pod_digest(pods) if digest is None else digest}
    return claim(annotations=known, last_pod_event_at=ago(seconds=seconds), **fields)


def woken(mine: Case, pods: Case = (), **pool: Case) -> list[tuple[str, float]]:
    usual = {"consolidate_after": timedelta(seconds=30)}
    scene = seen((mine, node()), pods=pods, node_pools=(changed(POOL, **(usual | pool)),))
    found = of(FollowUp, wakes(scene.states, scene.cluster))
    return [(one.function, one.after.total_seconds()) for one in found]


@pytest.mark.parametrize(
    ("mine", "pool", "expected"),
    [
        (quiet(10), {}, [("disrupt", 20)]),
        (quiet(30), {}, []),
        (quiet(10), {"consolidate_after": None}, []),
        (quiet(10), {"replicas": 1}, []),
        (quiet(10, deleted=NOW), {}, []),
        (quiet(10, conditions=true("Launched")), {}, []),
        (quiet(10, digest=""), {}, [("disrupt", 20)]),
        (quiet(10, digest="another"), {}, [("disrupt", 30), ("lifecycle", 5)]),
        (quiet(90, digest="another"), {"consolidate_after": timedelta()}, [("disrupt", 10), ("lifecycle", 5)]),
    ],
)
def test_it_looks_again_when_a_node_will_have_been_quiet_long_enough(mine: Case, pool: Case, expected: Case) -> None:
    assert woken(mine, **pool) == expected


def test_a_node_with_pods_is_waited_for_only_where_it_could_be_consolidated() -> None:
    pods = (pod(),)
    assert woken(quiet(10, pods=pods), pods) == [("disrupt", 20)]
    assert woken(quiet(10, pods=pods), pods, consolidation_policy="WhenEmpty") == []


def test_where_there_are_many_nodes_it_does_not_look_for_each_of_them() -> None:
    mine = quiet(29)
    others = [(claim(f"n{number}", conditions=true(*STAGES)), node(f"n{number}")) for number in range(199)]
    pool = changed(POOL, consolidate_after=timedelta(seconds=30))
    scene = seen((mine, node()), *others, node_pools=(pool,))
    [wake] = of(FollowUp, wakes(scene.states, scene.cluster))
    assert wake.after == timedelta(seconds=2)


# What provisioning makes of pods that still run


CHOICE = Choice(instance_type="m7i.large", zone="us-east-1a", capacity_type="spot", price_usd_per_hour=0.1)


def made(name: str, *pods: str) -> NewNode:
    return NewNode(name=name, node_pool="default", pods=pods, cheapest=CHOICE)


def test_pods_that_still_run_keep_their_room_and_get_nothing_else() -> None:
    placement = Placement(
        new_nodes=(made("x", "shop/cart"), made("y", "shop/cart", "shop/till")),
        existing=(Fit(node="node-b", pods=("shop/cart", "shop/till")), Fit(node="node-c", pods=("shop/cart",))),
        unschedulable=tuple(
            Unschedulable(pod=f"shop/{name}", reason="NoOffering", message="") for name in ("cart", "z")
        ),
    )
    running = there((claim(), node()), pods=(pod("cart"), pod("till", on="")))
    left = spared(placement, running, frozenset({"node-a"}))
    assert [one.name for one in left.new_nodes] == ["y"]
    assert left.existing == (Fit(node="node-b", pods=("shop/till",)),)
    assert [one.pod for one in left.unschedulable] == ["shop/z"]


def test_pods_of_nodes_that_are_deleted_are_planned_for_in_earnest() -> None:
    placement = Placement(new_nodes=(made("x", "shop/cart"),))
    deleted = there((claim(deleted=NOW), node()), pods=(pod("cart"),))
    assert spared(placement, deleted, frozenset({"node-a"})) is placement
    assert spared(placement, deleted, frozenset()) is placement


def test_where_pods_go_is_told_and_counted() -> None:
    placement = Placement(
        new_nodes=(made("x", "shop/cart", "shop/room"),),
        existing=(Fit(node="node-b", pods=("shop/till",)),),
        unschedulable=(
            Unschedulable(pod="shop/big", reason="NoOffering", message="too big"),
            Unschedulable(pod="shop/late", reason="NotReached", message="late"),
        ),
    )
    assert [(one.name, one.verdict, one.why) for one in of_places(placement)] == [
        ("shop/cart", "nodeclaim/x", "new m7i.large or like it"),
        ("shop/room", "nodeclaim/x", "new m7i.large or like it"),
        ("shop/till", "node/node-b", "fits what is there"),
        ("shop/big", "NoOffering", "too big"),
        ("shop/late", "NotReached", "late"),
    ]
    expected = {"PendingPods": 4.0, "PlannedNodes": 1.0, "UnschedulablePods": 1.0}
    assert of_placement(placement, frozenset({"shop/room"})) == expected


def test_the_age_of_prices_is_told_where_there_are_some() -> None:
    assert of_prices(there()) == {}
    catalogue = Catalogue(region="us-east-1", instance_types=(), priced_at=ago(minutes=1))
    assert of_prices(there(catalogue=catalogue)) == {"PriceAgeSeconds": 60.0}
