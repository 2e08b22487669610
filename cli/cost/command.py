"""`joiner cost`: what nodes cost, by day and by NodePool, instance type, capacity type or label."""

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from cli.cost.page import CostTotals
    from shared.report.costs.commitment_usage import CommitmentUsage
    from shared.report.costs.cost_ledger import CostLedger
    from shared.state.cluster_state import ClusterState

DESCRIPTION: Final = """Show what nodes cost: per day, and per NodePool, instance type, capacity type or label; also the
savings of spot instances and of disruption commands, and the cost of resources that no pod requested. A deployment
writes a report into its bucket every day (costs/2026-11-22.json, UTC). The command reads these reports from the bucket
or from a copy in a folder. Today is added from the cost ledger (up to the last hour), and with --context from a live
cluster."""
EXAMPLES: Final = """examples:
  joiner cost --journal examples/journal         the example reports, offline
  joiner cost                                    the last 30 days, from the bucket in $JOINER_BUCKET_NAME
  joiner cost --days 7 --by type --journal s3://joiner-prod-bucket
  joiner cost --context prod --instance-types catalogue.json
                                                 today, from the nodes of a live cluster
  joiner cost --commitments commitments.yaml     and what Savings Plans and Reserved Instances cover today, by hour
  joiner cost --commitments                      the same with the commitments that the functions use
  joiner cost --by label -o json | jq '.parts[] | {name, usd}'

--by label requires the setting cost-label, such as `cost-label: billing-team` in clusters/CLUSTER.yaml, or --label KEY
for a live cluster.
A disruption command saves from its completion to the end of the day. Idle cost is the share of a node's price for
allocatable resources that no pod requests; 1 CPU has the same weight as 7.5 GiB of memory.
--commitments requires the cost ledger of today (costs/today.json), or --context. Without FILE, it reads the newest
catalog of --journal.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 cost shown, 1 no reports, or part of the input could not be read (see stderr), 2 wrong usage,
130 interrupted
"""
Output = Literal["table", "json", "yaml"]
By = Literal["pool", "type", "capacity-type", "label"]
DEFAULT_DAYS: Final = 30
STORED_COMMITMENTS: Final = ""
"""The value of --commitments without a file."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    from cli.journal.arguments import add_cluster_arguments  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error, filename=[], assume_unschedulable=None)
    parser.add_argument(
        "--journal",
        metavar="DIR|s3://BUCKET",
        help="location of costs/ with the reports (default: s3://$JOINER_BUCKET_NAME)",
    )
    parser.add_argument(
        "--days",
        type=_parse_days,
        default=DEFAULT_DAYS,
        metavar="N",
        help=f"number of days to show (default: {DEFAULT_DAYS})",
    )
    parser.add_argument("--by", choices=get_args(By), default="pool", help="grouping (default: pool)")
    parser.add_argument(
        "--commitments",
        metavar="FILE",
        nargs="?",
        const=STORED_COMMITMENTS,
        help="also show what Savings Plans and Reserved Instances cover today, hour by hour: those in FILE, JSON or "
        "YAML (docs/guide/money.md), or without FILE those that the setting `commitments` reads (default: none)",
    )
    parser.add_argument("--label", metavar="KEY", default="", help="node label for --by label in a live cluster")
    add_cluster_arguments(parser)
    parser.add_argument("--instance-types", metavar="FILE", help="catalog with prices, for a live cluster")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="output format")
    parser.add_argument("--wide", action="store_true", help="do not truncate lines")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="do not shorten long lists")


def run(args: argparse.Namespace) -> int:
    """Read, sum, print; return 1 if there is no report or an input cannot be read."""
    bucket = os.environ.get("JOINER_BUCKET_NAME")
    source = args.journal or (f"s3://{bucket}" if bucket else "")
    is_live = args.context is not None or args.kubeconfig is not None
    if not source and not is_live:
        args.usage("no reports: add --journal DIR or --journal s3://BUCKET, or set $JOINER_BUCKET_NAME")
    from cli.cost.daily_reports import (  # noqa: PLC0415 - --help needs none of it
        CostReports,
        read_cost_reports,
        with_today,
    )
    from cli.cost.page import sum_costs  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415

    now = datetime.now(UTC)
    try:
        costs = read_cost_reports(source, args.days) if source else CostReports()
        if is_live:
            costs = with_today(costs, *_read_live_cluster(args, now), now)
        usage, messages = None, list(costs.messages)
        if args.commitments is not None and costs.ledger is not None:
            usage = _compute_usage(args.commitments, source, costs.ledger)
        elif args.commitments is not None:
            messages.append("--commitments: costs/today.json is missing: it has the hours of each node")
    except InputError as error:
        return print_errors("cost", str(error).splitlines())
    days = costs.days[-args.days :]
    if not days:
        return print_errors(
            "cost",
            [*messages, f"{source}: no cost reports yet; Joiner writes the first report after midnight UTC"],
        )
    sys.stdout.write(_render_output(sum_costs(days, args.by, usage), args))
    return print_errors("cost", messages)


def _read_live_cluster(args: argparse.Namespace, now: datetime) -> tuple["ClusterState", str]:
    """Read the live cluster that *args* names, with prices; return it with the label that groups costs.

    Raises:
        InputError: The cluster cannot be read.
    """
    from cli.planning.cluster_source import read_priced_input  # noqa: PLC0415 - the client library takes half a second
    from shared.state.cluster_state import ClusterState  # noqa: PLC0415

    return ClusterState(read_priced_input(args, is_live=True, now=now)[1]), args.label


def _compute_usage(file: str, source: str, ledger: "CostLedger") -> "CommitmentUsage":
    """Return what commitments cover in *ledger*: those of the document *file*, else of the newest catalog in *source*.

    Raises:
        InputError: The document or the catalog cannot be read, or has errors or no commitments.
    """
    from cli.cost.commitments.usage import convert_document  # noqa: PLC0415 - see run
    from shared.report.costs.commitment_usage import compute_commitment_usage  # noqa: PLC0415

    if file == STORED_COMMITMENTS:
        from cli.cost.commitments.stored import read_stored_commitments  # noqa: PLC0415

        return compute_commitment_usage(read_stored_commitments(source), ledger)
    from cli.inputs.commitments import read_commitments  # noqa: PLC0415

    document = read_commitments(file, f"--commitments {file}")
    return compute_commitment_usage(convert_document(document, ledger), ledger)


def _render_output(cost_totals: "CostTotals", args: argparse.Namespace) -> str:
    from cli.cost.page import build_cost_document, render_cost_page  # noqa: PLC0415
    from cli.planning.table import TableOptions  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    if args.output != "table":
        return encode_output(build_cost_document(cost_totals), args.output)
    display = TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)
    return render_cost_page(cost_totals, choose_palette(sys.stdout), display)


def _parse_days(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of days")
    return int(text)
