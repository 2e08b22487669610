"""What a command is told of its sources: files, a live cluster, a catalogue, instants, and what nodes cost besides."""

import argparse
import os
from datetime import datetime, timedelta
from typing import Literal, get_args

Hints = Literal["Given", "Withheld"]


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add what is read."""
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
    """Add what nodes cost besides, and how pods are told of them."""
    parser.add_argument(
        "--hints",
        choices=get_args(Hints),
        help="whether kube-scheduler will be told which node was made for which pod; Withheld prefers plans that need "
        "no telling (default: $JOINER_HINTS, else Given)",
    )
    parser.add_argument(
        "--node-cost",
        metavar="USD",
        type=_usd,
        help="what each node costs per hour besides its instance and its volumes, like a licence (default: "
        "$JOINER_NODE_COST_USD_PER_HOUR, else 0)",
    )
    parser.add_argument(
        "--volume-price",
        metavar="USD",
        type=_usd,
        help="what a GiB of the volumes of node classes costs per month (default: $JOINER_VOLUME_USD_PER_GIB_MONTH, "
        "else 0.08)",
    )


def catalogue_of(chosen: argparse.Namespace, *, is_live: bool) -> str:
    """Answer where the catalogue is that is named or goes without saying; without one it ends as wrong usage does."""
    from cli.catalogues import HOW  # noqa: PLC0415 - --help needs none of it

    source: str = chosen.instance_types or default_catalogue(is_live=is_live)
    if not source:
        chosen.usage(HOW)
    return source


def default_catalogue(*, is_live: bool) -> str:
    """Answer where a live cluster's catalogue is; files are planned with without asking anybody."""
    from cli.catalogues import AWS  # noqa: PLC0415 - --help needs none of it

    bucket = os.environ.get("JOINER_BUCKET_NAME")
    return (f"s3://{bucket}" if bucket else AWS) if is_live else ""


def instant(text: str) -> datetime:
    """Read an instant.

    Raises:
        ArgumentTypeError: it is none.
    """
    from shared.model.units import parse_instant  # noqa: PLC0415 - --help needs none of it

    try:
        return parse_instant(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-11-21T08:00:00Z") from None


def duration(text: str) -> timedelta:
    """Read how long something is to last.

    Raises:
        ArgumentTypeError: it is not like 90m, or no time at all.
    """
    from shared.model.units import parse_duration  # noqa: PLC0415 - --help needs none of it

    try:
        found = parse_duration(text)
    except ValueError:
        found = timedelta()
    if found <= timedelta():
        raise argparse.ArgumentTypeError(f"{text!r} is no time that passes, like 90m or 2h30m")
    return found


def _usd(text: str) -> str:
    """Check that it is dollars.

    Raises:
        ArgumentTypeError: it is none.
    """
    import msgspec  # noqa: PLC0415 - --help needs none of it

    from shared.scheduling.placement import Usd  # noqa: PLC0415

    try:
        msgspec.convert(text, Usd, strict=False)
    except msgspec.ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r}: want dollars, like 0.08") from None
    return text
