"""Masks: sets of instance types as bits of an integer, by label value and by amount of a resource."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.requirements import Requirement
from shared.model.core.resources import Vector

Mask: TypeAlias = int
"""A set of instance types: bit *i* is the i-th type by name."""


def merge_masks(masks: Iterable[Mask]) -> Mask:
    """Return the union of *masks*."""
    return reduce(or_, masks, 0)


def find_max_amount(mask: Mask, thresholds: Sequence[int], masks: Sequence[Mask]) -> int:
    """Return the largest of *thresholds* that a type in *mask* reaches; *masks*: as of `build_thresholds`."""
    low, high = 0, len(thresholds)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if mask & masks[middle] else (low, middle)
    return thresholds[low] if thresholds and mask else 0


def build_thresholds(amount_vectors: Sequence[Vector], width: int) -> list[tuple[list[int], list[Mask]]]:
    """Return, by axis, ascending amounts, and for each the types that have at least this amount.

    The last mask is empty.
    """
    thresholds = []
    for axis in range(width):
        distinct_amounts = sorted({room[axis] for room in amount_vectors})
        mask_by_amount = dict.fromkeys(distinct_amounts, 0)
        for index, amounts in enumerate(amount_vectors):
            mask_by_amount[amounts[axis]] |= 1 << index
        masks = [0]
        for amount in reversed(distinct_amounts):
            masks.append(masks[-1] | mask_by_amount[amount])
        thresholds.append((distinct_amounts, masks[::-1]))
    return thresholds


def build_label_masks(types: tuple[InstanceType, ...]) -> dict[str, list[tuple[Requirement, Mask]]]:
    """Return, by label key, the distinct requirements of the types and the types that have each.

    Types without the label are compatible with all of its values.
    """
    masks_by_requirement: dict[str, dict[Requirement, Mask]] = {}
    for index, instance_type in enumerate(types):
        for requirement in instance_type.requirements:
            masks = masks_by_requirement.setdefault(requirement.key, {})
            masks[requirement] = masks.get(requirement, 0) | 1 << index
    all_types = (1 << len(types)) - 1
    groups: dict[str, list[tuple[Requirement, Mask]]] = {}
    for key, by_item in masks_by_requirement.items():
        labeled_types = sum(by_item.values())
        requirement_masks = list(by_item.items())
        if all_types & ~labeled_types:
            requirement_masks.append((Requirement(key=key, complement=True), all_types & ~labeled_types))
        groups[key] = requirement_masks
    return groups
