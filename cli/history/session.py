"""One run of `joiner history show` or `joiner history build`."""

import argparse
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from cli.history.page import build_document, render_page
from cli.history.recorded_history import RecordedHistory, build_recorded_history, open_records, summarize_messages
from cli.history.table_history import TABLE_VARIABLE, find_bucket, is_table_named, open_table, read_stored_history
from cli.history.table_history import write_completed_history as write_history
from cli.history.workload_selection import select_workloads
from cli.journal.arguments import get_journal_source
from cli.journal.journal import MAX_NAMED_ERRORS, Journal, load_journal
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.text import choose_palette, get_terminal_width
from shared.model.core.formatting import format_count
from shared.model.decisions.workload_history import WorkloadHistory

DEFAULT_PERIOD: Final = timedelta(days=7)
"""As long as decision records are kept by default."""


def run_show(args: argparse.Namespace) -> int:
    """Show the stored history, or what the journal would give; return 1 if there is nothing to show."""
    now = args.now or datetime.now(UTC)
    try:
        history, source, messages, read_at = _read_history(args, now)
        selected = select_workloads(history, args.workload)
    except InputError as error:
        return print_errors("history", [str(error)])
    _print_history(args, selected, read_at, source=source, is_detailed=bool(args.workload))
    return print_errors("history", summarize_messages(messages, MAX_NAMED_ERRORS))


def run_build(args: argparse.Namespace) -> int:
    """Build the history, write it if requested, and show it; return 1 if there is nothing to write."""
    now = args.now or datetime.now(UTC)
    if args.write and not is_table_named(args):
        args.usage(f"no table: add --cluster NAME or --table NAME, or set ${TABLE_VARIABLE}")
    try:
        journal, recorded = _read_records(args, now)
        history, summary = recorded.history, ""
        if args.write:
            history, summary = _write(args, journal, recorded)
    except InputError as error:
        return print_errors("history", [str(error)])
    first_at = recorded.first_at or journal.now
    notes = [
        f"built from {format_count(recorded.record_count, 'decision record')} since {first_at:%Y-%m-%d %H:%M} UTC",
        summary or "nothing is written: --write writes the history to the table",
    ]
    _print_history(args, history, journal.now, source=journal.source, notes=notes)
    return print_errors("history", summarize_messages((*journal.messages, *recorded.messages), MAX_NAMED_ERRORS))


def _read_history(args: argparse.Namespace, now: datetime) -> tuple[WorkloadHistory, str, tuple[str, ...], datetime]:
    """Return the stored history, or that of the journal, its source, messages about unreadable records, and the time.

    Raises:
        InputError: it cannot be read, or there is none.
    """
    if args.journal or not is_table_named(args):
        if not get_journal_source(args, is_needed=False):
            args.usage(f"no history: add --cluster NAME, --table NAME or --journal DIR, or set ${TABLE_VARIABLE}")
        journal, recorded = _read_records(args, now)
        return recorded.history, journal.source, (*journal.messages, *recorded.messages), journal.now
    with open_table(args) as (table, name):
        history, _ = read_stored_history(table)
    if history.updated_at is None:
        raise InputError(
            f"table {name} has no workload history: set `workload-history: on`, or write one with "
            "`joiner history build --write`"
        )
    return history, f"table {name}", (), now


def _read_records(args: argparse.Namespace, now: datetime) -> tuple[Journal, RecordedHistory]:
    """Return the journal and the history of its decision records.

    Raises:
        InputError: the journal cannot be read, or no record of it can.
    """
    journal = _load_journal(args, now)
    recorded = _read_recorded_history(journal, None)
    if recorded.history.updated_at is None:
        raise InputError(_explain_missing_records(journal, recorded))
    return journal, recorded


def _load_journal(args: argparse.Namespace, now: datetime) -> Journal:
    source = get_journal_source(args, is_needed=False)
    if not source:
        bucket = find_bucket(args)
        source = f"s3://{bucket}" if bucket else get_journal_source(args)
    since = args.since or (DEFAULT_PERIOD if source.startswith("s3://") else None)
    return load_journal(source, now, since, is_now=args.now is not None)


def _read_recorded_history(journal: Journal, until: datetime | None) -> RecordedHistory:
    with show_progress(f"reading the decision records in {journal.source}"), open_records(journal.source) as load:
        return build_recorded_history(journal, load, until)


def _write(args: argparse.Namespace, journal: Journal, recorded: RecordedHistory) -> tuple[WorkloadHistory, str]:
    """Write the history, and return it with a sentence about the write."""

    def build(stored: WorkloadHistory) -> WorkloadHistory:
        return (
            recorded.history
            if stored.updated_at is None
            else _read_recorded_history(journal, stored.updated_at).history
        )

    with open_table(args) as (table, name):
        before, after = write_history(table, build)
    if before == after:
        return after, f"table {name} already knows everything that the records contain: nothing is written"
    return after, f"written to table {name}"


def _print_history(
    args: argparse.Namespace,
    history: WorkloadHistory,
    now: datetime,
    *,
    source: str,
    notes: Iterable[str] = (),
    is_detailed: bool = False,
) -> None:
    if args.output != "table":
        sys.stdout.write(encode_output(build_document(history, now, notes, is_detailed=is_detailed), args.output))
    else:
        palette, width = choose_palette(sys.stdout), get_terminal_width(sys.stdout)
        lines = render_page(
            history, now, palette, width, source=source, is_detailed=is_detailed, is_whole=args.is_whole
        )
        sys.stdout.writelines(f"{line}\n" for line in (*lines, *notes))
    sys.stdout.flush()


def _explain_missing_records(journal: Journal, recorded: RecordedHistory) -> str:
    text = f"{journal.source}: no decision record in {format_count(len(journal.cycles), 'cycle')} can be read"
    if recorded.messages:
        return f"{text}: {recorded.messages[0]}"
    return f"{text}: the setting snapshots was off, nothing was decided, or --since is too short"
