"""`joiner top`: the nodes, most expensive first, refreshed."""

import argparse
from typing import Final, Literal, get_args

from cli.status.order import SORTS

DESCRIPTION: Final = """Show the nodes of NodePools, dearest first: what each costs, how much of it is requested, how it
is, and what keeps it from being removed; of an EKS cluster also that its installation only plans, or a function is
late. In a terminal it is refreshed until q or Ctrl-C; elsewhere, with --once or with files it is printed once. Nothing
is written: a cluster and an account are only asked."""
EXAMPLES: Final = """examples:
  joiner top                                     your current cluster; q leaves
  joiner top --context prod --nodepool batch --sort cpu --reverse        the emptiest nodes of one NodePool first
  joiner top --once --wide                       every column, whole, and leave
  joiner top -o json | jq '.nodes[] | select(.keptBy.reason == "PodBlocksEviction") | .node'
  joiner top -f cluster.json --instance-types catalogue.json

keys: $ price, c cpu, m memory, p pods, a age, n name, o NodePool, t type, s state, b what keeps it: sort by it, and
again: the other way round; arrows, j, k, page up and down, space: other rows; q: leave

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, usdPerHour (null without prices), nodes: a list of node, nodePool, state (ready, coming, going,
not ready, drifted), instanceType, capacityType, zone, usdPerHour, cpu {requested, allocatable}, memory, pods (without
those of DaemonSets), ageSeconds, keptBy {reason, message} (null: nothing speaks against its removal).

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.facts.installation import add_account_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_arguments(parser)
    parser.add_argument("--sort", choices=SORTS, default="price", help="what comes first (default: what costs most)")
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only its nodes; may be given several times"
    )
    parser.add_argument("--once", action="store_true", help="print it and leave")
    parser.add_argument(
        "--every", type=_parse_seconds, default=5.0, metavar="SECONDS", help="between two looks (default: 5)"
    )
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal; with --once")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Show the nodes; return 1 if a source could not be read."""
    from cli.status.screen import show_nodes  # noqa: PLC0415 - --help needs none of it

    return show_nodes(args)


def _parse_seconds(text: str) -> float:
    try:
        parsed_seconds = float(text)
    except ValueError:
        parsed_seconds = 0.0
    if not 1 <= parsed_seconds <= 3600:  # noqa: PLR2004 - a second, an hour
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 3600")
    return parsed_seconds
