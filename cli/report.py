"""`joiner report`: one page about the fleet, what it cost, what was decided, and what is blocked and why."""

import argparse
import sys
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from datetime import timedelta

    from cli.explain_journals import Journal
    from shared.model.cluster import Cluster

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
    """Add what the command says of itself, and its arguments."""
    from cli.explain import add_journal_to, add_live_to  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="where the page goes (default: report.html; of json and yaml: -)"
    )
    add_journal_to(parser)
    add_live_to(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="html", help="what is written")


def run(chosen: argparse.Namespace) -> int:
    """Read, put together, write; answer 1 if something could not be read or written."""
    from cli.explain import seen_of  # noqa: PLC0415 - --help needs none of it
    from cli.files import InputError  # noqa: PLC0415

    try:
        journal, live = seen_of(chosen)
    except InputError as error:
        return tell("report", [str(error)])
    tell("report", journal.told)
    if not journal.cycles and live is None:
        young = _of_late(chosen.since, journal.source)
        tell("report", [f"{journal.source}: holds no cycle{young}: the page has nothing to tell"])
    file = chosen.file or ("report.html" if chosen.output == "html" else STDOUT)
    try:
        _write(file, _made(journal, live, chosen.output))
    except OSError as error:
        return tell("report", [f"{file}: {error.strerror}"])
    return 1 if journal.told else 0


def _of_late(since: "timedelta | None", source: str) -> str:
    """Say how far back was looked."""
    if since is not None:
        return " so young (a longer --since sees more)"
    return " of the last day (--since 168h sees a week)" if source.startswith("s3://") else ""


def _made(journal: "Journal", live: "Cluster | None", output: Output) -> str:
    from cli.encoding import encoded  # noqa: PLC0415 - --help needs none of it
    from cli.explain_look import Look  # noqa: PLC0415
    from cli.explain_machines import machines  # noqa: PLC0415
    from cli.progress import progress  # noqa: PLC0415
    from cli.report_data import report_of  # noqa: PLC0415
    from cli.report_page import page, report_document  # noqa: PLC0415

    with progress("putting the report together"):
        first, last = _seen(journal)
        last = live or last
        look = Look(journal=journal, live=last, machines=machines(journal.cycles, last, first))
        one = report_of(look, first, is_live=live is not None)
        return page(one) if output == "html" else encoded(report_document(one), output)


def _seen(journal: "Journal") -> "tuple[Cluster | None, Cluster | None]":
    """Answer the first and the last snapshot of *journal* with all lists, None where there is none that can be read.

    The journal goes back further than its snapshots do: those of the oldest entries are gone.
    """
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.replay_cycles import Store  # noqa: PLC0415
    from cli.replayed import READS, cluster_of  # noqa: PLC0415

    some = (one.entry for one in journal.cycles if one.entry.function not in READS)
    kept = [one.snapshot for one in some if one.snapshot]
    store = Store(journal.source)

    def read(key: str) -> "Cluster | None":
        try:
            snapshot = store.snapshot(key)
            catalogue = store.catalogue(snapshot.catalogue) if snapshot.catalogue else None
        except InputError:
            return None
        return cluster_of(snapshot, catalogue)

    last = read(kept[-1]) if kept else None
    if last is None:
        return None, None
    first = read(kept[0])
    if first is None:
        oldest = bisect_left(kept, 1, key=lambda key: int(read(key) is not None), hi=len(kept) - 1)
        first = read(kept[oldest])
    return first, last


def _write(file: str, body: str) -> None:
    """Write *body*, and say where if that is a file.

    Raises:
        OSError: it cannot be written.
    """
    if file == STDOUT:
        sys.stdout.write(body)
        return
    Path(file).write_text(body, encoding="utf-8")
    sys.stdout.write(f"report: {file}\n")
