"""`joiner explain`: why something is as it is, from the journal, and from the live cluster if one is named."""

import argparse
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.explain_kinds import KINDS
from cli.telling import tell

if TYPE_CHECKING:
    from cli.explain_journals import Journal
    from shared.model.cluster import Cluster

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
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("kind", choices=tuple(KINDS), help="what it is")
    parser.add_argument("name", metavar="NAME", help="which one")
    add_journal_to(parser)
    add_live_to(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print the story from its beginning")


def add_journal_to(parser: argparse.ArgumentParser) -> None:
    """Add where the journal is, and how much of it counts."""
    from cli.sources import duration, instant  # noqa: PLC0415 - the list of commands needs none of it

    parser.add_argument(
        "--journal",
        metavar="DIR|s3://BUCKET[/PREFIX]",
        help="where the journal is (default: s3://$JOINER_BUCKET_NAME); PREFIX is what keys have before `provision/`, "
        "`journal` unless it was copied",
    )
    parser.add_argument("--since", type=duration, metavar="DURATION", help="only what is younger, like 2h, 30m or 72h")
    parser.add_argument("--now", type=instant, metavar="TIME", help="count back from there, like 2026-11-21T08:00:00Z")


def add_live_to(parser: argparse.ArgumentParser) -> None:
    """Add which live cluster is looked at."""
    parser.add_argument(
        "--context", nargs="?", const="", metavar="NAME", help="look at a live cluster too; without NAME the current"
    )
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )


def source_of(chosen: argparse.Namespace, *, is_needed: bool = True) -> str:
    """Answer where the journal is; "" if nobody says and it *is_needed* by nobody, otherwise that is wrong usage."""
    bucket = os.environ.get("JOINER_BUCKET_NAME")
    source = chosen.journal or (f"s3://{bucket}" if bucket else "")
    if is_needed and not source:
        chosen.usage("where is the journal? name it with --journal DIR or s3://BUCKET, or set $JOINER_BUCKET_NAME")
    return str(source)


def run(chosen: argparse.Namespace) -> int:
    """Read, look it up, print; answer 1 if nothing is known, or something could not be read."""
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.explain_answers import explained  # noqa: PLC0415 - --help needs none of it
    from cli.explain_look import Unknown, looked  # noqa: PLC0415
    from cli.explain_page import covers, document, page  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    try:
        journal, live = seen_of(chosen)
    except InputError as error:
        return tell("explain", [str(error)])
    look = looked(journal, live)
    for line in journal.told:
        tell("explain", [line])
    try:
        said = explained(look, chosen.kind, chosen.name)
    except Unknown as error:
        is_bucket = chosen.since is None and journal.source.startswith("s3://")
        more = "; only the last day was read: --since 168h sees a week" if is_bucket else ""
        more = "; a longer --since sees more" if chosen.since is not None else more
        return tell("explain", [f"{error} ({covers(look)}{more})"])
    if chosen.output == "table":
        shown = page(said, look, palette_of(sys.stdout), width_of(sys.stdout), is_whole=chosen.is_whole)
    else:
        shown = encoded(document(said, look), chosen.output)
    sys.stdout.write(shown)
    return 1 if journal.told else 0


def seen_of(chosen: argparse.Namespace) -> "tuple[Journal, Cluster | None]":
    """Read the journal and, where one is named, the live cluster; only with it no journal need be named.

    Raises:
        InputError: what is named cannot be read, and there is nothing else to look at.
    """
    is_live = chosen.context is not None or chosen.kubeconfig is not None
    source = source_of(chosen, is_needed=not is_live)
    journal = journal_seen(chosen, source, is_live=is_live)
    return journal, live_of(chosen, journal.now) if is_live else None


def journal_seen(chosen: argparse.Namespace, source: str, *, is_live: bool) -> "Journal":
    """Read the journal; where a live cluster is looked at too, one that cannot be seen is told, and is no end.

    Raises:
        InputError: it cannot be read, and there is nothing else to look at.
    """
    from cli.explain_journals import Journal  # noqa: PLC0415 - --help needs none of it
    from cli.files import InputError  # noqa: PLC0415

    try:
        return journal_of(chosen, source, is_live=is_live)
    except InputError as error:
        if not is_live:
            raise
        told = f"the journal could not be seen: {error}; nothing is concluded from that"
        return Journal(source="", told=(told,), now=chosen.now or datetime.now(UTC))


def journal_of(chosen: argparse.Namespace, source: str, *, is_live: bool) -> "Journal":
    """Read the journal at *source* as *chosen* says; an empty one if that is "".

    Raises:
        InputError: it cannot be read.
    """
    from cli.explain_journals import Journal, journal_at  # noqa: PLC0415 - --help needs none of it

    now = chosen.now or datetime.now(UTC)
    if not source:
        return Journal(source="", now=now)
    return journal_at(source, now, chosen.since, is_now=is_live or chosen.now is not None)


def live_of(chosen: argparse.Namespace, now: datetime) -> "Cluster":
    """List what *chosen* names.

    Raises:
        InputError: it cannot be read.
    """
    from cli.kubeconfig import reach  # noqa: PLC0415 - the client library takes half a second
    from cli.live import live_cluster  # noqa: PLC0415
    from shared.snapshot.kinds import LISTINGS  # noqa: PLC0415

    reached = reach(chosen.kubeconfig or "", chosen.context or "")
    fields = ("nodes", "node_claims", "pods", "node_pools", "namespaces")
    wanted = [one for one in LISTINGS if one.field in fields]
    return live_cluster(reached.kube, now, reached.context, wanted)[0]
