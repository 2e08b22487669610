"""minValues of a NodePool: whether the instance types of a new node have enough variety, and how they are lowered."""

import msgspec

from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.requirements import Requirement, Requirements


def has_min_values(template: NodeClaimTemplate, state: NarrowedTemplate, mask: Mask) -> bool:
    """Return whether the types in *mask* have the variety that minValues of the NodePool requires."""
    return all(
        template.type_index.count_values(item, mask) >= (item.min_values or 0) for item in state.min_value_requirements
    )


def with_lowered_min_values(template: NodeClaimTemplate, state: NarrowedTemplate, mask: Mask) -> NarrowedTemplate:
    """Return *state* with minValues lowered to the variety of the types in *mask* (`minValuesPolicy: BestEffort`)."""
    lowered_requirements = (_lower_min_values(item, mask, template.type_index) for item in state.requirements)
    return template.intern_state(Requirements(items=tuple(lowered_requirements)))


def _lower_min_values(item: Requirement, mask: Mask, type_index: InstanceTypeIndex) -> Requirement:
    if item.min_values is None:
        return item
    return msgspec.structs.replace(item, min_values=min(item.min_values, type_index.count_values(item, mask)))
