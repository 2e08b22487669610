"""Placement on new nodes: open a node for a pod within the limits of its NodePool, and assign pods to open nodes."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.commitment_manager import CommittedCapacity
from shared.decide.scheduling.nodes.existing_node import ExistingNode
from shared.decide.scheduling.nodes.node_pool_limits import (
    RemainingLimits,
    charge_for_change,
    charge_limits,
    filter_types_within_limits,
)
from shared.decide.scheduling.nodes.open_node_claim import Fit, OpenNodeClaim, find_fit
from shared.decide.scheduling.nodes.spot_share_quota import (
    ShareUsages,
    charge_changed_node,
    charge_new_node,
    filter_types_within_share,
    has_exceeded_share,
    list_start_states,
    release_empty_nodes,
)
from shared.decide.scheduling.packing.feasibility import Feasibility
from shared.decide.scheduling.packing.savepoint import Savepoint
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.pods.stage_compiler import CompiledStage
from shared.decide.scheduling.templates.min_values import has_min_values, with_lowered_min_values
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.resources import Vector
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import Pod

NodeAssignment: TypeAlias = tuple[int, PodEquivalenceClass, CompiledStage, Sequence[Pod]]
"""The node number (existing nodes come first), and the pods that were placed there."""
PodRange: TypeAlias = tuple[int, int]
"""A half-open range of positions in the pods of a class; cheaper than copies of the list."""
NODES_PER_DEADLINE_CHECK: Final = 256
"""Number of node trials between two checks of the deadline."""
UNLIMITED_NODES: Final = 1 << 62


class NewNodePlacement(Feasibility, kw_only=True, eq=False):
    """Opens nodes, and assigns pods to them."""

    existing_nodes: list[ExistingNode]
    templates: tuple[NodeClaimTemplate, ...]
    remaining_limits: RemainingLimits
    options: SchedulingOptions
    share_usages: ShareUsages = msgspec.field(default_factory=dict)
    share_usages_before: ShareUsages = msgspec.field(default_factory=dict)
    """The usage of the Spot shares without new nodes."""
    open_nodes: list[OpenNodeClaim] = msgspec.field(default_factory=list)
    launchable_templates: dict[tuple[int, frozenset[int]], tuple[tuple[int, NarrowedTemplate], ...]] = msgspec.field(
        default_factory=dict
    )
    """By shape number and excluded templates: the templates that can launch a node for the shape, with their
    narrowed state.
    """
    max_new_nodes: int = UNLIMITED_NODES
    """How many more nodes may be opened."""
    target_types: tuple[Mask, ...] = ()
    """For each template: the preferred instance types of a new node; empty: no preference."""
    is_over: Callable[[], bool] | None = None
    """Return whether the deadline has passed; called periodically."""
    committed_capacity: CommittedCapacity | None = None
    """What is left of commitments before the plan; None: there are none."""
    is_timed_out: bool = False
    """Whether the deadline had passed at the last check."""
    node_trials: int = 0
    assignments: list[NodeAssignment] = msgspec.field(default_factory=list)
    """All placements, in order, except those on nominated nodes."""
    node_by_claim: dict[str, int] = msgspec.field(default_factory=dict)
    """Node numbers of the shared ResourceClaims that are allocated in this plan."""
    savepoints: list[Savepoint] = msgspec.field(default_factory=list)
    """The savepoints that can be rolled back to, the innermost last."""

    def is_late(self) -> bool:
        """Return whether the deadline has passed, checked now."""
        self.is_timed_out = self.is_timed_out or (self.is_over is not None and self.is_over())
        return self.is_timed_out

    def open_node(self, template: NodeClaimTemplate, state: NarrowedTemplate, mask: Mask) -> int | None:
        """Open an empty node that may be of the types in *mask*; return its number, or None if that is not possible."""
        node = self._build_empty_node(template, mask & state.mask, state) if self.max_new_nodes > 0 else None
        if node is None or not has_min_values(template, state, node.mask):
            return None
        charge_limits(self.remaining_limits, template, node.mask, state)
        self._add_open_node(node)
        return node.number

    def close_empty_nodes(self) -> None:
        """Close open nodes without pods if there are Spot shares: they are not launched, and do not count."""
        for number in release_empty_nodes(self.share_usages, self.open_nodes):
            self.closed_nodes |= 1 << (len(self.existing_nodes) + number)

    def close_node(self, node_number: int) -> None:
        """Close a node whose pods need another node; their shared claims can be allocated again."""
        self.closed_nodes |= 1 << node_number
        if self.node_by_claim:
            self.node_by_claim = {name: number for name, number in self.node_by_claim.items() if number != node_number}

    def has_exceeded_share(self) -> bool:
        """Return whether the new nodes exceed a Spot share."""
        return has_exceeded_share(self.share_usages, self.share_usages_before, self.templates)

    def _place_on_new_node(
        self, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, pod_range: PodRange
    ) -> int:
        """Open a node for the pods of *pod_range*, and place as many as it takes; return how many were placed."""
        if self.max_new_nodes <= 0 or not self._can_share_claims(pod_class, len(self.nodes.hosts)):
            return 0
        start, end = pod_range
        self._count_node_trial()
        for template_number, template in enumerate(self.templates):
            masks = (
                (self.target_types[template_number], template.initial_state.mask)
                if self.target_types
                else (template.initial_state.mask,)
            )
            for mask, state in product(masks, list_start_states(template)):
                node = self._build_empty_node(template, mask, state)
                count = 0 if node is None else self._compute_max_count(node.host, compiled_stage, end - start)
                fit = (
                    self._find_first_fit(node, pod_class, compiled_stage, count)
                    if node is not None and count > 0
                    else None
                )
                if node is not None and fit is not None:
                    self._charge_limits_for_pods(template, node.mask & fit.state.mask, fit.state, pod_class)
                    node_number, assigned_pods = self._add_open_node(node), pod_class.pods[start : start + fit.count]
                    self._accept_fit(node_number, node, pod_class, fit, assigned_pods)
                    self.assignments.append((node_number, pod_class, compiled_stage, assigned_pods))
                    return fit.count
        return 0

    def _add_open_node(self, node: OpenNodeClaim) -> int:
        self.max_new_nodes -= 1
        self.open_nodes.append(node)
        charge_new_node(self.share_usages, node)
        return self.nodes.open_node(node.host, node.template, node.state)

    def _build_empty_node(
        self, template: NodeClaimTemplate, mask: Mask, state: NarrowedTemplate
    ) -> OpenNodeClaim | None:
        mask = filter_types_within_limits(self.remaining_limits, template, mask, state)
        mask = filter_types_within_share(self.share_usages, template, state, mask)
        if not mask:
            return None
        number = len(self.open_nodes)
        no_resources: Vector = (0,) * len(template.type_index.axes.names)
        return OpenNodeClaim(
            number=number,
            host=f"new-{number:06d}",
            template=template,
            state=state,
            mask=mask,
            used=no_resources,
        )

    def _find_first_fit(
        self, node: OpenNodeClaim, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, count: int
    ) -> Fit | None:
        states = self._list_narrowed_states(node.template, node.state, pod_class, compiled_stage)
        fit = self._keep_within_usd(find_fit(node, pod_class, count, states), node, pod_class, count)
        if fit is not None or self.options.min_values_policy == "Strict":
            return fit
        fit = find_fit(node, pod_class, 1, states, any_variety=True)
        if fit is None:
            return None
        node.state = with_lowered_min_values(node.template, node.state, fit.mask)
        node.is_relaxed = True
        states = self._list_narrowed_states(node.template, node.state, pod_class, compiled_stage)
        return self._keep_within_usd(find_fit(node, pod_class, count, states), node, pod_class, count)

    def _keep_within_usd(
        self, fit: Fit | None, node: OpenNodeClaim, pod_class: PodEquivalenceClass, count: int
    ) -> Fit | None:
        """Return *fit* if the state of the pods makes no type of *node* exceed a limit in USD per hour.

        Else return the fit with the types that are within the limit; None if none is.
        """
        if fit is None or node.template.type_prices is None or fit.state is node.state:
            return fit
        affordable_types = filter_types_within_limits(self.remaining_limits, node.template, node.mask, fit.state)
        if affordable_types == node.mask:
            return fit
        node.mask = affordable_types
        return find_fit(node, pod_class, count, (fit.state,))

    def _charge_limits_for_pods(
        self, template: NodeClaimTemplate, mask: Mask, state: NarrowedTemplate, pod_class: PodEquivalenceClass
    ) -> None:
        """Charge the limits of the NodePool for a new node of the types in *mask* that hold a pod of the class."""
        if template.pool.name in self.remaining_limits:
            fitting_types = template.filter_fitting_types(mask, pod_class.request_vector, pod_class.ports)
            charge_limits(self.remaining_limits, template, fitting_types, state)

    def _accept_fit(
        self, node_number: int, node: OpenNodeClaim, pod_class: PodEquivalenceClass, fit: Fit, queued_pods: list[Pod]
    ) -> None:
        """Assign the first of *queued_pods* to *node*, as *fit* says."""
        if self.savepoints:
            self.savepoints[-1].save_open_node(node_number - len(self.existing_nodes), node)
        self.nodes.update_pod_count(1 << node_number, len(node.pods), len(node.pods) + fit.count)
        node_domains, node_bit = node.template.get_node_domains(fit.state), 1 << node_number
        charge_changed_node(self.share_usages, node, fit.state, fit.mask)
        node.used, node.mask = fit.used, fit.mask
        if fit.devices is not None:
            node.devices = fit.devices
        self._record_shared_claims(pod_class, node_number)
        node.ports.extend(pod_class.ports)
        pod_names = [pod.name for pod in queued_pods[: fit.count]]
        node.pods.extend(pod_names)
        if fit.state is not node.state:
            node.state = fit.state
            self.nodes.move_node(node_number, node.template, fit.state)
            undecided_counts, node.uncounted_pods = node.uncounted_pods, []
            for group, name in undecided_counts:
                undecided_groups = self.topology.record_pods_on_node((group,), node_domains, node.host, node_bit, 1)
                node.uncounted_pods.extend((group_number, name) for group_number in undecided_groups)
        if pod_class.counting_groups:
            waiting = self.topology.record_pods_on_node(
                pod_class.counting_groups, node_domains, node.host, node_bit, fit.count
            )
            node.uncounted_pods.extend((group_number, name) for name in pod_names for group_number in waiting)

    def _fill_open_node(
        self, node_number: int, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage, queued_pods: list[Pod]
    ) -> int:
        if not self._can_share_claims(pod_class, node_number):
            return 0
        node = self.open_nodes[node_number - len(self.existing_nodes)]
        fit = find_fit(
            node,
            pod_class,
            len(queued_pods),
            self._list_narrowed_states(node.template, node.state, pod_class, compiled_stage),
        )
        if fit is None:
            if not pod_class.has_shared_claims and (
                not compiled_stage.topology_bindings.domain_bindings
                or not self._can_ever_fit(node, pod_class, compiled_stage)
            ):
                self.nodes.refuse_shape(compiled_stage.shape_number, node_number, node.compute_free())
            return 0
        if fit.state is not node.state and not charge_for_change(self.remaining_limits, node, fit.mask, fit.state):
            return 0
        self._accept_fit(node_number, node, pod_class, fit, queued_pods)
        return fit.count

    def _can_ever_fit(self, node: OpenNodeClaim, pod_class: PodEquivalenceClass, compiled_stage: CompiledStage) -> bool:
        """Return whether *node* has room for one such pod, ignoring topology constraints."""
        return (
            find_fit(
                node, pod_class, 1, node.template.narrow_to_constraints(node.state, compiled_stage.node_constraints)
            )
            is not None
        )

    def _can_share_claims(self, pod_class: PodEquivalenceClass, node_number: int) -> bool:
        """Return whether no shared claim of the class is allocated to another node."""
        demand = pod_class.device_demand
        return demand is None or all(
            self.node_by_claim.get(name, node_number) == node_number for name, _ in demand.shared
        )

    def _record_shared_claims(self, pod_class: PodEquivalenceClass, node_number: int) -> None:
        if pod_class.device_demand is not None:
            self.node_by_claim.update((name, node_number) for name, _ in pod_class.device_demand.shared)

    def _count_node_trial(self) -> None:
        self.node_trials += 1
        if not self.node_trials % NODES_PER_DEADLINE_CHECK:
            self.is_late()
