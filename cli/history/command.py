"""`joiner history`: build the workload history from stored decisions, and show it."""

import argparse
from typing import Final

DESCRIPTION: Final = """Show or build the workload history: replicas of each workload by hour of the week, and run times
of finite pods (pods of Jobs, and other pods that end by themselves). With the setting `workload-history: on`, Joiner
uses this history to forecast demand."""
SHOW_DESCRIPTION: Final = """Show the workload history and its forecasts: replicas of each workload by hour of the
week, and run times of finite pods (pods of Jobs, and other pods that end by themselves)."""
BUILD_DESCRIPTION: Final = """Build the workload history from the decision records in the bucket, so that forecasts
exist as soon as the setting `workload-history: on` is deployed. Without --write, nothing is changed."""
SHOW_EXAMPLES: Final = """examples:
  joiner history show --journal examples/journal              the history that the example journal gives, offline
  joiner history show --cluster prod                          all workloads in the history of a deployment
  joiner history show shop/web --cluster prod                 one workload: hours of the week, forecast with its error
  joiner history show Deployment/shop/web --table NAME -o json | jq .workloads[].forecast
"""
BUILD_EXAMPLES: Final = """examples:
  joiner history build --journal examples/journal             show what would be written; nothing is changed
  joiner history build --cluster prod --write                 from the bucket of the stack, to its table
  joiner history build --journal s3://BUCKET --since 72h --table NAME --write
"""
NOTES: Final = """
A history from the journal comes from its decision records (setting `snapshots`, kept for `snapshot-days`). Each record
contains all pods that existed at that time. Hours without a decision stay unknown. `build --write` fills only hours
that the functions have not observed. It needs the permissions dynamodb:GetItem and dynamodb:PutItem on the table, and
s3:ListBucket and s3:GetObject on the bucket.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 shown or written, 1 nothing found, or an input could not be read or written (see stderr), 2 wrong usage,
130 interrupted
"""
EXAMPLES: Final = f"{SHOW_EXAMPLES}{BUILD_EXAMPLES.partition(chr(10))[2]}{NOTES}"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_require_action, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    show = _add_action(actions, "show", "show the workload history", SHOW_DESCRIPTION, f"{SHOW_EXAMPLES}{NOTES}")
    show.add_argument(
        "workload",
        nargs="?",
        default="",
        metavar="WORKLOAD",
        help="NAMESPACE/NAME or KIND/NAMESPACE/NAME (default: all)",
    )
    show.add_argument("--all", action="store_true", dest="is_whole", help="do not shorten the list")
    show.set_defaults(run=_run_show)
    build = _add_action(
        actions,
        "build",
        "build the workload history from decision records",
        BUILD_DESCRIPTION,
        f"{BUILD_EXAMPLES}{NOTES}",
    )
    build.add_argument("--write", action="store_true", help="write the result to the table of the deployment")
    build.add_argument("--all", action="store_true", dest="is_whole", help="do not shorten the list")
    build.set_defaults(run=_run_build)


def _add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    description: str,
    epilog: str,
) -> argparse.ArgumentParser:
    from cli.cluster.arguments import add_account_arguments, add_output_argument  # noqa: PLC0415 - only for its help
    from cli.journal.arguments import add_journal_arguments  # noqa: PLC0415

    parser = actions.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(usage=parser.error)
    add_journal_arguments(parser)
    parser.add_argument(
        "--table", default="", metavar="NAME", help="DynamoDB table (default: that of --cluster, or $JOINER_TABLE_NAME)"
    )
    add_account_arguments(parser)
    add_output_argument(parser)
    return parser


def _require_action(args: argparse.Namespace) -> int:
    args.usage("name an action: show or build")
    return 2


def _run_show(args: argparse.Namespace) -> int:
    from cli.history.session import run_show  # noqa: PLC0415 - --help needs none of it

    return run_show(args)


def _run_build(args: argparse.Namespace) -> int:
    from cli.history.session import run_build  # noqa: PLC0415 - --help needs none of it

    return run_build(args)
