"""`make cost`: what Joiner itself costs a month, by the size of the cluster and how soon it reacts.

make cost                                   # 20, 100 and 1,000 nodes, every reaction
make cost SET="event-bus=alerts"            # with a setting
.venv/bin/python -m sim.operating_costs --nodes 100 --reaction watch --no-features -o json
"""

import argparse
import math
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from sim.lambda_runtime.stack_template.synthesis import (
    ACTIVE_SETTINGS,
    UNLIMITED_LAUNCHES_SETTINGS,
    synthesize_template,
)
from sim.operating_costs.bill import BillLine, build_bill, sum_usd
from sim.operating_costs.feature_costs import format_feature_costs, measure_feature_costs
from sim.operating_costs.usage_measurement import measure_usage

CLUSTER_SIZES: Final = (20, 100, 1_000)
REACTIONS: Final = ("tick", "watch", "logs")
MAX_USD_PER_MONTH_BY_REACTION: Final = {"tick": 10.0, "watch": 11.5}
"""Limits of the bill of `LIMITED_NODE_COUNT` nodes, in USD per month."""
LIMITED_NODE_COUNT: Final = 100
"""The size of cluster to which the limits apply."""


class MonthlyBill(msgspec.Struct, frozen=True, kw_only=True):
    """The bill for one cluster size and one reaction."""

    nodes: int
    reaction: str
    usd: float
    lines: tuple[BillLine, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the bills, and what optional features add; return 1 if a bill exceeds its limit."""
    options = _build_parser().parse_args(arguments)
    bills: list[MonthlyBill] = []
    for nodes in options.nodes:
        for reaction in options.reaction:
            settings = ACTIVE_SETTINGS | UNLIMITED_LAUNCHES_SETTINGS | {"reaction": reaction} | dict(options.set)
            template = synthesize_template(settings=settings)
            stack_usage = measure_usage(template, nodes, timedelta(minutes=options.minutes), _print_progress)
            bill_lines = build_bill(template, stack_usage)
            bills.append(MonthlyBill(nodes=nodes, reaction=reaction, usd=sum_usd(bill_lines), lines=bill_lines))
            if options.output == "table":
                sys.stdout.write(_format_table(bills[-1]))
    duration = timedelta(minutes=options.minutes)
    has_features = options.features and not options.set
    feature_costs = measure_feature_costs(duration, _print_progress) if has_features else iter(())
    if options.output == "json":
        sys.stdout.write(msgspec.json.encode([*bills, *feature_costs]).decode() + "\n")
    elif has_features:
        sys.stdout.writelines(format_feature_costs(feature_costs))
    return int(
        any(
            monthly_bill.nodes == LIMITED_NODE_COUNT
            and monthly_bill.usd > MAX_USD_PER_MONTH_BY_REACTION.get(monthly_bill.reaction, math.inf)
            for monthly_bill in bills
        )
    )


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sim.operating_costs", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--nodes", type=int, nargs="+", default=list(CLUSTER_SIZES), help="sizes of clusters, ten pods a node"
    )
    parser.add_argument("--reaction", nargs="+", choices=REACTIONS, default=list(REACTIONS))
    parser.add_argument(
        "--set", type=_parse_setting, nargs="+", default=[], metavar="NAME=VALUE", help="settings of the stack"
    )
    parser.add_argument("--minutes", type=int, default=60, help="of virtual time that are measured")
    parser.add_argument(
        "--features",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also measure optional features, unless --set is used",
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _parse_setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r}: must be NAME=VALUE, like event-bus=alerts")
    return name, value


def _format_table(monthly_bill: MonthlyBill) -> str:
    rows = [f"{line.item:24}{line.quantity:58}{line.usd:8.2f}\n" for line in monthly_bill.lines]
    size_text = f"{monthly_bill.nodes:,} nodes, {monthly_bill.nodes * 10:,} pods"
    head = f"{size_text}, reaction {monthly_bill.reaction}: ${monthly_bill.usd:.2f} a month\n"
    return "".join([head, *rows, "\n"])


def _print_progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
