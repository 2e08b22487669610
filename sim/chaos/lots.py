"""Lots: what is drawn for a seed, each under a name of its own, so that one more draw changes no other."""

from collections.abc import Sequence
from typing import TypeVar

from sim.cloud.chance import share

T = TypeVar("T")


class Lot:
    """Draws for one seed."""

    def __init__(self, seed: int) -> None:
        """Begin."""
        self.seed = seed

    def share(self, *words: object) -> float:
        """Answer a number in [0, 1)."""
        return share("chaos", self.seed, *words)

    def which(self, *words: object) -> float:
        """Answer a number in [0, 1) that is short enough to be read."""
        return int(self.share(*words) * 1000) / 1000

    def whole(self, low: int, high: int, *words: object) -> int:
        """Answer one of *low* to *high*, both included."""
        return low + int(self.share(*words) * (high - low + 1))

    def one(self, some: Sequence[T], *words: object) -> T:
        """Answer one of *some*."""
        return some[int(self.share(*words) * len(some))]
