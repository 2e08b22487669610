"""`joiner report`: one page about the fleet, what it cost, what was decided, and what is blocked and why."""

import argparse
import sys
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from datetime import timedelta

    from cli.explain.journal import Journal
    from shared.model.cluster import ClusterSnapshot

DESCRIPTION: Final = """Write one self-contained page: the fleet and what it costs over time, launches and
terminations, every decision with its why, what is blocked and why, what was saved. It is made from the journal, and
from the live cluster if one is named. The page opens without a network, light or dark as its reader's system is, and
prints."""
EXAMPLES: Final = """examples:
  joiner demo --journal demo                     play the demo and keep its bucket; then
  joiner report --journal demo                   writes report.html
  joiner report week.html --since 168h           the last week of $JOINER_BUCKET_NAME; a day unless --since says more
  joiner report - --context prod > now.html      with the nodes and pods of a live cluster
  joiner report -o json --journal demo | jq '.pools[] | {name, nodes, usdPerHour, usd}'

-o json and yaml have source, began, ended, isLive, unreadable; cycles (by function); fleet: at, nodes, usdPerHour;
waiting: at, pods, withoutPlace; changes: at, launched, terminated, each changeSeconds long; usd (of instances, in this
time); savedUsdPerHour; pools: name, nodes, byCapacity, usdPerHour, usd, launched, terminated; types: name, nodes,
usdPerHour; nodes: name, claim, pool, instanceType, capacityType, zone, usdPerHour, launchedAt, verdict, why; decisions,
newest first: at, function, what, why, isFailed, cycle; blockedNodes, blockedPods: what, why, names; problems: kind,
name, message; failures: error, times, last.

exit codes: 0 written, 1 something could not be read (it is named, the rest is told) or written, 2 wrong usage,
130 interrupted
"""
Output = Literal["html", "json", "yaml"]
STDOUT: Final = "-"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.explain.command import (  # noqa: PLC0415 - the list of commands needs none of it
        add_cluster_arguments,
        add_journal_arguments,
    )

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="where the page goes (default: report.html; of json and yaml: -)"
    )
    add_journal_arguments(parser)
    add_cluster_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="html", help="what is written")


def run(args: argparse.Namespace) -> int:
    """Read the journal, build and write the report; return 1 if a source could not be read or the file not written."""
    from cli.explain.sources import read_journal_and_cluster  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.errors import InputError  # noqa: PLC0415

    try:
        journal, live = read_journal_and_cluster(args)
    except InputError as error:
        return print_errors("report", [str(error)])
    print_errors("report", journal.messages)
    if not journal.cycles and live is None:
        young = _describe_time_limit(args.since, journal.source)
        print_errors("report", [f"{journal.source}: holds no cycle{young}: the page has nothing to tell"])
    file = args.file or ("report.html" if args.output == "html" else STDOUT)
    try:
        _write(file, _build_output(journal, live, args.output))
    except OSError as error:
        return print_errors("report", [f"{file}: {error.strerror}"])
    return 1 if journal.messages else 0


def _describe_time_limit(since: "timedelta | None", source: str) -> str:
    """Describe how far back the journal was read."""
    if since is not None:
        return " so young (a longer --since sees more)"
    return " of the last day (--since 168h sees a week)" if source.startswith("s3://") else ""


def _build_output(journal: "Journal", live: "ClusterSnapshot | None", output: Output) -> str:
    from cli.explain.evidence import Evidence  # noqa: PLC0415
    from cli.explain.node_records import build_node_records  # noqa: PLC0415
    from cli.report.data import build_report  # noqa: PLC0415
    from cli.report.page import build_report_document, render_report  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import show_progress  # noqa: PLC0415

    with show_progress("putting the report together"):
        first, last = _load_snapshots(journal)
        last = live or last
        evidence = Evidence(
            journal=journal, live_cluster=last, node_records=build_node_records(journal.cycles, last, first)
        )
        fleet_report = build_report(evidence, first, is_live=live is not None)
        return (
            render_report(fleet_report)
            if output == "html"
            else encode_output(build_report_document(fleet_report), output)
        )


def _load_snapshots(journal: "Journal") -> "tuple[ClusterSnapshot | None, ClusterSnapshot | None]":
    """Return the first and the last complete snapshot of *journal*, None for each that does not exist.

    Snapshots are kept for less time than journal entries: those of the oldest entries are deleted.
    """
    from cli.replay.cycle_lookup import RecordStore  # noqa: PLC0415
    from cli.replay.rerun import LISTS_READ, build_cluster  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it

    entries = (cycle.entry for cycle in journal.cycles if cycle.entry.function not in LISTS_READ)
    record_keys = [entry.snapshot for entry in entries if entry.snapshot]
    store = RecordStore(journal.source)

    def load_cluster(key: str) -> "ClusterSnapshot | None":
        try:
            record = store.load_record(key)
            catalog = store.load_catalog(record.catalog_key) if record.catalog_key else None
        except InputError:
            return None
        return build_cluster(record, catalog)

    last = load_cluster(record_keys[-1]) if record_keys else None
    if last is None:
        return None, None
    first = load_cluster(record_keys[0])
    if first is None:
        oldest = bisect_left(
            record_keys, 1, key=lambda key: int(load_cluster(key) is not None), hi=len(record_keys) - 1
        )
        first = load_cluster(record_keys[oldest])
    return first, last


def _write(file: str, body: str) -> None:
    """Write *body*, and print the path if it is a file.

    Raises:
        OSError: it cannot be written.
    """
    if file == STDOUT:
        sys.stdout.write(body)
        return
    Path(file).write_text(body, encoding="utf-8")
    sys.stdout.write(f"report: {file}\n")
