"""Plans: what a plan is, the state from which all plans start, and how first-fit completes them."""

from collections.abc import Callable, Mapping
from math import inf

import msgspec
from msgspec.structs import replace

from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.launchable_templates import drop_stages_before, find_launchable_stage
from shared.decide.scheduling.packing.node_costs import list_extra_costs
from shared.decide.scheduling.packing.reservation_manager import build_reservation_manager
from shared.decide.scheduling.packing.reserved_capacity import fill_reserved_capacity, has_reserved_offerings
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.model.core.resources import CPU


class Plan(msgspec.Struct, kw_only=True, eq=False):
    """A completed packing, and the pods, by class, that it could not place."""

    packing: FirstFitPacking
    unplaced_classes: list[PodEquivalenceClass]
    cached_cost: float | None = None
    """Cost of the plan, None until it was computed."""

    @property
    def unplaced_count(self) -> int:
        """Number of pods that are not placed."""
        return sum(len(pod_class.pods) for pod_class in self.unplaced_classes)

    def count_unplaced(self, min_priority: int) -> int:
        """Return the number of pods of *min_priority* or more that are not placed."""
        return sum(len(pod_class.pods) for pod_class in self.unplaced_classes if pod_class.priority >= min_priority)

    def compute_cost(self) -> float:
        """Return the cost of the new nodes in USD per hour, including their extra costs."""
        if self.cached_cost is None:
            self.cached_cost = compute_node_costs(self.packing)
        return self.cached_cost

    def count_nodes(self) -> int:
        """Return the number of new nodes."""
        return sum(1 for node in self.packing.open_nodes if node.pods)

    def has_relaxed_min_values(self) -> bool:
        """Return whether some node has less variety than the minValues of its NodePool require."""
        return any(node.is_relaxed for node in self.packing.open_nodes)

    def is_as_complete_as(self, baseline: "Plan") -> bool:
        """Return whether the plan has no more unplaced pods and no more relaxed preferences than *baseline*.

        If pods are planned by priority, this holds for the pods of each priority or more. A plan that exceeds a Spot
        share is not complete: an on-demand node that it relied on got no pods.
        """
        priorities = {pod_class.priority for pod_class in self.unplaced_classes}
        return (
            all(self.count_unplaced(priority) <= baseline.count_unplaced(priority) for priority in priorities)
            and self.packing.relaxed_preferences <= baseline.packing.relaxed_preferences
            and not self.packing.has_exceeded_share()
        )


def compute_node_costs(packing: FirstFitPacking) -> float:
    """Return the cost of the open nodes in USD per hour, each with its cheapest instance type.

    The cost is infinite if a node has no offering left.

    Reserved capacity has its own price for as many nodes as the reservation has units, in the order of opening. So has
    what is left of commitments.
    """
    extra_costs = dict(zip(packing.templates, list_extra_costs(packing), strict=True))
    reservation_manager = (
        build_reservation_manager(packing, packing.topology.cluster) if has_reserved_offerings(packing) else None
    )
    committed_capacity = packing.committed_capacity
    commitment_manager = committed_capacity.start_plan() if committed_capacity is not None else None
    total_cost = 0.0
    for node in packing.open_nodes:
        if node.pods:
            requirements, mask, type_index = node.state.requirements, node.mask, node.template.type_index
            if reservation_manager is not None and type_index.list_reservation_ids(requirements, mask):
                requirements, mask = reservation_manager.reserve(node, requirements)
            committed_node = (
                commitment_manager.reserve_commitments(node, requirements, mask)
                if commitment_manager is not None
                else None
            )
            if committed_node is not None:
                total_cost += extra_costs[node.template] + committed_node.price_usd_per_hour
                continue
            priced_type = type_index.find_cheapest(requirements, mask)
            total_cost += extra_costs[node.template] + (
                inf if priced_type is None else priced_type.offering.price_usd_per_hour
            )
    return total_cost


class PlanStart:
    """State from which all plans start: only pods with a nomination are placed, on the nodes expected for them."""

    def __init__(
        self, packing: FirstFitPacking, classes: list[PodEquivalenceClass], nominations: Mapping[str, int]
    ) -> None:
        """Start from *packing*.

        *nominations* are, by pod name, the number of the in-flight node that is expected for the pod.
        """
        self.packing, self.classes, self._nominations = packing, classes, nominations

    def fork(self) -> tuple[FirstFitPacking, list[PodEquivalenceClass]]:
        """Return a new packing in the start state, and the pods that are not placed yet."""
        fork = self.packing.fork()
        pod_classes = [replace(original_class, pods=list(original_class.pods)) for original_class in self.classes]
        for pod_class in pod_classes:
            pod_class.pods = fork.place_on_nominated_nodes(pod_class, self._nominations)
        return fork, pod_classes

    def fork_with_existing_filled(self) -> tuple[FirstFitPacking, list[PodEquivalenceClass]]:
        """Return a new packing, and the pods that are not placed yet.

        Pods are placed on existing nodes and on reserved capacity.
        """
        fork, pod_classes = self.fork()
        for pod_class in pod_classes:
            stage, count_before = find_launchable_stage(fork, pod_class), len(pod_class.pods)
            pod_class.pods = fork.place_on_existing_nodes(drop_stages_before(pod_class, stage))
            fork.relaxed_preferences += stage * (count_before - len(pod_class.pods))
        fill_reserved_capacity(fork, pod_classes)
        return fork, pod_classes


def select_types_up_to(packing: FirstFitPacking, max_cpu_milli: int) -> tuple[int, ...]:
    """Return, by template, the instance types with at most *max_cpu_milli*."""
    return tuple(
        template.initial_state.mask & template.type_index.find_within_limits({CPU: max_cpu_milli})
        for template in packing.templates
    )


def complete_plan(
    packing: FirstFitPacking, pod_classes: list[PodEquivalenceClass], is_hopeless: Callable[[], bool] | None = None
) -> Plan:
    """Place all pods with first-fit; repeat while that places more, for pods that depend on other pods.

    Pods that need Spot nodes of a NodePool with a Spot share depend on its on-demand nodes.

    *is_hopeless* is asked after each class; if it returns true, the other pods are not placed.
    """
    waiting_classes = [queued_class for queued_class in pod_classes if queued_class.pods]
    while waiting_classes:
        before = sum(len(queued_class.pods) for queued_class in waiting_classes)
        for pod_class in waiting_classes:
            pod_class.pods = packing.place(pod_class)
            if is_hopeless is not None and is_hopeless():
                return Plan(packing=packing, unplaced_classes=waiting_classes)
        waiting_classes = [queued_class for queued_class in waiting_classes if queued_class.pods]
        after = sum(len(queued_class.pods) for queued_class in waiting_classes)
        has_dependencies = bool(packing.share_usages) or any(
            any(queued_class.binding_groups) for queued_class in waiting_classes
        )
        if after == before or not has_dependencies:
            break
    return Plan(packing=packing, unplaced_classes=waiting_classes)
