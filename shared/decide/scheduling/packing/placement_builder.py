"""Results of a run: open NodeClaims become new NodeClaims.

They get a name, instance types sorted by price, and requests.
"""

from collections.abc import Mapping

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask, merge_masks
from shared.decide.scheduling.instance_types.price_list import PricedInstanceType
from shared.decide.scheduling.nodes.commitment_manager import CommitmentManager, CommittedNode
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.reservation_manager import build_reservation_manager
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.decide.scheduling.templates.node_claim_builder import derive_node_claim_name, encode_requirements
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate, TemplateRefusal
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME
from shared.model.core.requirements import Requirement, Requirements, build_requirements
from shared.model.core.resources import PODS, Axes, Resources, Vector, compute_min_resources
from shared.model.decisions.placement import (
    Approximation,
    CheapestOffering,
    ExistingNodePlacement,
    NewNodeClaim,
    Placement,
    Unschedulable,
    UnschedulableReason,
)
from shared.model.kubernetes.pod import Pod


class FinalNodeClaim(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What open NodeClaims with the same state have in common in the result."""

    requirements: Requirements
    encoded_requirements: bytes
    type_names: tuple[str, ...]
    cheapest_offering: CheapestOffering
    daemons: Resources


class NodeClaimFinalizer:
    """Finalizes open NodeClaims in their order; equal ones that cannot use a reservation share their result."""

    def __init__(self, packing: FirstFitPacking, cluster: ClusterSnapshot, pods: Mapping[str, Pod], axes: Axes) -> None:
        """Start with all remaining capacity of the reservations."""
        self._reservation_manager, self._options = build_reservation_manager(packing, cluster), packing.options
        committed_capacity = packing.committed_capacity
        self._commitment_manager = committed_capacity.start_plan() if committed_capacity is not None else None
        self._pods, self._axes = pods, axes
        self._used_names = frozenset(claim.name for claim in cluster.node_claims)
        self._cached_final_claims: dict[tuple[NarrowedTemplate, Mask], FinalNodeClaim | TemplateRefusal] = {}
        self._cached_requests: dict[tuple[Vector, Resources], Resources] = {}

    def finalize(self, node: OpenNodeClaim) -> NewNodeClaim | TemplateRefusal:
        """Return the new NodeClaim with its cheapest instance types, or the reason why it has none."""
        final_claim, pool = self._get_final_claim(node), node.template.pool.name
        if isinstance(final_claim, TemplateRefusal):
            return final_claim
        return NewNodeClaim(
            name=derive_node_claim_name(
                pool, [self._pods[name] for name in node.pods], final_claim.encoded_requirements, self._used_names
            ),
            node_pool=pool,
            requirements=final_claim.requirements,
            instance_types=final_claim.type_names,
            pods=tuple(sorted(node.pods)),
            requests=self._compute_requests(node.used, final_claim.daemons),
            daemon_pods=final_claim.daemons[PODS],
            cheapest=final_claim.cheapest_offering,
            min_values_relaxed=node.is_relaxed,
        )

    def _get_final_claim(self, node: OpenNodeClaim) -> FinalNodeClaim | TemplateRefusal:
        if self._commitment_manager is not None:
            return self._build_covered_claim(node, self._commitment_manager)
        key = (node.state, node.mask)
        if key not in self._cached_final_claims:
            node_requirements = node.state.requirements.without((HOSTNAME,))
            if self._reservation_manager.remaining and node.template.type_index.list_reservation_ids(
                node_requirements, node.mask
            ):
                return self._build_final_claim(node, *self._reservation_manager.reserve(node, node_requirements))
            self._cached_final_claims[key] = self._build_final_claim(
                node, node_requirements, node.mask & node.template.type_index.find_offered(node_requirements)
            )
        return self._cached_final_claims[key]

    def _build_covered_claim(
        self, node: OpenNodeClaim, commitment_manager: CommitmentManager
    ) -> FinalNodeClaim | TemplateRefusal:
        """Build the claim of *node*, which commitments pay for if that makes it cheaper."""
        type_index, node_requirements = node.template.type_index, node.state.requirements.without((HOSTNAME,))
        mask = node.mask & type_index.find_offered(node_requirements)
        if self._reservation_manager.remaining and type_index.list_reservation_ids(node_requirements, node.mask):
            node_requirements, mask = self._reservation_manager.reserve(node, node_requirements)
        committed_node = commitment_manager.reserve_commitments(node, node_requirements, mask)
        if committed_node is None:
            return self._build_final_claim(node, node_requirements, mask)
        return self._build_final_claim(node, committed_node.requirements, committed_node.mask, committed_node)

    def _build_final_claim(
        self,
        node: OpenNodeClaim,
        node_requirements: Requirements,
        mask: Mask,
        committed_node: CommittedNode | None = None,
    ) -> FinalNodeClaim | TemplateRefusal:
        type_index, template = node.template.type_index, node.template
        priced_types, max_instance_types = (
            type_index.sort_by_price(node_requirements, mask),
            self._options.max_instance_types,
        )
        if len(priced_types) > max_instance_types:
            priced_types = priced_types[:max_instance_types]
            mask = merge_masks(priced_type.bit for priced_type in priced_types)
        if not mask:
            message = "its capacity reservations are used up: wait, or allow other capacity types"
            return _build_refusal(template, "NoOffering", message)
        if self._options.min_values_policy == "Strict" and not has_min_values(template, node.state, mask):
            message = "its cheapest instance types do not meet minValues: lower minValues"
            return _build_refusal(template, "MinValuesNotMet", message)
        final_requirements = node_requirements & build_requirements(
            (Requirement(key=CAPACITY_TYPE, values=type_index.list_capacity_types(node_requirements, mask)),)
        )
        return FinalNodeClaim(
            requirements=final_requirements,
            encoded_requirements=encode_requirements(final_requirements),
            type_names=tuple([priced_type.name for priced_type in priced_types]),
            cheapest_offering=_build_cheapest_offering(priced_types[0], committed_node),
            daemons=compute_min_resources(group.requests for group in template.daemon_overheads if group.mask & mask),
        )

    def _compute_requests(self, used: Vector, daemons: Resources) -> Resources:
        key = (used, daemons)
        if key not in self._cached_requests:
            self._cached_requests[key] = self._axes.decode_vector(used) + daemons
        return self._cached_requests[key]


def build_placement(
    packing: FirstFitPacking,
    unschedulable: list[Unschedulable],
    cluster: ClusterSnapshot,
    pods: Mapping[str, Pod],
    axes: Axes,
) -> Placement:
    """Return the placement, with all lists sorted by name."""
    finalizer = NodeClaimFinalizer(packing, cluster, pods, axes)
    new_nodes: list[NewNodeClaim] = []
    unschedulable_pods = list(unschedulable)
    for node in (open_node for open_node in packing.open_nodes if open_node.pods):
        outcome = finalizer.finalize(node)
        if isinstance(outcome, TemplateRefusal):
            unschedulable_pods += [
                Unschedulable(pod=name, reason=outcome.reason, message=outcome.message) for name in node.pods
            ]
        else:
            new_nodes.append(outcome)
    existing_placements = (
        ExistingNodePlacement(node=node.name, pods=tuple(sorted(node.pods)))
        for node in packing.existing_nodes
        if node.pods
    )
    return Placement(
        new_nodes=tuple(sorted(new_nodes, key=lambda node: node.name)),
        existing=tuple(sorted(existing_placements, key=lambda fit: fit.node)),
        unschedulable=tuple(sorted(unschedulable_pods, key=lambda unschedulable_pod: unschedulable_pod.pod)),
        approximations=tuple(sorted(set(_list_approximations(packing)))),
    )


def _build_cheapest_offering(priced: PricedInstanceType, committed_node: CommittedNode | None) -> CheapestOffering:
    offering = priced.offering
    if committed_node is not None:
        return CheapestOffering(
            instance_type=priced.name,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            price_usd_per_hour=committed_node.price_usd_per_hour,
            list_usd_per_hour=committed_node.on_demand_usd_per_hour,
            commitments=committed_node.coverage.commitment_ids,
        )
    return CheapestOffering(
        instance_type=priced.name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_usd_per_hour=offering.price_usd_per_hour,
        reservation_id=offering.reservation_id,
        interruption_usd_per_hour=offering.interruption_usd_per_hour,
    )


def _build_refusal(template: NodeClaimTemplate, reason: UnschedulableReason, message: str) -> TemplateRefusal:
    return TemplateRefusal(reason=reason, message=f"NodePool {template.pool.name}: {message}")


def _list_approximations(packing: FirstFitPacking) -> list[Approximation]:
    """Return the pods that could not be counted, because the node's domain is not decided before it is launched."""
    return [
        Approximation(pod=pod, constraint=f"{packing.topology.groups[number].rule}: not known until launch")
        for node in packing.open_nodes
        for number, pod in node.uncounted_pods
    ]
