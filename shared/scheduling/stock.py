"""Amounts as bits of an integer: bit *i* is the i-th of some vectors of need, so that all that fit are found at once.

As the shelf does for instance types, turned round: here the room is given and the needs are many.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

from shared.model.resources import Vector

Bits: TypeAlias = int
STEPS: Final = 512
"""So many thresholds an axis has at most; between two of them what would just fit is passed over."""


class Stock:
    """Needs, in their order."""

    def __init__(self, needs: Sequence[Vector]) -> None:
        """Sort them by each of their amounts."""
        self._axes = [_thresholds(amounts) for amounts in zip(*needs, strict=True)]

    def fitting(self, free: Sequence[int], among: Bits) -> Bits:
        """Keep of *among* what *free* has room for."""
        for have, (steps, masks) in zip(free, self._axes, strict=True):
            among &= masks[bisect_right(steps, have)]
            if not among:
                return 0
        return among


def places(some: Bits) -> list[int]:
    """Answer which bits are set, rising."""
    text = bin(some)[:1:-1]
    found, place = [], text.find("1")
    while place >= 0:
        found.append(place)
        place = text.find("1", place + 1)
    return found


def bits(some: Sequence[int]) -> Bits:
    """Answer an integer with these bits set."""
    if not some:
        return 0
    row = bytearray(max(some) // 8 + 1)
    for place in some:
        row[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(row, "little")


def _thresholds(amounts: Sequence[int]) -> tuple[list[int], list[Bits]]:
    """Answer amounts, rising, and which needs are no more than each; before the first: none."""
    by_amount: dict[int, list[int]] = {}
    for place, amount in enumerate(amounts):
        by_amount.setdefault(amount, []).append(place)
    rising = sorted(by_amount)
    stride = -(-len(rising) // STEPS)
    steps: list[int] = []
    masks = [0]
    for start in range(0, len(rising), stride):
        part = rising[start : start + stride]
        steps.append(part[-1])
        masks.append(masks[-1] | bits([place for amount in part for place in by_amount[amount]]))
    return steps, masks
