"""The source of the page: a live cluster, a journal, both, or files."""

import argparse
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from cli.fleet.sources.fleet_history import FleetHistory
from cli.journal.journal import Journal, load_journal
from cli.planning.cluster_source import PlanningInputReader, read_priced_input
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from cli.ui.server.fleet_feed import FleetFeed, FleetObservation

_JOURNAL_REFRESH_INTERVAL: Final = timedelta(minutes=1)
_JOURNAL_OVERLAP_DURATION: Final = timedelta(minutes=2)
"""Entries are read again for this time before the last one: entries of long cycles are written late."""


def open_feed(args: argparse.Namespace) -> FleetFeed:
    """Read the source that *args* selects, and return its feed.

    Raises:
        InputError: the source cannot be read.
    """
    now = args.now or datetime.now(UTC)
    if args.filename:
        return _open_files(args, now)
    bucket = os.environ.get("JOINER_BUCKET_NAME")
    is_live = args.context is not None or args.kubeconfig is not None or not (args.journal or bucket)
    source = args.journal or (f"s3://{bucket}" if bucket else "")
    journal = Journal(source="", now=now)
    if source:
        journal = load_journal(source, now, args.since, is_now=is_live or args.now is not None)
    if is_live:
        return _open_live_cluster(args, journal, source)
    with show_progress("reading the cluster snapshots of the journal"):
        history = FleetHistory(journal, kind="journal", title=f"journal {source}")
    return FleetFeed(history, journal.now)


def _open_files(args: argparse.Namespace, now: datetime) -> FleetFeed:
    names = ", ".join(args.filename)
    planning_input, cluster = read_priced_input(args, is_live=False, now=now)
    history = FleetHistory(Journal(source="", messages=planning_input.notes, now=now), kind="folder", title=names)
    history.observe(cluster, now)
    return FleetFeed(history, now)


def _open_live_cluster(args: argparse.Namespace, journal: Journal, source: str) -> FleetFeed:
    args.context = args.context or ""
    name = args.context or _get_context_name(args)
    with show_progress("reading the cluster and the cluster snapshots of the journal"):
        history = FleetHistory(journal, kind="cluster", title=f"context {name}", cluster_name=name)
    reader = LiveReader(args, journal, source)
    first = reader()
    history.observe(first.cluster, first.at)
    return FleetFeed(history, first.at, reader)


def _get_context_name(args: argparse.Namespace) -> str:
    from cli.cluster.contexts import get_current_context  # noqa: PLC0415 - the client library takes half a second

    return get_current_context(args.kubeconfig or "")


class LiveReader:
    """Reads the cluster each time, and the journal's newer entries once a minute."""

    def __init__(
        self,
        args: argparse.Namespace,
        journal: Journal,
        source: str,
        get_time: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Read the cluster that *args* selects; *journal* was read from *source*, "" if there is none."""
        self._args, self._journal, self._source, self._get_time = args, journal, source, get_time
        self._read_input = PlanningInputReader(args)
        self._journal_read_at = journal.now

    def __call__(self) -> FleetObservation:
        """Return the current cluster, and the journal if it has new entries.

        Raises:
            InputError: the cluster cannot be read.
        """
        _, cluster = self._read_input()
        return FleetObservation(at=cluster.taken_at, cluster=cluster, journal=self._read_new_entries())

    def _read_new_entries(self) -> Journal | None:
        now = self._get_time()
        if not self._source or now - self._journal_read_at < _JOURNAL_REFRESH_INTERVAL:
            return None
        since = now - self._journal_read_at + _JOURNAL_OVERLAP_DURATION
        try:
            newer = load_journal(self._source, now, since, is_now=True)
        except InputError:
            return None  # the cluster is what is watched; the next read covers this time too
        self._journal_read_at = now
        cycles_by_key = {cycle.key: cycle for cycle in (*self._journal.cycles, *newer.cycles)}
        cycles = sorted(cycles_by_key.values(), key=lambda cycle: (cycle.entry.at, cycle.key))
        self._journal = replace(self._journal, cycles=tuple(cycles), now=now)
        return self._journal
