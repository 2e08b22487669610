"""Laws of the stored zonal shifts."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.model.cloud_provider.zonal_shift import (
    CLEARED_EVENT_PERIOD,
    ZonalShift,
    record_failure,
    record_shifts,
)

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
minutes = st.integers(min_value=-200, max_value=200)
shifts = st.lists(
    st.builds(
        ZonalShift,
        zone_id=st.sampled_from(("use1-az1", "use1-az2")),
        started_at=st.just(NOW),
        expires_at=st.one_of(st.none(), minutes.map(lambda count: NOW + timedelta(minutes=count))),
    ),
    max_size=2,
    unique_by=lambda shift: shift.zone_id,
).map(tuple)


@given(shifts=shifts, failures=st.lists(st.integers(min_value=1, max_value=60), max_size=5))
def test_failure_never_ends_a_shift_before_it_expires(shifts: tuple[ZonalShift, ...], failures: list[int]) -> None:
    record, now = record_shifts(None, shifts, NOW), NOW
    for delay in failures:
        now += timedelta(minutes=delay)
        record = record_failure(record, "Unreachable", now)
        assert set(record.shifts) == {shift for shift in shifts if shift.is_active(now)}
        assert record.read_at == NOW
        assert record.error


@given(before=shifts, after=shifts, delay=st.integers(min_value=0, max_value=60))
def test_ended_shift_is_reported_once_and_no_longer_than_the_period(
    before: tuple[ZonalShift, ...], after: tuple[ZonalShift, ...], delay: int
) -> None:
    first, now = record_shifts(None, before, NOW), NOW + timedelta(minutes=delay)
    second = record_shifts(first, after, now)
    active_zone_ids = {shift.zone_id for shift in second.shifts}
    assert not active_zone_ids & {ended.shift.zone_id for ended in second.ended}
    for shift in first.shifts:
        ended_at = min(now, shift.expires_at or now)
        is_recent = now - ended_at < CLEARED_EVENT_PERIOD
        is_reported = shift in [ended.shift for ended in second.ended]
        assert is_reported == (shift.zone_id not in active_zone_ids and is_recent)
    assert record_shifts(second, after, now + CLEARED_EVENT_PERIOD).ended == () or second.shifts


def test_first_failure_knows_no_shift() -> None:
    record = record_failure(None, "Unreachable", NOW)
    assert (record.shifts, record.ended, record.read_at) == ((), (), None)
