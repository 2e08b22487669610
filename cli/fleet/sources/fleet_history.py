"""A fleet document from a journal, from a cluster, or from both; it grows with each further observation."""

from datetime import datetime

from cli.explain.evidence import Evidence
from cli.explain.node_records import build_node_records
from cli.fleet.document.fleet_document import FleetDocument, FleetSource, SourceKind
from cli.fleet.document.json_format import convert_to_milliseconds
from cli.fleet.fleet_builder import FleetInputs, build_fleet_document
from cli.fleet.recording.fleet_recorder import FleetRecorder
from cli.fleet.sources.journal_recording import RecordedSnapshots, record_journal, record_snapshot
from cli.journal.journal import Journal
from cli.status.node_rows import build_node_rows
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.state.cluster_state import ClusterState


class FleetHistory:
    """Nodes and pods of a journal and of a cluster that is observed repeatedly."""

    def __init__(self, journal: Journal, *, kind: SourceKind, title: str, cluster_name: str = "") -> None:
        """Record what *journal* contains, which can be empty."""
        self._kind, self._title, self._cluster_name = kind, title, cluster_name
        self._recorder = FleetRecorder()
        self._notes: list[str] = []
        self._started_at: datetime | None = None
        self.journal = journal
        self.cluster: ClusterSnapshot | None = None
        """The newest observation: of a cluster, else the newest snapshot of the journal."""
        self._version = 1
        self._read_error = ""
        self._keep_reasons: dict[str, str] = {}
        """Why the nodes of an observed cluster are not disrupted, by the Node's name."""
        self._has_keep_reasons = True
        """Whether the reasons are those of the last observation."""
        self._is_observed = False
        self._evidence: Evidence | None = None
        self._first_cluster: ClusterSnapshot | None = None
        self._load_journal()

    def _load_journal(self) -> None:
        cycles = self.journal.cycles
        if not cycles:
            return
        recorded_snapshots = RecordedSnapshots(self.journal.source, cycles)
        snapshots = [*recorded_snapshots.iterate_snapshots()]
        self._cluster_name = self._cluster_name or recorded_snapshots.cluster_name
        self._notes += self.journal.messages
        if recorded_snapshots.unreadable_count:
            count = format_count(recorded_snapshots.unreadable_count, "cluster snapshot")
            self._notes.append(f"{count} of the journal expired or could not be read: pods of that time are missing")
        if snapshots:
            self._first_cluster, self.cluster = snapshots[0], snapshots[-1]
        self._started_at = cycles[0].entry.at
        record_journal(self._recorder, cycles, self.build_evidence().node_records, snapshots)

    def observe(self, cluster: ClusterSnapshot, at: datetime) -> None:
        """Record *cluster* as it is at *at*."""
        change_count = self._recorder.change_count
        record_snapshot(self._recorder, cluster, at)
        if (
            self.cluster is None
            or self._recorder.change_count != change_count
            or (self.cluster.node_pools, self.cluster.catalog) != (cluster.node_pools, cluster.catalog)
        ):
            self._version += 1
        self.cluster, self._has_keep_reasons = cluster, False
        self._is_observed, self._evidence = True, None
        self._started_at = self._started_at or at

    def compute_version(self) -> int:
        """Return a number that grows with each change of the document.

        The end and the totals, which grow with time, are no change. The reasons why nodes are kept are computed here:
        without a page, no observation needs them.
        """
        if not self._has_keep_reasons and self.cluster is not None:
            rows = build_node_rows(ClusterState(self.cluster))
            keep_reasons = {row.name: ": ".join(filter(None, row.keep_reason)) for row in rows}
            self._version += keep_reasons != self._keep_reasons
            self._keep_reasons, self._has_keep_reasons = keep_reasons, True
        return self._version

    def replace_journal(self, journal: Journal) -> None:
        """Use *journal*, which has newer cycles, for decisions; nodes and pods are observed in the cluster."""
        self._version += [cycle.key for cycle in journal.cycles] != [cycle.key for cycle in self.journal.cycles]
        self.journal, self._evidence = journal, None

    def report_read_error(self, message: str) -> None:
        """Note why the cluster could not be read the last time; "" if it was read."""
        self._version += message != self._read_error
        self._read_error = message

    def build_evidence(self) -> Evidence:
        """Return what explanations can use."""
        if self._evidence is None:
            records = build_node_records(self.journal.cycles, self.cluster, self._first_cluster)
            live_cluster = self.cluster if self._is_observed else None
            self._evidence = Evidence(journal=self.journal, live_cluster=live_cluster, node_records=records)
        return self._evidence

    def build_document(self, now: datetime, *, is_live: bool = False) -> FleetDocument:
        """Return the document of everything that was recorded until *now*."""
        self.compute_version()
        cluster = self.cluster or ClusterSnapshot(taken_at=now)
        cluster_state = ClusterState(cluster)
        return build_fleet_document(
            FleetInputs(
                source=FleetSource(
                    kind=self._kind,
                    cluster=self._cluster_name,
                    title=self._title,
                    generated_at=convert_to_milliseconds(now),
                    live=is_live,
                    notes=(*([self._read_error] if self._read_error else []), *self._notes),
                ),
                start=self._started_at or now,
                end=max(now, self._started_at or now),
                nodes=self._recorder.nodes,
                pods=self._recorder.pods,
                node_pools=cluster.node_pools,
                evidence=self.build_evidence(),
                price_list=cluster_state.price_list,
                keep_reasons=self._keep_reasons,
                replay_source=self.journal.source,
            )
        )
