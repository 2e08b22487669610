"""Updates of the workload history: observations of one hour become one value of that hour of the week.

A workload that has no pods while other pods are observed has 0 replicas. Missing observations change nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from shared.decide.disruption.savings.run_time_history import cut_generated_name, find_family_kind, update_run_times
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODEPOOL
from shared.model.core.metadata import OwnerReference
from shared.model.core.resources import CPU, MEMORY
from shared.model.decisions.pod_run_time import EndedRun
from shared.model.decisions.workload_history import TENTHS_RATIO, ObservedWorkload, WorkloadHistory, WorkloadRecord
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_workload import find_deployment_name

UPDATE_PERIOD: Final = timedelta(minutes=10)
"""The history is written at most once in this period."""
MIN_WEIGHT_PERCENT: Final = 30
"""Weight of a new observation after the first weeks: older weeks lose half of their weight within two weeks."""
MAX_WEEKS: Final = 99


def compute_hour_of_week(instant: datetime) -> int:
    """Return 0 for Monday 00:00 UTC, 167 for Sunday 23:00 UTC."""
    return instant.weekday() * 24 + instant.hour


def observe_workloads(cluster: ClusterSnapshot) -> tuple[ObservedWorkload, ...]:
    """Return the workloads with active pods on nodes of NodePools or without a node, sorted by name."""
    pool_by_node = {node.meta.name: node.meta.get_label(NODEPOOL) for node in cluster.nodes}
    pods_by_name: dict[str, list[Pod]] = {}
    for pod in cluster.pods:
        name = find_workload_name(pod)
        if name and pod.is_active():
            pods_by_name.setdefault(name, []).append(pod)
    return tuple(_observe(name, pods, pool_by_node) for name, pods in sorted(pods_by_name.items()))


def find_workload_name(pod: Pod) -> str:
    """Return kind, namespace and name of the workload: ``Deployment shop/web``; "" for DaemonSets and bare pods.

    Jobs of one CronJob have one name, and so have Jobs whose names differ in a generated suffix.
    """
    owner = next((owner for owner in pod.meta.owners if owner.controller), None)
    if owner is None or owner.kind in ("DaemonSet", "Node"):
        return ""
    kind, name = _find_family(owner, pod)
    return f"{kind} {pod.meta.namespace}/{name}"


def update_history(
    history: WorkloadHistory,
    observed_workloads: Iterable[ObservedWorkload],
    now: datetime,
    ended_runs: Iterable[EndedRun] = (),
) -> WorkloadHistory:
    """Return *history* with an observation of all workloads at *now*; an earlier observation changes nothing.

    *ended_runs*: the runs of finite pods that ended since the last update.
    """
    if history.updated_at is not None and now <= history.updated_at:
        return history
    run_times = update_run_times(history.run_times, ended_runs, history.updated_at, now)
    if history.updated_at is not None and _truncate_to_hour(history.updated_at) != _truncate_to_hour(now):
        history = _close_hour(history, history.updated_at)
    record_by_name = {record.name: record for record in history.workloads}
    for workload in observed_workloads:
        record = record_by_name.get(workload.name) or WorkloadRecord(
            name=workload.name, pool=workload.pool, cpu_milli=0, memory_bytes=0
        )
        record_by_name[workload.name] = replace(
            record,
            pool=workload.pool or record.pool,
            cpu_milli=workload.cpu_milli // workload.replicas,
            memory_bytes=workload.memory_bytes // workload.replicas,
            current_total=record.current_total + workload.replicas,
        )
    return replace(
        history,
        workloads=tuple(record for _, record in sorted(record_by_name.items())),
        updated_at=now,
        observation_count=history.observation_count + 1,
        run_times=run_times,
    )


def _observe(name: str, pods: list[Pod], pool_by_node: Mapping[str, str]) -> ObservedWorkload:
    pool_counts = Counter(pool for pod in pods if (pool := pool_by_node.get(pod.node_name, "")))
    return ObservedWorkload(
        name=name,
        pool=min(pool_counts, key=lambda pool: (-pool_counts[pool], pool), default=""),
        replicas=len(pods),
        cpu_milli=sum(pod.spec.requests[CPU] for pod in pods),
        memory_bytes=sum(pod.spec.requests[MEMORY] for pod in pods),
    )


def _find_family(owner: OwnerReference, pod: Pod) -> tuple[str, str]:
    if deployment_name := find_deployment_name(owner, pod):
        return "Deployment", deployment_name
    if owner.kind == "Job":
        return find_family_kind(owner.kind, owner.name), cut_generated_name(owner.name)
    return owner.kind, owner.name


def _close_hour(history: WorkloadHistory, last_observed_at: datetime) -> WorkloadHistory:
    """Return *history* with the mean of the current hour added to its hour of the week; forgotten workloads go."""
    slot = compute_hour_of_week(last_observed_at)
    closed_records = (_close_record(record, slot, history.observation_count) for record in history.workloads)
    return replace(
        history, workloads=tuple(record for record in closed_records if any(record.means)), observation_count=0
    )


def _close_record(record: WorkloadRecord, slot: int, observation_count: int) -> WorkloadRecord:
    value = record.current_total * TENTHS_RATIO // max(observation_count, 1)
    weeks, mean, error = record.weeks[slot], record.means[slot], record.errors[slot]
    weight_percent = max(100 // (weeks + 1), MIN_WEIGHT_PERCENT)
    deviation = abs(value - mean) if weeks else 0
    return replace(
        record,
        means=_set_item(record.means, slot, _move(mean, value, weight_percent)),
        errors=_set_item(record.errors, slot, _move(error, deviation, weight_percent)),
        weeks=_set_item(record.weeks, slot, min(weeks + 1, MAX_WEEKS)),
        current_total=0,
    )


def _move(old: int, new: int, weight_percent: int) -> int:
    """Return *old* moved towards *new* by *weight_percent*, by at least 1 if they differ."""
    distance = abs(new - old)
    step = min(distance, max(1, (distance * weight_percent + 50) // 100))
    return old + step if new > old else old - step


def _set_item(items: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*items[:place], value, *items[place + 1 :])


def _truncate_to_hour(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)
