"""`joiner status`: what there is, what it costs, what waits, and what is wrong."""

import argparse
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Say in one page how the fleet is: nodes of each NodePool by state, what their pods request, what
they cost, how near the limits are, which pods wait and why, and which NodePools, node classes and NodeClaims are in
trouble. Files are read as they are; with --context or --kubeconfig a cluster is only listed, never written to."""
EXAMPLES: Final = """examples:
  joiner status --context                        your current cluster
  joiner status --context prod --watch           the same, every five seconds, until Ctrl-C
  joiner status -f cluster.json --instance-types catalogue.json -o json | jq '.pools[] | {name, usdPerHour}'

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, usdPerHour (null without prices), pods {running, waiting}, pools (name, nodes {ready, coming,
going}, spot, onDemand, reserved, cpu {requested, allocatable}, memory, usdPerHour, limits {resource: [used, limit]},
ready), others (nodes without NodePool), waiting (pod, why), trouble (kind, name, what, why).

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
EVERY: Final = 5.0
"""Seconds between two looks of --watch."""
HOME: Final = "\x1b[H\x1b[2J"
"""Clears a terminal."""


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
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.look import look_and_price  # noqa: PLC0415

    while True:
        try:
            looked, cluster = look_and_price(chosen, is_live=is_live, now=datetime.now(UTC))
        except InputError as error:
            status = tell("status", [str(error)])
        else:
            sys.stdout.write((HOME if chosen.watch and sys.stdout.isatty() else "") + _shown(cluster, chosen))
            sys.stdout.flush()
            status = tell("status", [*looked.told, *(looked.placed(one) for one in cluster.problems)])
        if not chosen.watch:
            return status
        time.sleep(EVERY)


def _shown(cluster: "Cluster", chosen: argparse.Namespace) -> str:
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.standing import standing_of  # noqa: PLC0415
    from cli.status_page import document, page  # noqa: PLC0415
    from cli.tables import Look  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    standing = standing_of(cluster)
    if chosen.output != "table":
        return encoded(document(standing), chosen.output)
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    return page(standing, palette_of(sys.stdout), look)
