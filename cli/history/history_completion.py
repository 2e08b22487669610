"""The stored workload history, completed by one that was built from decision records."""

from msgspec.structs import replace

from cli.history.recorded_history import list_known_hours
from shared.decide.disruption.savings.workload_history import compute_hour_of_week
from shared.model.decisions.workload_history import HOURS_PER_WEEK, WorkloadHistory, WorkloadRecord


def merge_histories(stored: WorkloadHistory, built: WorkloadHistory) -> WorkloadHistory:
    """Return *stored* with the hours and families of *built* that it does not know.

    Hours that the functions have observed, or are observing, never change: no hour is counted twice, and merging once
    more changes nothing. A workload that *stored* does not know had no replicas in these hours.
    """
    if stored.updated_at is None:
        return built
    observed_hours = list_known_hours(stored)
    if stored.observation_count:
        observed_hours.add(compute_hour_of_week(stored.updated_at))
    stored_by_name = {record.name: record for record in stored.workloads}
    built_by_name = {record.name: record for record in built.workloads}
    workloads = [
        _merge_records(stored_by_name.get(name), built_by_name.get(name), observed_hours)
        for name in sorted(stored_by_name.keys() | built_by_name.keys())
    ]
    families = {record.family: record for record in (*built.run_times, *stored.run_times)}
    return replace(
        stored,
        workloads=tuple(record for record in workloads if any(record.means) or record.current_total),
        run_times=tuple(record for _, record in sorted(families.items())),
    )


def _merge_records(
    stored: WorkloadRecord | None, built: WorkloadRecord | None, observed_hours: set[int]
) -> WorkloadRecord:
    if built is None:
        assert stored is not None  # noqa: S101 - one of them has the name
        return stored
    hours = range(HOURS_PER_WEEK)
    if stored is None:
        return replace(
            built,
            means=tuple(0 if hour in observed_hours else built.means[hour] for hour in hours),
            errors=tuple(0 if hour in observed_hours else built.errors[hour] for hour in hours),
            weeks=tuple(1 if hour in observed_hours else built.weeks[hour] for hour in hours),
            current_total=0,
        )
    return replace(
        stored,
        means=tuple(stored.means[hour] if hour in observed_hours else built.means[hour] for hour in hours),
        errors=tuple(stored.errors[hour] if hour in observed_hours else built.errors[hour] for hour in hours),
        weeks=tuple(stored.weeks[hour] if hour in observed_hours else built.weeks[hour] for hour in hours),
    )
