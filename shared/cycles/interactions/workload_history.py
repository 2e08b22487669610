"""The workload history of `disrupt`: read, updated from its snapshot, and turned into forecasts."""

from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.decide.disruption.savings.run_time_history import find_ended_runs, list_running_pods, select_run_times
from shared.decide.disruption.savings.workload_forecast import estimate_demand
from shared.decide.disruption.savings.workload_history import UPDATE_PERIOD, observe_workloads, update_history
from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.pod_run_time import EndedRun, RunningPod, RunTimeRecord
from shared.model.decisions.workload_history import DemandForecast, WorkloadHistory
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.store.workload_history import (
    ROW_KIND,
    ROW_NAME,
    describe_dropped_workloads,
    read_workload_history,
    write_workload_history,
)

_MEMORY_KEY: Final = "finite-pods"
_MAX_ENDED_RUNS: Final = 5000
"""Ended runs that are remembered until they are written; later ones are not counted."""


class _ObservedPods(msgspec.Struct, frozen=True, kw_only=True):
    """What a container remembers of finite pods between two runs; if it is lost, their runs are not counted."""

    seen_at: datetime
    running_pods: tuple[RunningPod, ...]
    ended_runs: tuple[EndedRun, ...]
    """The runs that ended since the last update of the history."""


def update_forecasts(
    world: World, cluster: ClusterSnapshot, fence: FencingToken, problems: list[Problem]
) -> tuple[tuple[DemandForecast, ...], tuple[RunTimeRecord, ...]]:
    """Return the demand forecasts and the run times for *cluster*; add *cluster* to the history when it is due.

    Both are empty if the setting is off. If the table does not respond, there is neither, and savings are expected to
    last as without a history.
    """
    if world.settings.workload_history != "on":
        return (), ()
    can_write = world.settings.mode != "plan" and _is_complete(cluster)
    ended_runs = _observe_ended_runs(world, cluster) if can_write else ()
    try:
        history, version = read_workload_history(world, problems)
        observed_workloads = observe_workloads(cluster)
        if can_write and _is_due(history, cluster):
            history = update_history(history, observed_workloads, cluster.taken_at, ended_runs)
            write_workload_history(history, version, world, fence)
            _forget_ended_runs(world)
    except Fault as fault:
        problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=f"{type(fault).__name__}: {fault}"))
        return (), ()
    problems += describe_dropped_workloads(history)
    forecasts = estimate_demand(history, observed_workloads, cluster.taken_at)
    return forecasts, select_run_times(history.run_times, cluster)


def _is_complete(cluster: ClusterSnapshot) -> bool:
    """Return whether every pod could be read: none of them counts as gone."""
    return not any(problem.kind == "Pod" for problem in cluster.problems)


def _is_due(history: WorkloadHistory, cluster: ClusterSnapshot) -> bool:
    return history.updated_at is None or cluster.taken_at - history.updated_at >= UPDATE_PERIOD


def _observe_ended_runs(world: World, cluster: ClusterSnapshot) -> tuple[EndedRun, ...]:
    """Return the runs that this container has seen end since the last update; remember the pods that run now."""
    if world.memory is None:
        return ()
    remembered = world.memory.get(_MEMORY_KEY)
    ended_runs: tuple[EndedRun, ...] = ()
    if isinstance(remembered, _ObservedPods):
        new_runs = find_ended_runs(remembered.running_pods, remembered.seen_at, cluster)
        ended_runs = (*remembered.ended_runs, *new_runs)[:_MAX_ENDED_RUNS]
    world.memory[_MEMORY_KEY] = _ObservedPods(
        seen_at=cluster.taken_at, running_pods=list_running_pods(cluster), ended_runs=ended_runs
    )
    return ended_runs


def _forget_ended_runs(world: World) -> None:
    """Forget the runs of which the history knows, or which another container may have written."""
    remembered = world.memory.get(_MEMORY_KEY) if world.memory is not None else None
    if world.memory is not None and isinstance(remembered, _ObservedPods):
        world.memory[_MEMORY_KEY] = replace(remembered, ended_runs=())
