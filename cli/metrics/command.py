"""`joiner metrics`: metrics of a cluster for Prometheus, printed once or served."""

import argparse
from typing import Final, get_args

from shared.model.core.metrics.metric_samples import MetricDetail

DESCRIPTION: Final = """Print the metrics of a cluster in the Prometheus text format, or serve them as a scrape target.
Metrics have Karpenter's names where the meaning is the same. The command reads files, or a live cluster and the catalog
of instance types and prices, and changes nothing."""
EXAMPLES: Final = """examples:
  joiner metrics -f examples/cluster --instance-types examples/catalogue.json     example files
  joiner metrics                                 print the metrics of your current cluster once
  joiner metrics serve --context prod            serve http://127.0.0.1:9468/metrics until Ctrl-C
  joiner metrics serve --context prod --listen 127.0.0.1:9090 --refresh-seconds 60

`serve` reads the cluster when Prometheus scrapes it, at most once in --refresh-seconds. If the cluster cannot be read,
the scrape fails with status 503 and the reason. docs/guide/prometheus.md has the scrape configuration and all metrics.

exit codes: 0 printed, or stopped by Ctrl-C, 1 the input could not be read or the port is in use, 2 wrong usage
"""
DEFAULT_ADDRESS: Final = ("127.0.0.1", 9468)
DEFAULT_REFRESH_SECONDS: Final = 30
LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost")
MAX_PORT: Final = 65535


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.planning.arguments import add_sources  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "action", nargs="?", choices=("print", "serve"), default="print", help="print once (default), or serve"
    )
    add_sources(parser)
    parser.add_argument(
        "--listen",
        type=parse_address,
        metavar="HOST:PORT",
        help="with serve: address to listen on; HOST is 127.0.0.1 or localhost (default: 127.0.0.1:9468)",
    )
    parser.add_argument(
        "--refresh-seconds",
        type=_parse_seconds,
        metavar="N",
        help="with serve: read the cluster at most every N seconds (default: 30)",
    )
    parser.add_argument(
        "--detail",
        choices=get_args(MetricDetail),
        default="all",
        help="summary: no series for each node, pod or offering; nodes: none for each pod or offering (default: all)",
    )
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Print or serve the metrics; return 1 if that is not possible."""
    if args.action == "print" and (args.listen is not None or args.refresh_seconds is not None):
        args.usage("--listen and --refresh-seconds require `joiner metrics serve`")
    from cli.metrics.exposition import build_reader  # noqa: PLC0415 - --help needs none of it
    from cli.metrics.server import print_metrics, serve_metrics  # noqa: PLC0415

    try:
        reader = build_reader(args)
    except ValueError as error:
        args.usage(str(error))
        raise AssertionError("argparse has left") from error
    if args.action == "print":
        return print_metrics(reader)
    return serve_metrics(reader, args.listen or DEFAULT_ADDRESS, args.refresh_seconds or DEFAULT_REFRESH_SECONDS)


def parse_address(text: str) -> tuple[str, int]:
    """Parse ``HOST:PORT``; port 0 is a free port.

    Raises:
        ArgumentTypeError: *text* has another form, or the host is not this computer.

    >>> parse_address("127.0.0.1:9468")
    ('127.0.0.1', 9468)
    """
    host, _, port = text.rpartition(":")
    if host not in LOOPBACK_HOSTS:
        raise argparse.ArgumentTypeError(
            f"{text!r}: the host must be 127.0.0.1 or localhost, because the metrics are served without authentication"
        )
    if not port.isascii() or not port.isdecimal() or int(port) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r}: {port!r} is not a port between 0 and {MAX_PORT}")
    return host, int(port)


def _parse_seconds(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds of at least 1")
    return int(text)
