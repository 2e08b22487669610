"""Records the nodes and pods of a journal: from the cluster snapshots of decisions, and from actions between them."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from cli.explain.node_records import NodeRecord, find_node_record
from cli.fleet.recording.fleet_recorder import FleetRecorder
from cli.fleet.recording.observed_objects import build_observed_node, build_observed_pods
from cli.fleet.sources.journal_events import build_recorded_node, list_state_events
from cli.journal.evictions import iterate_evictions
from cli.journal.journal import Cycle
from cli.replay.cycle_lookup import RecordStore
from cli.replay.rerun import LISTS_READ, build_cluster
from cli.terminal.errors import InputError
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.state.cluster_state import ClusterState

MAX_SNAPSHOTS: Final = 120
"""Snapshots that are read, spread over the time of the journal: each has all nodes and pods."""
_MIN_UNSEEN_TIME: Final = timedelta(minutes=1)
"""A cycle that runs at the same time as another reads its snapshot up to this long before the other's actions."""


class RecordedSnapshots:
    """The cluster snapshots of a journal's decisions."""

    def __init__(self, source: str, cycles: Sequence[Cycle], max_snapshots: int = MAX_SNAPSHOTS) -> None:
        """Select at most *max_snapshots* snapshots of *cycles*, the first and the last among them."""
        self._store = RecordStore(source)
        self._catalogs: dict[str, Catalog | None] = {}
        keys = [
            cycle.entry.snapshot for cycle in cycles if cycle.entry.snapshot and cycle.entry.function not in LISTS_READ
        ]
        self._keys = _select_evenly(list(dict.fromkeys(keys)), max_snapshots)
        self.cluster_name = ""
        self.unreadable_count = 0
        """Snapshots that expired, or that could not be read."""

    def iterate_snapshots(self) -> Iterator[ClusterSnapshot]:
        """Yield the snapshots, oldest first; those that cannot be read are counted."""
        for key in self._keys:
            try:
                record = self._store.load_record(key)
            except InputError:
                self.unreadable_count += 1
                continue
            self.cluster_name = record.inputs.setting_texts.get("cluster_name", "") or self.cluster_name
            yield build_cluster(record, self._load_catalog(record.catalog_key))

    def _load_catalog(self, key: str) -> Catalog | None:
        if key not in self._catalogs:
            try:
                self._catalogs[key] = self._store.load_catalog(key) if key else None
            except InputError:
                self._catalogs[key] = None
        return self._catalogs[key]


def _select_evenly(keys: list[str], max_count: int) -> list[str]:
    """Return at most *max_count* of *keys*, evenly spread, with the first and the last.

    >>> _select_evenly(list("abcdef"), 3)
    ['a', 'c', 'f']
    """
    if len(keys) <= max_count:
        return keys
    return [keys[position * (len(keys) - 1) // (max_count - 1)] for position in range(max_count)]


def record_journal(
    recorder: FleetRecorder,
    cycles: Sequence[Cycle],
    records: Sequence[NodeRecord],
    snapshots: Sequence[ClusterSnapshot],
) -> None:
    """Record the nodes and pods of *snapshots*, and the changes of *cycles* between them, in the order of time."""
    steps: list[tuple[datetime, Callable[[], None]]] = [
        (snapshot.taken_at, partial(record_snapshot, recorder, snapshot, snapshot.taken_at, _MIN_UNSEEN_TIME))
        for snapshot in snapshots
    ]
    steps += [(event[0], partial(_record_event, recorder, records, *event)) for event in list_state_events(cycles)]
    steps += [
        (cycle.entry.at, partial(recorder.remove_pod_by_name, cycle.entry.at, pod))
        for cycle in cycles
        for pod, _ in iterate_evictions(cycle)
    ]
    for _, record_step in sorted(steps, key=lambda step: step[0]):  # steps at the same time keep this order
        record_step()


def _record_event(
    recorder: FleetRecorder, records: Sequence[NodeRecord], at: datetime, kind: str, name: str, state: str
) -> None:
    matches = [record for record in records if record.claim == name] if kind == "NodeClaim" else records
    record = find_node_record(matches, name)
    if record is not None:
        recorder.observe_node(at, build_recorded_node(record, state))


def record_snapshot(
    recorder: FleetRecorder, cluster: ClusterSnapshot, at: datetime, min_unseen_time: timedelta = timedelta()
) -> None:
    """Record all nodes and pods of *cluster* at *at*."""
    cluster_state = ClusterState(cluster)
    class_by_pool = {node_pool.name: node_pool.node_class.name for node_pool in cluster.node_pools}
    recorder.observe_all(
        at,
        [
            build_observed_node(state, cluster_state.price_list, class_by_pool.get(state.pool, ""))
            for state in cluster_state.nodes
        ],
        build_observed_pods(cluster.pods),
        min_unseen_time,
    )
