"""Events: one of a kind within two minutes, counted after that, ever more rarely."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.apply.kubernetes import events
from shared.apply.kubernetes.events import FIRST_REPEAT_INTERVAL, build_event_name, publish_event
from shared.errors import NotFound, Unreachable
from shared.model.decisions.action import PublishEvent
from sim.fault_tap import PortCall, tap_world
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside

EVENT = PublishEvent(
    kind="NodePool", name="default", uid="u", reason="Blocked", message="limits", at=DEFAULT_START_TIME
)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def publish(outside: Outside, after: timedelta = timedelta(), **changes: object) -> None:
    publish_event(msgspec.structs.replace(EVENT, at=DEFAULT_START_TIME + after, **changes), outside.build_world())


def get_stored_event(outside: Outside) -> dict[str, Any]:
    [event] = outside.api.list("events")
    return event


def list_stored_counts(outside: Outside) -> dict[str, int]:
    return {event["message"]: event["count"] for event in outside.api.list("events")}


def test_event_has_involved_object_type_reason_message_and_timestamps() -> None:
    outside = Outside()
    publish(outside, type="Warning")
    event = get_stored_event(outside)
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"] == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": "default",
        "namespace": "",
        "uid": "u",
    }
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "Blocked", "limits", 1)
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-11-21T08:00:00Z"
    assert event["source"]["component"] == "joiner"


def test_event_is_recorded_in_the_namespace_of_its_pod() -> None:
    outside = Outside()
    publish(outside, kind="Pod", name="cart", namespace="kube-system")
    event = get_stored_event(outside)
    assert event["metadata"]["namespace"] == event["involvedObject"]["namespace"] == "kube-system"
    assert event["involvedObject"]["apiVersion"] == "v1"


def test_repeated_event_within_two_minutes_is_not_written_again() -> None:
    outside = Outside()
    publish(outside)
    revision = outside.api.revision
    publish(outside, FIRST_REPEAT_INTERVAL - timedelta(seconds=1))
    assert outside.api.revision == revision


@pytest.mark.parametrize("remembers", [False, True])
def test_repeated_event_is_counted_at_growing_intervals(remembers: bool) -> None:  # noqa: FBT001 - a table's column
    outside, written_minutes = Outside(), []
    world = msgspec.structs.replace(outside.build_world(), memory={} if remembers else None)
    for minutes in range(61):
        revision = outside.api.revision
        publish_event(msgspec.structs.replace(EVENT, at=DEFAULT_START_TIME + timedelta(minutes=minutes)), world)
        written_minutes += [minutes] * (outside.api.revision - revision)
    assert written_minutes == [0, 2, 6, 14, 29, 44, 59]
    event = get_stored_event(outside)
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        7,
        "2026-11-21T08:00:00Z",
        "2026-11-21T08:59:00Z",
    )


@pytest.mark.parametrize("field", ["kind", "name", "namespace", "uid", "reason", "message"])
def test_event_name_depends_on_object_reason_and_message(field: str) -> None:
    assert build_event_name(msgspec.structs.replace(EVENT, **{field: "kube-system"})) != build_event_name(EVENT)


def test_event_name_does_not_depend_on_time() -> None:
    assert build_event_name(
        msgspec.structs.replace(EVENT, at=DEFAULT_START_TIME + timedelta(days=1))
    ) == build_event_name(EVENT)
    assert build_event_name(EVENT) == "default.0f963f06201aa4d0"


@pytest.mark.parametrize(
    "name", ["default", "a" * 253, f"{'a' * 199}.b", f"{'a' * 198}-.b", "ip-10-0-0-1.ec2.internal"]
)
def test_event_name_is_a_valid_kubernetes_name(name: str) -> None:
    event_name = build_event_name(msgspec.structs.replace(EVENT, name=name))
    assert SUBDOMAIN.fullmatch(event_name)
    assert len(event_name) <= 253


def test_long_messages_are_truncated_but_stay_separate_events() -> None:
    outside = Outside()
    for end in "ab":
        publish(outside, message="x" * 2000 + end)
    assert [len(event["message"]) for event in outside.api.list("events")] == [1024, 1024]


def test_stored_event_without_timestamp_is_counted() -> None:
    outside = Outside()
    publish(outside)
    name = get_stored_event(outside)["metadata"]["name"]
    outside.api.patch("events", name, {"lastTimestamp": None, "count": None}, "default")
    publish(outside)
    assert get_stored_event(outside)["count"] == 2


def test_event_that_expires_during_the_update_raises_not_found() -> None:
    outside = Outside()
    publish(outside)

    def expire(call: PortCall) -> None:
        if call.method == "read" and call.phase == "before":
            outside.api.delete("events", build_event_name(EVENT), "default")

    with pytest.raises(NotFound):
        publish_event(EVENT, outside.build_world(tap=expire))


def test_event_remembered_by_the_container_costs_no_api_call() -> None:
    outside, memory, calls = Outside(), dict[str, object](), list[PortCall]()
    world = msgspec.structs.replace(tap_world(outside.build_world(), calls.append), memory=memory)

    def publish_again(seconds: int, **changes: object) -> int:
        calls.clear()
        publish_event(
            msgspec.structs.replace(EVENT, at=DEFAULT_START_TIME + timedelta(seconds=seconds), **changes), world
        )
        return len([call for call in calls if call.phase == "before"])

    assert [publish_again(0), publish_again(119), publish_again(60, message="other"), publish_again(-1)] == [1, 0, 1, 2]
    assert [publish_again(121), publish_again(360), publish_again(362)] == [1, 0, 1]
    memory.clear()
    assert [publish_again(400), publish_again(500)] == [2, 0]
    assert publish_again(362 + 480) == 1
    assert list_stored_counts(outside) == {"limits": 4, "other": 1}


def test_event_published_by_two_containers_is_counted_by_both() -> None:
    outside = Outside()
    first_world, second_world = (msgspec.structs.replace(outside.build_world(), memory={}) for _ in range(2))
    for minutes, world in (
        (0, first_world),
        (2, second_world),
        (6, first_world),
        (14, second_world),
        (14, first_world),
        (29, first_world),
    ):
        publish_event(msgspec.structs.replace(EVENT, at=DEFAULT_START_TIME + timedelta(minutes=minutes)), world)
    assert (get_stored_event(outside)["count"], get_stored_event(outside)["lastTimestamp"]) == (
        5,
        "2026-11-21T08:29:00Z",
    )


def test_expired_event_is_created_again_with_count_one() -> None:
    outside = Outside()
    world = msgspec.structs.replace(outside.build_world(), memory={})
    publish_event(EVENT, world)
    outside.api.delete("events", build_event_name(EVENT), "default")
    publish_event(msgspec.structs.replace(EVENT, at=DEFAULT_START_TIME + timedelta(hours=2)), world)
    assert (get_stored_event(outside)["count"], get_stored_event(outside)["firstTimestamp"]) == (
        1,
        "2026-11-21T10:00:00Z",
    )


def test_number_of_remembered_events_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_REMEMBERED_EVENTS", 2)
    outside, memory = Outside(), dict[str, object]()
    world = msgspec.structs.replace(outside.build_world(), memory=memory)
    for number in range(5):
        publish_event(msgspec.structs.replace(EVENT, message=str(number)), world)
    [remembered] = memory.values()
    assert isinstance(remembered, dict)
    assert len(remembered) <= 2


def test_event_that_failed_to_be_written_is_not_remembered() -> None:
    outside, memory = Outside(), dict[str, object]()

    def raise_unreachable(call: PortCall) -> None:
        raise Unreachable(call.method)

    with pytest.raises(Unreachable):
        publish_event(
            EVENT, msgspec.structs.replace(tap_world(outside.build_world(), raise_unreachable), memory=memory)
        )
    publish_event(EVENT, msgspec.structs.replace(outside.build_world(), memory=memory))
    assert get_stored_event(outside)["reason"] == "Blocked"
