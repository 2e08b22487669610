"""The stored history of offerings: bounded, written conditionally, and never a reason to fail."""

from datetime import UTC, datetime

import pytest

from shared.errors import Conflict, Unreachable
from shared.model.cloud_provider.offering_history import OfferingEvent, OfferingHistory, OfferingRecord
from shared.model.core.metadata import Problem
from shared.store.offerings.offering_history import (
    MAX_HISTORY_BYTES,
    ROW_KIND,
    ROW_NAME,
    encode_offering_history,
    read_offering_history,
    record_offering_events,
)
from shared.store.table_rows import decode_body_text
from sim.fault_tap import PortCall
from tests.support.actions_world import Outside

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def make_event(instance_type: str = "m5.large") -> OfferingEvent:
    return OfferingEvent(
        instance_type=instance_type, zone="us-east-1a", capacity_type="spot", kind="interruption", at=NOW
    )


def test_events_are_added_to_the_stored_history() -> None:
    outside = Outside()
    record_offering_events((make_event(),), outside.table, NOW)
    record_offering_events((make_event(), make_event("c5.large")), outside.table, NOW)
    history = read_offering_history(outside.table, [])
    assert {record.instance_type: record.interruptions for record in history.records} == {"c5.large": 1, "m5.large": 2}


def test_history_that_cannot_be_decoded_starts_again() -> None:
    outside, problems = Outside(), list[Problem]()
    outside.table.write(ROW_KIND, ROW_NAME, "[]", version=0)
    assert read_offering_history(outside.table, problems) == OfferingHistory()
    assert "starts again" in problems[0].message
    record_offering_events((make_event(),), outside.table, NOW)
    assert len(read_offering_history(outside.table, []).records) == 1


def test_history_that_cannot_be_read_is_empty_and_reported() -> None:
    def fail(call: PortCall) -> None:
        if call.port == "table":
            raise Unreachable("no response")

    problems = list[Problem]()
    world = Outside().build_world(tap=fail)
    assert read_offering_history(world.table, problems) == OfferingHistory()
    assert "could not be read" in problems[0].message


def test_update_is_repeated_if_another_function_is_faster_and_ends_after_three_attempts() -> None:
    outside = Outside()
    rivals = [1, 0]

    def write_first(call: PortCall) -> None:
        if call.port == "table" and call.method == "write" and rivals and rivals.pop():
            record_offering_events((make_event("c5.large"),), outside.table, NOW)

    record_offering_events((make_event(),), outside.build_world(tap=write_first).table, NOW)
    assert len(read_offering_history(outside.table, []).records) == 2
    rivals += [1] * 9

    def always_write_first(call: PortCall) -> None:
        if call.port == "table" and call.method == "write":
            record_offering_events((make_event("c5.large"),), outside.table, NOW)

    with pytest.raises(Conflict, match="3 times"):
        record_offering_events((make_event(),), outside.build_world(tap=always_write_first).table, NOW)


def test_stored_history_is_bounded_and_keeps_the_highest_counts() -> None:
    records = tuple(
        OfferingRecord(
            instance_type=f"m{number}.large",
            zone="us-east-1a",
            capacity_type="spot",
            at=NOW,
            interruptions=0.1 + number * 0.001234567,
            evictions_usd=number * 0.000987653,
        )
        for number in range(5000)
    )
    body = encode_offering_history(OfferingHistory(records=tuple(sorted(records))))
    stored = decode_body_text(body, OfferingHistory)
    assert len(body) <= MAX_HISTORY_BYTES
    assert 500 < len(stored.records) == 5000 - stored.dropped_count
    assert {record.instance_type for record in stored.records} == {
        record.instance_type for record in records[-len(stored.records) :]
    }
