"""`joiner catalog`: instance types and prices, as the file that `joiner plan` reads."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from cli.aws.session import DEFAULT_CLUSTER_NAME, describe_fault, find_discovery_cluster, open_apis
from cli.inputs.files import add_filename
from cli.inputs.node_classes import read_node_classes
from cli.planning.catalog_source import load_catalog
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors
from shared.errors import Fault
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_bytes, format_count, format_usd_per_hour, join_names
from shared.model.core.resources import format_quantities
from shared.store.catalog_format import compress_body, encode_catalog
from shared.store.commitments import encode_commitments

if TYPE_CHECKING:
    from cli.aws.account_api import AccountApis

DESCRIPTION: Final = """Build a catalog of instance types and prices from an AWS account, or show a catalog. Commands
like `joiner plan` read it with --instance-types."""
READ_DESCRIPTION: Final = "The AWS account is only read."
BUILD_EXAMPLES: Final = """examples:
  joiner catalog build -o catalog.json                            account and region of your AWS credentials
  joiner catalog build -o prod.json.gz -f nodeclass.yaml --region eu-west-1
  joiner catalog build -o catalog.json --embedded                 no account: real types, invented prices
"""
SHOW_EXAMPLES: Final = """\
  joiner catalog show catalog.json m5.large                       all details of one instance type
  joiner catalog show s3://BUCKET m5.large -o json | jq .         the same as JSON
"""
PRICES_EXAMPLES: Final = """\
If the functions cannot reach the AWS Price List API, give them a list of on-demand prices. They use its prices and
report how old they are:
  joiner catalog prices -o prices.json --region us-gov-west-1     with credentials of the commercial partition
to deploy the list with the functions:
  make settings CLUSTER=NAME SET="price-list=prices.json"
  npx cdk deploy -c cluster=NAME
without cdk:
  aws s3 cp prices.json s3://BUCKET/market/prices-us-gov-west-1.json
"""
COMMITMENTS_EXAMPLES: Final = """\
With the setting `commitments: bucket`, plans use the Savings Plans and Reserved Instances of a file:
  joiner catalog commitments commitments.yaml -o commitments.json
  aws s3 cp commitments.json s3://BUCKET/market/commitments.json
"""
EXIT_CODES: Final = """
exit codes: 0 done, 1 something could not be read or written (the message names it), 2 wrong usage, 130 interrupted
"""
EXAMPLES: Final = f"{BUILD_EXAMPLES}{SHOW_EXAMPLES}\n{PRICES_EXAMPLES}\n{COMMITMENTS_EXAMPLES}{EXIT_CODES}"
Output = Literal["table", "json", "yaml"]
MAX_SUGGESTIONS: Final = 3
FileAndSummary = tuple[bytes, str]
"""The content of the file, and a one-line summary of it."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_require_action, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")

    def add_action(name: str, summary: str, details: str, epilog: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {details}",
            epilog=epilog + EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    build_parser = add_action("build", "build a catalog from an AWS account", READ_DESCRIPTION, BUILD_EXAMPLES)
    _add_account_arguments(build_parser, _build_catalog_file)
    add_filename(build_parser, "EC2NodeClasses, to include the instance types as each of them configures them")
    build_parser.add_argument(
        "--prices", default="", metavar="FILE", help="price list to use if the AWS Price List API is unreachable"
    )
    prices_parser = add_action("prices", "write a list of on-demand prices", READ_DESCRIPTION, PRICES_EXAMPLES)
    _add_account_arguments(prices_parser, _build_price_list_file)
    commitments_parser = add_action(
        "commitments",
        "check a file with commitments, and write it as the functions read it",
        "docs/guide/money.md describes the fields.",
        f"examples:\n{COMMITMENTS_EXAMPLES}",
    )
    commitments_parser.add_argument("commitments", metavar="FILE", help="JSON or YAML")
    commitments_parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="file to write; `-` is standard output"
    )
    commitments_parser.set_defaults(run=_write_commitments)
    show_details = "Without TYPE, print a summary; with TYPE, its resources, offerings and labels."
    show_parser = add_action("show", "show a catalog", show_details, f"examples:\n{SHOW_EXAMPLES}")
    show_parser.add_argument("catalogue", metavar="CATALOG", help="FILE, s3://BUCKET, aws or aws:REGION")
    show_parser.add_argument("type", nargs="?", default="", metavar="TYPE", help="name of an instance type")
    show_parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="output format")
    show_parser.set_defaults(run=_show_catalog)


