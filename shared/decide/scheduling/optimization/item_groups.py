"""Item groups: items of similar shape, aggregated so that the linear program over them stays small."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.instance_types.resource_index import Bits, build_bits
from shared.decide.scheduling.optimization.items import NO_HOST_GROUP, Item
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts
from shared.decide.scheduling.packing.launchable_templates import LaunchableTemplates

SHAPE_RATIOS: Final = tuple(2.0 ** (power / 2) for power in range(-9, 10))
"""Bounds of the shape classes: ratios of memory to cpu."""
MAX_ITEM_GROUPS: Final = 48
"""Above this number, the smallest item groups are merged into others that accept the same templates."""
MAGNITUDE_DISTANCE_FACTOR: Final = 3
"""A difference of one magnitude counts as much as this number of shape classes."""
MAX_ITEMS_FOR_EXACT_GROUPS: Final = 80
"""Up to this number of items, each host group (pods of which a node holds only a few) is modeled separately."""
SINGLE_CLASS_GROUP: Final = NO_HOST_GROUP - 1
_MIN_CPU_AMOUNT: Final = 1e-6
ItemGroupKey: TypeAlias = tuple[tuple[LaunchableTemplates, tuple[bool, ...]], int, int, int]
"""Launchable templates and which resources are needed at all; shape class, magnitude and host group."""


class ItemGroup(msgspec.Struct, kw_only=True, eq=False):
    """Items of similar shape.

    *need* and *pods* are per unit of size; a node holds at most *max_per_node* pods of the *host_group*.

    If there are many items, host groups that only one pod class uses are merged: the item group then acts as their host
    group.
    """

    row: int
    """Row of the linear program: the demand of all item groups in the same row is added up."""
    group_row: int
    """Second row of the linear program, shared by a host group whose item groups are in several rows; -1 if there is
    none.
    """
    items: list[int]
    item_bits: Bits
    need: Amounts
    pods: float
    max_per_node: int
    host_group: int

    def list_row_amounts(self) -> tuple[tuple[int, float], ...]:
        """Return the rows of the linear program with the amount that one unit of size adds to each."""
        return ((self.row, 1.0),) if self.group_row < 0 else ((self.row, 1.0), (self.group_row, self.pods))


def compute_shape_class(item: Item) -> int:
    """Return the index of the item's shape class, from little to much memory per cpu."""
    return bisect_left(SHAPE_RATIOS, item.scaled_need[1] / max(item.scaled_need[0], _MIN_CPU_AMOUNT))


def build_item_groups(items: Sequence[Item], accepted_items: Sequence[Bits]) -> list[ItemGroup]:
    """Group the *items* that at least one bin type accepts; *accepted_items* are the accepted ones, by bin type."""
    classes_by_host_group = _find_classes_by_host_group(items)
    is_rough = len(items) > MAX_ITEMS_FOR_EXACT_GROUPS
    groups: dict[ItemGroupKey, list[int]] = {}
    for index, item in enumerate(items):
        launchable = (
            item.launchable,
            tuple(map(bool, item.scaled_need)),
        )
        host_group = item.host_group
        if is_rough and host_group != NO_HOST_GROUP:
            host_group = SINGLE_CLASS_GROUP if len(classes_by_host_group[host_group]) == 1 else NO_HOST_GROUP
        groups.setdefault((launchable, compute_shape_class(item), _compute_magnitude(item), host_group), []).append(
            index
        )
    item_groups: list[ItemGroup] = []
    row = 0
    for (*_, host_group), item_indices in _merge_small_groups(groups, items).items():
        for accepted_part in _split_by_acceptance(item_indices, accepted_items):
            for own_group, group_indices in (
                _group_by_host_group(accepted_part, items).items()
                if host_group == NO_HOST_GROUP
                else ((host_group, accepted_part),)
            ):
                group_number = SINGLE_CLASS_GROUP - row if own_group == SINGLE_CLASS_GROUP else own_group
                item_groups.append(
                    _build_item_group([items[index] for index in group_indices], group_indices, group_number, row)
                )
            row += 1
    return _assign_group_rows(item_groups, row)


