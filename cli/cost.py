"""`joiner cost`: what nodes cost, by the day and by what costs are told apart by."""

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from shared.model.cluster import Cluster
    from shared.report.days import Day

DESCRIPTION: Final = """Say what nodes cost: by the day, and by NodePool, instance type, capacity type or a label; what
spot saved against on demand, what Joiner's own commands saved, and what was paid for that no pod requested. Every day a
deployment writes a report into its bucket (costs/2026-11-22.json, UTC): it is read there, or from a copy in a folder.
Today is added from its ledger, up to the last hour, and with --context up to now, from a live cluster."""
EXAMPLES: Final = """examples:
  joiner cost                                    the last 30 days, from $JOINER_BUCKET_NAME
  joiner cost --days 7 --by type --journal s3://joiner-prod-bucket
  joiner cost --context prod --instance-types catalogue.json
                                                 today so far: of the nodes that are there now
  joiner cost --by label -o json | jq '.parts[] | {name, usd}'

What is told apart by label needs `cdk deploy -c joiner:cost-label=billing-team`; for a live cluster, --label KEY.
A command saves from its end on, as if its nodes had stayed until the end of the day otherwise. Idle is what pods may
have of a node and do not request, as a share of its price: a processor counts as much as 7.5 GiB.

-o json and yaml: from, to, usd, nodeHours, savedBySpotUsd, savedByCommandsUsd, commands, idleUsd, unpricedHours; days
(day, isWhole and the same); by, label, parts, dearest first (name, nodes, nodeHours, usd, onDemandUsd, idleUsd);
dearest, of the last day (claim, instance, pool, instanceType, capacityType, hours, usd, idleUsd).

exit codes: 0 answered, 1 there is no report, or something could not be read (it is named), 2 wrong usage,
130 interrupted
"""
Output = Literal["table", "json", "yaml"]
By = Literal["pool", "type", "capacity-type", "label"]
DAYS: Final = 30


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.explain import add_live_to  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error, filename=[], assume_unschedulable=None)
    parser.add_argument(
        "--journal",
        metavar="DIR|s3://BUCKET",
        help="where the reports are, under costs/ (default: s3://$JOINER_BUCKET_NAME)",
    )
    parser.add_argument(
        "--days", type=_days, default=DAYS, metavar="N", help=f"how many, to the last (default: {DAYS})"
    )
    parser.add_argument("--by", choices=get_args(By), default="pool", help="what costs are told apart by")
    parser.add_argument("--label", metavar="KEY", default="", help="of a live cluster's nodes, for --by label")
    add_live_to(parser)
    parser.add_argument("--instance-types", metavar="FILE", help="a catalogue with prices, for a live cluster")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")


def run(chosen: argparse.Namespace) -> int:
    """Read, add up, print; answer 1 if there is nothing, or something could not be read."""
    bucket = os.environ.get("JOINER_BUCKET_NAME")
    source = chosen.journal or (f"s3://{bucket}" if bucket else "")
    is_live = chosen.context is not None or chosen.kubeconfig is not None
    if not source and not is_live:
        chosen.usage("where are the reports? name them with --journal DIR or s3://BUCKET, or set $JOINER_BUCKET_NAME")
    from cli.cost_days import Costs, costs_at, with_now  # noqa: PLC0415 - --help needs none of it
    from cli.files import InputError  # noqa: PLC0415

    now = datetime.now(UTC)
    try:
        costs = costs_at(source, chosen.days) if source else Costs()
        if is_live:
            costs = with_now(costs, *_live(chosen, now), now)
    except InputError as error:
        return tell("cost", [str(error)])
    days = costs.days[-chosen.days :]
    if not days:
        return tell(
            "cost", [*costs.told, f"{source}: no report yet: the first is written after the first midnight, UTC"]
        )
    sys.stdout.write(_shown(days, chosen))
    return tell("cost", costs.told)


def _live(chosen: argparse.Namespace, now: datetime) -> tuple["Cluster", str]:
    """List the live cluster that *chosen* names, with prices, and answer by which label it is told apart.

    Raises:
        InputError: it cannot be read.
    """
    from cli.look import look_and_price  # noqa: PLC0415 - the client library takes half a second

    return look_and_price(chosen, is_live=True, now=now)[1], chosen.label


def _shown(days: "tuple[Day, ...]", chosen: argparse.Namespace) -> str:
    from cli.cost_page import document, page, totals  # noqa: PLC0415
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.tables import Look  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    found = totals(days, chosen.by)
    if chosen.output != "table":
        return encoded(document(found), chosen.output)
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    return page(found, palette_of(sys.stdout), look)


def _days(text: str) -> int:
    """Read how many.

    Raises:
        ArgumentTypeError: it is no number above 0.
    """
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days: write 30")
    return int(text)
