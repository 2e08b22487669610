"""What metrics say of a cycle."""

from collections.abc import Iterable

from shared.disruption.prices import PriceList
from shared.errors import Throttled
from shared.launch.outcome import REFUSED
from shared.lifecycle.garbage import NO_CLAIM
from shared.model.action import DeleteObject, Function, LaunchInstances, PublishEvent, TerminateInstances
from shared.model.cluster import Cluster
from shared.model.objects import Problem
from shared.model.state import StateNode
from shared.report.journal import Done
from shared.report.latency import of_launches, of_starts
from shared.scheduling.placement import Placement


def of_prices(cluster: Cluster) -> dict[str, float]:
    """Answer how old the catalogue and its prices are that decisions are made with; nothing where there are none."""
    known = cluster.catalogue
    if known is None:
        return {}
    ages = {"CatalogueAgeSeconds": known.made_at, "PriceAgeSeconds": known.priced_at}
    return {name: (cluster.taken_at - at).total_seconds() for name, at in ages.items() if at is not None}


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


def of_actions(done: Iterable[Done], problems: Iterable[Problem] = ()) -> dict[str, float]:
    """Answer how much was done, how much of it failed, and what a person should know of, of *problems* too."""
    every = tuple(done)
    failed = [one for one in every if one.result == "failed"]
    told = [*(one.message for one in failed), *(one.message for one in problems)]
    ended = (one.action for one in every if one.result == "done" and isinstance(one.action, TerminateInstances))
    return {
        "Actions": float(len(every)),
        "FailedActions": float(len(failed)),
        "LaunchFailures": float(max(sum(map(_is_launch, failed)), sum(map(_tells_refusal, every)))),
        "LeaksEnded": float(sum(len(one.instance_ids) for one in ended if one.why == NO_CLAIM)),
        "Throttles": float(sum(f"{Throttled.__name__}:" in text for text in told)),
    }


def _is_launch(one: Done) -> bool:
    return isinstance(one.action, LaunchInstances)


def _tells_refusal(one: Done) -> bool:
    """Whether a NodePool is told that EC2 refuses: the call for it went out, and was answered."""
    return isinstance(one.action, PublishEvent) and one.action.message.startswith(REFUSED)


def of_cluster(function: Function, trigger: str, cluster: Cluster | None, done: Iterable[Done]) -> dict[str, float]:
    """Answer what a cycle of *function* sees of a *cluster* besides its own business: how long pods waited, how old."""
    if cluster is None:
        return {}
    if function == "disrupt":
        return of_prices(cluster) | (of_starts(cluster) if trigger == "schedule" else {})
    every = tuple(done)
    interrupted = {"InterruptedNodes": float(sum(map(_ends, every)))} if function == "interrupt" else {}
    return interrupted | of_launches(cluster, every)


def _ends(one: Done) -> bool:
    return one.result == "done" and isinstance(one.action, DeleteObject) and one.action.kind == "NodeClaim"
