"""Spot shares in a packing: each open node of a NodePool with a share counts as Spot or not, from the first pod on.

A node that may become Spot counts as Spot; it can still be launched on-demand if Spot has no capacity. The other nodes
are restricted to on-demand and reserved capacity. In vCPU, a Spot node counts with the most that it may have, the
others with the fewest. So no launch exceeds a share that the plan keeps.
"""

from collections.abc import Iterable
from typing import TypeAlias

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate, TemplateRefusal
from shared.model.core.labels import CAPACITY_TYPE, ON_DEMAND_BASE, SPOT, SPOT_SHARE
from shared.model.core.resources import CPU
from shared.model.karpenter.spot_share import NOT_SPOT, ShareUsage

ShareUsages: TypeAlias = dict[str, ShareUsage]
"""By NodePool with a share: what is used of it."""


def list_start_states(template: NodeClaimTemplate) -> tuple[NarrowedTemplate, ...]:
    """Return the states that an empty node of *template* can have: with Spot, and if there is a share, without."""
    if template.spot_share is None:
        return (template.initial_state,)
    return tuple(state for state in (template.initial_state, exclude_spot(template, template.initial_state)) if state)


def exclude_spot(template: NodeClaimTemplate, state: NarrowedTemplate) -> NarrowedTemplate | None:
    """Return *state* without Spot; None if nothing is left."""
    return template.narrow(state, NOT_SPOT)


def is_spot_possible(state: NarrowedTemplate) -> bool:
    """Return whether a node in *state* may be launched as Spot."""
    return state.requirements[CAPACITY_TYPE].has(SPOT)


def filter_types_within_share(
    usages: ShareUsages, template: NodeClaimTemplate, state: NarrowedTemplate, mask: Mask
) -> Mask:
    """Return the types in *mask* that one more node in *state* may have within the share of its NodePool."""
    share = template.spot_share
    if share is None or not is_spot_possible(state):
        return mask
    free_spot = share.compute_free_spot(usages[template.pool.name])
    if share.unit == "vcpu":
        return mask & template.type_index.find_within_limits({CPU: free_spot})
    return mask if free_spot else 0


def filter_types_of_same_size(node: OpenNodeClaim, mask: Mask) -> Mask:
    """Return the types in *mask* that do not change what *node* counts against its share."""
    share, type_index = node.template.spot_share, node.template.type_index
    if share is None or share.unit != "vcpu":
        return mask
    if is_spot_possible(node.state):
        return mask & type_index.find_within_limits({CPU: type_index.get_max_capacity(node.mask, CPU)})
    return mask & ~type_index.find_within_limits({CPU: type_index.get_min_capacity(node.mask, CPU) - 1})


def charge_new_node(usages: ShareUsages, node: OpenNodeClaim) -> None:
    """Count *node*, which was opened."""
    if node.template.spot_share is not None:
        usages[node.template.pool.name] += _measure(node.template, node.state, node.mask)


def charge_changed_node(usages: ShareUsages, node: OpenNodeClaim, state: NarrowedTemplate, mask: Mask) -> None:
    """Count *node* with the new *state* and the types in *mask*, before it changes."""
    if node.template.spot_share is not None:
        usages[node.template.pool.name] += _measure(node.template, state, mask) - _measure(
            node.template, node.state, node.mask
        )


def release_empty_nodes(usages: ShareUsages, nodes: Iterable[OpenNodeClaim]) -> list[int]:
    """Count those of *nodes* no longer that have no pods; return their numbers: they must not get pods any more.

    They are not launched, so an on-demand node among them must not allow a Spot node.
    """
    released_numbers: list[int] = []
    for node in nodes if usages else ():
        if not node.pods and node.counts_in_share and node.template.spot_share is not None:
            usages[node.template.pool.name] -= _measure(node.template, node.state, node.mask)
            node.counts_in_share = False
            released_numbers.append(node.number)
    return released_numbers


def has_exceeded_share(usages: ShareUsages, usages_before: ShareUsages, templates: Iterable[NodeClaimTemplate]) -> bool:
    """Return whether *usages* exceed the share of a template, and by more than *usages_before*."""
    return any(
        template.spot_share is not None
        and template.spot_share.measure_excess(usages[template.pool.name])
        > template.spot_share.measure_excess(usages_before[template.pool.name])
        for template in (templates if usages else ())
    )


def explain_share(
    template: NodeClaimTemplate, pod_mask: Mask, state: NarrowedTemplate, usages: ShareUsages
) -> TemplateRefusal | None:
    """Return the refusal of a pod that needs a Spot node in *state* of the types in *pod_mask*; None if there is none.

    A pod needs Spot if its requirements exclude other capacity, or if no other capacity is available.
    """
    share = template.spot_share
    if share is None or filter_types_within_share(usages, template, state, pod_mask):
        return None
    other_state = exclude_spot(template, state)
    if other_state is not None and other_state.mask & pod_mask:
        return None
    usage_text = share.format_usage(usages[template.pool.name])
    base_text = f", decrease {ON_DEMAND_BASE}" if share.base else ""
    message = (
        f"the pod needs a Spot node, which would exceed the Spot share: {usage_text}; to fix: increase {SPOT_SHARE}"
        f"{base_text}, or allow on-demand in the pod"
    )
    return TemplateRefusal(reason="LimitExceeded", message=message)


def _measure(template: NodeClaimTemplate, state: NarrowedTemplate, mask: Mask) -> ShareUsage:
    """Return what a node in *state* with the types in *mask* counts in the worst case."""
    is_spot, amount = is_spot_possible(state), 1
    if template.spot_share is not None and template.spot_share.unit == "vcpu":
        type_index = template.type_index
        amount = (type_index.get_max_capacity if is_spot else type_index.get_min_capacity)(mask, CPU)
    return ShareUsage(spot=amount if is_spot else 0, total=amount)
