"""`joiner catalog`: what the cloud sells and for how much, written as the file that `joiner plan` reads."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cli.catalogues import catalogue_at
from cli.files import InputError, body_of
from cli.inputs import documents_in, objects_of
from cli.manifests import manifests
from cli.text import count
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
EXAMPLES: Final = """examples:
  joiner catalog build -o catalogue.json                          the account and region of your credentials
  joiner catalog build -o prod.json.gz -f nodeclass.yaml --region eu-west-1
  joiner catalog build -o catalogue.json --embedded               true types, made-up prices, no account
  joiner catalog show catalogue.json m5.large                     what is known of a type
  joiner catalog prices -o prices.json --region us-east-1         for where no pricing service can be reached:
  aws s3 cp prices.json s3://BUCKET/market/prices-us-gov-west-1.json     the functions then use it, and say its day

exit codes: 0 done, 1 something could not be read, asked or written, 2 wrong usage
"""
_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"}
_DEFAULT_REGION: Final = "us-east-1"
Made = tuple[bytes, str, Sequence[str]]
"""What is written, what it is in a line, and what could not be read."""


def add_to(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add the command."""
    parser = commands.add_parser(
        "catalog",
        help="what the cloud sells, as the file that `plan` reads",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_nothing, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    build = actions.add_parser("build", help="ask, and write a catalogue")
    _add_account(build, _build)
    build.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="EC2NodeClasses: types are written as each of them sees them, too",
    )
    build.add_argument("--prices", metavar="FILE", help="a price list, for when the pricing service cannot be asked")
    prices = actions.add_parser("prices", help="ask, and write the list of on-demand prices with its day")
    _add_account(prices, _prices)
    show = actions.add_parser("show", help="what a catalogue holds")
    show.add_argument("catalogue", metavar="CATALOGUE", help="a file, s3://BUCKET, aws or aws:REGION")
    show.add_argument("type", nargs="?", default="", metavar="TYPE", help="all that is known of one type")
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
    from cli.account import of_account, price_list_from  # noqa: PLC0415 - boto3 takes half a second

    def make(clients: "Clients", now: datetime) -> Made:
        told: list[str] = []
        cluster = _cluster(chosen.filename, now, told)
        listed = price_list_from(body_of(chosen.prices, Path(chosen.prices))) if chosen.prices else None
        made = of_account(clients, cluster, now, listed)
        body = msgspec.json.format(encode_catalogue(made), indent=1)
        return packed(body) if chosen.output.endswith(".gz") else body + b"\n", _summary(made), told

    return _asked(chosen, make)


def _prices(chosen: argparse.Namespace) -> int:
    from cli.account import list_prices  # noqa: PLC0415 - boto3 takes half a second

    def make(clients: "Clients", now: datetime) -> Made:
        listed = list_prices(clients, now)
        body = msgspec.json.format(msgspec.json.encode(listed, order="deterministic"), indent=1)
        return body + b"\n", f"{count(len(listed.on_demand), 'price')} of {listed.region}", ()

    return _asked(chosen, make)


def _asked(chosen: argparse.Namespace, make: Callable[["Clients", datetime], Made]) -> int:
    """Ask, write, and say in one line what it was; answer 1 if that could not be."""
    began = perf_counter()
    try:
        with _clients(chosen) as (clients, now):
            body, summary, told = make(clients, now)
            calls = sum(clients.calls().values())
        _write(chosen.output, body)
    except (Fault, InputError, ValueError) as error:
        return _tell(str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}")
    except OSError as error:
        return _tell(f"{chosen.output}: {error.strerror}")
    for line in told:
        _tell(line)
    took = f"{count(calls, 'call')}, {perf_counter() - began:.1f} s"
    _tell(f"{chosen.output}: {summary}; {len(body) / 1e6:,.1f} MB, {took}")
    return 1 if told else 0


@contextmanager
def _clients(chosen: argparse.Namespace) -> Iterator[tuple["Clients", datetime]]:
    """Open clients for the account, or for the embedded cloud, and say what time it is there."""
    from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second

    if not chosen.embedded:
        clients = Clients(chosen.region or _region_here())
        yield clients, datetime.now(UTC)
        clients.close()
        return
    from sim.clock import Clock  # noqa: PLC0415 - the simulator takes a second
    from sim.cloud.cloud import Cloud  # noqa: PLC0415
    from sim.http.server import EmbeddedAws  # noqa: PLC0415

    cloud = Cloud(Clock(), region=chosen.region or _DEFAULT_REGION)
    before = dict(os.environ)
    os.environ.update(_CREDENTIALS)
    try:
        with EmbeddedAws(cloud) as server:
            clients = Clients(cloud.region, endpoint_url=server.url)
            yield clients, cloud.clock.now()
            clients.close()
    finally:
        for name in _CREDENTIALS:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in _CREDENTIALS if name in before})


def _region_here() -> str:
    import boto3  # noqa: PLC0415 - half a second

    found = boto3.Session().region_name
    if not found:
        raise InputError("which region is not known: write --region")
    return str(found)


def _cluster(filenames: list[str], now: datetime, told: list[str]) -> Cluster:
    """Read node classes; what cannot be read is told.

    Raises:
        InputError: files are named, and there is no node class in them.
    """
    from shared.snapshot.documents import cluster_from_documents  # noqa: PLC0415

    found = manifests(objects_of(documents_in(filenames, told.append), told.append), told.append, {})
    cluster = cluster_from_documents(found.objects, now)
    told.extend(f"{one.kind} {one.name}: {one.message}" for one in cluster.problems)
    if filenames and not cluster.node_classes:
        raise InputError("; ".join((*told, f"{', '.join(filenames)}: holds no EC2NodeClass")))
    return cluster


def _show(chosen: argparse.Namespace) -> int:
    try:
        found, problems = catalogue_at(chosen.catalogue, Cluster(taken_at=datetime.now(UTC)), (), datetime.now(UTC))
    except InputError as error:
        return _tell(str(error))
    for problem in problems:
        _tell(f"{problem.kind} {problem.name}: {problem.message}")
    if not chosen.type:
        sys.stdout.write(_summary(found) + "\n")
        return 0
    seen = [(name, one) for name, types in _views(found) for one in types if one.name == chosen.type]
    if not seen:
        return _tell(f"{chosen.type}: is not in {chosen.catalogue}")
    sys.stdout.write("\n".join(line for name, one in seen for line in _lines(name, one)) + "\n")
    return 0


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
    for title, some in (("capacity", one.capacity), ("allocatable", one.allocatable)):
        yield f"  {title}: " + ", ".join(f"{key} {value}" for key, value in quantities_from(some).items())
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


def _tell(line: str) -> int:
    """Say *line* on standard error, and answer the status of a failure."""
    sys.stderr.write(f"joiner catalog: {line}\n")
    return 1
