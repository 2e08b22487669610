"""Random draws for a seed, each identified by its own words, so that an additional draw changes no other."""

from collections.abc import Sequence
from typing import TypeVar

from sim.cloud.seeded_random import draw_fraction

T = TypeVar("T")


class RandomDraws:
    """Draws for one seed."""

    def __init__(self, seed: int) -> None:
        """Use *seed* for all draws."""
        self.seed = seed

    def draw_ratio(self, *words: object) -> float:
        """Return a number in [0, 1)."""
        return draw_fraction("chaos", self.seed, *words)

    def draw_position(self, *words: object) -> float:
        """Return a number in [0, 1) with three decimals, which is short enough to read."""
        return int(self.draw_ratio(*words) * 1000) / 1000

    def draw_integer(self, low: int, high: int, *words: object) -> int:
        """Return an integer from *low* to *high*, both inclusive."""
        return low + int(self.draw_ratio(*words) * (high - low + 1))

    def choose(self, choices: Sequence[T], *words: object) -> T:
        """Return one of *choices*."""
        return choices[int(self.draw_ratio(*words) * len(choices))]
