"""Shared arguments for the inputs of commands: files, a live cluster, a catalog, times, additional node costs."""

import argparse
import os
from datetime import datetime, timedelta
from typing import get_args

from shared.settings import Hints


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for files, the live cluster and the catalog."""
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="objects as `kubectl get -o json` (or yaml) prints them, or manifests; may be given several times",
    )
    parser.add_argument(
        "--context",
        nargs="?",
        const="",
        metavar="NAME",
        help="a live cluster, which is only listed; without NAME the current context's",
    )
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )
    parser.add_argument("--instance-types", metavar="CATALOGUE", help="what the cloud sells, and prices; see below")


def add_money(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for additional node costs and for nomination hints."""
    parser.add_argument(
        "--hints",
        choices=get_args(Hints),
        help="whether kube-scheduler will be told which node was made for which pod; Withheld prefers plans that need "
        "no telling (default: $JOINER_HINTS, else Given)",
    )
    parser.add_argument(
        "--node-cost",
        metavar="USD",
        type=_parse_usd,
        help="what each node costs per hour besides its instance and its volumes, like a licence (default: "
        "$JOINER_NODE_COST_USD_PER_HOUR, else 0)",
    )
    parser.add_argument(
        "--volume-price",
        metavar="USD",
        type=_parse_usd,
        help="what a GiB of the volumes of node classes costs per month (default: $JOINER_VOLUME_USD_PER_GIB_MONTH, "
        "else 0.08)",
    )


def get_catalog_source(args: argparse.Namespace, *, is_live: bool) -> str:
    """Return where the catalog is, as given or by default; exit as after wrong usage if there is neither."""
    from cli.planning.catalog_source import CATALOG_HELP  # noqa: PLC0415 - --help needs none of it

    source: str = args.instance_types or get_default_catalog_source(is_live=is_live)
    if not source:
        args.usage(CATALOG_HELP)
    return source


def get_default_catalog_source(*, is_live: bool) -> str:
    """Return where a live cluster's catalog is; "" for files, which are planned without requests to AWS."""
    from cli.planning.catalog_source import ACCOUNT_SOURCE  # noqa: PLC0415 - --help needs none of it

    bucket = os.environ.get("JOINER_BUCKET_NAME")
    return (f"s3://{bucket}" if bucket else ACCOUNT_SOURCE) if is_live else ""


def parse_time_argument(text: str) -> datetime:
    """Parse a time.

    Raises:
        ArgumentTypeError: *text* is no time.
    """
    from shared.model.core.units import parse_instant  # noqa: PLC0415 - --help needs none of it

    try:
        return parse_instant(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-11-21T08:00:00Z") from None


def parse_duration_argument(text: str) -> timedelta:
    """Parse a duration.

    Raises:
        ArgumentTypeError: *text* is no duration like 90m, or not positive.
    """
    from shared.model.core.units import parse_duration  # noqa: PLC0415 - --help needs none of it

    try:
        parsed_duration = parse_duration(text)
    except ValueError:
        parsed_duration = timedelta()
    if parsed_duration <= timedelta():
        raise argparse.ArgumentTypeError(f"{text!r} is no time that passes, like 90m or 2h30m")
    return parsed_duration


def _parse_usd(text: str) -> float:
    """Parse an amount of USD.

    Raises:
        ArgumentTypeError: it is none.
    """
    import msgspec  # noqa: PLC0415 - --help needs none of it

    from shared.model.decisions.placement import Usd  # noqa: PLC0415

    try:
        return msgspec.convert(text, Usd, strict=False)
    except msgspec.ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r}: must be USD, like 0.08") from None
