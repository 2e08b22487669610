"""`make cost`: what Joiner itself costs a month, by the size of the cluster and how soon it reacts.

make cost                                   # 20, 100 and 1,000 nodes, every reaction
.venv/bin/python -m sim.costs --nodes 100 --reaction watch -o json
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from sim.costs.bill import Line, bill, total
from sim.costs.measured import metered
from sim.lambdas.template import ACTIVE, synthesised

SIZES: Final = (20, 100, 1_000)
REACTIONS: Final = ("tick", "watch", "logs")
DEFAULT: Final = (100, "tick")
MOST: Final = 10.0
"""US dollars a month for the default."""


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """One size, one way to react."""

    nodes: int
    reaction: str
    usd: float
    lines: tuple[Line, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the bills; answer 1 if the default costs more than it may."""
    given = _parser().parse_args(arguments)
    bills: list[Bill] = []
    for nodes in given.nodes:
        for reaction in given.reaction:
            template = synthesised(context={**ACTIVE, "joiner:reaction": reaction})
            used = metered(template, nodes, timedelta(minutes=given.minutes), _told)
            lines = bill(template, used)
            bills.append(Bill(nodes=nodes, reaction=reaction, usd=total(lines), lines=lines))
            if given.output == "table":
                sys.stdout.write(_table(bills[-1]))
    if given.output == "json":
        sys.stdout.write(msgspec.json.encode(bills).decode() + "\n")
    return int(any(one.usd > MOST for one in bills if (one.nodes, one.reaction) == DEFAULT))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sim.costs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES), help="sizes of clusters, ten pods a node")
    parser.add_argument("--reaction", nargs="+", choices=REACTIONS, default=list(REACTIONS))
    parser.add_argument("--minutes", type=int, default=60, help="of virtual time that are measured")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _table(one: Bill) -> str:
    rows = [f"{line.what:24}{line.how_much:58}{line.usd:8.2f}\n" for line in one.lines]
    head = f"{one.nodes:,} nodes, {one.nodes * 10:,} pods, reaction {one.reaction}: ${one.usd:.2f} a month\n"
    return "".join([head, *rows, "\n"])


def _told(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
