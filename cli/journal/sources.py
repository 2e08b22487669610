"""The sources of an explanation that the arguments select: the journal, and a live cluster."""

import argparse
from datetime import UTC, datetime

from cli.cluster.live_cluster import read_live_cluster
from cli.inputs.environment import keep_honored_annotations
from cli.journal.arguments import get_journal_source
from cli.journal.journal import Journal, load_journal
from cli.terminal.errors import InputError
from shared.model.cluster import ClusterSnapshot
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

_FIELDS_READ = ("nodes", "node_claims", "pods", "node_pools", "node_classes", "namespaces")


def read_journal_and_cluster(args: argparse.Namespace) -> tuple[Journal, ClusterSnapshot | None]:
    """Read the journal and, if one is selected, the live cluster.

    With a live cluster, the journal is optional: an unreadable journal becomes an empty one with a message.

    Raises:
        InputError: A named input cannot be read, and there is no other source.
    """
    is_live = args.context is not None or args.kubeconfig is not None
    source, now = get_journal_source(args, is_needed=not is_live), args.now or datetime.now(UTC)
    journal = Journal(source="", now=now)
    try:
        if source:
            journal = load_journal(source, now, args.since, is_now=is_live or args.now is not None)
    except InputError as error:
        if not is_live:
            raise
        message = f"the journal could not be read: {error}; the output is only about the live cluster"
        journal = Journal(source="", messages=(message,), now=now)
    return journal, _read_cluster(args, journal.now) if is_live else None


def _read_cluster(args: argparse.Namespace, now: datetime) -> ClusterSnapshot:
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415 - the Kubernetes client takes half a second

    connection = connect_to_cluster(args.kubeconfig or "", args.context or "")
    listings = [listing for listing in RESOURCE_KINDS if listing.field in _FIELDS_READ]
    return keep_honored_annotations(read_live_cluster(connection.kube, now, connection.context, listings)[0])
