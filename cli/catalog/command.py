"""`joiner catalog`: instance types and prices, written as the file that `joiner plan` reads."""

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

from cli.aws.session import DEFAULT_CLUSTER_NAME, describe_fault, find_discovery_cluster, open_clients
from cli.inputs.node_classes import read_node_classes
from cli.planning.catalog_source import load_catalog
from cli.terminal.errors import InputError
from cli.terminal.stderr import print_errors
from shared.errors import Fault
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.requirements import Requirements
from shared.model.core.resources import format_quantities
from shared.store.catalog_format import compress_body, encode_catalog

if TYPE_CHECKING:
    from shared.aws.clients import Clients

DESCRIPTION: Final = """Ask an account, or the embedded cloud, what it sells; write that as a catalogue, or show one.
Nothing is changed in the account: it is asked for instance types, the zones that have them, and prices."""
BUILD_EXAMPLES: Final = """examples:
  joiner catalog build -o catalogue.json                          the account and region of your credentials
  joiner catalog build -o prod.json.gz -f nodeclass.yaml --region eu-west-1
  joiner catalog build -o catalogue.json --embedded               true types, made-up prices, no account
"""
SHOW_EXAMPLES: Final = """  joiner catalog show catalogue.json m5.large                     what is known of a type
  joiner catalog show s3://BUCKET m5.large -o json | jq .         the same as JSON
"""
PRICES_EXAMPLES: Final = """\
Where the functions can reach no pricing service, give them a list of prices, which they use and say its day:
  joiner catalog prices -o prices.json --region us-gov-west-1     with credentials of the commercial partition
  npx cdk deploy -c joiner:price-list=prices.json                 shipped with the functions; or, without a deployment:
  aws s3 cp prices.json s3://BUCKET/market/prices-us-gov-west-1.json
"""
EXIT_CODES: Final = """
exit codes: 0 done, 1 something could not be read, asked or written (it is named), 2 wrong usage,
130 interrupted
"""
EXAMPLES: Final = f"{BUILD_EXAMPLES}{SHOW_EXAMPLES}\n{PRICES_EXAMPLES}{EXIT_CODES}"
Output = Literal["text", "json"]
MAX_SUGGESTIONS: Final = 3
FileAndSummary = tuple[bytes, str]
"""The content of the file, and a one-line summary of it."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_require_action, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    formatter = argparse.RawDescriptionHelpFormatter
    query_description = "Ask an account, or the embedded cloud; nothing is changed there."
    build_parser = actions.add_parser(
        "build",
        help="ask, and write a catalogue",
        description=query_description,
        epilog=BUILD_EXAMPLES + EXIT_CODES,
        formatter_class=formatter,
    )
    _add_account_arguments(build_parser, _build_catalog_file)
    build_parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="EC2NodeClasses: types are written as each of them sees them, too",
    )
    build_parser.add_argument(
        "--prices", default="", metavar="FILE", help="a price list, for when the pricing service cannot be asked"
    )
    prices_help = "ask, and write the list of on-demand prices with its day"
    prices_parser = actions.add_parser(
        "prices",
        help=prices_help,
        description=query_description,
        epilog=PRICES_EXAMPLES + EXIT_CODES,
        formatter_class=formatter,
    )
    _add_account_arguments(prices_parser, _build_price_list_file)
    show_epilog = f"examples:\n{SHOW_EXAMPLES}{EXIT_CODES}"
    show_description = "Say what a catalogue holds, or all that it says of one type."
    show_parser = actions.add_parser(
        "show",
        help="what a catalogue holds",
        description=show_description,
        epilog=show_epilog,
        formatter_class=formatter,
    )
    show_parser.add_argument("catalogue", metavar="CATALOGUE", help="a file, s3://BUCKET, aws or aws:REGION")
    show_parser.add_argument("type", nargs="?", default="", metavar="TYPE", help="all that is known of one type")
    show_parser.add_argument("-o", "--output", choices=get_args(Output), default="text", help="what is printed")
    show_parser.set_defaults(run=_show_catalog)


def _add_account_arguments(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where it goes; `-` is standard output")
    parser.add_argument("--region", default="", help="default: that of your credentials")
    parser.add_argument("--embedded", action="store_true", help="ask the embedded cloud, over HTTP, no account")
    parser.set_defaults(run=run)


def _require_action(args: argparse.Namespace) -> int:
    args.usage("say what: build, prices or show")
    raise AssertionError("argparse has left")


def _build_catalog_file(args: argparse.Namespace) -> int:
    messages: list[str] = []
    try:
        _check_writable(args.output)
        node_classes = read_node_classes(args.filename, datetime.now(UTC), messages.append) if args.filename else ()
    except InputError as error:
        return print_errors("catalog", [*messages, str(error)])

    def build_file(clients: "Clients", now: datetime) -> FileAndSummary:
        from cli.aws.market import (  # noqa: PLC0415 - botocore takes a fifth of a second
            load_price_list,
            read_account_catalog,
        )

        price_list = load_price_list(args.prices, clients.region)
        catalog, unpriced_types = read_account_catalog(clients, node_classes, now, messages.append, price_list)
        body = msgspec.json.format(encode_catalog(catalog), indent=1)
        unpriced_note = (
            f"; {format_count(len(unpriced_types), 'type')} without on-demand price: {join_names(unpriced_types, 3)}"
            if unpriced_types
            else ""
        )
        return compress_body(body) if args.output.endswith(".gz") else body + b"\n", _format_summary(
            catalog
        ) + unpriced_note

    return _query_and_write(args, build_file, messages, cluster=find_discovery_cluster(node_classes))


def _build_price_list_file(args: argparse.Namespace) -> int:
    from cli.aws.market import list_prices  # noqa: PLC0415 - botocore takes a fifth of a second

    def build_file(clients: "Clients", now: datetime) -> FileAndSummary:
        price_list = list_prices(clients, now)
        body = msgspec.json.format(msgspec.json.encode(price_list, order="deterministic"), indent=1)
        return (
            body + b"\n",
            f"{format_count(len(price_list.on_demand), 'price')} of {price_list.region}, {now:%Y-%m-%d}",
        )

    try:
        _check_writable(args.output)
    except InputError as error:
        return print_errors("catalog", [str(error)])
    return _query_and_write(args, build_file, [])


def _query_and_write(
    args: argparse.Namespace,
    build_file: Callable[["Clients", datetime], FileAndSummary],
    messages: list[str],
    *,
    cluster: str = DEFAULT_CLUSTER_NAME,
) -> int:
    """Query, write the file and print a one-line summary; return 1 on failure or if there are *messages*."""
    began = perf_counter()
    try:
        with open_clients(args.region, embedded=args.embedded, cluster=cluster) as (clients, now):
            body, summary = build_file(clients, now)
            calls = sum(clients.get_call_counts().values())
        _write_output(args.output, body)
    except (Fault, InputError, ValueError) as error:
        return print_errors(
            "catalog", [*messages, describe_fault(error, embedded=True) if isinstance(error, Fault) else str(error)]
        )
    except OSError as error:
        return print_errors("catalog", [*messages, f"{args.output}: {error.strerror}: name another file with -o"])
    statistics = f"{format_count(calls, 'call')}, {perf_counter() - began:.1f} s"
    print_errors("catalog", [*messages, f"{args.output}: {summary}; {len(body) / 1e6:,.1f} MB, {statistics}"])
    return 1 if messages else 0


def _check_writable(output: str) -> None:
    """Check the output path first, so that a bad path fails before the account is queried.

    Raises:
        InputError: The file cannot be written.
    """
    path = Path(output)
    if output == "-" or (os.access(path if path.exists() else path.parent, os.W_OK) and not path.is_dir()):
        return
    reason = (
        "is a folder" if path.is_dir() else "cannot be written" if path.parent.is_dir() else "its folder does not exist"
    )
    raise InputError(f"{output}: {reason}: name another file with -o, or `-`")


def _show_catalog(args: argparse.Namespace) -> int:
    try:
        catalog, problems = load_catalog(
            args.catalogue, ClusterSnapshot(taken_at=datetime.now(UTC)), (), datetime.now(UTC)
        )
    except InputError as error:
        return print_errors("catalog", [str(error)])
    for problem in problems:
        print_errors("catalog", [f"{problem.kind} {problem.name}: {problem.message}"])
    matching_types = [
        (name, instance_type)
        for name, types in _get_views(catalog)
        for instance_type in types
        if instance_type.name == args.type
    ]
    if args.type and not matching_types:
        return print_errors("catalog", [f"{args.type}: is not in {args.catalogue}{_suggest_types(args.type, catalog)}"])
    if args.output == "json":
        sys.stdout.write(_render_document(catalog, args.type))
    elif args.type:
        sys.stdout.write(
            "\n".join(line for name, instance_type in matching_types for line in _render_type(name, instance_type))
            + "\n"
        )
    else:
        sys.stdout.write(_format_summary(catalog) + "\n")
    return 0


def _suggest_types(name: str, catalog: Catalog) -> str:
    """Return a hint that names similar instance types, else some of the catalog's types."""
    type_names = sorted({instance_type.name for _, types in _get_views(catalog) for instance_type in types})
    close_matches = get_close_matches(name, type_names, n=MAX_SUGGESTIONS)
    return (
        f"; do you mean {' or '.join(close_matches)}?"
        if close_matches
        else f": it has {join_names(type_names, MAX_SUGGESTIONS)}"
    )


