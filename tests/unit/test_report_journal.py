"""The journal: what a cycle leaves behind."""

import json
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Unreachable
from shared.model.action import (
    Action,
    CreateNodeClaim,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    PatchMetadata,
    PublishEvent,
)
from shared.model.catalogue import UnavailableOffering
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS, RESERVATION_ID, ZONE
from shared.model.objects import Problem, pairs
from shared.model.requirements import requirement, requirements
from shared.report.journal import Done, Entry, Note, key_of, read_entry, record
from shared.report.notes import of_launches
from sim.clock import START
from sim.faults import Call
from tests.unit.actions_world import Outside, claim
from tests.unit.launch_cases import claim as wide_claim
from tests.unit.launch_cases import cluster as launch_cluster

EVICT = EvictPod(namespace="shop", name="cart", uid="u", node="n", why="drain")
WAKE = FollowUp(function="provision", after=timedelta(seconds=5), why="waiting")
PROBLEM = Problem(kind="NodePool", name="orphan", message="its node class does not exist")
PLAIN = Entry(function="provision", trigger="schedule", at=START, cluster="abc", counts={"PendingPods": 2.0})
KEY = "journal/provision/2026/11/21/080000-one.json"


def recorded(**fields: object) -> tuple[Outside, dict[str, object]]:
    outside = Outside()
    record(msgspec.structs.replace(PLAIN, **fields), outside.world())
    [line] = outside.lines
    assert "\n" not in line
    return outside, json.loads(line)


def test_a_key_is_function_day_and_instant() -> None:
    assert key_of(PLAIN, "one") == KEY
    assert key_of(PLAIN, "") == KEY.replace("one", "cycle")


@pytest.mark.parametrize(
    "fields",
    [
        {"done": (Done(action=EVICT, result="done"),)},
        {"done": (Done(action=WAKE, result="failed", message="Gone: no such queue"),)},
        {"notes": (Note(kind="Node", name="n", verdict="kept", why="busy"),)},
        {"problems": (PROBLEM,)},
        {"error": "Throttled: ec2"},
    ],
    ids=["an action", "a call that failed", "a verdict", "a problem", "an error"],
)
def test_a_cycle_in_which_something_happened_is_kept(fields: dict[str, object]) -> None:
    outside, _ = recorded(**fields)
    assert outside.bucket.keys("") == (KEY,)
    assert read_entry(outside.bucket.get(KEY)) == msgspec.structs.replace(PLAIN, **fields)


def test_a_cycle_that_saw_nothing_to_do_leaves_a_line_only() -> None:
    outside, line = recorded()
    assert outside.bucket.keys("") == ()
    assert line == {
        "level": "INFO",
        "service": "joiner",
        "function": "provision",
        "trigger": "schedule",
        "at": "2026-11-21T08:00:00Z",
        "counts": {"PendingPods": 2.0},
        "seconds": 0.0,
    }


def test_that_somebody_is_woken_is_told_in_the_log_and_is_not_worth_an_object() -> None:
    outside, line = recorded(done=(Done(action=WAKE, result="done"),))
    assert outside.bucket.keys("") == ()
    assert line["done"] == {"FollowUp": 1}


def test_the_line_says_how_old_the_snapshot_was_when_its_cycle_ended() -> None:
    outside = Outside()
    outside.clock.advance(timedelta(seconds=1.25))
    record(PLAIN, outside.world())
    assert json.loads(outside.lines[0])["seconds"] == 1.25


def test_the_line_names_what_was_done_what_failed_and_what_is_wrong() -> None:
    done = (
        Done(action=WAKE, result="done"),
        Done(action=WAKE, result="done"),
        Done(action=EVICT, result="failed", message="Throttled: later"),
        Done(action=EVICT, result="skipped", message="Gone: cart"),
    )
    _, line = recorded(done=done, problems=(PROBLEM,))
    assert line["done"] == {"FollowUp": 2}
    assert line["failed"] == ["EvictPod: Throttled: later"]
    assert line["problems"] == ["NodePool orphan: its node class does not exist"]
    assert line["level"] == "WARNING"


def test_an_error_is_an_error() -> None:
    _, line = recorded(error="Unreachable: kube", problems=(PROBLEM,))
    assert (line["level"], line["error"]) == ("ERROR", "Unreachable: kube")


