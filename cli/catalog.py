"""`joiner catalog`: what the cloud sells and for how much, written as the file that `joiner plan` reads."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from cli.catalogues import catalogue_at
from cli.clouds import CLUSTER, discovered_cluster, opened, said
from cli.files import InputError
from cli.node_classes import node_classes_in
from cli.telling import tell
from cli.text import count, some
from shared.errors import Fault
from shared.model.catalogue import Catalogue, InstanceType
from shared.model.cluster import Cluster
from shared.model.requirements import Requirements
from shared.model.resources import quantities_from
from shared.snapshot.catalogue import encode_catalogue, packed

if TYPE_CHECKING:
    from shared.aws.clients import Clients

DESCRIPTION: Final = """Ask an account, or the embedded cloud, what it sells; write that as a catalogue, or show one.
Nothing is changed in the account: it is asked for instance types, the zones that have them, and prices."""
BUILD: Final = """examples:
  joiner catalog build -o catalogue.json                          the account and region of your credentials
  joiner catalog build -o prod.json.gz -f nodeclass.yaml --region eu-west-1
  joiner catalog build -o catalogue.json --embedded               true types, made-up prices, no account
"""
SHOW: Final = """  joiner catalog show catalogue.json m5.large                     what is known of a type
  joiner catalog show s3://BUCKET m5.large -o json | jq .         the same as JSON
"""
PRICES: Final = """\
Where the functions can reach no pricing service, give them a list of prices, which they use and say its day:
  joiner catalog prices -o prices.json --region us-gov-west-1     with credentials of the commercial partition
  npx cdk deploy -c joiner:price-list=prices.json                 shipped with the functions; or, without a deployment:
  aws s3 cp prices.json s3://BUCKET/market/prices-us-gov-west-1.json
"""
EXITS: Final = """
exit codes: 0 done, 1 something could not be read, asked or written (it is named), 2 wrong usage,
130 interrupted
"""
EXAMPLES: Final = f"{BUILD}{SHOW}\n{PRICES}{EXITS}"
Output = Literal["text", "json"]
NAMED: Final = 3
Made = tuple[bytes, str]
"""What is written, and what it is, in a line."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_nothing, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    raw = argparse.RawDescriptionHelpFormatter
    ask = "Ask an account, or the embedded cloud; nothing is changed there."
    build = actions.add_parser(
        "build", help="ask, and write a catalogue", description=ask, epilog=BUILD + EXITS, formatter_class=raw
    )
    _add_account(build, _build)
    build.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="EC2NodeClasses: types are written as each of them sees them, too",
    )
    build.add_argument(
        "--prices", default="", metavar="FILE", help="a price list, for when the pricing service cannot be asked"
    )
    says = "ask, and write the list of on-demand prices with its day"
    prices = actions.add_parser("prices", help=says, description=ask, epilog=PRICES + EXITS, formatter_class=raw)
    _add_account(prices, _prices)
    shown = f"examples:\n{SHOW}{EXITS}"
    held = "Say what a catalogue holds, or all that it says of one type."
    show = actions.add_parser(
        "show", help="what a catalogue holds", description=held, epilog=shown, formatter_class=raw
    )
    show.add_argument("catalogue", metavar="CATALOGUE", help="a file, s3://BUCKET, aws or aws:REGION")
    show.add_argument("type", nargs="?", default="", metavar="TYPE", help="all that is known of one type")
    show.add_argument("-o", "--output", choices=get_args(Output), default="text", help="what is printed")
    show.set_defaults(run=_show)


