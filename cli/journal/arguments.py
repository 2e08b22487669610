"""Arguments that select the journal and a live cluster."""

import argparse
import os

from cli.planning.arguments import parse_duration_argument, parse_time_argument


def add_journal_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the journal's location, and how much of it is read."""
    parser.add_argument(
        "--journal",
        metavar="DIR|s3://BUCKET[/PREFIX]",
        help="location of the journal (default: s3://$JOINER_BUCKET_NAME); PREFIX is the part of the keys before "
        "`provision/` (default: `journal`)",
    )
    parser.add_argument(
        "--since", type=parse_duration_argument, metavar="DURATION", help="read only newer entries, like 2h, 30m or 72h"
    )
    parser.add_argument(
        "--now", type=parse_time_argument, metavar="TIME", help="end of the period, like 2026-11-21T08:00:00Z"
    )


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the selection of a live cluster."""
    parser.add_argument(
        "--context",
        nargs="?",
        const="",
        metavar="NAME",
        help="also read a live cluster: the kubeconfig context NAME, or the current context",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file (default: $KUBECONFIG, ~/.kube/config)")


def get_journal_source(args: argparse.Namespace, *, is_needed: bool = True) -> str:
    """Return the location of the journal; "" if it is unknown and not *is_needed*, otherwise that is wrong usage."""
    bucket = os.environ.get("JOINER_BUCKET_NAME")
    source = args.journal or (f"s3://{bucket}" if bucket else "")
    if is_needed and not source:
        args.usage("no journal: add --journal DIR or --journal s3://BUCKET, or set $JOINER_BUCKET_NAME")
    return str(source)
