"""Capacity that is paid for already: what reservations have left is opened and filled before anything is bought."""

from shared.model.labels import CAPACITY_TYPE, RESERVED
from shared.model.requirements import ANYTHING, Requirement, requirements
from shared.model.resources import Vector
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.results import units_of
from shared.scheduling.shelf import RESERVATION_ID, Mask
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.wanted import at_stage, possible, where


def fill_reserved(packing: Packing, some: list[PodClass]) -> None:
    """Place pods of *some* on reserved capacity: on nodes of the heaviest NodePool that each may be on."""
    if not offers_reserved(packing):
        return
    left = units_of(packing, packing.topology.cluster).left
    staged = [(one, possible(packing, one)) for one in some]
    able = [frozenset(number for number, _ in where(packing, at_stage(*pair))) for pair in staged]
    for number, template in enumerate(packing.templates):
        mine = [pair for pair, numbers in zip(staged, able, strict=True) if number in numbers]
        for key, state, bit in _on_offer(template):
            while left[key] > 0 and _fill(packing, template, (state, bit), mine):
                left[key] -= 1


def offers_reserved(packing: Packing) -> bool:
    """Whether some NodePool could have reserved capacity."""
    return any(one.shelf.reservations(ANYTHING, one.shelf.usable) for one in packing.templates)


def _on_offer(template: Template) -> list[tuple[str, Narrowed, Mask]]:
    """Answer reservations with one of their types, those of the largest types first."""
    shelf = template.shelf
    found: list[tuple[Vector, str, Narrowed, Mask]] = []
    for key in sorted(shelf.reserved()):
        kind = Requirement(key=CAPACITY_TYPE, values=frozenset((RESERVED,)))
        one = Requirement(key=RESERVATION_ID, values=frozenset((key,)))
        state = template.narrow(template.start, requirements((kind, one)))
        if state is not None:
            bits = [priced.bit for priced in shelf.cheapest_first(state.requirements, state.mask)]
            found += [(shelf.rooms[bit.bit_length() - 1], key, state, bit) for bit in bits]
    found.sort(key=lambda one: ([-amount for amount in one[0]], one[3], one[1]))
    return [(key, state, bit) for _, key, state, bit in found]


def _fill(packing: Packing, template: Template, kind: tuple[Narrowed, Mask], mine: list[tuple[PodClass, int]]) -> bool:
    """Open a node and fill it; whether somebody is there."""
    state, bit = kind
    if not any(one.pods and template.holding(bit, one.need, one.ports) for one, _ in mine):
        return False
    number = packing.open(template, state, bit)
    if number is None:
        return False
    for one, stage in mine:
        if one.pods:
            done = packing.place_on(number, at_stage(one, stage), one.pods)
            packing.given_up += stage * done
            one.pods = one.pods[done:]
    return bool(packing.opened[number].pods)
