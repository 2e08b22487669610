"""Bin types: the instance types, by zone, that are worth considering for the packing problem."""

from collections.abc import Iterable, Iterator
from math import log2
from operator import add
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.instance_types.offering_prices import OfferingKind, get_offering_kind
from shared.decide.scheduling.instance_types.price_list import PricedInstanceType
from shared.decide.scheduling.instance_types.resource_index import Bits, ResourceIndex, build_bits
from shared.decide.scheduling.optimization.items import Item, build_zone_requirements
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts
from shared.decide.scheduling.packing.launchable_templates import LaunchableTemplates
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.requirements import Requirements
from shared.model.core.resources import Vector

MEMORY_WEIGHTS: Final = tuple(2.0**power for power in (-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4))
"""Values of a unit of memory relative to a unit of cpu, each in scaled amounts."""
POD_SLOT_WEIGHTS: Final = (0.5, 1.0, 2.0, 4.0, 16.0)
"""Where pods are many and small: values of a pod slot, as a share of the cpu that an average pod needs."""
PODS_AXIS: Final = 3
"""Axis of the resource vector that counts pods: how many pods a node holds."""
SIZE_BOUNDS_MILLI: Final = (1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000)
"""Upper bounds, in milli cpu, of the size classes of instance types."""
CPU_MILLI_PER_CORE: Final = 1000
MEMORY_BYTES_PER_CORE: Final = 4 << 30
NODE_HANDLING_COST_RATIO: Final = 0.1
"""Each additional node costs this share of the price of one core with its usual memory."""
MAX_SCANS: Final = 40
"""Maximum number of different sets of instance types that are scanned."""


class BinType(msgspec.Struct, kw_only=True, eq=False):
    """An instance type in one zone, in its cheapest offering there."""

    template: int
    bit: Mask
    name: str
    offering_kind: OfferingKind
    price: float
    """In USD per hour, including the extra costs of a node."""
    capacity: Vector
    """Resources for pods: allocatable minus daemon overhead."""
    scaled_capacity: Amounts

    @property
    def zone(self) -> str:
        """The zone of the offering."""
        return self.offering_kind[3]


def compute_scale(items: Iterable[Item]) -> Amounts:
    """Return, by axis, the divisor that scales amounts; 0 for a resource that no item requests."""
    totals: list[int] = []
    for item in items:
        amounts = [item.count * amount for amount in item.pods.request_vector]
        totals = (
            [total + item_amount for total, item_amount in zip(totals, amounts, strict=True)] if totals else amounts
        )
    cores = (totals[0] or 1000) / 1000 if totals else 1.0
    default_totals = (CPU_MILLI_PER_CORE, MEMORY_BYTES_PER_CORE)
    return tuple(
        (total or (default_totals[axis] if axis < len(default_totals) else 0)) / cores
        for axis, total in enumerate(totals)
    )


def scale_amounts(amounts: Vector, scale: Amounts) -> Amounts:
    """Return *amounts* divided by *scale*, without the axes whose scale is 0."""
    return tuple(amount / unit for amount, unit in zip(amounts, scale, strict=True) if unit)


