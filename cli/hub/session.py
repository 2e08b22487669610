"""A run of `joiner hub`: reads all clusters at once; a cluster that cannot be read does not stop the others."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from functools import partial
from threading import Lock

import msgspec

from cli.cluster.fixes import SIGN_IN_HINT, is_credential_error
from cli.hub.cluster_buckets import TurnTakingBucket, open_cluster_bucket
from cli.hub.hub_file import HubCluster
from cli.hub.summary.cluster_summary import ClusterSummary, read_cluster_summary
from cli.hub.summary.day_costs import DayCosts, read_day_costs
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.errors import Fault, Forbidden, NotFound, Throttled, Unreachable
from shared.model.core.formatting import format_count

MAX_CONCURRENT_CLUSTERS = 16


class HubRow(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of the hub: its summary, or why it could not be read."""

    cluster: HubCluster
    summary: ClusterSummary | None = None
    error: str = ""
    day_costs: DayCosts | None = None
    """Of the day of a daily report."""


class HubView(msgspec.Struct, frozen=True, kw_only=True):
    """All clusters of a hub file, in its order."""

    at: datetime
    rows: tuple[HubRow, ...]


def read_hub(clusters: Sequence[HubCluster], now: datetime, day: date | None = None) -> HubView:
    """Read the summaries of *clusters* in parallel; with *day*, their costs of this day too."""
    read_row = partial(_read_row, now=now, day=day, turn=Lock())
    with (
        show_progress(f"reading {format_count(len(clusters), 'cluster')}"),
        ThreadPoolExecutor(MAX_CONCURRENT_CLUSTERS) as executor,
    ):
        return HubView(at=now, rows=tuple(executor.map(read_row, clusters)))


def _read_row(cluster: HubCluster, now: datetime, day: date | None, turn: Lock) -> HubRow:
    try:
        with open_cluster_bucket(cluster) as bucket, turn:
            shared_bucket = TurnTakingBucket(bucket, turn)
            return HubRow(
                cluster=cluster,
                summary=read_cluster_summary(shared_bucket, now, is_copy=bool(cluster.folder)),
                day_costs=None if day is None else read_day_costs(shared_bucket, day),
            )
    except InputError as error:
        return HubRow(cluster=cluster, error=str(error))
    except Fault as fault:
        fix = _suggest_fix(fault, cluster)
        return HubRow(cluster=cluster, error=f"{fault}{f': {fix}' if fix else ''}")


def _suggest_fix(fault: Fault, cluster: HubCluster) -> str:
    match fault:
        case _ if is_credential_error(fault):
            fix = SIGN_IN_HINT
        case Forbidden() if "sts:AssumeRole" in str(fault):
            fix = "check role and external-id, the trust policy of the role, and your permission sts:AssumeRole"
        case Forbidden():
            reader = cluster.role or "your identity (`aws sts get-caller-identity`)"
            fix = f"check the permissions of {reader} on the bucket: docs/guide/hub.md"
        case NotFound() if cluster.folder:
            fix = "check folder; a relative path is relative to the hub file"
        case NotFound():
            fix = "check bucket and region: the bucket's name is the stack output JoinerBucketName"
        case Unreachable():
            fix = "check region and the network"
        case Throttled():
            fix = "try again in a minute"
        case _:
            fix = ""
    return fix
