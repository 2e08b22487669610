"""What metrics say of a cycle."""

from collections.abc import Iterable

from shared.disruption.prices import PriceList
from shared.errors import Throttled
from shared.lifecycle.garbage import NO_CLAIM
from shared.model.action import LaunchInstances, TerminateInstances
from shared.model.cluster import Cluster
from shared.model.state import StateNode
from shared.report.journal import Done
from shared.scheduling.placement import Placement


def of_prices(cluster: Cluster) -> dict[str, float]:
    """Answer how old the prices are that decisions are made with; nothing where there are none."""
    priced_at = cluster.catalogue.priced_at if cluster.catalogue is not None else None
    return {} if priced_at is None else {"PriceAgeSeconds": (cluster.taken_at - priced_at).total_seconds()}


def of_placement(placement: Placement, headroom: frozenset[str] = frozenset()) -> dict[str, float]:
    """Answer how many pods wait, how many nodes come for them, and how many of them can have none."""
    placed = [node.pods for node in placement.new_nodes] + [fit.pods for fit in placement.existing]
    planned = sum(name not in headroom for pods in placed for name in pods)
    return {
        "PendingPods": float(planned + len(placement.unschedulable)),
        "PlannedNodes": float(len(placement.new_nodes)),
        "UnschedulablePods": float(sum(one.reason != "NotReached" for one in placement.unschedulable)),
    }


def of_fleet(cluster: Cluster, states: Iterable[StateNode]) -> dict[str, float]:
    """Answer how many machines are ours, and what they cost per hour; one without a known price counts nothing."""
    prices = PriceList(cluster.catalogue)
    costs = [prices.price(one.meta, one.claim.node_class.name) for one in states if one.claim is not None]
    return {"ManagedNodes": float(len(costs)), "FleetUsdPerHour": sum(costs)}


def of_actions(done: Iterable[Done]) -> dict[str, float]:
    """Answer how much was done, how much of it failed, and what a person should know of."""
    every = tuple(done)
    failed = [one for one in every if one.result == "failed"]
    ended = (one.action for one in every if one.result == "done" and isinstance(one.action, TerminateInstances))
    return {
        "Actions": float(len(every)),
        "FailedActions": float(len(failed)),
        "LaunchFailures": float(sum(isinstance(one.action, LaunchInstances) for one in failed)),
        "LeaksEnded": float(sum(len(one.instance_ids) for one in ended if one.why == NO_CLAIM)),
        "Throttles": float(sum(one.message.startswith(Throttled.__name__) for one in failed)),
    }
