"""Resource index: needs as bits of an integer, so that all needs that fit are found at once.

Bit *i* is the i-th need vector. This is the counterpart of the instance type index: here the capacity is given, and the
needs are many.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

from shared.model.core.resources import Vector

Bits: TypeAlias = int
MAX_THRESHOLD_COUNT: Final = 512
"""Maximum number of thresholds per axis; a need between two thresholds counts as the higher one."""


class ResourceIndex:
    """Index of need vectors, in their order."""

    def __init__(self, needs: Sequence[Vector]) -> None:
        """Build the thresholds of each axis that any of *needs* uses."""
        self._axes = [
            (axis, *_build_thresholds(amounts)) for axis, amounts in enumerate(zip(*needs, strict=True)) if any(amounts)
        ]

    def filter_fitting(self, free: Sequence[int], among: Bits) -> Bits:
        """Return the needs in *among* that fit into the *free* resources, of which none is negative."""
        for axis, thresholds, masks in self._axes:
            among &= masks[bisect_right(thresholds, free[axis])]
            if not among:
                return 0
        return among


def list_bits(mask: Bits) -> list[int]:
    """Return the positions of the set bits, ascending."""
    reversed_digits = bin(mask)[:1:-1]
    positions, position = [], reversed_digits.find("1")
    while position >= 0:
        positions.append(position)
        position = reversed_digits.find("1", position + 1)
    return positions


def build_bits(positions: Sequence[int]) -> Bits:
    """Return an integer with the bits at *positions* set."""
    if not positions:
        return 0
    buffer = bytearray(max(positions) // 8 + 1)
    for position in positions:
        buffer[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(buffer, "little")


def _build_thresholds(amounts: Sequence[int]) -> tuple[list[int], list[Bits]]:
    """Return ascending amounts, and for each the needs up to this amount.

    The first mask, below all amounts, is empty.
    """
    positions_by_amount: dict[int, list[int]] = {}
    for position, amount in enumerate(amounts):
        positions_by_amount.setdefault(amount, []).append(position)
    sorted_amounts = sorted(positions_by_amount)
    stride = -(-len(sorted_amounts) // MAX_THRESHOLD_COUNT)
    thresholds: list[int] = []
    masks = [0]
    for start in range(0, len(sorted_amounts), stride):
        step_amounts = sorted_amounts[start : start + stride]
        thresholds.append(step_amounts[-1])
        masks.append(
            masks[-1] | build_bits([place for amount in step_amounts for place in positions_by_amount[amount]])
        )
    return thresholds, masks
