"""A run of `joiner replay`: reads the journal, replays a cycle or lists the cycles, and prints the result."""

import argparse
import sys
from datetime import UTC, datetime

from cli.journal.arguments import get_journal_source
from cli.journal.journal import S3_SCHEME, Journal, load_journal
from cli.planning.catalog_source import load_catalog_file
from cli.replay.changes import apply_changes
from cli.replay.cycle_list import build_cycle_documents, render_cycle_list
from cli.replay.cycle_lookup import RecordStore, UnknownCycle, compute_lookback, parse_cycle_query, select_cycle
from cli.replay.differences import compare_decisions
from cli.replay.page import PageOptions, ReplayResult, build_replay_document, render_replay
from cli.replay.recorded_account import load_recorded_selections, with_node_class_answers
from cli.replay.rerun import LISTS_READ, build_cluster, build_recorded_decision, replay_decision
from cli.replay.selectors import RecordedSelections
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.text import choose_palette, get_terminal_width
from shared.decide.launch.money.interruption_costs import price_interruptions
from shared.decide.scheduling.templates.node_overlays import apply_overlays
from shared.model.core.formatting import format_count
from shared.store.shared_cache.code_digest import compute_code_digest

_EXIT_ERROR = 1
_EXIT_DIFFERENT_DECISION = 3


def run_replay(args: argparse.Namespace) -> int:
    """Find the cycle, replay and print it; return 0 if the decision is the same, 3 if it is not."""
    source = get_journal_source(args)
    width = get_terminal_width(sys.stdout)
    options = PageOptions(palette=choose_palette(sys.stdout), width=width, is_whole=args.is_whole)
    messages: list[str] = []
    try:
        journal = _read_journal(args, source)
        print_errors("replay", journal.messages)
        if args.is_list:
            return _print_cycles(args, journal, options)
        result = _replay_cycle(args, journal, messages)
    except (InputError, UnknownCycle) as error:
        return print_errors("replay", [*messages, str(error)])
    is_table = args.output == "table"
    sys.stdout.write(
        render_replay(result, options) if is_table else encode_output(build_replay_document(result), args.output)
    )
    if print_errors("replay", messages):
        return _EXIT_ERROR
    return 0 if result.comparison.is_same else _EXIT_DIFFERENT_DECISION


def _read_journal(args: argparse.Namespace, source: str) -> Journal:
    """Read the part of the journal at *source* that is needed."""
    now = args.now or datetime.now(UTC)
    since = args.since or compute_lookback(parse_cycle_query(args.cycle, ""), now)
    return load_journal(source, now, since if source.startswith(S3_SCHEME) else args.since, is_now=args.now is not None)


def _print_cycles(args: argparse.Namespace, journal: Journal, options: PageOptions) -> int:
    cycles = [
        cycle for cycle in journal.cycles if cycle.entry.snapshot and args.function in (None, cycle.entry.function)
    ]
    if args.output != "table":
        sys.stdout.write(encode_output(build_cycle_documents(cycles), args.output))
    elif cycles:
        sys.stdout.write(render_cycle_list(cycles, options))
    else:
        counts = format_count(len(journal.cycles), "cycle")
        print_errors("replay", [f"{journal.source}: {counts}, none of which can be replayed"])
    return _EXIT_ERROR if journal.messages else 0


def _replay_cycle(args: argparse.Namespace, journal: Journal, messages: list[str]) -> ReplayResult:
    """Find the cycle and replay it; errors in files are added to *messages*."""
    cycle = select_cycle(journal, parse_cycle_query(args.cycle, args.function or ""))
    store, entry = RecordStore(journal.source), cycle.entry
    with show_progress(f"replaying {entry.function} {entry.at:%Y-%m-%d %H:%M:%S}"):
        record = store.load_record(entry.snapshot)
        catalog = store.load_catalog(record.catalog_key) if record.catalog_key and not args.instance_types else None
        if args.instance_types:
            catalog = load_catalog_file(args.instance_types)
        cluster = build_cluster(record, catalog)
        selections = RecordedSelections(now=cluster.taken_at)
        if args.added:
            selections = load_recorded_selections(journal, store, cycle, record)
        reads = LISTS_READ.get(entry.function)
        changes = apply_changes(cluster, selections, args.added, args.without, messages.append, reads)
        changed_record = with_node_class_answers(record, changes, selections)
        overlaid_catalog = store.load_overlaid_catalog(record)
        new_decision = replay_decision(
            entry, changed_record, price_interruptions(apply_overlays(changes.cluster)), overlaid_catalog
        )
    return ReplayResult(
        cycle=cycle,
        record=record,
        changes=changes,
        comparison=compare_decisions(build_recorded_decision(entry, record), new_decision),
        code=compute_code_digest(),
        notes=(f"the catalog is {args.instance_types}",) if args.instance_types else (),
    )
