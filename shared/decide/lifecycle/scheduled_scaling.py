"""Workloads that schedules scale: to the replicas of a window, and back when no window lists them any more.

What a workload had before is an annotation on the workload, which is written before the workload is scaled and removed
after it is scaled back. A run that was killed in between is completed by the next one; a run that has nothing to do
changes nothing. A change of the replicas in a window, by a user or another controller, is respected until no window
lists the workload.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.core.labels import SCHEDULED_SCALE
from shared.model.decisions.action import SCALING_SUFFIX, Action, ScaleWorkload
from shared.model.karpenter.schedule import ScaledWorkload
from shared.model.kubernetes.workloads import Workload

SCALED_REASON: Final = "ScaledBySchedule"
_MEMORY_PATTERN: Final = re.compile(
    rf"from=(?P<usual>[0-9]+) to=(?P<replicas>[0-9]+) by=(?P<pool>\S+)(?P<scaling>{SCALING_SUFFIX})?"
)


class ScaleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the annotation of a scaled workload remembers."""

    usual: int
    """The replicas before the schedule scaled it."""
    replicas: int
    """The replicas that the schedule gives it."""
    pool: str
    """The NodePool with the schedule."""
    is_scaling: bool = False
    """Whether the run that scales the workload has not completed; if it was killed, the next one repeats it."""

    def __str__(self) -> str:
        """Return the annotation."""
        return f"from={self.usual} to={self.replicas} by={self.pool}{SCALING_SUFFIX if self.is_scaling else ''}"


def parse_scale_memory(text: str) -> ScaleMemory | None:
    """Return what the annotation *text* remembers; None if it cannot be parsed."""
    match = _MEMORY_PATTERN.fullmatch(text)
    if match is None:
        return None
    usual, replicas = int(match["usual"]), int(match["replicas"])
    return ScaleMemory(usual=usual, replicas=replicas, pool=match["pool"], is_scaling=bool(match["scaling"]))


def decide_scheduled_scaling(cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Return the actions that scale the workloads of schedules at the time of *cluster*, each with an event."""
    targets = _find_targets(cluster)
    return tuple(
        action
        for workload in (*cluster.deployments, *cluster.stateful_sets)
        if workload.meta.deleted_at is None
        for action in _decide_workload(
            workload, targets.get((workload.kind, workload.meta.namespace, workload.meta.name)), cluster
        )
    )


def _find_targets(cluster: ClusterSnapshot) -> dict[tuple[str, str, str], tuple[ScaledWorkload, str]]:
    """Return the scaled workloads with their NodePools; if several NodePools list one, the fewest replicas win."""
    targets: dict[tuple[str, str, str], tuple[ScaledWorkload, str]] = {}
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name):
        values = pool.schedule.compute_values(cluster.taken_at) if pool.schedule is not None else None
        for workload in values.workloads if values is not None and pool.meta.deleted_at is None else ():
            if workload.key not in targets or workload.replicas < targets[workload.key][0].replicas:
                targets[workload.key] = workload, pool.name
    return targets


def _decide_workload(
    workload: Workload, target: tuple[ScaledWorkload, str] | None, cluster: ClusterSnapshot
) -> Iterator[Action]:
    text = workload.meta.get_annotation(SCHEDULED_SCALE)
    memory = parse_scale_memory(text)
    if text and memory is None:
        return
    if target is None:
        if memory is not None and not _is_schedule_unknown(memory.pool, cluster):
            yield from _scale_back(workload, memory, cluster)
        return
    scaled, pool = target
    if (
        memory is not None
        and not memory.is_scaling
        and (workload.replicas != memory.replicas or memory.replicas == scaled.replicas)
    ):
        return  # a user has changed the replicas, or they are already right
    usual = workload.replicas if memory is None else memory.usual
    new_memory = ScaleMemory(usual=usual, replicas=scaled.replicas, pool=pool)
    message = f"scaled from {workload.replicas} to {format_count(scaled.replicas, 'replica')} by the schedule of {pool}"
    yield _build_scale(workload, scaled.replicas, str(new_memory), message)
    yield build_event(workload.kind, workload.meta, SCALED_REASON, message, cluster.taken_at)


def _scale_back(workload: Workload, memory: ScaleMemory, cluster: ClusterSnapshot) -> Iterator[Action]:
    if workload.replicas != memory.replicas:
        message = f"the schedule of {memory.pool} is over; its {format_count(workload.replicas, 'replica')} stay"
        yield _build_scale(workload, None, None, message)
        return
    message = f"scaled back to {format_count(memory.usual, 'replica')}: the schedule of {memory.pool} is over"
    yield _build_scale(workload, memory.usual, None, message)
    yield build_event(workload.kind, workload.meta, SCALED_REASON, message, cluster.taken_at)


def _is_schedule_unknown(pool: str, cluster: ClusterSnapshot) -> bool:
    """Return whether NodePool *pool* may have a schedule that cannot be read."""
    if cluster.is_unserved("nodepools.karpenter.sh"):
        return True
    return any(problem.kind == "NodePool" and problem.name == pool for problem in cluster.problems)


def _build_scale(workload: Workload, replicas: int | None, memory: str | None, message: str) -> ScaleWorkload:
    return ScaleWorkload(
        kind=workload.kind,
        namespace=workload.meta.namespace,
        name=workload.meta.name,
        resource_version=workload.meta.resource_version,
        replicas=replicas,
        memory=memory,
        message=message,
    )
