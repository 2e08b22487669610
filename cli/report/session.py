"""A run of `joiner report`: reads the journal and the clusters, builds the report and writes it."""

import argparse
import sys
from bisect import bisect_left
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from cli.cost.daily_reports import read_cost_reports
from cli.explain.evidence import Evidence
from cli.explain.node_records import build_node_records
from cli.fleet.document.json_format import encode_fleet_document
from cli.fleet.sources.fleet_history import FleetHistory
from cli.journal.journal import S3_SCHEME, Journal
from cli.journal.sources import read_journal_and_cluster
from cli.replay.cycle_lookup import RecordStore
from cli.replay.rerun import LISTS_READ, build_cluster
from cli.report.data import build_report
from cli.report.page import build_report_document, render_report
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from shared.model.cluster import ClusterSnapshot
from shared.report.costs.cost_ledger import CommitmentHour

STDOUT = "-"
RecordedCluster: TypeAlias = tuple[ClusterSnapshot | None, str]
"""A recorded cluster, None if there is none, and its name."""


def write_report(args: argparse.Namespace) -> int:
    """Read, build and write the report; return 1 if a source could not be read or the file not written."""
    try:
        journal, live_cluster = read_journal_and_cluster(args)
    except InputError as error:
        return print_errors("report", [str(error)])
    status = print_errors("report", journal.messages)
    if not journal.cycles and live_cluster is None:
        is_bucket = journal.source.startswith(S3_SCHEME)
        period = " in the last day: --since 168h reads a week" if is_bucket else ""
        period = " in this period: a longer --since reads more" if args.since is not None else period
        print_errors("report", [f"{journal.source}: no cycles{period}; the report is empty"])
    file = args.file or ("report.html" if args.output == "html" else STDOUT)
    try:
        body = _build_output(args, journal, live_cluster)
    except InputError as error:
        return print_errors("report", [str(error)])
    if file == STDOUT:
        sys.stdout.write(body)
        return status
    try:
        Path(file).write_text(body, encoding="utf-8")
    except OSError as error:
        return print_errors("report", [f"{file}: {error.strerror}"])
    sys.stdout.write(f"report: {file}\n")
    return status


def _build_output(args: argparse.Namespace, journal: Journal, live_cluster: ClusterSnapshot | None) -> str:
    with show_progress("building the report"):
        (first, _), (last, recorded_name) = _load_snapshots(journal)
        cluster = live_cluster or last
        records = build_node_records(journal.cycles, cluster, first)
        evidence = Evidence(journal=journal, live_cluster=cluster, node_records=records)
        name = recorded_name or args.context or ""
        fleet_report = build_report(
            evidence,
            first,
            cluster_name=name,
            is_live=live_cluster is not None,
            commitment_hours=_read_commitment_hours(journal, last),
        )
        if args.output == "html":
            return render_report(fleet_report, _build_fleet_body(journal, live_cluster, name))
        return encode_output(build_report_document(fleet_report), args.output)


def _read_commitment_hours(journal: Journal, last: ClusterSnapshot | None) -> tuple[CommitmentHour, ...]:
    """Return the hours in the cost reports of the days of *journal*; none if its *last* snapshot has no commitments.

    Raises:
        InputError: The cost reports cannot be read.
    """
    if last is None or last.catalog is None or last.catalog.commitments is None:
        return ()
    period = journal.now - journal.cycles[0].entry.at
    reports = read_cost_reports(journal.source, period // timedelta(days=1) + 2)
    return tuple(hour for report in reports.days for hour in report.commitment_hours)


def _build_fleet_body(journal: Journal, live_cluster: ClusterSnapshot | None, cluster_name: str) -> bytes:
    """Return the fleet document of the journal and, if there is one, of the live cluster."""
    history = FleetHistory(
        journal,
        kind="journal" if live_cluster is None else "cluster",
        title=cluster_name or journal.source or "cluster",
        cluster_name=cluster_name,
    )
    if live_cluster is not None:
        history.observe(live_cluster, journal.now)
    return encode_fleet_document(history.build_document(journal.now))


def _load_snapshots(journal: Journal) -> tuple[RecordedCluster, RecordedCluster]:
    """Return the first and the last complete snapshot of *journal*.

    Snapshots are kept for less time than journal entries: those of the oldest entries are deleted.
    """
    entries = (cycle.entry for cycle in journal.cycles if cycle.entry.function not in LISTS_READ)
    record_keys = [entry.snapshot for entry in entries if entry.snapshot]
    store = RecordStore(journal.source)

    def load_cluster(key: str) -> RecordedCluster:
        try:
            record = store.load_record(key)
            catalog = store.load_catalog(record.catalog_key) if record.catalog_key else None
        except InputError:
            return None, ""
        return build_cluster(record, catalog), record.inputs.setting_texts.get("cluster_name", "")

    last = load_cluster(record_keys[-1]) if record_keys else (None, "")
    if last[0] is None:
        return last, last
    first = load_cluster(record_keys[0])
    if first[0] is None:
        oldest = bisect_left(
            record_keys, 1, key=lambda key: int(load_cluster(key)[0] is not None), hi=len(record_keys) - 1
        )
        first = load_cluster(record_keys[oldest])
    return first, last
