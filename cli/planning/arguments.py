"""Arguments that several commands share: files, a live cluster, a catalog, planning options, times and durations."""

import argparse
import os
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

from cli.inputs.files import add_filename
from shared.settings_text import MinValuesPolicy, PodNominations, PreferencePolicy

OutputFormat = Literal["table", "json", "yaml"]
ACCOUNT_SOURCE: Final = "aws"
CATALOG_HELP: Final = """--instance-types names the catalog of instance types and prices:
  --instance-types FILE              a JSON or YAML file, written by `joiner catalog build -o FILE`
  --instance-types s3://BUCKET       the newest catalog of an installation, which writes one every hour
  --instance-types aws[:REGION]      instance types, offerings and prices, read from the AWS account"""
LIVE_CATALOG_HELP: Final = f"""{CATALOG_HELP}
  The default for a live cluster is s3://$JOINER_BUCKET_NAME if that variable is set, otherwise aws."""


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for files, the live cluster and the catalog."""
    add_filename(parser, "Kubernetes objects: manifests, or the output of `kubectl get -o json` (or yaml)")
    parser.add_argument(
        "--context",
        nargs="?",
        const="",
        metavar="NAME",
        help="kubeconfig context of the cluster to read (without NAME: the current context)",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file (default: $KUBECONFIG, ~/.kube/config)")
    parser.add_argument(
        "--instance-types", metavar="CATALOG", help="instance types and prices: FILE, s3://BUCKET, aws or aws:REGION"
    )


def add_planning_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for sources, output, the settings of the functions' deployment, and the time."""
    add_sources(parser)
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="output format")
    parser.add_argument("--wide", action="store_true", help="do not fit the table to the width of the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print all rows and all names")
    parser.add_argument(
        "--preference-policy",
        choices=get_args(PreferencePolicy),
        help="respect or ignore preferred affinities and ScheduleAnyway spread constraints (default: "
        "$PREFERENCE_POLICY, else Respect)",
    )
    parser.add_argument(
        "--min-values-policy",
        choices=get_args(MinValuesPolicy),
        help="enforce minValues, or relax them if no node satisfies them (default: $MIN_VALUES_POLICY, else Strict)",
    )
    parser.add_argument(
        "--pod-nominations",
        choices=get_args(PodNominations),
        help="whether Joiner nominates nodes for pods (status.nominatedNodeName); Disabled prefers plans that need no "
        "nominations (default: $JOINER_POD_NOMINATIONS, else Enabled)",
    )
    parser.add_argument(
        "--node-cost",
        metavar="USD",
        type=parse_usd,
        help="additional cost of each node in USD per hour, for example a license (default: "
        "$JOINER_NODE_COST_USD_PER_HOUR, else 0)",
    )
    parser.add_argument(
        "--volume-price",
        metavar="USD",
        type=parse_usd,
        help="price of the nodes' EBS volumes in USD per GiB and month (default: $JOINER_VOLUME_USD_PER_GIB_MONTH, "
        "else 0.08)",
    )
    parser.add_argument(
        "--assume-unschedulable",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="treat pods that have no node and no PodScheduled condition as unschedulable (default: yes for files, "
        "no for a live cluster)",
    )
    parser.add_argument(
        "--now",
        type=parse_time_argument,
        metavar="TIME",
        help="evaluate the objects as of this time, for example 2026-11-21T08:00:00Z (default: the current time)",
    )


def get_catalog_source(args: argparse.Namespace, *, is_live: bool) -> str:
    """Return the source of the catalog, as given or by default; exit with a usage error if there is neither."""
    source: str = args.instance_types or get_default_catalog_source(is_live=is_live)
    if not source:
        args.usage(f"files have no prices. {CATALOG_HELP}")
    return source


def get_default_catalog_source(*, is_live: bool) -> str:
    """Return the source of a live cluster's catalog; "" for files, because planning for files calls no AWS API."""
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive duration like 90m or 2h30m")
    return parsed_duration


def parse_usd(text: str) -> float:
    """Parse an amount of USD.

    Raises:
        ArgumentTypeError: *text* is no amount, or is negative.
    """
    import msgspec  # noqa: PLC0415 - --help needs none of it

    from shared.model.decisions.placement import Usd  # noqa: PLC0415

    try:
        return msgspec.convert(text, Usd, strict=False)
    except msgspec.ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in USD like 0.08") from None
