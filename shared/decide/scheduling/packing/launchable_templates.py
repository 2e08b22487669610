"""NodeClaim templates that can launch a node for a pod class, by relaxation stage."""

from typing import TypeAlias

from msgspec.structs import replace

from shared.decide.scheduling.packing.new_node_placement import NewNodePlacement
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.resources import Vector
from shared.model.core.taints import find_untolerated_taint

LaunchableTemplates: TypeAlias = tuple[tuple[int, NarrowedTemplate], ...]
"""The templates, by number, that can launch a node for a pod, each narrowed to the pod's requirements."""


def find_launchable_stage(packing: NewNodePlacement, pods: PodEquivalenceClass) -> int:
    """Return the first relaxation stage at which some template can launch a node for such pods; 0 if none can."""
    return next(
        (
            stage
            for stage in range(len(pods.stages))
            if find_launchable_templates(packing, drop_stages_before(pods, stage))
        ),
        0,
    )


def drop_stages_before(pods: PodEquivalenceClass, stage: int) -> PodEquivalenceClass:
    """Return *pods* without the relaxation stages before *stage*."""
    if not stage:
        return pods
    aims, stages, bound = pods.compiled_stages[stage:], pods.stages[stage:], pods.binding_groups[stage:]
    return replace(pods, compiled_stages=aims, stages=stages, binding_groups=bound)


def find_launchable_templates(
    packing: NewNodePlacement, pods: PodEquivalenceClass, closed: frozenset[int] = frozenset()
) -> LaunchableTemplates:
    """Return the templates with the highest weight that can launch a node for such a pod, except those in *closed*."""
    if pods.stages[0].is_contradictory:
        return ()
    key = (pods.compiled_stages[0].shape_number, closed)
    if key not in packing.launchable_templates:
        packing.launchable_templates[key] = _find_launchable_templates(packing, pods, closed)
    return packing.launchable_templates[key]


def _find_launchable_templates(
    packing: NewNodePlacement, pods: PodEquivalenceClass, closed: frozenset[int]
) -> LaunchableTemplates:
    stage = pods.stages[0]
    launchable: list[tuple[int, NarrowedTemplate]] = []
    weight = None
    for number, template in enumerate(packing.templates):
        if weight is not None and template.pool.weight != weight:
            break
        if number in closed or find_untolerated_taint(template.pool.taints, stage.tolerations) is not None:
            continue
        state = template.narrow(template.initial_state, stage.requirements)
        state = (
            None
            if state is None or not pods.volume_alternatives
            else template.narrow(state, pods.volume_alternatives[0])
        )
        if state is not None and _has_capacity(template, state, pods.request_vector):
            launchable.append((number, state))
            weight = template.pool.weight
    return tuple(launchable)


def _has_capacity(template: NodeClaimTemplate, state: NarrowedTemplate, need: Vector) -> bool:
    for group in template.daemon_overheads:
        part = group.mask & state.mask
        total_need = tuple(amount + overhead for amount, overhead in zip(need, group.request_vector, strict=True))
        if part and template.type_index.filter_fitting(part, total_need):
            return True
    return False