def _add_account_arguments(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write; `-` is standard output")
    parser.add_argument("--region", default="", help="AWS region (default: that of your credentials)")
    parser.add_argument("--embedded", action="store_true", help="use simulated AWS APIs; no account is needed")
    parser.set_defaults(run=run)


def _require_action(args: argparse.Namespace) -> int:
    args.usage("which ACTION? build, prices, commitments or show")
    raise AssertionError("argparse has left")


def _build_catalog_file(args: argparse.Namespace) -> int:
    messages: list[str] = []
    try:
        _check_writable(args.output)
        node_classes = read_node_classes(args.filename, datetime.now(UTC), messages.append) if args.filename else ()
    except InputError as error:
        return print_errors("catalog", [*messages, str(error)])

    def build_file(apis: "AccountApis") -> FileAndSummary:
        from cli.aws.market import load_price_list, read_account_catalog  # noqa: PLC0415 - --help needs none of it

        price_list = load_price_list(args.prices, apis.region)
        catalog, unpriced = read_account_catalog(apis, node_classes, messages.append, price_list)
        body = msgspec.json.format(encode_catalog(catalog), indent=1)
        summary = _format_summary(catalog)
        if unpriced:
            types_text = format_count(len(unpriced), "instance type")
            summary += f"; {types_text} without on-demand price: {join_names(unpriced, MAX_SUGGESTIONS)}"
        return compress_body(body) if args.output.endswith(".gz") else body + b"\n", summary

    return _query_and_write(args, build_file, messages, cluster=find_discovery_cluster(node_classes))


def _build_price_list_file(args: argparse.Namespace) -> int:
    def build_file(apis: "AccountApis") -> FileAndSummary:
        from cli.aws.market import list_prices  # noqa: PLC0415 - --help needs none of it

        price_list = list_prices(apis)
        body = msgspec.json.format(msgspec.json.encode(price_list, order="deterministic"), indent=1)
        summary = (
            f"{format_count(len(price_list.on_demand), 'price')} of {price_list.region}, {apis.queried_at:%Y-%m-%d}"
        )
        return body + b"\n", summary

    try:
        _check_writable(args.output)
    except InputError as error:
        return print_errors("catalog", [str(error)])
    return _query_and_write(args, build_file, [])


def _write_commitments(args: argparse.Namespace) -> int:
    from cli.inputs.commitments import read_commitments  # noqa: PLC0415 - other actions need no YAML parser

    try:
        _check_writable(args.output)
        document = read_commitments(args.commitments)
        body = msgspec.json.format(encode_commitments(document), indent=1) + b"\n"
        if args.output == "-":
            sys.stdout.buffer.write(body)
        else:
            Path(args.output).write_bytes(body)
    except InputError as error:
        return print_errors("catalog", str(error).splitlines())
    except OSError as error:
        return print_errors("catalog", [f"{args.output}: {error.strerror}: name another file with -o"])
    plans_text = format_count(len(document.savings_plans), "Savings Plan")
    purchases_text = format_count(len(document.reserved_instances), "purchase")
    print_errors("catalog", [f"{args.output}: {plans_text}, {purchases_text} of Reserved Instances"])
    return 0


def _query_and_write(
    args: argparse.Namespace,
    build_file: Callable[["AccountApis"], FileAndSummary],
    messages: list[str],
    *,
    cluster: str = DEFAULT_CLUSTER_NAME,
) -> int:
    """Query, write the file and print a one-line summary; return 1 on failure or if there are *messages*."""
    started_at = perf_counter()
    try:
        with open_apis(args.region, embedded=args.embedded, cluster=cluster) as apis:
            body, summary = build_file(apis)
            calls_text = _format_calls(apis)
        if args.output == "-":
            sys.stdout.buffer.write(body)
        else:
            Path(args.output).write_bytes(body)
    except Fault as fault:
        return print_errors("catalog", [*messages, describe_fault(fault, embedded=True)])
    except (InputError, ValueError) as error:
        return print_errors("catalog", [*messages, str(error)])
    except OSError as error:
        return print_errors("catalog", [*messages, f"{args.output}: {error.strerror}: name another file with -o"])
    statistics = f"{calls_text}, {perf_counter() - started_at:.1f} s"
    print_errors("catalog", [*messages, f"{args.output}: {summary}; {format_bytes(len(body))}, {statistics}"])
    return 1 if messages else 0


def _format_calls(apis: "AccountApis") -> str:
    if apis.call_counts is None:
        return "simulated AWS APIs"
    return format_count(sum(apis.call_counts().values()), "AWS API call")


def _check_writable(output: str) -> None:
    """Check the output path first, so that a bad path fails before the account is queried.

    Raises:
        InputError: The file cannot be written.
    """
    path = Path(output)
    if output == "-" or (os.access(path if path.exists() else path.parent, os.W_OK) and not path.is_dir()):
        return
    reason = "is a folder" if path.is_dir() else "is not writable"
    if not path.parent.is_dir():
        reason = "its folder does not exist"
    raise InputError(f"{output}: {reason}: name another file with -o, or `-`")


def _show_catalog(args: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    try:
        catalog, problems = load_catalog(args.catalogue, ClusterSnapshot(taken_at=now), (), now)
    except InputError as error:
        return print_errors("catalog", [str(error)])
    print_errors("catalog", [f"{problem.kind} {problem.name}: {problem.message}" for problem in problems])
    matches = [(view, item) for view, types in _get_views(catalog) for item in types if item.name == args.type]
    if args.type and not matches:
        return print_errors("catalog", [f"{args.type}: not in {args.catalogue}{_suggest_types(args.type, catalog)}"])
    if args.output != "table":
        sys.stdout.write(encode_output(_build_document(catalog, args.type), args.output))
    elif args.type:
        sys.stdout.writelines(f"{line}\n" for view, match in matches for line in _render_type(view, match))
    else:
        sys.stdout.write(f"{_format_summary(catalog)}\n")
    return 0


def _suggest_types(name: str, catalog: Catalog) -> str:
    """Return a hint that names similar instance types, else some of the catalog's types."""
    type_names = sorted({instance_type.name for _, types in _get_views(catalog) for instance_type in types})
    if close_matches := get_close_matches(name, type_names, n=MAX_SUGGESTIONS):
        return f"; did you mean {' or '.join(close_matches)}?"
    return f": it has {join_names(type_names, MAX_SUGGESTIONS)}"


def _build_document(catalog: Catalog, name: str) -> dict[str, Any]:
    """Return the catalog as a document; if *name* is not empty, with that instance type only."""
    if name:
        by_view = {view: tuple(item for item in types if item.name == name) for view, types in _get_views(catalog)}
        own_types = by_view.pop("")
        catalog = msgspec.structs.replace(catalog, instance_types=own_types, by_node_class=tuple(by_view.items()))
    document: dict[str, Any] = msgspec.json.decode(encode_catalog(catalog))
    return document


def _get_views(catalog: Catalog) -> tuple[tuple[str, tuple[InstanceType, ...]], ...]:
    return (("", catalog.instance_types), *catalog.by_node_class)


def _format_summary(catalog: Catalog) -> str:
    parts = [catalog.region]
    for name, types in _get_views(catalog):
        zones = {offering.zone for instance_type in types for offering in instance_type.offerings}
        if types:
            count = f"{format_count(len(types), 'instance type')} in {format_count(len(zones), 'zone')}"
            parts.append(f"{count}{f' for {name}' if name else ''}")
    parts.append(f"prices of {catalog.priced_at:%Y-%m-%d %H:%M} UTC" if catalog.priced_at else "prices of unknown age")
    if estimated_types := catalog.list_estimated_capacity_types():
        parts.append(f"{' and '.join(estimated_types)} prices are older, because they could not be read")
    return ", ".join(parts)


def _render_type(view: str, instance_type: InstanceType) -> Iterator[str]:
    yield f"{instance_type.name}{f' for {view}' if view else ''}"
    for title, resources in (("capacity", instance_type.capacity), ("allocatable", instance_type.allocatable)):
        yield f"  {title}: " + ", ".join(f"{key} {value}" for key, value in format_quantities(resources).items())
    for offering in instance_type.offerings:
        note = "" if offering.available else ", not available"
        note += ", older price" if offering.is_estimated else ""
        price = format_usd_per_hour(offering.price_usd_per_hour)
        yield f"  {offering.zone} {offering.capacity_type}: {price}{note}"
    for requirement in instance_type.requirements:
        if requirement.values:
            yield f"  {requirement.key}: {', '.join(sorted(requirement.values))}"
