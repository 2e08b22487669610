"""The workload history of `disrupt`: read, updated from its snapshot, and turned into forecasts."""

from shared.decide.disruption.savings.workload_forecast import estimate_demand
from shared.decide.disruption.savings.workload_history import UPDATE_PERIOD, observe_workloads, update_history
from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
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


def update_forecasts(
    world: World, cluster: ClusterSnapshot, fence: FencingToken, problems: list[Problem]
) -> tuple[DemandForecast, ...]:
    """Return the demand forecasts for *cluster*, () if the setting is off; add *cluster* to the history when it is due.

    If the table does not respond, there is no forecast, and savings are expected to last as without a history.
    """
    if world.settings.workload_history != "on":
        return ()
    try:
        history, version = read_workload_history(world, problems)
        observed_workloads = observe_workloads(cluster)
        if world.settings.mode != "plan" and _is_due(history, cluster):
            history = update_history(history, observed_workloads, cluster.taken_at)
            write_workload_history(history, version, world, fence)
    except Fault as fault:
        problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=f"{type(fault).__name__}: {fault}"))
        return ()
    problems += describe_dropped_workloads(history)
    return estimate_demand(history, observed_workloads, cluster.taken_at)


def _is_due(history: WorkloadHistory, cluster: ClusterSnapshot) -> bool:
    """Return whether the last update is old enough, and every pod could be read: none of them counts as gone."""
    is_complete = not any(problem.kind == "Pod" for problem in cluster.problems)
    return is_complete and (history.updated_at is None or cluster.taken_at - history.updated_at >= UPDATE_PERIOD)
