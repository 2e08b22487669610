"""The workload history that the decision records of a journal give.

A record has all pods of its moment, as the functions saw them. Records are not evenly spaced: an hour in which nothing
was decided has none, and stays unknown.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from cli.journal.journal import S3_SCHEME, Journal, open_bucket
from cli.replay.cycle_lookup import RecordStore
from cli.terminal.errors import InputError
from shared.decide.disruption.savings.run_time_history import find_ended_runs, list_running_pods
from shared.decide.disruption.savings.workload_history import UPDATE_PERIOD, observe_workloads, update_history
from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.pod_run_time import EndedRun, RunningPod
from shared.model.decisions.workload_history import WorkloadHistory
from shared.report.journal.decision_record import decode_record

FUNCTIONS_WITH_PODS: Final = ("provision", "disrupt", "interrupt", "lifecycle")
"""Functions whose decision records have all pods."""
MIN_RECORD_INTERVAL: Final = timedelta(seconds=30)
"""Records that follow sooner are not read: the functions decide several times per minute."""
_MAX_CONCURRENT_READS: Final = 16
LoadCluster = Callable[[str], ClusterSnapshot | str]
"""Returns the cluster of the record under a key, or why it cannot be read."""


class RecordedHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The history that the records give, and how it was found."""

    history: WorkloadHistory
    record_count: int = 0
    """Number of records that were read."""
    first_at: datetime | None = None
    messages: tuple[str, ...] = ()
    """The records that cannot be read, with the reason."""


class HistoryBuilder:
    """Adds one cluster after the other, as the function adds its snapshots every minute."""

    def __init__(self) -> None:
        """Start without a history."""
        self.history = WorkloadHistory()
        self._seen_at: datetime | None = None
        self._running_pods: tuple[RunningPod, ...] = ()
        self._ended_runs: list[EndedRun] = []

    def add(self, cluster: ClusterSnapshot) -> None:
        """Add *cluster*, unless pods in it could not be read."""
        if any(problem.kind == "Pod" for problem in cluster.problems):
            return
        if self._seen_at is not None:
            self._ended_runs += find_ended_runs(self._running_pods, self._seen_at, cluster)
        self._seen_at, self._running_pods = cluster.taken_at, list_running_pods(cluster)
        updated_at = self.history.updated_at
        if updated_at is None or cluster.taken_at - updated_at >= UPDATE_PERIOD:
            workloads = observe_workloads(cluster)
            self.history = update_history(self.history, workloads, cluster.taken_at, self._ended_runs)
            self._ended_runs = []


def build_recorded_history(journal: Journal, load_cluster: LoadCluster, until: datetime | None) -> RecordedHistory:
    """Return the history of the records of *journal* that were taken before *until*."""
    builder, messages, record_count = HistoryBuilder(), list[str](), 0
    first_at: datetime | None = None
    keys = list(_select_keys(journal, until))
    with ThreadPoolExecutor(_MAX_CONCURRENT_READS) as executor:
        for start in range(0, len(keys), _MAX_CONCURRENT_READS):
            batch = keys[start : start + _MAX_CONCURRENT_READS]
            for key, cluster in zip(batch, executor.map(load_cluster, batch), strict=True):
                if isinstance(cluster, str):
                    messages.append(f"{key}: {cluster}")
                    continue
                builder.add(cluster)
                record_count, first_at = record_count + 1, first_at or cluster.taken_at
    return RecordedHistory(
        history=builder.history, record_count=record_count, first_at=first_at, messages=tuple(messages)
    )


def _select_keys(journal: Journal, until: datetime | None) -> Iterator[str]:
    """Yield the keys of the records to read, oldest first."""
    last_at: datetime | None = None
    for cycle in journal.cycles:
        entry = cycle.entry
        if not entry.snapshot or entry.function not in FUNCTIONS_WITH_PODS or (until is not None and entry.at >= until):
            continue
        if last_at is None or entry.at - last_at >= MIN_RECORD_INTERVAL:
            last_at = entry.at
            yield entry.snapshot


@contextmanager
def open_records(source: str) -> Iterator[LoadCluster]:
    """Open the records next to the journal at *source*: a folder, or a bucket.

    Raises:
        InputError: the bucket cannot be read.
    """
    if not source.startswith(S3_SCHEME):
        yield partial(_load_from_folder, RecordStore(source))
        return
    with open_bucket(source) as (bucket, prefix):
        parent = prefix.rstrip("/").rpartition("/")[0]

        def load_from_bucket(key: str) -> ClusterSnapshot | str:
            try:
                return decode_record(bucket.get(f"{parent}/{key}" if parent else key)).cluster
            except Fault as fault:
                return f"{type(fault).__name__}: {fault}"
            except ValueError as error:
                return f"not a decision record that this version can read: {error}"

        yield load_from_bucket


def _load_from_folder(store: RecordStore, key: str) -> ClusterSnapshot | str:
    try:
        return store.load_record(key).cluster
    except InputError as error:
        return str(error).removeprefix(f"{key}: ")


def list_known_hours(history: WorkloadHistory) -> set[int]:
    """Return the hours of the week of which *history* knows anything."""
    return {hour for record in history.workloads for hour, weeks in enumerate(record.weeks) if weeks}


def summarize_messages(messages: Iterable[str], maximum: int) -> list[str]:
    """Return the first *maximum* messages, and the number of the others."""
    lines = list(messages)
    return lines if len(lines) <= maximum else [*lines[:maximum], f"… and {len(lines) - maximum} more records"]
