"""`joiner top`: the nodes, most expensive first, refreshed."""

import argparse
from typing import Final, Literal, get_args

from cli.status.order import SORTS

DESCRIPTION: Final = """Show the nodes of all NodePools, most expensive first: price, bars of requested CPU and
memory, state, age, pods, and the reason that blocks voluntary disruption. For an EKS cluster, a warning appears if
Joiner only plans or a function is late. In a terminal, the table is refreshed until q or Ctrl-C. With --once, with
files, or if the output is not a terminal, it is printed once. If the output is not a terminal, there are no bars.
The command reads files, or a live cluster and its AWS account, and changes nothing."""
EXAMPLES: Final = """examples:
  joiner top -f examples/cluster --instance-types examples/catalogue.json        example files
  joiner top                                     your current cluster; q quits
  joiner top --context prod --nodepool batch --sort cpu --reverse     nodes of one NodePool, lowest CPU requests first
  joiner top --filter 'spot us-east-1a' --once   spot nodes of one zone, printed once
  joiner top --once --wide                       print all columns once, without truncation
  joiner top -o json | jq '.nodes[] | select(.blockedBy.reason == "PodBlocksEviction") | .node'

keys: sort by $ price, c CPU, m memory, p pods, a age, n name, o NodePool, t instance type, s state, b blocked by; the
same key again reverses the order. / filters by words in names, instance types, zones, states and reasons; Esc clears
the filter. Scroll with arrows, j, k, page up, page down and space. Quit with q.

Without a catalog (--instance-types, or $JOINER_BUCKET_NAME for a live cluster), there are no prices.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 shown, 1 part of the input could not be read (see stderr), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.facts.installation import add_account_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_arguments(parser)
    parser.add_argument("--sort", choices=SORTS, default="price", help="sort order (default: price)")
    parser.add_argument("--reverse", action="store_true", help="reverse the sort order")
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only nodes of this NodePool; can be repeated"
    )
    parser.add_argument(
        "--filter",
        default="",
        metavar="WORDS",
        help="only nodes that have all words in a name, label, state or reason",
    )
    parser.add_argument("--once", action="store_true", help="print the table once and exit")
    parser.add_argument(
        "--every", type=_parse_seconds, default=5.0, metavar="SECONDS", help="refresh interval (default: 5)"
    )
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="output format")
    parser.add_argument("--wide", action="store_true", help="print once, without truncation")
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