def _group_by_host_group(item_indices: Iterable[int], items: Sequence[Item]) -> dict[int, list[int]]:
    indices_by_group: dict[int, list[int]] = {}
    for index in item_indices:
        indices_by_group.setdefault(items[index].host_group, []).append(index)
    return indices_by_group


def _assign_group_rows(item_groups: list[ItemGroup], row: int) -> list[ItemGroup]:
    """Assign rows, from *row* on, to the host groups whose item groups share their row with others."""
    row_counts = Counter(lump.row for lump in item_groups)
    host_groups = sorted(
        {lump.host_group for lump in item_groups if lump.host_group != NO_HOST_GROUP and row_counts[lump.row] > 1}
    )
    row_by_host_group = {host_group: row + offset for offset, host_group in enumerate(host_groups)}
    for item_group in item_groups:
        item_group.group_row = row_by_host_group.get(item_group.host_group, -1)
    return item_groups


def _split_by_acceptance(item_indices: list[int], accepted_items: Sequence[Bits]) -> list[list[int]]:
    """Return *item_indices* as one part if some bin type accepts all of them, else recursively halved.

    Items that no bin type accepts are dropped.
    """
    item_bits = build_bits(item_indices)
    if any(not item_bits & ~accepted_bits for accepted_bits in accepted_items):
        return [item_indices]
    if len(item_indices) == 1:
        return []
    half = len(item_indices) // 2
    return [
        *_split_by_acceptance(item_indices[:half], accepted_items),
        *_split_by_acceptance(item_indices[half:], accepted_items),
    ]


def _find_classes_by_host_group(items: Iterable[Item]) -> dict[int, set[int]]:
    """Return the numbers of the pod classes in each host group."""
    classes_by_group: dict[int, set[int]] = {}
    for item in items:
        classes_by_group.setdefault(item.host_group, set()).add(item.class_number)
    return classes_by_group


def _compute_magnitude(item: Item) -> int:
    """Return how often the size of two cores with their usual memory is quadrupled to reach the item's size."""
    return (int(item.size) // 4).bit_length() // 2


def _merge_small_groups(groups: dict[ItemGroupKey, list[int]], items: Sequence[Item]) -> dict[ItemGroupKey, list[int]]:
    """Merge small groups into similar ones with the same templates.

    The smallest group joins the most similar one, until at most `MAX_ITEM_GROUPS` remain.
    """
    total_sizes = {
        key: sum(items[index].count * items[index].size for index in item_indices)
        for key, item_indices in groups.items()
    }
    candidates = sorted(
        (key for key in groups if key[-1] == NO_HOST_GROUP), key=lambda key: (-total_sizes[key], groups[key][0])
    )
    while len(groups) > MAX_ITEM_GROUPS and candidates:
        key = candidates.pop()
        neighbors = [other_key for other_key in candidates if other_key[0] == key[0]]
        if neighbors:
            target = min(neighbors, key=lambda other_key: (_compute_distance(key, other_key), groups[other_key][0]))
            groups[target] = sorted(groups[target] + groups.pop(key))
            total_sizes[target] += total_sizes[key]
            candidates.sort(key=lambda key: (-total_sizes[key], groups[key][0]))
    return groups


def _compute_distance(first_key: ItemGroupKey, second_key: ItemGroupKey) -> int:
    return abs(first_key[1] - second_key[1]) + MAGNITUDE_DISTANCE_FACTOR * abs(first_key[2] - second_key[2])


def _build_item_group(items: Sequence[Item], indices: list[int], host_group: int, row: int) -> ItemGroup:
    amount = sum(item.count * item.size for item in items)
    axes = range(len(items[0].scaled_need))
    need = tuple(sum(item.count * item.scaled_need[axis] for item in items) / amount for axis in axes)
    pods = sum(item.count for item in items) / amount
    max_per_node = (
        sum({item.host_group: item.max_per_node for item in items}.values())
        if host_group <= SINGLE_CLASS_GROUP
        else items[0].max_per_node
    )
    return ItemGroup(
        row=row,
        group_row=-1,
        items=indices,
        item_bits=build_bits(indices),
        need=need,
        pods=pods,
        max_per_node=max_per_node,
        host_group=host_group,
    )
