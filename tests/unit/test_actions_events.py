"""Events: one of a kind within two minutes, counted after that, ever more rarely."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.actions import events
from shared.actions.events import QUIET_FOR, event_name, publish
from shared.errors import Gone, Unreachable
from shared.model.action import PublishEvent
from sim.clock import START
from sim.faults import Call, tapped_world
from tests.unit.actions_world import Outside

SAID = PublishEvent(kind="NodePool", name="default", uid="u", reason="Blocked", message="limits", at=START)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def said(outside: Outside, after: timedelta = timedelta(), **changes: object) -> None:
    publish(msgspec.structs.replace(SAID, at=START + after, **changes), outside.world())


def stored(outside: Outside) -> dict[str, Any]:
    [event] = outside.api.list("events")
    return event


def stored_counts(outside: Outside) -> dict[str, int]:
    return {event["message"]: event["count"] for event in outside.api.list("events")}


def test_an_event_says_who_and_what_and_when() -> None:
    outside = Outside()
    said(outside, type="Warning")
    event = stored(outside)
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


def test_an_event_about_a_pod_lies_beside_it() -> None:
    outside = Outside()
    said(outside, kind="Pod", name="cart", namespace="kube-system")
    event = stored(outside)
    assert event["metadata"]["namespace"] == event["involvedObject"]["namespace"] == "kube-system"
    assert event["involvedObject"]["apiVersion"] == "v1"


def test_the_same_within_two_minutes_is_one_event() -> None:
    outside = Outside()
    said(outside)
    revision = outside.api.revision
    said(outside, QUIET_FOR - timedelta(seconds=1))
    assert outside.api.revision == revision


@pytest.mark.parametrize("remembers", [False, True])
def test_what_stands_is_counted_ever_more_rarely_and_never_forgotten(remembers: bool) -> None:  # noqa: FBT001 - a table's column
    outside, written = Outside(), []
    world = msgspec.structs.replace(outside.world(), memory={} if remembers else None)
    for minutes in range(61):
        revision = outside.api.revision
        publish(msgspec.structs.replace(SAID, at=START + timedelta(minutes=minutes)), world)
        written += [minutes] * (outside.api.revision - revision)
    assert written == [0, 2, 6, 14, 29, 44, 59]
    event = stored(outside)
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        7,
        "2026-11-21T08:00:00Z",
        "2026-11-21T08:59:00Z",
    )


@pytest.mark.parametrize("field", ["kind", "name", "namespace", "uid", "reason", "message"])
def test_anything_else_that_is_said_is_another_event(field: str) -> None:
    assert event_name(msgspec.structs.replace(SAID, **{field: "kube-system"})) != event_name(SAID)


def test_when_it_is_said_does_not_change_its_name() -> None:
    assert event_name(msgspec.structs.replace(SAID, at=START + timedelta(days=1))) == event_name(SAID)
    assert event_name(SAID) == "default.0f963f06201aa4d0"


@pytest.mark.parametrize(
    "name", ["default", "a" * 253, f"{'a' * 199}.b", f"{'a' * 198}-.b", "ip-10-0-0-1.ec2.internal"]
)
def test_its_name_is_one_that_kubernetes_takes(name: str) -> None:
    made = event_name(msgspec.structs.replace(SAID, name=name))
    assert SUBDOMAIN.fullmatch(made)
    assert len(made) <= 253


def test_a_long_message_is_cut_and_still_told_apart() -> None:
    outside = Outside()
    for end in "ab":
        said(outside, message="x" * 2000 + end)
    assert [len(event["message"]) for event in outside.api.list("events")] == [1024, 1024]


def test_an_event_without_a_time_is_counted() -> None:
    outside = Outside()
    said(outside)
    name = stored(outside)["metadata"]["name"]
    outside.api.patch("events", name, {"lastTimestamp": None, "count": None}, "default")
    said(outside)
    assert stored(outside)["count"] == 2


def test_an_event_that_goes_in_between_is_gone() -> None:
    outside = Outside()
    said(outside)

    def expire(call: Call) -> None:
        if call.method == "read" and call.when == "before":
            outside.api.delete("events", event_name(SAID), "default")

    with pytest.raises(Gone):
        publish(SAID, outside.world(tap=expire))


def test_what_a_container_said_lately_costs_it_no_call() -> None:
    outside, memory, calls = Outside(), dict[str, object](), list[Call]()
    world = msgspec.structs.replace(tapped_world(outside.world(), calls.append), memory=memory)

    def again(seconds: int, **changes: object) -> int:
        calls.clear()
        publish(msgspec.structs.replace(SAID, at=START + timedelta(seconds=seconds), **changes), world)
        return len([one for one in calls if one.when == "before"])

    assert [again(0), again(119), again(60, message="other"), again(-1)] == [1, 0, 1, 2]
    assert [again(121), again(360), again(362)] == [1, 0, 1]
    memory.clear()
    assert [again(400), again(500)] == [2, 0]
    assert again(362 + 480) == 1
    assert stored_counts(outside) == {"limits": 4, "other": 1}


def test_what_two_containers_say_is_counted_by_both() -> None:
    outside = Outside()
    one, other = (msgspec.structs.replace(outside.world(), memory={}) for _ in range(2))
    for minutes, world in ((0, one), (2, other), (6, one), (14, other), (14, one), (29, one)):
        publish(msgspec.structs.replace(SAID, at=START + timedelta(minutes=minutes)), world)
    assert (stored(outside)["count"], stored(outside)["lastTimestamp"]) == (5, "2026-11-21T08:29:00Z")


def test_what_the_api_server_forgot_is_said_anew() -> None:
    outside = Outside()
    world = msgspec.structs.replace(outside.world(), memory={})
    publish(SAID, world)
    outside.api.delete("events", event_name(SAID), "default")
    publish(msgspec.structs.replace(SAID, at=START + timedelta(hours=2)), world)
    assert (stored(outside)["count"], stored(outside)["firstTimestamp"]) == (1, "2026-11-21T10:00:00Z")


def test_so_much_is_remembered_and_not_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST", 2)
    outside, memory = Outside(), dict[str, object]()
    world = msgspec.structs.replace(outside.world(), memory=memory)
    for number in range(5):
        publish(msgspec.structs.replace(SAID, message=str(number)), world)
    [told] = memory.values()
    assert isinstance(told, dict)
    assert len(told) <= 2


def test_an_event_that_could_not_be_written_is_not_remembered() -> None:
    outside, memory = Outside(), dict[str, object]()

    def down(call: Call) -> None:
        raise Unreachable(call.method)

    with pytest.raises(Unreachable):
        publish(SAID, msgspec.structs.replace(tapped_world(outside.world(), down), memory=memory))
    publish(SAID, msgspec.structs.replace(outside.world(), memory=memory))
    assert stored(outside)["reason"] == "Blocked"
