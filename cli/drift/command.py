"""`joiner drift`: which nodes have drifted and how, and how to request or cancel a replacement."""

import argparse
from typing import Final, Literal, get_args

DESCRIPTION: Final = """Show which nodes have drifted from their NodePool or EC2NodeClass: the drift reason, the actual
and the required value, and since when the Drifted condition is set. Without NODE, the command shows all drifted nodes.
It reads files or a live cluster and changes nothing."""
EXAMPLES: Final = """examples:
  joiner drift -f examples/cluster --instance-types examples/catalogue.json      example files
  joiner drift                                   all drifted nodes of your current cluster
  joiner drift ip-10-0-64-5 --context prod       one node; up to the first dot of a Node, NodeClaim or instance name
  joiner drift -f cluster.json --instance-types catalogue.json -o json | jq '.[] | select(.drifted) | .node'
  joiner drift ip-10-0-64-5 --mark | sh          request the replacement of a node, within disruption budgets
  joiner drift ip-10-0-64-5 --unmark | sh        cancel the request

--mark and --unmark only print the kubectl command. Without a catalog (--instance-types, or $JOINER_BUCKET_NAME for a
live cluster), images are compared for all instance types, and instance types without offerings are not detected. EC2
instances are not read: for subnets and security groups, the command shows the recorded drift.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 shown, 1 node not found, or part of the input could not be read (see stderr), 2 wrong usage,
130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    from cli.planning.arguments import add_sources  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "node", nargs="?", default="", metavar="NODE", help="Node, NodeClaim or instance (default: all drifted nodes)"
    )
    add_sources(parser)
    mark_group = parser.add_mutually_exclusive_group()
    mark_group.add_argument("--mark", action="store_true", help="print the command that requests a replacement of NODE")
    mark_group.add_argument("--unmark", action="store_true", help="print the command that cancels the request")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="output format")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="do not shorten the list")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Read, compare, print; return 1 if an input cannot be read."""
    if (args.mark or args.unmark) and not args.node:
        args.usage("--mark and --unmark require NODE")
    from cli.drift.page import print_drift  # noqa: PLC0415 - --help needs none of it

    return print_drift(args)
