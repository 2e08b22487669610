"""`joiner explain`: why an object is in its state, from the journal and optionally from the live cluster."""

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.explain.kinds import EXPLAIN_KINDS
from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from cli.explain.journal import Journal
    from shared.model.cluster import ClusterSnapshot

DESCRIPTION: Final = """Say why a pod waits or is where it is, why a node was made, why of that type, why it was removed
or is not, what happened when, and what it cost. The functions write down every decision and what became of it: the
journal. It is read from the bucket of a deployment, or from a copy of it in a folder, without any network."""
EXAMPLES: Final = """examples:
  joiner demo --journal journal                  play the demo and keep its journal; then
  joiner explain nodepool default --journal journal
  joiner explain node ip-10-0-64-5 --journal journal
  joiner explain pod shop/cart-0 --since 2h      from $JOINER_BUCKET_NAME: why pending, or why there
  joiner explain node i-0a31911b38b3d1a82 --journal s3://joiner-prod-bucket --context prod
  joiner explain command emptiness-e0ae10abb2af -o json | jq .happened

Names may be short: a pod without its namespace, or the name of its Deployment, StatefulSet or Job; a node up to its
first dot; a node or nodeclaim is found by any of its names, by its address, and by the id or provider id of its
instance. Of a bucket the last day is read unless --since asks for more; a folder is read whole, and its time is that
of its last cycle unless --now says otherwise. What cannot be read is named, and never taken for nothing.

-o json and yaml have kind and name; answers: question, words; cost: usd, usdPerHour (at the end), hours, or null;
happened, oldest first: at, until, secondsAgo, times, function, what, why, failed, cycle (its entry); journal:
source, cycles, from, to, now, failed, lastError, unreadable.

exit codes: 0 something is known, 1 nothing is known, or something could not be read (it is named, the rest is told),
2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("kind", choices=tuple(EXPLAIN_KINDS), help="what it is")
    parser.add_argument("name", metavar="NAME", help="which one")
    add_journal_arguments(parser)
    add_cluster_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print the story from its beginning")


def add_journal_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the journal's location, and how much of it is read."""
    from cli.planning.arguments import (  # noqa: PLC0415 - the list of commands needs none of it
        parse_duration_argument,
        parse_time_argument,
    )

    parser.add_argument(
        "--journal",
        metavar="DIR|s3://BUCKET[/PREFIX]",
        help="where the journal is (default: s3://$JOINER_BUCKET_NAME); PREFIX is what keys have before `provision/`, "
        "`journal` unless it was copied",
    )
    parser.add_argument(
        "--since", type=parse_duration_argument, metavar="DURATION", help="only what is younger, like 2h, 30m or 72h"
    )
    parser.add_argument(
        "--now", type=parse_time_argument, metavar="TIME", help="count back from there, like 2026-11-21T08:00:00Z"
    )


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the selection of a live cluster."""
    parser.add_argument(
        "--context", nargs="?", const="", metavar="NAME", help="look at a live cluster too; without NAME the current"
    )
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )


def get_journal_source(args: argparse.Namespace, *, is_needed: bool = True) -> str:
    """Return the location of the journal; "" if it is unknown and not *is_needed*, otherwise that is wrong usage."""
    bucket = os.environ.get("JOINER_BUCKET_NAME")
    source = args.journal or (f"s3://{bucket}" if bucket else "")
    if is_needed and not source:
        args.usage("where is the journal? name it with --journal DIR or s3://BUCKET, or set $JOINER_BUCKET_NAME")
    return str(source)


def run(args: argparse.Namespace) -> int:
    """Read, explain, print; return 1 if nothing is known, or an input cannot be read."""
    from cli.explain.answers import explain_object  # noqa: PLC0415 - --help needs none of it
    from cli.explain.evidence import UnknownObject, build_evidence  # noqa: PLC0415
    from cli.explain.page import (  # noqa: PLC0415
        build_explanation_document,
        describe_journal_coverage,
        render_explanation,
    )
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    try:
        journal, live = read_journal_and_cluster(args)
    except InputError as error:
        return print_errors("explain", [str(error)])
    evidence = build_evidence(journal, live)
    for line in journal.messages:
        print_errors("explain", [line])
    try:
        explanation = explain_object(evidence, args.kind, args.name)
    except UnknownObject as error:
        is_bucket = args.since is None and journal.source.startswith("s3://")
        since_hint = "; only the last day was read: --since 168h sees a week" if is_bucket else ""
        since_hint = "; a longer --since sees more" if args.since is not None else since_hint
        return print_errors("explain", [f"{error} ({describe_journal_coverage(evidence)}{since_hint})"])
    if args.output == "table":
        output = render_explanation(
            explanation, evidence, choose_palette(sys.stdout), get_terminal_width(sys.stdout), is_whole=args.is_whole
        )
    else:
        output = encode_output(build_explanation_document(explanation, evidence), args.output)
    sys.stdout.write(output)
    return 1 if journal.messages else 0


def read_journal_and_cluster(args: argparse.Namespace) -> "tuple[Journal, ClusterSnapshot | None]":
    """Read the journal and, if one is selected, the live cluster; then a journal is optional.

    Raises:
        InputError: A named input cannot be read, and there is no other source.
    """
    is_live = args.context is not None or args.kubeconfig is not None
    source = get_journal_source(args, is_needed=not is_live)
    journal = read_journal_or_empty(args, source, is_live=is_live)
    return journal, read_live_cluster(args, journal.now) if is_live else None


def read_journal_or_empty(args: argparse.Namespace, source: str, *, is_live: bool) -> "Journal":
    """Read the journal; if a live cluster is selected too, an unreadable journal becomes an empty one with a message.

    Raises:
        InputError: The journal cannot be read, and no live cluster is selected.
    """
    from cli.explain.journal import Journal  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.errors import InputError  # noqa: PLC0415

    try:
        return read_journal(args, source, is_live=is_live)
    except InputError as error:
        if not is_live:
            raise
        message = f"the journal could not be seen: {error}; nothing is concluded from that"
        return Journal(source="", messages=(message,), now=args.now or datetime.now(UTC))


def read_journal(args: argparse.Namespace, source: str, *, is_live: bool) -> "Journal":
    """Read the journal from *source* as *args* selects it; return an empty journal if *source* is "".

    Raises:
        InputError: The journal cannot be read.
    """
    from cli.explain.journal import Journal, load_journal  # noqa: PLC0415 - --help needs none of it

    now = args.now or datetime.now(UTC)
    if not source:
        return Journal(source="", now=now)
    return load_journal(source, now, args.since, is_now=is_live or args.now is not None)


def read_live_cluster(args: argparse.Namespace, now: datetime) -> "ClusterSnapshot":
    """Read the live cluster that *args* names.

    Raises:
        InputError: The cluster cannot be read.
    """
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415 - the client library takes half a second
    from cli.cluster.live_cluster import read_live_cluster  # noqa: PLC0415
    from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS  # noqa: PLC0415

    connection = connect_to_cluster(args.kubeconfig or "", args.context or "")
    fields = ("nodes", "node_claims", "pods", "node_pools", "namespaces")
    listings = [listing for listing in RESOURCE_KINDS if listing.field in fields]
    return read_live_cluster(connection.kube, now, connection.context, listings)[0]
