"""The journal: log lines and stored entries of a cycle."""

import json
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Unreachable
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS, RESERVATION_ID, ZONE
from shared.model.core.metadata import Problem, build_pairs
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    PatchMetadata,
    PublishEvent,
)
from shared.report.journal.journal import (
    ActionResult,
    DecisionNote,
    JournalEntry,
    build_entry_key,
    decode_entry,
    record_entry,
)
from shared.report.journal.journal_entries import build_launch_notes
from sim.fault_tap import PortCall
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside, make_claim
from tests.support.launch_cases import make_claim as wide_claim
from tests.support.launch_cases import make_cluster as launch_cluster

EVICT = EvictPod(namespace="shop", name="cart", uid="u", node="n", message="drain")
WAKE = FollowUp(function="provision", after=timedelta(seconds=5), message="waiting")
PROBLEM = Problem(kind="NodePool", name="orphan", message="its node class does not exist")
PLAIN = JournalEntry(
    function="provision", trigger="schedule", at=DEFAULT_START_TIME, cluster="abc", counts={"PendingPods": 2.0}
)
KEY = "journal/provision/2026/11/21/080000-one.json"


def record_plain_entry(**fields: object) -> tuple[Outside, dict[str, object]]:
    outside = Outside()
    record_entry(msgspec.structs.replace(PLAIN, **fields), outside.build_world())
    [line] = outside.lines
    assert "\n" not in line
    return outside, json.loads(line)


def test_journal_key_contains_function_day_and_time() -> None:
    assert build_entry_key(PLAIN, "one") == KEY
    assert build_entry_key(PLAIN, "") == KEY.replace("one", "cycle")


@pytest.mark.parametrize(
    "fields",
    [
        {"results": (ActionResult(action=EVICT, result="done"),)},
        {"results": (ActionResult(action=WAKE, result="failed", message="NotFound: no such queue"),)},
        {"notes": (DecisionNote(kind="Node", name="n", verdict="kept", reason="busy"),)},
        {"problems": (PROBLEM,)},
        {"error": "Throttled: ec2"},
    ],
    ids=["an action", "failed action", "a verdict", "a problem", "an error"],
)
def test_journal_entry_with_results_notes_or_problems_is_stored(fields: dict[str, object]) -> None:
    outside, _ = record_plain_entry(**fields)
    assert outside.bucket.list_keys("") == (KEY,)
    assert decode_entry(outside.bucket.get(KEY)) == msgspec.structs.replace(PLAIN, **fields)


def test_idle_cycle_writes_only_a_log_line() -> None:
    outside, line = record_plain_entry()
    assert outside.bucket.list_keys("") == ()
    assert line == {
        "level": "INFO",
        "message": "cycle completed",
        "timestamp": "2026-11-21T08:00:00.000+00:00",
        "service": "joiner",
        "cluster": "joiner",
        "function_request_id": "one",
        "cold_start": False,
        "function": "provision",
        "trigger": "schedule",
        "cycle": KEY.removeprefix("journal/").removesuffix(".json"),
        "counts": {"PendingPods": 2.0},
        "seconds": 0.0,
    }


def test_successful_follow_up_is_logged_but_not_stored() -> None:
    outside, line = record_plain_entry(results=(ActionResult(action=WAKE, result="done"),))
    assert outside.bucket.list_keys("") == ()
    assert line["actions"] == {"FollowUp": 1}


def test_log_line_contains_the_snapshot_age_in_seconds() -> None:
    outside = Outside()
    outside.clock.advance(timedelta(seconds=1.25))
    record_entry(PLAIN, outside.build_world())
    assert json.loads(outside.lines[0])["seconds"] == 1.25


def test_log_line_contains_done_and_failed_actions_and_problems() -> None:
    results = (
        ActionResult(action=WAKE, result="done"),
        ActionResult(action=WAKE, result="done"),
        ActionResult(action=EVICT, result="failed", message="Throttled: later"),
        ActionResult(action=EVICT, result="skipped", message="NotFound: cart"),
    )
    _, line = record_plain_entry(results=results, problems=(PROBLEM,))
    assert line["actions"] == {"FollowUp": 2}
    assert line["failed"] == ["EvictPod: Throttled: later"]
    assert line["problems"] == ["NodePool orphan: its node class does not exist"]
    assert line["level"] == "WARNING"


def test_entry_with_an_error_has_log_level_error() -> None:
    _, line = record_plain_entry(error="Unreachable: kube", problems=(PROBLEM,))
    assert (line["level"], line["error"]) == ("ERROR", "Unreachable: kube")


