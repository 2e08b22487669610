"""The status of a fleet: nodes by NodePool, pending pods, and problems."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from types import MappingProxyType
from typing import Final

import msgspec

from cli.planning.spot_shares import UsedShares
from shared.decide.gangs.waiting_gangs import WaitingGang, list_waiting_gangs
from shared.decide.launch.money.limit_prices import LimitUsage, measure_limit_usage
from shared.decide.node_class.canary_status import CanarySummary, list_canaries
from shared.model.core.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT
from shared.model.core.metadata import Condition, find_condition, is_condition_true
from shared.model.core.resources import USD_PER_HOUR, Resources, sum_resources
from shared.model.decisions.placement import Placement
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, NO_CLUSTER_LIMIT, MoneyPolicy
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.state.pauses import ActivePause, list_active_pauses
from shared.state.schedule_status import ScheduleStatus, list_schedule_statuses
from shared.state.spot_shares.node_pool_shares import measure_planned_shares
from shared.state.state_node import StateNode

NODE_CLAIM_CONDITIONS: Final = ("Launched", "Registered", "Initialized")
"""Conditions of a NodeClaim in the order in which they become True."""


class FleetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of all nodes and pods of a cluster."""

    at: datetime
    pools: tuple["PoolStatus", ...]
    """Sorted by name; includes deleted NodePools that still have nodes."""
    unmanaged_nodes: int
    """Number of nodes without a NodePool."""
    running_pods: int
    """Number of pods on nodes, without completed pods."""
    pending_pods: tuple[tuple[str, str], ...]
    """Pods without a node, each with kube-scheduler's message; sorted."""
    problems: tuple["FleetProblem", ...]
    pauses: tuple[ActivePause, ...]
    """Active pauses set by people."""
    schedules: tuple[ScheduleStatus, ...] = ()
    canaries: tuple[CanarySummary, ...] = ()
    gangs: tuple[WaitingGang, ...] = ()
    """Gangs that wait for nodes."""
    usd_per_hour: float | None
    """None if there are no prices."""
    spot_shares: UsedShares = MappingProxyType({})
    cluster_limit: LimitUsage | None = None
    """The limit of the cluster in USD per hour."""


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a NodePool."""

    name: str
    ready: int = 0
    in_flight: int = 0
    deleting: int = 0
    by_capacity: tuple[tuple[str, int], ...] = ()
    requested: Resources
    allocatable: Resources
    usd_per_hour: float
    limits: tuple[tuple[str, int, int], ...] = ()
    """Resource, used amount, limit."""
    is_ready: bool = True
    """Whether the NodePool is Ready."""


class FleetProblem(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A problem that needs attention."""

    kind: str
    name: str
    summary: str
    reason: str


def build_fleet_status(cluster_state: ClusterState, money: MoneyPolicy = NO_CLUSTER_LIMIT) -> FleetStatus:
    """Return the status of the cluster; *money* has its limit in USD per hour."""
    cluster = cluster_state.snapshot
    usage_by_scope = {usage.scope: usage for usage in measure_limit_usage(cluster_state, money)}
    nodes_by_pool: dict[str, list[StateNode]] = defaultdict(list)
    for state_node in cluster_state.nodes:
        nodes_by_pool[state_node.pool if state_node.pool or state_node.claim is None else "-"].append(state_node)
    unmanaged_nodes = nodes_by_pool.pop("", [])
    names = sorted({*nodes_by_pool, *(pool.name for pool in cluster.node_pools)})
    pools = tuple(
        _build_pool_status(name, nodes_by_pool[name], cluster_state, usage_by_scope.get(name)) for name in names
    )
    has_prices = cluster.catalog is not None
    return FleetStatus(
        at=cluster.taken_at,
        pools=pools,
        unmanaged_nodes=len(unmanaged_nodes),
        running_pods=sum(bool(pod.node_name) and not pod.is_terminal() for pod in cluster.pods),
        pending_pods=tuple(
            sorted((pod.name, _get_scheduling_message(pod)) for pod in cluster.pods if is_provisionable(pod))
        ),
        problems=tuple(sorted(_find_problems(cluster_state))),
        pauses=list_active_pauses(cluster)[0],
        schedules=list_schedule_statuses(cluster),
        canaries=list_canaries(cluster),
        gangs=list_waiting_gangs(cluster_state),
        usd_per_hour=sum(pool_status.usd_per_hour for pool_status in pools) if has_prices else None,
        spot_shares=measure_planned_shares(cluster_state, Placement()),
        cluster_limit=usage_by_scope.get(CLUSTER_SCOPE),
    )


