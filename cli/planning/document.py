"""A plan, and its JSON and YAML output."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cli.planning.spot_shares import build_share_documents
from shared.decide.scheduling.packing.node_costs import sum_extra_costs
from shared.model.cluster import ClusterSnapshot
from shared.model.core.requirements import list_requirement_entries
from shared.model.core.resources import format_quantities
from shared.model.core.taints import encode_taint
from shared.model.core.units import format_instant
from shared.model.decisions.placement import CheapestOffering, NewNodeClaim, Placement, SchedulingOptions, Unschedulable
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.spot_shares.node_pool_shares import measure_planned_shares


class PlanResult(msgspec.Struct, frozen=True, kw_only=True):
    """A placement with the data that describes it."""

    cluster_state: ClusterState
    placement: Placement
    options: SchedulingOptions
    """The options of the plan."""
    unreadable: tuple[Unschedulable, ...]
    """Pods that are pending, or may be, and could not be parsed."""
    decode_seconds: float
    solve_seconds: float
    notes: tuple[str, ...] = ()
    """Information about the input that needs no correction."""

    @property
    def cluster(self) -> ClusterSnapshot:
        """The snapshot that was planned for."""
        return self.cluster_state.snapshot

    @property
    def unschedulable_pods(self) -> tuple[Unschedulable, ...]:
        """All unschedulable pods, sorted."""
        return tuple(sorted((*self.placement.unschedulable, *self.unreadable), key=lambda failure: failure.pod))

    @property
    def pods_on_new_nodes(self) -> int:
        """Number of pods on new nodes."""
        return sum(len(node.pods) for node in self.placement.new_nodes)

    @property
    def pods_on_existing_nodes(self) -> int:
        """Number of pods on existing and in-flight nodes."""
        return sum(len(fit.pods) for fit in self.placement.existing)

    @property
    def other_costs_usd_per_hour(self) -> float:
        """The cost of the new nodes without their instances, in USD per hour."""
        return sum_extra_costs(self.placement, self.cluster, self.options)

    def index_pods_by_name(self) -> Mapping[str, Pod]:
        """Return the pods that could be parsed, by name."""
        return {pod.name: pod for pod in self.cluster.pods}


def build_plan_document(plan_result: PlanResult) -> dict[str, Any]:
    """Return the plan as a document with stable keys and order; prices in USD per hour."""
    cluster, placement, failures = plan_result.cluster, plan_result.placement, plan_result.unschedulable_pods
    taints = {pool.name: [encode_taint(taint) for taint in pool.taints] for pool in cluster.node_pools}
    scheduled_count = plan_result.pods_on_new_nodes + plan_result.pods_on_existing_nodes
    priced_at = cluster.catalog.priced_at if cluster.catalog is not None else None
    return {
        "newNodes": [build_new_node_document(node, taints[node.node_pool]) for node in placement.new_nodes],
        "existingNodes": [{"node": fit.node, "pods": list(fit.pods)} for fit in placement.existing],
        "unschedulable": [
            {"pod": failure.pod, "reason": failure.reason, "message": failure.message} for failure in failures
        ],
        "approximations": [
            {"pod": approximation.pod, "constraint": approximation.constraint}
            for approximation in placement.approximations
        ],
        "totals": {
            "pods": scheduled_count + len(failures),
            "scheduled": scheduled_count,
            "newNodes": len(placement.new_nodes),
            "usdPerHour": round(placement.price_usd_per_hour, 9),
            "price": round(placement.price_usd_per_hour, 9),
            "greedyUsdPerHour": round(placement.greedy_usd_per_hour, 9),
            "otherUsdPerHour": round(plan_result.other_costs_usd_per_hour, 9),
            "secondLaunches": placement.second_launches,
        }
        | (
            {"listUsdPerHour": round(placement.list_usd_per_hour, 9)}
            if any(node.cheapest.commitments for node in placement.new_nodes)
            else {}
        ),
        "pricedAt": format_instant(priced_at) if priced_at is not None else None,
        "pricesEstimated": list(cluster.catalog.list_estimated_capacity_types()) if cluster.catalog is not None else [],
        "problems": build_problem_documents(cluster),
        "notes": list(plan_result.notes),
        "seconds": {"decode": round(plan_result.decode_seconds, 3), "solve": round(plan_result.solve_seconds, 3)},
    } | _build_share_documents(plan_result)


def _build_share_documents(plan_result: PlanResult) -> dict[str, Any]:
    """Return the Spot shares of NodePools with the new nodes; empty without shares."""
    shares = measure_planned_shares(plan_result.cluster_state, plan_result.placement)
    return {"spotShares": build_share_documents(shares)} if shares else {}


def build_problem_documents(cluster: ClusterSnapshot) -> list[dict[str, str]]:
    """Return the objects that could not be parsed, as documents."""
    return [{"kind": problem.kind, "name": problem.name, "message": problem.message} for problem in cluster.problems]


def build_new_node_document(node: NewNodeClaim, taints: list[dict[str, str]]) -> dict[str, Any]:
    """Return a new node as a document."""
    return {
        "name": node.name,
        "nodePool": node.node_pool,
        "instanceTypes": list(node.instance_types),
        "requirements": list_requirement_entries(node.requirements),
        "taints": taints,
        "pods": list(node.pods),
        "daemonPods": node.daemon_pods,
        "requests": format_quantities(node.requests),
        "cheapest": build_choice_document(node.cheapest),
    }


def build_choice_document(choice: CheapestOffering) -> dict[str, Any]:
    """Return an offering as a document; the price in USD per hour."""
    reservation = {"reservationId": choice.reservation_id} if choice.reservation_id else {}
    surcharge = choice.interruption_usd_per_hour
    risk = {"interruptionUsdPerHour": round(surcharge, 9)} if surcharge else {}
    commitments = (
        {"commitments": list(choice.commitments), "listUsdPerHour": choice.list_usd_per_hour}
        if choice.commitments
        else {}
    )
    return (
        {
            "instanceType": choice.instance_type,
            "zone": choice.zone,
            "capacityType": choice.capacity_type,
            "usdPerHour": choice.price_usd_per_hour,
            "price": choice.price_usd_per_hour,
        }
        | reservation
        | risk
        | commitments
    )
