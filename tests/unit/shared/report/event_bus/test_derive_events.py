"""Events are a function of the journal entry."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from shared.decide.launch.fleets.fleet_result import BREAKER_OPEN_REASON
from shared.decide.lifecycle.interruption.interruption import INTERRUPTION_EVENT_REASONS
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions.action import PatchMetadata, PublishEvent
from shared.model.karpenter.health.launch_failures import LAUNCHES_PAUSED_REASON
from shared.model.karpenter.health.rejections import CANARY_REJECTED_REASON, describe_rejection
from shared.report.event_bus.derive_events import BREAKER_VERDICT, INTERRUPTION_REASONS, derive_events
from shared.report.event_bus.event_details import (
    MAX_MESSAGE_CHARS,
    EventDetail,
    ImageRejected,
    LaunchBreakerOpened,
    LaunchesPaused,
    LimitReached,
    NodeDisrupted,
    NodeInterrupted,
    NodeLaunched,
    PodsBlocked,
)
from shared.report.journal.journal import LAUNCHED_VERDICT, ActionResult, DecisionNote, JournalEntry

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
PATCH = PatchMetadata(
    kind="NodeClaim",
    name="default-a",
    labels=((INSTANCE_TYPE, "m5.large"), (ZONE, "us-east-1a"), (CAPACITY_TYPE, "spot"), (NODEPOOL, "default")),
)
LAUNCHED = DecisionNote(
    kind="NodeClaim", name="default-a", verdict=LAUNCHED_VERDICT, reason="m5.large", usd_per_hour=0.04
)
COMMAND = DecisionNote(
    kind="Command",
    name="consolidate-1",
    verdict="DRAINING",
    reason="single (Underutilized) of ip-1",
    links=("Node/ip-1", "NodeClaim/default-a"),
    replaced_by=("default-b",),
    usd_per_hour=0.05,
    disruption_reason="Underutilized",
)


def make_entry(*notes: DecisionNote, results: tuple[ActionResult, ...] = (), at: datetime = NOW) -> JournalEntry:
    return JournalEntry(function="provision", trigger="schedule", at=at, cluster="", notes=notes, results=results)


def make_blocked_note(pod: str, reason: str = "NoInstanceTypeFits", message: str = "needs 900 CPUs") -> DecisionNote:
    return DecisionNote(kind="Pod", name=pod, verdict=reason, reason=message)


def make_event_result(kind: str, name: str, reason: str = "SpotInterrupted") -> ActionResult:
    event = PublishEvent(kind=kind, name=name, reason=reason, message="in two minutes", at=NOW)
    return ActionResult(action=event, result="done")


def derive(entry: JournalEntry) -> tuple[EventDetail, ...]:
    return derive_events(entry, cluster="prod", journal_key="journal/provision/1.json")


def test_launched_node_claim_gives_an_event_with_its_offering_and_price() -> None:
    [event] = derive(make_entry(LAUNCHED, results=(ActionResult(action=PATCH, result="done"),)))
    assert isinstance(event, NodeLaunched)
    assert (event.node_claim, event.node_pool, event.instance_type) == ("default-a", "default", "m5.large")
    assert (event.zone, event.capacity_type, event.usd_per_hour) == ("us-east-1a", "spot", 0.04)
    assert (event.cluster, event.function, event.journal_key) == ("prod", "provision", "journal/provision/1.json")


def test_launch_whose_claim_was_not_patched_gives_no_event() -> None:
    assert derive(make_entry(LAUNCHED, results=(ActionResult(action=PATCH, result="failed"),))) == ()


def test_interruption_names_the_node_claim_and_its_node() -> None:
    results = (
        make_event_result("NodeClaim", "default-a"),
        make_event_result("Node", "ip-1"),
        make_event_result("NodeClaim", "default-b"),
        make_event_result("NodeClaim", "default-c", "Unconsolidatable"),
    )
    events = derive(make_entry(results=results))
    assert [(event.node_claim, event.node) for event in events if isinstance(event, NodeInterrupted)] == [
        ("default-a", "ip-1"),
        ("default-b", ""),
    ]
    assert len(events) == 2


def make_class_result(reason: str, message: str) -> ActionResult:
    event = PublishEvent(kind="EC2NodeClass", name="default", reason=reason, message=message, at=NOW)
    return ActionResult(action=event, result="done")


@pytest.mark.parametrize(
    ("identity", "image", "launch_configuration"), [("ami-1", "ami-1", ""), ("0" * 32, "", "0" * 32)]
)
def test_rejection_names_the_image_or_the_launch_configuration(
    identity: str, image: str, launch_configuration: str
) -> None:
    message = describe_rejection(identity, "NodeClaim a: its node is not Ready")
    [event] = derive(make_entry(results=(make_class_result(CANARY_REJECTED_REASON, message),)))
    assert isinstance(event, ImageRejected)
    assert (event.node_class, event.image, event.launch_configuration) == ("default", image, launch_configuration)
    assert event.message == message


def test_pause_of_launches_is_one_event_an_hour_for_each_class() -> None:
    entries = [
        make_entry(results=(make_class_result(LAUNCHES_PAUSED_REASON, message),), at=NOW + timedelta(minutes=minutes))
        for message, minutes in (("3 nodes", 0), ("4 nodes", 15), ("5 nodes", 40))
    ]
    events = [event for entry in entries for event in derive(entry) if isinstance(event, LaunchesPaused)]
    assert [event.message for event in events] == ["3 nodes", "4 nodes", "5 nodes"]
    assert (len({event.id for event in events}), len({event.key for event in events})) == (2, 1)


def test_other_events_about_classes_and_node_pools_are_not_sent() -> None:
    pool_event = PublishEvent(kind="NodePool", name="default", reason=LAUNCHES_PAUSED_REASON, message="x", at=NOW)
    results = (
        make_class_result("CanaryPassed", "image ami-1 is used for all nodes: 2 nodes passed"),
        make_class_result("LaunchesResumed", "launches have resumed"),
        ActionResult(action=pool_event, result="done"),
    )
    assert derive(make_entry(results=results)) == ()


def test_reasons_are_those_of_the_decisions() -> None:
    assert INTERRUPTION_REASONS == INTERRUPTION_EVENT_REASONS
    assert BREAKER_VERDICT == BREAKER_OPEN_REASON


@pytest.mark.parametrize(
    ("verdict", "phases"),
    [("PROPOSED", []), ("DRAINING", ["Draining"]), ("DONE", ["Done"]), ("ROLLED_BACK", ["RolledBack"])],
)
def test_disruption_is_reported_when_it_drains_and_when_it_ends(verdict: str, phases: list[str]) -> None:
    events = derive(make_entry(replace(COMMAND, verdict=verdict)))
    assert [event.phase for event in events if isinstance(event, NodeDisrupted)] == phases
    for event in events:
        assert isinstance(event, NodeDisrupted)
        assert (event.command, event.reason) == ("consolidate-1", "Underutilized")
        assert (event.nodes, event.node_count, event.replacements) == (("ip-1",), 1, ("default-b",))


def test_blocked_pods_are_grouped_by_namespace_and_reason() -> None:
    events = derive(
        make_entry(
            *(make_blocked_note(f"shop/cart-{number:02}") for number in range(25)),
            make_blocked_note("shop/web", "TaintNotTolerated", "x" * 2000),
            make_blocked_note("data/db"),
            make_blocked_note("data/placed", "nodeclaim/default-a"),
            make_blocked_note("data/later", "NotReached"),
        )
    )
    blocked = [event for event in events if isinstance(event, PodsBlocked)]
    assert [(event.namespace, event.reason, event.pod_count) for event in blocked] == [
        ("data", "NoInstanceTypeFits", 1),
        ("shop", "NoInstanceTypeFits", 25),
        ("shop", "TaintNotTolerated", 1),
    ]
    assert blocked[1].pods == tuple(f"cart-{number:02}" for number in range(20))
    assert len(blocked[2].message) == MAX_MESSAGE_CHARS


@pytest.mark.parametrize("verdict", ["GangIncomplete", "NotReached", "OptedOut"])
def test_pods_that_wait_or_that_joiner_ignores_are_not_blocked(verdict: str) -> None:
    assert derive(make_entry(make_blocked_note("shop/cart", verdict))) == ()


def test_pods_of_a_gang_that_does_not_fit_are_blocked_whatever_the_cause() -> None:
    [event] = derive(make_entry(make_blocked_note("shop/train", "GangNotPlaced", "shop/train does not fit: limits")))
    assert isinstance(event, PodsBlocked)
    assert (event.reason, event.message) == ("GangNotPlaced", "shop/train does not fit: limits")


def test_key_stays_the_same_while_pods_and_hours_change() -> None:
    def derive_blocked(*names: str, at: datetime = NOW, reason: str = "NoInstanceTypeFits") -> EventDetail:
        [event] = derive(make_entry(*(make_blocked_note(name, reason) for name in names), at=at))
        return event

    first = derive_blocked("shop/a")
    later = (derive_blocked("shop/a", "shop/b"), derive_blocked("shop/a", at=NOW + timedelta(hours=1)))
    assert {event.key for event in later} == {first.key}
    assert len({event.id for event in (first, *later)}) == 3
    other_events = (derive_blocked("data/a"), derive_blocked("shop/a", reason="TaintNotTolerated"))
    assert len({event.key for event in (first, *other_events)}) == 3


def test_phases_of_a_command_have_one_key() -> None:
    events = derive(make_entry(COMMAND, replace(COMMAND, verdict="DONE")))
    assert (len({event.id for event in events}), len({event.key for event in events})) == (2, 1)


def test_interruption_that_is_announced_again_after_an_hour_has_another_id() -> None:
    def derive_interruption(minutes: int) -> EventDetail:
        results = (make_event_result("NodeClaim", "default-a", "SpotRebalanceRecommendation"),)
        [event] = derive(make_entry(results=results, at=NOW + timedelta(minutes=minutes)))
        return event

    first, repeated, later = (derive_interruption(minutes) for minutes in (0, 20, 70))
    assert first.id == repeated.id != later.id
    assert first.key == later.key


def test_limit_gives_one_event_for_all_pods() -> None:
    events = derive(make_entry(*(make_blocked_note(f"{name}/a", "LimitExceeded") for name in "ab")))
    [limit] = [event for event in events if isinstance(event, LimitReached)]
    assert (limit.pods, limit.pod_count) == (("a/a", "b/a"), 2)


def test_breaker_trip_gives_an_event() -> None:
    note = DecisionNote(kind="NodePool", name="default", verdict=BREAKER_OPEN_REASON, reason="200 nodes in a minute")
    [event] = derive(make_entry(note))
    assert isinstance(event, LaunchBreakerOpened)
    assert (event.node_pool, event.message) == ("default", "200 nodes in a minute")


def test_same_entry_gives_the_same_events() -> None:
    entry = make_entry(
        LAUNCHED, COMMAND, make_blocked_note("a/b"), results=(ActionResult(action=PATCH, result="done"),)
    )
    assert derive(entry) == derive(entry)
    assert len({event.id for event in derive(entry)}) == 3


def test_change_keeps_its_id_and_lasting_state_gets_a_new_id_every_hour() -> None:
    def list_ids(at: datetime) -> list[str]:
        return [event.id for event in derive(make_entry(COMMAND, make_blocked_note("a/b"), at=at))]

    first, same_hour, next_hour = (list_ids(NOW + minutes * timedelta(minutes=1)) for minutes in (0, 29, 30))
    assert first == same_hour
    assert first[0] == next_hour[0]
    assert first[1] != next_hour[1]


def test_clusters_have_different_ids() -> None:
    entry = make_entry(COMMAND)
    [other_event] = derive_events(entry, cluster="test", journal_key="")
    assert other_event.id != derive(entry)[0].id