def _build_pool_status(
    name: str, states: list[StateNode], cluster_state: ClusterState, money: LimitUsage | None
) -> PoolStatus:
    prices = cluster_state.price_list
    pool = next((node_pool for node_pool in cluster_state.snapshot.node_pools if node_pool.name == name), None)
    deleting = [state_node for state_node in states if state_node.is_marked_for_deletion()]
    remaining = [state_node for state_node in states if not state_node.is_marked_for_deletion()]
    ready = [state_node for state_node in remaining if state_node.is_initialized() and _is_ready(state_node)]
    count_by_capacity_type = {
        kind: sum(state_node.meta.get_label(CAPACITY_TYPE) == kind for state_node in remaining)
        for kind in (ON_DEMAND, RESERVED, SPOT)
    }
    capacity = sum_resources(state_node.compute_capacity() for state_node in states)
    limits = pool.limits.amounts if pool is not None and pool.limits is not None else ()
    return PoolStatus(
        name=name,
        ready=len(ready),
        in_flight=len(remaining) - len(ready),
        deleting=len(deleting),
        by_capacity=tuple((kind, number) for kind, number in count_by_capacity_type.items() if number),
        requested=sum_resources(state_node.sum_pod_requests() for state_node in remaining),
        allocatable=sum_resources(state_node.compute_allocatable() for state_node in remaining),
        usd_per_hour=sum(prices.get_price(state_node.meta, _get_node_class_name(state_node)) for state_node in states),
        limits=(
            *((key, len(states) if key == "nodes" else capacity[key], limit) for key, limit in sorted(limits)),
            *([] if money is None else [(USD_PER_HOUR, money.used, money.limit)]),
        ),
        is_ready=pool is not None and is_condition_true(pool.conditions, "Ready"),
    )


def _get_node_class_name(state: StateNode) -> str:
    return state.claim.node_class.name if state.claim is not None else ""


def _is_ready(state: StateNode) -> bool:
    return state.node is not None and is_condition_true(state.node.conditions, "Ready")


def _get_scheduling_message(pod: Pod) -> str:
    scheduled_condition = find_condition(pod.conditions, "PodScheduled")
    return scheduled_condition.message if scheduled_condition is not None else ""


def _find_problems(cluster_state: ClusterState) -> Iterator[FleetProblem]:
    cluster = cluster_state.snapshot
    for pool in cluster.node_pools:
        yield from _find_false_conditions("NodePool", pool.name, pool.conditions)
    for node_class in cluster.node_classes:
        yield from _find_false_conditions("EC2NodeClass", node_class.meta.name, node_class.conditions)
    for claim in cluster.node_claims:
        if claim.is_deleting():
            continue
        for type_ in NODE_CLAIM_CONDITIONS:
            condition = find_condition(claim.conditions, type_)
            if condition is not None and condition.status != "True" and condition.message:
                reason = _describe_condition(condition)
                yield FleetProblem(kind="NodeClaim", name=claim.name, summary=f"not {type_}", reason=reason)
                break
    for state in cluster_state.nodes:
        is_remaining = state.is_initialized() and not state.is_marked_for_deletion()
        if state.node is not None and is_remaining and not _is_ready(state):
            condition = find_condition(state.node.conditions, "Ready")
            reason = _describe_condition(condition) if condition else ""
            yield FleetProblem(kind="Node", name=state.name, summary="not Ready", reason=reason)


def _find_false_conditions(kind: str, name: str, conditions: Iterable[Condition]) -> Iterator[FleetProblem]:
    """Yield a problem for each condition that is False, but for Ready only if it is the only one."""
    false_conditions = [condition for condition in conditions if condition.status == "False"]
    for condition in false_conditions:
        if condition.type != "Ready" or len(false_conditions) == 1:
            reason = _describe_condition(condition)
            yield FleetProblem(kind=kind, name=name, summary=f"{condition.type} is False", reason=reason)


def _describe_condition(status_condition: Condition) -> str:
    return ": ".join(dict.fromkeys(word for word in (status_condition.reason, status_condition.message) if word))
