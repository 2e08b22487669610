"""`joiner status`: what there is, what it costs, what waits, and what is wrong."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from cli.installation import Installation
    from cli.look import Looked, Watched
    from cli.watching import Drawn, View
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Say in one page how the fleet is: nodes of each NodePool by state, what their pods request, what
they cost, how near the limits are, what people have paused, which pods wait and why, and which NodePools, node classes
and NodeClaims are in trouble. Of an EKS cluster it says also whether its installation acts or only plans, when its
functions last succeeded, and where its dashboard is. Nothing is written: a cluster and an account are only asked, files
read as they are."""
EXAMPLES: Final = """examples:
  joiner status                                  your current cluster, and Joiner in its account
  joiner status --context prod --no-account      the cluster only
  joiner status --context prod --watch           the same, every five seconds, until q or Ctrl-C
  joiner status -f cluster.json --instance-types catalogue.json -o json | jq '.pools[] | {name, usdPerHour}'

A function is late if it did not succeed for five minutes, and three times as long as it is called otherwise: CloudWatch
counts that. What cannot be looked at of the account is said, and changes no exit code.

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, installation (null: not asked; stack, status (ABSENT, UNSEEN or CloudFormation's), why, acting
(active, paused, disruption-planned, planned), disruptionPaused, functions (name, lastSuccess, late), dashboard),
usdPerHour (null without prices), pods {running, waiting}, pools (name, nodes {ready, coming, going}, spot, onDemand,
reserved, cpu {requested, allocatable}, memory, usdPerHour, limits {resource: [used, limit]}, ready), others (nodes
without NodePool), paused (by people: nodePool, what, by, since, until, because), waiting (pod, why), trouble (kind,
name, what, why), notes (of kinds that the cluster does not know, and objects that nothing depends on).

-o prometheus: gauges in Prometheus' text format, by Karpenter's names where it has the same; docs/guide/metrics.md.

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml", "prometheus"]
MADE: Final = ": `npx cdk deploy` makes it (docs/guide/getting-started.md)"
EVERY: Final = 5.0
"""Seconds between two looks of --watch where there is no terminal: in one `cli.watching` has its own."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.installation import add_account_to  # noqa: PLC0415 - the list of commands needs none of it
    from cli.sources import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_to(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--watch", action="store_true", help=f"look again every {EVERY:.0f} seconds")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(chosen: argparse.Namespace) -> int:
    """Look, print, and with --watch again and again; answer 1 if something could not be read."""
    from cli.look import Watched, current_unless_named  # noqa: PLC0415 - --help needs none of it
    from cli.text import is_terminal  # noqa: PLC0415

    if chosen.watch and (chosen.output != "table" or not current_unless_named(chosen)):
        chosen.usage("--watch shows a live cluster as a table")
    current_unless_named(chosen)
    chosen.no_account = chosen.no_account or chosen.output == "prometheus"  # which has no word for it
    looking = Watched(chosen)
    if chosen.watch and is_terminal():
        from cli.watching import watch  # noqa: PLC0415 - it knows terminals, which not every system has

        return watch(looking, lambda found, view: _drawn(found, view, chosen))
    status = _once(looking, chosen)
    while chosen.watch:
        time.sleep(EVERY)
        status = _once(looking, chosen)
    return status


def _once(looking: "Watched", chosen: argparse.Namespace) -> int:
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it

    try:
        found, cluster, beside = looking()
    except InputError as error:
        return tell("status", [str(error)])
    sys.stdout.write(_shown(found, cluster, beside, chosen))
    sys.stdout.flush()
    return tell("status", _told(found, cluster))


def _told(found: "Looked", cluster: "Cluster") -> list[str]:
    """Answer what could not be read."""
    return [*found.told, *(found.placed(one) for one in cluster.problems)]


def _drawn(found: "tuple[Looked, Cluster, Installation | None]", view: "View", chosen: argparse.Namespace) -> "Drawn":
    """Answer the lines that a terminal has room for, what could not be read at their end."""
    from cli.text import cut  # noqa: PLC0415 - --help needs none of it

    looked, cluster, beside = found
    lines = [*_shown(looked, cluster, beside, chosen).splitlines(), *_told(looked, cluster)]
    last = max(0, len(lines) - view.lines)
    cuts = [cut(line, view.columns) if "\x1b" not in line else line for line in lines]
    return cuts[min(view.first, last) :], last


def _shown(looked: "Looked", cluster: "Cluster", beside: "Installation | None", chosen: argparse.Namespace) -> str:
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.live import UNDEFINED  # noqa: PLC0415
    from cli.standing import standing_of  # noqa: PLC0415
    from cli.status_page import document, page  # noqa: PLC0415
    from cli.tables import Look  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    if chosen.output == "prometheus":
        from cli.prometheus import exposition  # noqa: PLC0415

        return exposition(cluster)
    standing = standing_of(cluster)
    if chosen.output != "table":
        return encoded(document(standing, beside) | {"notes": list(looked.notes)}, chosen.output)
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    notes = "".join(f"note: {one}{MADE if UNDEFINED in one else ''}\n" for one in looked.notes)
    return page(standing, beside, palette_of(sys.stdout), look) + (f"\n{notes}" if notes else "")
