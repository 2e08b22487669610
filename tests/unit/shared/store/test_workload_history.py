"""The stored workload history has a bounded size and keeps the largest workloads."""

from datetime import UTC, datetime
from random import Random

from shared.decide.disruption.savings.run_time_history import MAX_FAMILIES
from shared.model.decisions.pod_run_time import LAST_INTERVAL, RunTimeRecord
from shared.model.decisions.workload_history import HOURS_PER_WEEK, WorkloadHistory, WorkloadRecord
from shared.store.table_rows import decode_body_text
from shared.store.workload_history import MAX_HISTORY_BYTES, describe_dropped_workloads, encode_workload_history


def make_record(number: int, random: Random) -> WorkloadRecord:
    return WorkloadRecord(
        name=f"Deployment shop/web-{number:04}",
        pool="default",
        cpu_milli=10 * (number + 1),
        memory_bytes=2**30,
        means=tuple(random.randrange(500, 1000) for _ in range(HOURS_PER_WEEK)),
        errors=tuple(random.randrange(100) for _ in range(HOURS_PER_WEEK)),
        weeks=(4,) * HOURS_PER_WEEK,
    )


def test_stored_history_of_a_thousand_workloads_is_bounded_and_keeps_the_largest() -> None:
    random = Random(1)  # noqa: S311 - not for security
    records = tuple(make_record(number, random) for number in range(1000))
    body = encode_workload_history(WorkloadHistory(workloads=records))
    stored = decode_body_text(body, WorkloadHistory)
    assert len(body) <= MAX_HISTORY_BYTES
    assert 100 < len(stored.workloads) < 1000
    assert stored.dropped_count == 1000 - len(stored.workloads)
    largest = sorted(records, key=lambda record: -record.size)[: len(stored.workloads)]
    assert {record.name for record in stored.workloads} == {record.name for record in largest}
    [problem] = describe_dropped_workloads(stored)
    assert f"{stored.dropped_count} small workloads" in problem.message


def test_steady_workloads_fit_without_loss() -> None:
    record = make_record(0, Random(1))  # noqa: S311 - not for security
    steady = tuple(
        WorkloadRecord(
            name=f"{record.name}-{number:04}",
            pool="default",
            cpu_milli=100,
            memory_bytes=2**30,
            means=(30,) * HOURS_PER_WEEK,
            weeks=(4,) * HOURS_PER_WEEK,
        )
        for number in range(1000)
    )
    history = WorkloadHistory(workloads=steady)
    assert decode_body_text(encode_workload_history(history), WorkloadHistory) == history
    assert describe_dropped_workloads(history) == ()


def test_run_times_of_all_families_fit_beside_many_workloads() -> None:
    """Each family has runs in 12 intervals, which is a spread of 8 times the shortest run."""
    random = Random(1)  # noqa: S311 - not for security
    run_times = tuple(
        RunTimeRecord(
            family=f"CronJob shop/report-{number:03}",
            run_counts=tuple((random.randrange(LAST_INTERVAL), random.randrange(1, 40)) for _ in range(12)),
            last_seen_at=datetime(2026, 11, 21, 12, number % 60, tzinfo=UTC),
        )
        for number in range(MAX_FAMILIES)
    )
    records = tuple(make_record(number, random) for number in range(1000))
    body = encode_workload_history(WorkloadHistory(workloads=records, run_times=run_times))
    stored = decode_body_text(body, WorkloadHistory)
    assert len(body) <= MAX_HISTORY_BYTES
    assert stored.run_times == run_times
    assert len(stored.workloads) > 100
