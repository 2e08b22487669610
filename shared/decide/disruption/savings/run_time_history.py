"""Run times of finite pods, learned from consecutive snapshots: a pod that was running and is gone has ended.

The API server is not asked for completed pods: Jobs can delete them at once. So the end of a run is known up to the
time between two snapshots, and a run counts only if that time is short.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DISRUPTED_TAINT
from shared.model.decisions.pod_run_time import EndedRun, RunningPod, RunTimeRecord, find_interval
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_workload import find_controlling_owner

MAX_RUN_COUNT: Final = 200
"""If a family has more runs, all counts are halved: older runs then count half."""
MAX_FAMILIES: Final = 500
"""The families that were seen last are kept."""
FORGET_AFTER: Final = timedelta(days=35)
"""A family without a run in this time is forgotten: longer than a month, for monthly Jobs."""
MIN_END_ERROR: Final = timedelta(minutes=2)
"""The end of a run may be this uncertain, or `MAX_END_ERROR_RATIO` of the run time if that is more."""
MAX_END_ERROR_RATIO: Final = 0.25
_GENERATED_SEGMENT: Final = re.compile(r"-(?:\d+|[bcdfghjklmnpqrstvwxz2456789]{5}|(?=[0-9a-f]*\d)[0-9a-f]{8,})\Z")
"""The last part of a generated name: a number, the random suffix of the API server, or a hexadecimal number."""
_CRON_JOB_SUFFIX: Final = re.compile(r"-\d{6,}\Z")
"""The minute for which a CronJob created the Job."""


def find_finite_family(pod: Pod) -> str:
    """Return kind, namespace and name of the family of *pod*: ``CronJob shop/report``; "" if the pod is not finite.

    Names that were generated for one run are cut: ``Workflow shop/import-x7k2p`` belongs to ``Workflow shop/import``.
    """
    if not pod.is_finite() or pod.is_daemon() or pod.is_mirror():
        return ""
    owner = find_controlling_owner(pod)
    kind, name = (owner.kind, owner.name) if owner is not None else ("Pod", pod.meta.name)
    return f"{find_family_kind(kind, name)} {pod.meta.namespace}/{cut_generated_name(name)}"


def find_family_kind(kind: str, name: str) -> str:
    """Return CronJob for a Job that a CronJob created, else *kind*."""
    return "CronJob" if kind == "Job" and _CRON_JOB_SUFFIX.search(name) else kind


def cut_generated_name(name: str) -> str:
    """Return *name* without generated parts at its end.

    >>> [cut_generated_name(name) for name in ("report-29401230", "import-x7k2p", "step-3-bq4wz", "users", "7")]
    ['report', 'import', 'step', 'users', '7']
    """
    while (cut := _GENERATED_SEGMENT.sub("", name)) not in (name, ""):
        name = cut
    return name


def list_running_pods(cluster: ClusterSnapshot) -> tuple[RunningPod, ...]:
    """Return the finite pods that run on nodes that stay, sorted by UID."""
    staying_nodes = _list_staying_nodes(cluster)
    return tuple(
        sorted(
            RunningPod(uid=pod.meta.uid, family=family, node=pod.node_name, started_at=pod.started_at)
            for pod in cluster.pods
            if pod.started_at is not None
            and pod.meta.uid
            and pod.node_name in staying_nodes
            and pod.is_active()
            and (family := find_finite_family(pod))
        )
    )


def find_ended_runs(
    running_pods: Iterable[RunningPod], seen_at: datetime, cluster: ClusterSnapshot
) -> tuple[EndedRun, ...]:
    """Return the runs of *running_pods*, as seen at *seen_at*, that ended before *cluster*.

    The end is in the middle between both snapshots. Pods whose node leaves or is not Ready did not end by themselves,
    and neither did pods that are being deleted.
    """
    uncertainty, staying_nodes = cluster.taken_at - seen_at, _list_staying_nodes(cluster)
    present_uids = {pod.meta.uid for pod in cluster.pods if not pod.is_terminal()}
    runs = (
        EndedRun(family=pod.family, run_time=seen_at + uncertainty / 2 - pod.started_at, last_seen_at=seen_at)
        for pod in running_pods
        if pod.uid not in present_uids and pod.node in staying_nodes
    )
    return tuple(
        run for run in runs if timedelta() < uncertainty <= max(MIN_END_ERROR, run.run_time * MAX_END_ERROR_RATIO)
    )


def update_run_times(
    records: Iterable[RunTimeRecord], runs: Iterable[EndedRun], counted_until: datetime | None, now: datetime
) -> tuple[RunTimeRecord, ...]:
    """Return *records* with *runs*, sorted by family; a run that ended before *counted_until* changes nothing.

    Such a run may have been counted already: each run is counted at most once, whichever containers observe it.
    """
    record_by_family = {record.family: record for record in records}
    for run in sorted(runs):
        if counted_until is None or run.last_seen_at >= counted_until:
            record_by_family[run.family] = _add_run(record_by_family.get(run.family), run)
    recent_records = (record for record in record_by_family.values() if now - record.last_seen_at <= FORGET_AFTER)
    ranked_records = sorted(recent_records, key=lambda record: (-record.last_seen_at.timestamp(), record.family))
    return tuple(sorted(ranked_records[:MAX_FAMILIES], key=lambda record: record.family))


def select_run_times(records: Iterable[RunTimeRecord], cluster: ClusterSnapshot) -> tuple[RunTimeRecord, ...]:
    """Return the records of the families that have pods in *cluster*: the others decide nothing."""
    families = {find_finite_family(pod) for pod in cluster.pods}
    return tuple(record for record in records if record.family in families)


def _add_run(record: RunTimeRecord | None, run: EndedRun) -> RunTimeRecord:
    counts = dict(record.run_counts) if record is not None else {}
    interval = find_interval(run.run_time)
    counts[interval] = counts.get(interval, 0) + 1
    if sum(counts.values()) > MAX_RUN_COUNT:
        counts = {number: (count + 1) // 2 for number, count in counts.items()}
    last_seen_at = run.last_seen_at if record is None else max(run.last_seen_at, record.last_seen_at)
    if record is None:
        return RunTimeRecord(family=run.family, run_counts=tuple(sorted(counts.items())), last_seen_at=last_seen_at)
    return replace(record, run_counts=tuple(sorted(counts.items())), last_seen_at=last_seen_at)


def _list_staying_nodes(cluster: ClusterSnapshot) -> frozenset[str]:
    return frozenset(
        node.name
        for node in cluster.nodes
        if node.is_ready()
        and node.meta.deleted_at is None
        and not any(taint.key == DISRUPTED_TAINT for taint in node.taints)
    )
