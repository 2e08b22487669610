"""`joiner status`: nodes, cost, pending pods and problems on one page."""

import argparse
from typing import Final, Literal, get_args

DESCRIPTION: Final = """Show the state of a cluster on one page: the nodes of each NodePool by state, with their
requested resources, cost and limits; active pauses; pending pods with the reason; gangs that wait for nodes, if the
setting gangs or $JOINER_GANGS is on; and problems of NodePools, EC2NodeClasses and NodeClaims. For an EKS cluster, the
page also shows whether Joiner acts or only plans, when its functions last succeeded, and its dashboard. The command
reads files, or a live cluster and its AWS account, and changes nothing."""
EXAMPLES: Final = """examples:
  joiner status -f examples/cluster --instance-types examples/catalogue.json     example files
  joiner status                                  your current cluster, and Joiner in its AWS account
  joiner status --context prod --no-account      only the cluster, without AWS
  joiner status --context prod --watch           refreshed every 5 seconds, until q or Ctrl-C
  joiner status -f cluster.json --instance-types catalogue.json -o json | jq '.nodePools[] | {name, usdPerHour}'

A function is late if it has not succeeded for 5 minutes, or for three times its usual interval if that is longer; the
data comes from CloudWatch. Parts of the account that cannot be read are reported and do not change the exit code.
Without a catalog (--instance-types, or $JOINER_BUCKET_NAME for a live cluster), there are no prices.

docs/reference/output.md lists the fields of -o json and -o yaml.

-o prometheus: gauges in the Prometheus text format, with Karpenter's names where they exist; see docs/guide/metrics.md.

exit codes: 0 shown, 1 part of the input could not be read (see stderr), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml", "prometheus"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.facts.installation import add_account_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="output format")
    parser.add_argument("--watch", action="store_true", help="refresh every 5 seconds")
    parser.add_argument("--wide", action="store_true", help="do not truncate lines")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="do not shorten long lists")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Print the status, with --watch repeatedly; return 1 if a source could not be read."""
    from cli.status.screen import show_status  # noqa: PLC0415 - --help needs none of it

    return show_status(args)
