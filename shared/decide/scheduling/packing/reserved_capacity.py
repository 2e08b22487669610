"""Reserved capacity: the remaining units of capacity reservations are filled before other capacity is bought."""

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.launchable_templates import (
    drop_stages_before,
    find_launchable_stage,
    find_launchable_templates,
)
from shared.decide.scheduling.packing.reservation_manager import build_reservation_manager
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from shared.model.core.requirements import ANYTHING, build_label_requirements
from shared.model.core.resources import Vector


def fill_reserved_capacity(packing: FirstFitPacking, pod_classes: list[PodEquivalenceClass]) -> None:
    """Place pods of *pod_classes* on reserved capacity: on nodes of the heaviest NodePool that each class can use."""
    if not has_reserved_offerings(packing):
        return
    remaining_units = build_reservation_manager(packing, packing.topology.cluster).remaining
    staged_classes = [(pod_class, find_launchable_stage(packing, pod_class)) for pod_class in pod_classes]
    templates_by_class = [
        frozenset(number for number, _ in find_launchable_templates(packing, drop_stages_before(*pair)))
        for pair in staged_classes
    ]
    for number, template in enumerate(packing.templates):
        eligible_classes = [
            pair for pair, numbers in zip(staged_classes, templates_by_class, strict=True) if number in numbers
        ]
        for reservation_id, state, type_bit in _list_reserved_types(template):
            while remaining_units[reservation_id] > 0 and _fill_reserved_node(
                packing, template, (state, type_bit), eligible_classes
            ):
                remaining_units[reservation_id] -= 1


def has_reserved_offerings(packing: FirstFitPacking) -> bool:
    """Return whether any NodePool can have reserved capacity."""
    return any(
        template.type_index.list_reservation_ids(ANYTHING, template.type_index.usable) for template in packing.templates
    )


def _list_reserved_types(template: NodeClaimTemplate) -> list[tuple[str, NarrowedTemplate, Mask]]:
    """Return each reservation with each of its instance types; the largest types come first."""
    type_index = template.type_index
    reserved_types: list[tuple[Vector, str, NarrowedTemplate, Mask]] = []
    for reservation_id in sorted(type_index.count_reserved_instances()):
        requirements = build_label_requirements({CAPACITY_TYPE: RESERVED, RESERVATION_ID: reservation_id})
        state = template.narrow(template.initial_state, requirements)
        if state is not None:
            bits = [priced.bit for priced in type_index.sort_by_price(state.requirements, state.mask)]
            reserved_types += [
                (type_index.allocatable[bit.bit_length() - 1], reservation_id, state, bit) for bit in bits
            ]
    reserved_types.sort(
        key=lambda reserved_type: ([-amount for amount in reserved_type[0]], reserved_type[3], reserved_type[1])
    )
    return [(key, state, bit) for _, key, state, bit in reserved_types]


def _fill_reserved_node(
    packing: FirstFitPacking,
    template: NodeClaimTemplate,
    reserved_type: tuple[NarrowedTemplate, Mask],
    eligible_classes: list[tuple[PodEquivalenceClass, int]],
) -> bool:
    """Open a node of *reserved_type* and fill it; return whether any pod was placed."""
    state, type_bit = reserved_type
    if not any(
        eligible_class.pods
        and template.filter_fitting_types(type_bit, eligible_class.request_vector, eligible_class.ports)
        for eligible_class, _ in eligible_classes
    ):
        return False
    node_number = packing.open_node(template, state, type_bit)
    if node_number is None:
        return False
    for pod_class, stage in eligible_classes:
        if pod_class.pods:
            placed_count = packing.place_on_open_node(node_number, drop_stages_before(pod_class, stage), pod_class.pods)
            packing.relaxed_preferences += stage * placed_count
            pod_class.pods = pod_class.pods[placed_count:]
    packing.close_empty_nodes()
    return bool(packing.open_nodes[node_number].pods)