@pytest.mark.parametrize(
    ("error", "level", "told"),
    [("", "WARNING", "journal entry lost: Unreachable: s3"), ("Throttled: ec2", "ERROR", "Throttled: ec2")],
)
def test_a_bucket_that_does_not_answer_is_told_and_stops_nothing(error: str, level: str, told: str) -> None:
    outside = Outside()

    def down(call: Call) -> None:
        if call.port == "bucket":
            raise Unreachable("s3")

    entry = msgspec.structs.replace(PLAIN, error=error, done=(Done(action=EVICT, result="done"),))
    record(entry, outside.world(tap=down))
    [line] = map(json.loads, outside.lines)
    assert (line["level"], line["error"], line["done"]) == (level, told, {"EvictPod": 1})
    assert outside.bucket.keys("") == ()


@pytest.mark.parametrize(
    "action",
    [
        CreateNodeClaim(claim=wide_claim("a"), pods=("shop/cart",), why="pending"),
        MarkUnavailable(offering=UnavailableOffering(capacity_type="spot", until=START), why="ICE"),
        PublishEvent(kind="Node", name="n", reason="R", message="ü", at=START),
        WAKE,
        EVICT,
    ],
    ids=lambda action: type(action).__name__,
)
def test_an_entry_survives_the_journey(action: Action) -> None:
    outside, _ = recorded(done=(Done(action=action, result="done", message="m"),), problems=(PROBLEM,))
    [done] = read_entry(outside.bucket.get(KEY)).done
    assert done == Done(action=action, result="done", message="m")


def test_a_launch_survives_the_journey_with_its_group() -> None:
    group = Outside().group()
    outside, _ = recorded(done=(Done(action=LaunchInstances(group=group), result="done"),))
    [done] = read_entry(outside.bucket.get(KEY)).done
    assert done.action == LaunchInstances(group=group)


def test_the_same_cycle_is_the_same_bytes() -> None:
    bodies = set()
    for values in (("spot", "on-demand", "reserved"), ("reserved", "on-demand", "spot")):
        wanted = requirements((requirement("karpenter.sh/capacity-type", "In", values),))
        action = CreateNodeClaim(claim=msgspec.structs.replace(claim(), requirements=wanted))
        counts = dict.fromkeys(values, 1.0)
        outside, _ = recorded(done=(Done(action=action, result="done"),), counts=counts)
        bodies.add(outside.bucket.get(KEY))
    assert len(bodies) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"function": 1}', b"[]"])
def test_what_is_no_entry_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_entry(body)


def bought(**labels: str) -> PatchMetadata:
    given = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "on-demand", NODECLASS: "default"}
    return PatchMetadata(kind="NodeClaim", name="a", labels=pairs(given | labels), why="launched")


@pytest.mark.parametrize(
    ("labels", "why", "price"),
    [
        ({}, "m5.large, on-demand, in us-east-1a, $0.1000 per hour", 0.1),
        ({INSTANCE_TYPE: "m5.xlarge"}, "m5.xlarge, on-demand, in us-east-1a, $0.2000 per hour", 0.2),
        ({ZONE: "us-east-1z"}, "m5.large, on-demand, in us-east-1z", 0.0),
        ({RESERVATION_ID: "cr-1"}, "m5.large, on-demand, in us-east-1a", 0.0),
    ],
    ids=["as sold", "another type", "a zone where it is not sold", "a reservation that is not there any more"],
)
def test_a_claim_that_was_launched_is_noted_with_what_was_bought_and_its_price(
    labels: dict[str, str], why: str, price: float
) -> None:
    cluster = launch_cluster()
    [note] = of_launches([EVICT, bought(**labels)], cluster)
    assert note == Note(kind="NodeClaim", name="a", verdict="launched", why=why, usd_per_hour=price)


def test_other_patches_and_a_catalogue_that_is_not_there_make_no_price() -> None:
    others = [
        PatchMetadata(kind="NodeClaim", name="a", annotations=(("a", "b"),)),
        PatchMetadata(kind="Node", name="a", labels=bought().labels),
    ]
    cluster = msgspec.structs.replace(launch_cluster(), catalogue=None)
    assert list(of_launches(others, cluster)) == []
    assert [one.usd_per_hour for one in of_launches([bought()], cluster)] == [0.0]
