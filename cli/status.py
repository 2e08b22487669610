"""`joiner status`: what there is, what it costs, what waits, and what is wrong."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from cli.look import Looked, Looking
    from cli.watching import Drawn, View
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Say in one page how the fleet is: nodes of each NodePool by state, what their pods request, what
they cost, how near the limits are, what people have paused, which pods wait and why, and which NodePools, node classes
and NodeClaims are in trouble. Files are read as they are; with --context or --kubeconfig a cluster is only listed,
never written to."""
EXAMPLES: Final = """examples:
  joiner status --context                        your current cluster
  joiner status --context prod --watch           the same, every five seconds, until q or Ctrl-C
  joiner status -f cluster.json --instance-types catalogue.json -o json | jq '.pools[] | {name, usdPerHour}'

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, usdPerHour (null without prices), pods {running, waiting}, pools (name, nodes {ready, coming,
going}, spot, onDemand, reserved, cpu {requested, allocatable}, memory, usdPerHour, limits {resource: [used, limit]},
ready), others (nodes without NodePool), paused (by people: nodePool, what, by, since, until, because), waiting (pod,
why), trouble (kind, name, what, why).

-o prometheus: gauges in Prometheus' text format, by Karpenter's names where it has the same; docs/guide/metrics.md.

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml", "prometheus"]
EVERY: Final = 5.0
"""Seconds between two looks of --watch where there is no terminal: in one `cli.watching` has its own."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.plan import add_sources  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--watch", action="store_true", help=f"look again every {EVERY:.0f} seconds")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(chosen: argparse.Namespace) -> int:
    """Look, print, and with --watch again and again; answer 1 if something could not be read."""
    is_live = chosen.context is not None or chosen.kubeconfig is not None
    if not chosen.filename and not is_live:
        chosen.usage("what is to be looked at? name files with -f, or a live cluster with --context")
    if chosen.watch and (chosen.output != "table" or not is_live):
        chosen.usage("--watch shows a live cluster as a table")
    from cli.look import Looking  # noqa: PLC0415 - --help needs none of it
    from cli.text import is_terminal  # noqa: PLC0415

    looking = Looking(chosen)
    if chosen.watch and is_terminal():
        from cli.watching import watch  # noqa: PLC0415 - it knows terminals, which not every system has

        return watch(looking, lambda found, view: _drawn(found, view, chosen))
    status = _once(looking, chosen)
    while chosen.watch:
        time.sleep(EVERY)
        status = _once(looking, chosen)
    return status


def _once(looking: "Looking", chosen: argparse.Namespace) -> int:
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it

    try:
        found, cluster = looking()
    except InputError as error:
        return tell("status", [str(error)])
    sys.stdout.write(_shown(cluster, chosen))
    sys.stdout.flush()
    return tell("status", _told(found, cluster))


def _told(found: "Looked", cluster: "Cluster") -> list[str]:
    """Answer what could not be read."""
    return [*found.told, *(found.placed(one) for one in cluster.problems)]


def _drawn(found: "tuple[Looked, Cluster]", view: "View", chosen: argparse.Namespace) -> "Drawn":
    """Answer the lines that a terminal has room for, what could not be read at their end."""
    from cli.text import cut  # noqa: PLC0415 - --help needs none of it

    lines = [*_shown(found[1], chosen).splitlines(), *_told(*found)]
    last = max(0, len(lines) - view.lines)
    cuts = [cut(line, view.columns) if "\x1b" not in line else line for line in lines]
    return cuts[min(view.first, last) :], last


def _shown(cluster: "Cluster", chosen: argparse.Namespace) -> str:
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.standing import standing_of  # noqa: PLC0415
    from cli.status_page import document, page  # noqa: PLC0415
    from cli.tables import Look  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    if chosen.output == "prometheus":
        from cli.prometheus import exposition  # noqa: PLC0415

        return exposition(cluster)
    standing = standing_of(cluster)
    if chosen.output != "table":
        return encoded(document(standing), chosen.output)
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    return page(standing, palette_of(sys.stdout), look)