def _add_account(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where it goes; `-` is standard output")
    parser.add_argument("--region", default="", help="default: that of your credentials")
    parser.add_argument("--embedded", action="store_true", help="ask the embedded cloud, over HTTP, no account")
    parser.set_defaults(run=run)


def _nothing(chosen: argparse.Namespace) -> int:
    chosen.usage("say what: build, prices or show")
    raise AssertionError("argparse has left")


def _build(chosen: argparse.Namespace) -> int:
    told: list[str] = []
    try:
        _refuse_unwritable(chosen.output)
        classes = node_classes_in(chosen.filename, datetime.now(UTC), told.append) if chosen.filename else ()
    except InputError as error:
        return tell("catalog", [*told, str(error)])

    def make(clients: "Clients", now: datetime) -> Made:
        from cli.account import of_account, price_list_in  # noqa: PLC0415 - botocore takes a fifth of a second

        listed = price_list_in(chosen.prices, clients.region)
        made, unpriced = of_account(clients, classes, now, told.append, listed)
        body = msgspec.json.format(encode_catalogue(made), indent=1)
        without = f"; {count(len(unpriced), 'type')} without on-demand price: {some(unpriced, 3)}" if unpriced else ""
        return packed(body) if chosen.output.endswith(".gz") else body + b"\n", _summary(made) + without

    return _asked(chosen, make, told, cluster=discovered_cluster(classes))


def _prices(chosen: argparse.Namespace) -> int:
    from cli.account import list_prices  # noqa: PLC0415 - botocore takes a fifth of a second

    def make(clients: "Clients", now: datetime) -> Made:
        listed = list_prices(clients, now)
        body = msgspec.json.format(msgspec.json.encode(listed, order="deterministic"), indent=1)
        return body + b"\n", f"{count(len(listed.on_demand), 'price')} of {listed.region}, {now:%Y-%m-%d}"

    try:
        _refuse_unwritable(chosen.output)
    except InputError as error:
        return tell("catalog", [str(error)])
    return _asked(chosen, make, [])


def _asked(
    chosen: argparse.Namespace,
    make: Callable[["Clients", datetime], Made],
    told: list[str],
    *,
    cluster: str = CLUSTER,
) -> int:
    """Ask, write, and say in one line what it was; answer 1 if that could not be, or something was *told*."""
    began = perf_counter()
    try:
        with opened(chosen.region, embedded=chosen.embedded, cluster=cluster) as (clients, now):
            body, summary = make(clients, now)
            calls = sum(clients.calls().values())
        _write(chosen.output, body)
    except (Fault, InputError, ValueError) as error:
        return tell("catalog", [*told, said(error, embedded=True) if isinstance(error, Fault) else str(error)])
    except OSError as error:
        return tell("catalog", [*told, f"{chosen.output}: {error.strerror}: name another file with -o"])
    took = f"{count(calls, 'call')}, {perf_counter() - began:.1f} s"
    tell("catalog", [*told, f"{chosen.output}: {summary}; {len(body) / 1e6:,.1f} MB, {took}"])
    return 1 if told else 0


def _refuse_unwritable(output: str) -> None:
    """Refuse at once what would be found out only after the account was asked.

    Raises:
        InputError: nothing can be written there.
    """
    path = Path(output)
    if output == "-" or (os.access(path if path.exists() else path.parent, os.W_OK) and not path.is_dir()):
        return
    why = (
        "is a folder" if path.is_dir() else "cannot be written" if path.parent.is_dir() else "its folder does not exist"
    )
    raise InputError(f"{output}: {why}: name another file with -o, or `-`")


def _show(chosen: argparse.Namespace) -> int:
    try:
        found, problems = catalogue_at(chosen.catalogue, Cluster(taken_at=datetime.now(UTC)), (), datetime.now(UTC))
    except InputError as error:
        return tell("catalog", [str(error)])
    for problem in problems:
        tell("catalog", [f"{problem.kind} {problem.name}: {problem.message}"])
    seen = [(name, one) for name, types in _views(found) for one in types if one.name == chosen.type]
    if chosen.type and not seen:
        return tell("catalog", [f"{chosen.type}: is not in {chosen.catalogue}{_meant(chosen.type, found)}"])
    if chosen.output == "json":
        sys.stdout.write(_document(found, chosen.type))
    elif chosen.type:
        sys.stdout.write("\n".join(line for name, one in seen for line in _lines(name, one)) + "\n")
    else:
        sys.stdout.write(_summary(found) + "\n")
    return 0


def _meant(name: str, found: Catalogue) -> str:
    """Say which types there are that may be meant."""
    known = sorted({one.name for _, types in _views(found) for one in types})
    close = get_close_matches(name, known, n=NAMED)
    return f"; do you mean {' or '.join(close)}?" if close else f": it has {some(known, NAMED)}"


def _document(found: Catalogue, name: str) -> str:
    """Answer the catalogue as JSON; only with the type *name*, if it is one."""
    if name:
        views = {view: tuple(one for one in types if one.name == name) for view, types in _views(found)}
        own = tuple((view, types) for view, types in views.items() if view)
        found = msgspec.structs.replace(found, instance_types=views[""], by_node_class=own)
    return msgspec.json.format(encode_catalogue(found), indent=1).decode() + "\n"


def _views(found: Catalogue) -> tuple[tuple[str, tuple[InstanceType, ...]], ...]:
    return (("", found.instance_types), *found.by_node_class)


def _summary(found: Catalogue) -> str:
    views = [
        f"{count(len(types), 'type')} in {count(len({one.zone for kind in types for one in kind.offerings}), 'zone')}"
        f"{f' for {name}' if name else ''}"
        for name, types in _views(found)
        if types
    ]
    old = found.estimated()
    priced = f"prices of {found.priced_at:%Y-%m-%d %H:%M} UTC" if found.priced_at else "prices of an unknown day"
    late = f", {' and '.join(old)} prices could not be asked for and are of that day" if old else ""
    return f"{found.region}, {', '.join(views)}, {priced}{late}"


def _lines(name: str, one: InstanceType) -> Iterator[str]:
    yield f"{one.name}{f' for {name}' if name else ''}"
    for title, held in (("capacity", one.capacity), ("allocatable", one.allocatable)):
        yield f"  {title}: " + ", ".join(f"{key} {value}" for key, value in quantities_from(held).items())
    for offering in one.offerings:
        said = "" if offering.available else ", not available"
        said += ", price of an earlier day" if offering.is_estimated else ""
        yield f"  {offering.zone} {offering.capacity_type}: {offering.price_usd_per_hour:.4f} $/h{said}"
    yield from _labels(one.requirements)


def _labels(some: Requirements) -> Iterator[str]:
    yield from (f"  {item.key}: {', '.join(sorted(item.values))}" for item in some if item.values)


def _write(output: str, body: bytes) -> None:
    if output == "-":
        sys.stdout.buffer.write(body)
    else:
        Path(output).write_bytes(body)
