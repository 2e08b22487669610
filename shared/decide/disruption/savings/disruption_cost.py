"""What a disruption costs: the evictions of its pods, and new nodes that run beside the old ones.

A normal eviction costs the eviction price: the annotation joiner.dev/eviction-price-usd of the pod's NodePool, or the
setting of the deployment. The eviction cost of a pod (its deletion cost and its priority) multiplies the price. Pods
that need no other node, for example those of DaemonSets, cost nothing, and neither do pods with an eviction cost
below 0. A pod that runs to completion, for example that of a Job, starts again from the beginning: if evictions have a
price, its share of the node's price since its start is lost. A surge drain restarts all pods of a Deployment: each of
them costs as much as an eviction, also on nodes that stay.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.decide.disruption.candidates import Candidate
from shared.model.core.formatting import format_count, format_elapsed, format_usd
from shared.model.core.resources import CPU, MEMORY
from shared.model.kubernetes.eviction_cost import compute_eviction_cost
from shared.state.surge_drain import DeploymentRestart

NODE_OVERLAP_PERIOD: Final = timedelta(minutes=3)
"""How long both nodes are paid for: the instance boots, and pods move one after the other."""
_ONE_HOUR: Final = timedelta(hours=1)
_MIN_USD_IN_CENTS: Final = 0.01


class DisruptionPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of evictions and launches in a deployment."""

    eviction_usd: float = 0.0
    """Of a normal pod, in NodePools without the annotation."""
    overlap: timedelta = timedelta()
    """How long new nodes run beside the nodes that they replace."""


class DisruptionCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a disruption costs, once."""

    evictions: int = 0
    """Number of evicted pods."""
    evictions_usd: float = 0.0
    lost_work_usd: float = 0.0
    """What the evicted pods that run to completion have cost since their start."""
    overlap: timedelta = timedelta()
    """How long both the old and the new nodes run; 0: there are no new nodes."""
    launches_usd: float = 0.0
    """The price of the new nodes during *overlap*."""

    @property
    def usd(self) -> float:
        """The sum in USD."""
        return self.evictions_usd + self.lost_work_usd + self.launches_usd

    def format(self) -> str:
        """Return the sum in words, "" if nothing has a price.

        >>> DisruptionCost(evictions=6, evictions_usd=0.12, overlap=NODE_OVERLAP_PERIOD, launches_usd=0.01).format()
        '6 evictions = $0.12 and 3m of both nodes = $0.01'
        """
        parts = []
        if self.evictions_usd > 0:
            parts.append(f"{format_count(self.evictions, 'eviction')} = {format_amount(self.evictions_usd)}")
        if self.lost_work_usd > 0:
            parts.append(f"work of Jobs that starts again = {format_amount(self.lost_work_usd)}")
        if self.launches_usd > 0:
            parts.append(f"{format_elapsed(self.overlap)} of both nodes = {format_amount(self.launches_usd)}")
        return " and ".join(parts)


class EvictionCosts:
    """The cost of evicting the pods of each candidate, computed once: a run evaluates each candidate many times."""

    def __init__(self, prices: DisruptionPrices, now: datetime) -> None:
        """Start without candidates."""
        self.prices, self._now = prices, now
        self._cost_by_node: dict[str, DisruptionCost] = {}

    def compute(self, candidate: Candidate) -> DisruptionCost:
        """Return the cost of all evictions from *candidate*; candidates of the same name must be equal."""
        cost = self._cost_by_node.get(candidate.name)
        if cost is None:
            cost = self._cost_by_node[candidate.name] = _compute_eviction_cost(candidate, self.prices, self._now)
        return cost


def _compute_eviction_cost(candidate: Candidate, prices: DisruptionPrices, now: datetime) -> DisruptionCost:
    pod_costs = [max(compute_eviction_cost(pod), 0.0) for pod in candidate.reschedulable_pods]
    evictions_usd = get_eviction_price(candidate, prices) * sum(pod_costs)
    return DisruptionCost(
        evictions=len(pod_costs),
        evictions_usd=evictions_usd,
        lost_work_usd=_compute_lost_work(candidate, now) if evictions_usd > 0 else 0.0,
    )


def _compute_lost_work(candidate: Candidate, now: datetime) -> float:
    """Return what the finite pods of *candidate* have cost since their start, by their share of its CPU or memory."""
    pods = [pod for pod in candidate.reschedulable_pods if pod.is_finite() and pod.started_at is not None]
    if not pods:
        return 0.0
    allocatable = candidate.state.compute_allocatable()
    return sum(
        candidate.price_usd_per_hour
        * max(_compute_share(pod.spec.requests[name], allocatable[name]) for name in (CPU, MEMORY))
        * (max(now - pod.started_at, timedelta()) / _ONE_HOUR)
        for pod in pods
        if pod.started_at is not None
    )


def _compute_share(requested: int, allocatable: int) -> float:
    return requested / allocatable if allocatable else 0.0


def compute_disruption_cost(
    targets: Iterable[Candidate], eviction_costs: EvictionCosts, new_nodes_usd_per_hour: float
) -> DisruptionCost:
    """Return what it costs to disrupt *targets*; *new_nodes_usd_per_hour*: the price of their replacements."""
    all_targets = tuple(targets)
    prices, target_costs = eviction_costs.prices, [eviction_costs.compute(target) for target in all_targets]
    restart_count, restarts_usd = _sum_restarts_elsewhere(all_targets, prices)
    launches_usd = max(new_nodes_usd_per_hour, 0.0) * (prices.overlap / _ONE_HOUR)
    return DisruptionCost(
        evictions=sum(cost.evictions for cost in target_costs) + restart_count,
        evictions_usd=sum(cost.evictions_usd for cost in target_costs) + restarts_usd,
        lost_work_usd=sum(cost.lost_work_usd for cost in target_costs),
        overlap=prices.overlap if launches_usd > 0 else timedelta(),
        launches_usd=launches_usd,
    )


def _sum_restarts_elsewhere(targets: Iterable[Candidate], prices: DisruptionPrices) -> tuple[int, float]:
    """Return number and price in USD of the pods that rollouts replace on nodes other than *targets*.

    A Deployment is restarted once, also if several targets have its pods. Its other pods are priced like the first pod
    that the rollout moves.
    """
    targets_by_deployment: dict[str, list[tuple[Candidate, DeploymentRestart]]] = {}
    for target in targets:
        for restart in target.restarts:
            targets_by_deployment.setdefault(restart.deployment, []).append((target, restart))
    count, price_usd = 0, 0.0
    for restarts in targets_by_deployment.values():
        first_target, first_restart = restarts[0]
        other_count = max(first_restart.replicas - sum(len(restart.pods) for _, restart in restarts), 0)
        count += other_count
        pod_cost = max(compute_eviction_cost(first_restart.pods[0]), 0.0)
        price_usd += get_eviction_price(first_target, prices) * pod_cost * other_count
    return count, price_usd


def get_eviction_price(candidate: Candidate, prices: DisruptionPrices) -> float:
    """Return the price of evicting a normal pod from *candidate*, in USD."""
    annotated_price = parse_disruption_annotations(candidate.pool).eviction_price_usd
    return prices.eviction_usd if annotated_price is None else annotated_price


def format_amount(amount_usd: float) -> str:
    """Format an amount of money in cents, or with four decimals below one cent.

    >>> format_amount(0.42), format_amount(0.0051)
    ('$0.42', '$0.0051')
    """
    return format_usd(amount_usd, 2 if amount_usd >= _MIN_USD_IN_CENTS else 4)