class BinTypeFinder:
    """Finds bin types among the instance types that the items can use."""

    def __init__(
        self,
        templates: tuple[NodeClaimTemplate, ...],
        extra_costs: Amounts,
        scale: Amounts,
        items: list[Item],
        supply: tuple[list[Mask], Requirements],
    ) -> None:
        """Find the bin types; by template, *extra_costs* has a node's extra costs.

        *supply*: the instance types by template, and the requirements on their offerings.

        *items* are in the order of their bits.
        """
        self._templates, self._extra_costs, self._scale = templates, extra_costs, scale
        self._type_masks, self._offering_requirements = supply
        self._kinds_by_state: dict[NarrowedTemplate, frozenset[OfferingKind]] = {}
        self._total_need = tuple(
            sum(item.count * amount for item, amount in zip(items, amounts, strict=True))
            for amounts in zip(*(item.pods.request_vector for item in items), strict=True)
        )
        self._larger_types: list[dict[int, Mask]] = [{} for _ in templates]
        self._capacities: dict[tuple[int, Mask], tuple[Vector, Amounts] | None] = {}
        self._mean_pod_cpu = sum(item.count * item.scaled_need[0] for item in items) / max(
            1, sum(item.count for item in items)
        )
        self._resource_index = ResourceIndex([item.pods.request_vector for item in items])
        indices_by_key: dict[LaunchableTemplates, list[int]] = {}
        for index, item in enumerate(items):
            indices_by_key.setdefault(item.launchable, []).append(index)
        self._items_by_launchable = {key: build_bits(item_indices) for key, item_indices in indices_by_key.items()}
        self.bin_types = list(self._generate_bin_types())
        self._add_handling_cost()

    @property
    def resource_index(self) -> ResourceIndex:
        """Index of the items' resource needs."""
        return self._resource_index

    def find_accepted_items(self, bin_type: BinType) -> Bits:
        """Return the items that *bin_type* can launch for and that fit on it when it is empty."""
        accepted_items = 0
        for launchable, items in self._items_by_launchable.items():
            if any(number == bin_type.template and self._is_open(bin_type, state) for number, state in launchable):
                accepted_items |= self._resource_index.filter_fitting(bin_type.capacity, items)
        return accepted_items

    def _add_handling_cost(self) -> None:
        """Raise the price of each bin type by a handling cost.

        The plan with fewer nodes is then the cheaper one of two plans with the same price.
        """
        unit_price = min(
            (row.price / (row.scaled_capacity[0] + row.scaled_capacity[1]) for row in self.bin_types), default=0.0
        )
        for bin_type in self.bin_types:
            bin_type.price += NODE_HANDLING_COST_RATIO * 2 * unit_price

    def _is_open(self, bin_type: BinType, state: NarrowedTemplate) -> bool:
        if not state.mask & bin_type.bit:
            return False
        if state not in self._kinds_by_state:
            self._kinds_by_state[state] = frozenset(
                self._templates[bin_type.template].type_index.list_kinds(state.requirements)
            )
        return bin_type.offering_kind in self._kinds_by_state[state]

    def _generate_bin_types(self) -> Iterator[BinType]:
        seen_keys: set[tuple[int, Mask, OfferingKind]] = set()
        scanned_keys: set[tuple[int, tuple[OfferingKind, ...], Mask]] = set()
        for launchable_templates in self._items_by_launchable:
            for number, state in launchable_templates:
                for bin_type in self._scan_template(number, state, scanned_keys):
                    key = (bin_type.template, bin_type.bit, bin_type.offering_kind)
                    if key not in seen_keys:
                        seen_keys.add(key)
                        yield bin_type

    def _scan_template(
        self, number: int, state: NarrowedTemplate, scanned_keys: set[tuple[int, tuple[OfferingKind, ...], Mask]]
    ) -> Iterator[BinType]:
        template = self._templates[number]
        kinds = template.type_index.list_kinds(state.requirements)
        if (number, kinds, state.mask) in scanned_keys or len(scanned_keys) >= MAX_SCANS:
            return
        scanned_keys.add((number, kinds, state.mask))
        for zone in sorted({kind[3] for kind in kinds}):
            zonal_state = template.narrow(state, build_zone_requirements(zone))
            if zonal_state is not None:
                yield from self._select_best(number, zonal_state)

    def _select_best(self, number: int, state: NarrowedTemplate) -> Iterator[BinType]:
        """Yield the bin types with the lowest price per capacity, by size class and weight of memory against cpu."""
        by_size: dict[int, list[BinType]] = {}
        for bin_type in self._list_offered(number, state):
            size = next(
                (index for index, max_cpu in enumerate(SIZE_BOUNDS_MILLI) if bin_type.capacity[0] <= max_cpu),
                len(SIZE_BOUNDS_MILLI),
            )
            by_size.setdefault(size, []).append(bin_type)
        for _, bin_types in sorted(by_size.items()):
            best_by_name: dict[str, BinType] = {}
            for best in self._select_cheapest(bin_types):
                best_by_name[best.name] = best
            by_shape: dict[int, list[BinType]] = {}
            for bin_type in bin_types:
                by_shape.setdefault(
                    round(2 * log2(bin_type.scaled_capacity[1] / bin_type.scaled_capacity[0])), []
                ).append(bin_type)
            for _, same_shape in sorted(by_shape.items()):
                best = min(
                    same_shape,
                    key=lambda row: (row.price / (row.scaled_capacity[0] + row.scaled_capacity[1]), row.name),
                )
                best_by_name[best.name] = best
            yield from best_by_name.values()

    def _select_cheapest(self, bin_types: list[BinType]) -> Iterator[BinType]:
        """Yield the cheapest bin type for each memory weight and, if pod slots are scarce, for each pod slot weight."""
        slot_values = [part * self._mean_pod_cpu for part in POD_SLOT_WEIGHTS]
        if not any(
            bin_type.capacity[PODS_AXIS] * self._mean_pod_cpu < min(bin_type.scaled_capacity[:2])
            for bin_type in bin_types
        ):
            slot_values = []
        for memory_weight in MEMORY_WEIGHTS:
            weighted_capacities = {
                bin_type.name: bin_type.scaled_capacity[0] + memory_weight * bin_type.scaled_capacity[1]
                for bin_type in bin_types
            }
            for slot_value in (0.0, *slot_values):
                yield min(
                    bin_types,
                    key=lambda bin_type: (
                        bin_type.price
                        / (weighted_capacities[bin_type.name] + slot_value * bin_type.capacity[PODS_AXIS]),
                        bin_type.name,
                    ),
                )

    def _list_offered(self, number: int, state: NarrowedTemplate) -> Iterator[BinType]:
        for priced in self._list_undominated(number, state):
            key = (number, priced.bit)
            if key not in self._capacities:
                self._capacities[key] = self._compute_capacity(number, priced.bit)
            capacities = self._capacities[key]
            if capacities is not None:
                yield BinType(
                    template=number,
                    bit=priced.bit,
                    name=priced.name,
                    offering_kind=get_offering_kind(priced.offering),
                    price=priced.offering.price_usd_per_hour + self._extra_costs[number],
                    capacity=capacities[0],
                    scaled_capacity=capacities[1],
                )

    def _list_undominated(self, number: int, state: NarrowedTemplate) -> Iterator[PricedInstanceType]:
        """Yield the types, the cheapest first, for which no cheaper type has as much of all resources."""
        mask, cheaper_types, larger_types = state.mask & self._type_masks[number], 0, self._larger_types[number]
        price_list = self._templates[number].type_index.get_price_list(state.requirements & self._offering_requirements)
        for priced in price_list.list_types(mask):
            type_number = priced.bit.bit_length() - 1
            if type_number not in larger_types:
                larger_types[type_number] = self._find_larger_types(number, priced.bit)
            if not cheaper_types & larger_types[type_number]:
                yield priced
            cheaper_types |= priced.bit

    def _find_larger_types(self, number: int, bit: Mask) -> Mask:
        """Return the types that hold as much as the type *bit*, or all items, with the same daemon overhead."""
        template, larger_types = self._templates[number], 0
        for group in template.daemon_overheads:
            if group.mask & bit:
                allocatable = template.type_index.allocatable[bit.bit_length() - 1]
                useful = tuple(map(min, allocatable, map(add, self._total_need, group.request_vector)))
                larger_types = template.type_index.filter_fitting(group.mask, useful)
        return larger_types

    def _compute_capacity(self, number: int, bit: Mask) -> tuple[Vector, Amounts] | None:
        template = self._templates[number]
        group = next(
            (overhead_group for overhead_group in template.daemon_overheads if overhead_group.mask & bit), None
        )
        if group is None:
            return None
        allocatable = template.type_index.allocatable[bit.bit_length() - 1]
        capacity = tuple(
            allocatable_amount - overhead
            for allocatable_amount, overhead in zip(allocatable, group.request_vector, strict=True)
        )
        has_capacity = all(amount >= 0 for amount in capacity) and capacity[0] > 0 and capacity[1] > 0
        return (capacity, scale_amounts(capacity, self._scale)) if has_capacity else None