def _render_document(catalog: Catalog, name: str) -> str:
    """Return the catalog as JSON; if *name* is not empty, with that instance type only."""
    if name:
        types_by_view = {
            view: tuple(instance_type for instance_type in types if instance_type.name == name)
            for view, types in _get_views(catalog)
        }
        types_by_node_class = tuple((view, types) for view, types in types_by_view.items() if view)
        catalog = msgspec.structs.replace(catalog, instance_types=types_by_view[""], by_node_class=types_by_node_class)
    return msgspec.json.format(encode_catalog(catalog), indent=1).decode() + "\n"


def _get_views(catalog: Catalog) -> tuple[tuple[str, tuple[InstanceType, ...]], ...]:
    return (("", catalog.instance_types), *catalog.by_node_class)


def _count_zones(types: tuple[InstanceType, ...]) -> int:
    return len({offering.zone for instance_type in types for offering in instance_type.offerings})


def _format_summary(catalog: Catalog) -> str:
    views = [
        f"{format_count(len(types), 'type')} in {format_count(_count_zones(types), 'zone')}"
        f"{f' for {name}' if name else ''}"
        for name, types in _get_views(catalog)
        if types
    ]
    estimated_capacity_types = catalog.list_estimated_capacity_types()
    price_note = (
        f"prices of {catalog.priced_at:%Y-%m-%d %H:%M} UTC" if catalog.priced_at else "prices of an unknown day"
    )
    estimate_note = (
        f", {' and '.join(estimated_capacity_types)} prices could not be asked for and are of that day"
        if estimated_capacity_types
        else ""
    )
    return f"{catalog.region}, {', '.join(views)}, {price_note}{estimate_note}"


def _render_type(name: str, instance_type: InstanceType) -> Iterator[str]:
    yield f"{instance_type.name}{f' for {name}' if name else ''}"
    for title, resources in (("capacity", instance_type.capacity), ("allocatable", instance_type.allocatable)):
        yield f"  {title}: " + ", ".join(f"{key} {value}" for key, value in format_quantities(resources).items())
    for offering in instance_type.offerings:
        note = "" if offering.available else ", not available"
        note += ", price of an earlier day" if offering.is_estimated else ""
        yield f"  {offering.zone} {offering.capacity_type}: {offering.price_usd_per_hour:.4f} $/h{note}"
    yield from _render_requirements(instance_type.requirements)


def _render_requirements(requirements: Requirements) -> Iterator[str]:
    yield from (
        f"  {requirement.key}: {', '.join(sorted(requirement.values))}"
        for requirement in requirements
        if requirement.values
    )


def _write_output(output: str, body: bytes) -> None:
    if output == "-":
        sys.stdout.buffer.write(body)
    else:
        Path(output).write_bytes(body)
