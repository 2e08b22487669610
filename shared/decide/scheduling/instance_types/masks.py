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


class LabelMasks:
    """The instance types by label value; the masks of a label are built when they are used for the first time."""

    def __init__(self, types: Sequence[InstanceType]) -> None:
        """Use the positions in *types* as bits."""
        self._types = types
        self._masks_by_key: dict[str, list[tuple[Requirement, Mask]]] = {}

    def get_masks(self, key: str) -> list[tuple[Requirement, Mask]]:
        """Return the distinct requirements of the types on the label *key*, and the types that have each.

        Types without the label are compatible with all of its values. The list is empty if no type has the label.
        """
        masks = self._masks_by_key.get(key)
        if masks is None:
            masks = self._masks_by_key[key] = self._build_masks(key)
        return masks

    def _build_masks(self, key: str) -> list[tuple[Requirement, Mask]]:
        masks: dict[Requirement, Mask] = {}
        unlabeled_types, position = 0, 0
        for index, instance_type in enumerate(self._types):
            requirements = instance_type.requirements.items
            if position >= len(requirements) or requirements[position].key != key:  # types have mostly the same labels
                position = next(
                    (place for place, item in enumerate(requirements) if item.key == key), len(requirements)
                )
            if position < len(requirements):
                requirement = requirements[position]
                masks[requirement] = masks.get(requirement, 0) | 1 << index
            else:
                unlabeled_types |= 1 << index
        if masks and unlabeled_types:
            return [*masks.items(), (Requirement(key=key, complement=True), unlabeled_types)]
        return list(masks.items())