@pytest.mark.parametrize(
    ("error", "level", "expected_error"),
    [("", "WARNING", "journal entry lost: Unreachable: s3"), ("Throttled: ec2", "ERROR", "Throttled: ec2")],
)
def test_unreachable_bucket_is_logged_and_does_not_stop_the_cycle(error: str, level: str, expected_error: str) -> None:
    outside = Outside()

    def fail_bucket(call: PortCall) -> None:
        if call.port == "bucket":
            raise Unreachable("s3")

    entry = msgspec.structs.replace(PLAIN, error=error, results=(ActionResult(action=EVICT, result="done"),))
    assert not record_entry(entry, outside.build_world(tap=fail_bucket))
    [line] = map(json.loads, outside.lines)
    assert (line["level"], line["error"], line["actions"]) == (level, expected_error, {"EvictPod": 1})
    assert outside.bucket.list_keys("") == ()


@pytest.mark.parametrize(
    "action",
    [
        CreateNodeClaim(claim=wide_claim("a"), pods=("shop/cart",), message="pending"),
        MarkUnavailable(offering=UnavailableOffering(capacity_type="spot", until=DEFAULT_START_TIME), message="ICE"),
        PublishEvent(kind="Node", name="n", reason="R", message="ü", at=DEFAULT_START_TIME),
        WAKE,
        EVICT,
    ],
    ids=lambda action: type(action).__name__,
)
def test_journal_entry_round_trips_through_the_bucket(action: Action) -> None:
    outside, _ = record_plain_entry(
        results=(ActionResult(action=action, result="done", message="m"),), problems=(PROBLEM,)
    )
    [result] = decode_entry(outside.bucket.get(KEY)).results
    assert result == ActionResult(action=action, result="done", message="m")


def test_launch_group_round_trips_through_the_bucket() -> None:
    group = Outside().build_launch_group()
    outside, _ = record_plain_entry(results=(ActionResult(action=LaunchInstances(group=group), result="done"),))
    [result] = decode_entry(outside.bucket.get(KEY)).results
    assert result.action == LaunchInstances(group=group)


def test_journal_entry_encoding_is_deterministic() -> None:
    bodies = set()
    for values in (("spot", "on-demand", "reserved"), ("reserved", "on-demand", "spot")):
        requirements = build_requirements((parse_requirement("karpenter.sh/capacity-type", "In", values),))
        action = CreateNodeClaim(claim=msgspec.structs.replace(make_claim(), requirements=requirements))
        counts = dict.fromkeys(values, 1.0)
        outside, _ = record_plain_entry(results=(ActionResult(action=action, result="done"),), counts=counts)
        bodies.add(outside.bucket.get(KEY))
    assert len(bodies) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"function": 1}', b"[]"])
def test_invalid_journal_entry_is_rejected(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_entry(body)


def make_launch_patch(**labels: str) -> PatchMetadata:
    default_labels = {INSTANCE_TYPE: "m5.large", ZONE: "us-east-1a", CAPACITY_TYPE: "on-demand", NODECLASS: "default"}
    return PatchMetadata(kind="NodeClaim", name="a", labels=build_pairs(default_labels | labels), message="launched")


@pytest.mark.parametrize(
    ("labels", "reason", "price"),
    [
        ({}, "m5.large, on-demand, in us-east-1a, $0.1000/h", 0.1),
        ({INSTANCE_TYPE: "m5.xlarge"}, "m5.xlarge, on-demand, in us-east-1a, $0.2000/h", 0.2),
        ({ZONE: "us-east-1z"}, "m5.large, on-demand, in us-east-1z", 0.0),
        ({RESERVATION_ID: "cr-1"}, "m5.large, on-demand, in us-east-1a", 0.0),
    ],
    ids=["available offering", "other instance type", "zone without the offering", "missing reservation"],
)
def test_launch_note_contains_the_purchased_offering_and_its_price(
    labels: dict[str, str], reason: str, price: float
) -> None:
    cluster = launch_cluster()
    [note] = build_launch_notes([EVICT, make_launch_patch(**labels)], cluster)
    assert note == DecisionNote(kind="NodeClaim", name="a", verdict="launched", reason=reason, usd_per_hour=price)


def test_other_patches_make_no_launch_note_and_a_missing_catalog_no_price() -> None:
    other_patches = [
        PatchMetadata(kind="NodeClaim", name="a", annotations=(("a", "b"),)),
        PatchMetadata(kind="Node", name="a", labels=make_launch_patch().labels),
    ]
    cluster = msgspec.structs.replace(launch_cluster(), catalog=None)
    assert list(build_launch_notes(other_patches, cluster)) == []
    assert [note.usd_per_hour for note in build_launch_notes([make_launch_patch()], cluster)] == [0.0]
