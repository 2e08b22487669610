"""`joiner status`: nodes, cost, pending pods and problems on one page."""

import argparse
from typing import Final, Literal, get_args

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


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.facts.installation import add_account_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--watch", action="store_true", help="look again every 5 seconds")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Print the status, with --watch repeatedly; return 1 if a source could not be read."""
    from cli.status.screen import show_status  # noqa: PLC0415 - --help needs none of it

    return show_status(args)
