"""A plan as a document that other programs check."""

from collections.abc import Mapping
from typing import Any

import msgspec

from shared.model.cluster import Cluster
from shared.model.pods import Pod
from shared.model.requirements import written
from shared.model.resources import quantities_from
from shared.model.taints import taint_object
from shared.model.units import instant_text
from shared.scheduling.costs import besides
from shared.scheduling.placement import Choice, NewNode, Options, Placement, Unschedulable


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A placement, and what is needed to tell of it."""

    cluster: Cluster
    placement: Placement
    options: Options
    """How it was decided."""
    unreadable: tuple[Unschedulable, ...]
    """Pods that wait, or may wait, and could not be read."""
    decode_seconds: float
    solve_seconds: float
    notes: tuple[str, ...] = ()
    """What a reader should know of the input, and need not correct."""

    @property
    def left_out(self) -> tuple[Unschedulable, ...]:
        """Pods without a place, sorted."""
        return tuple(sorted((*self.placement.unschedulable, *self.unreadable), key=lambda one: one.pod))

    @property
    def on_new(self) -> int:
        """How many pods are on new nodes."""
        return sum(len(node.pods) for node in self.placement.new_nodes)

    @property
    def on_existing(self) -> int:
        """How many pods are on nodes that are there or on their way."""
        return sum(len(fit.pods) for fit in self.placement.existing)

    @property
    def besides(self) -> float:
        """What the new nodes cost besides their instances, in USD per hour."""
        return besides(self.placement, self.cluster, self.options)

    def pods(self) -> Mapping[str, Pod]:
        """Answer the pods that could be read, by name."""
        return {pod.name: pod for pod in self.cluster.pods}


def document(planned: Planned) -> dict[str, Any]:
    """Answer the plan as it is written down: stable keys and order; USD per hour."""
    cluster, placement, left_out = planned.cluster, planned.placement, planned.left_out
    taints = {pool.name: [taint_object(one) for one in pool.taints] for pool in cluster.node_pools}
    scheduled = planned.on_new + planned.on_existing
    priced_at = cluster.catalogue.priced_at if cluster.catalogue is not None else None
    return {
        "newNodes": [new_node_document(node, taints[node.node_pool]) for node in placement.new_nodes],
        "existingNodes": [{"node": fit.node, "pods": list(fit.pods)} for fit in placement.existing],
        "unschedulable": [{"pod": one.pod, "reason": one.reason, "message": one.message} for one in left_out],
        "approximations": [{"pod": one.pod, "constraint": one.constraint} for one in placement.approximations],
        "totals": {
            "pods": scheduled + len(left_out),
            "scheduled": scheduled,
            "newNodes": len(placement.new_nodes),
            "price": round(placement.price_usd_per_hour, 9),
            "greedyPrice": round(placement.greedy_usd_per_hour, 9),
            "otherCosts": round(planned.besides, 9),
            "secondLaunches": placement.second_launches,
        },
        "pricedAt": instant_text(priced_at) if priced_at is not None else None,
        "pricesEstimated": list(cluster.catalogue.estimated()) if cluster.catalogue is not None else [],
        "problems": [{"kind": one.kind, "name": one.name, "message": one.message} for one in cluster.problems],
        "notes": list(planned.notes),
        "seconds": {"decode": round(planned.decode_seconds, 3), "solve": round(planned.solve_seconds, 3)},
    }


def new_node_document(node: NewNode, taints: list[dict[str, str]]) -> dict[str, Any]:
    """Answer a node that is to be made as it is written down."""
    return {
        "name": node.name,
        "nodePool": node.node_pool,
        "instanceTypes": list(node.instance_types),
        "requirements": written(node.requirements),
        "taints": taints,
        "pods": list(node.pods),
        "daemonPods": node.daemon_pods,
        "requests": quantities_from(node.requests),
        "cheapest": choice_document(node.cheapest),
    }


def choice_document(choice: Choice) -> dict[str, Any]:
    """Answer an offering as it is written down; USD per hour."""
    reserved = {"reservationId": choice.reservation_id} if choice.reservation_id else {}
    return {
        "instanceType": choice.instance_type,
        "zone": choice.zone,
        "capacityType": choice.capacity_type,
        "price": choice.price_usd_per_hour,
    } | reserved
