"""`joiner drift`: which nodes have drifted and how, and how to request or cancel a replacement."""

import argparse
from typing import Final, Literal, get_args

DESCRIPTION: Final = """Say whether a node has drifted: whether it differs from what its NodePool and its EC2NodeClass
ask for today, in what, from what to what, and since when the functions know. Without NODE all that have drifted are
told. Files are read as they are; with --context or --kubeconfig a cluster is only listed, never written to."""
EXAMPLES: Final = """examples:
  joiner drift                                   all nodes of your current cluster that have drifted
  joiner drift ip-10-0-64-5 --context prod       by the name of Node, NodeClaim or instance; up to its first dot
  joiner drift -f cluster.json --instance-types catalogue.json -o json | jq '.[] | select(.drifted) | .node'
  joiner drift ip-10-0-64-5 --mark | sh                  have it replaced, as if it had drifted, within budgets
  joiner drift ip-10-0-64-5 --unmark | sh                take that back

--mark and --unmark print the kubectl command and run nothing. Without a catalogue (--instance-types, or
$JOINER_BUCKET_NAME for a live cluster) images are compared whatever instance type they are for, and a type that is not
sold any more is not noticed; instances are not looked at: subnets and security groups drift as the functions saw them.

-o json and yaml: a list of node, nodeClaim, nodePool, drifted (true, false), reason, was, wanted, since, known (whether
the functions have noticed yet).

exit codes: 0 answered, 1 something could not be read or there is no such node, 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    from cli.planning.arguments import add_sources  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "node", nargs="?", default="", metavar="NODE", help="which one (default: all that have drifted)"
    )
    add_sources(parser)
    mark_group = parser.add_mutually_exclusive_group()
    mark_group.add_argument("--mark", action="store_true", help="print how to have NODE replaced")
    mark_group.add_argument("--unmark", action="store_true", help="print how to take that back")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print every node that has drifted")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Read, compare, print; return 1 if an input cannot be read."""
    if (args.mark or args.unmark) and not args.node:
        args.usage("which NODE is to be marked?")
    from cli.drift.page import print_drift  # noqa: PLC0415 - --help needs none of it

    return print_drift(args)
