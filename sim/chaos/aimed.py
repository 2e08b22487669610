"""A second pass over plays: whoever was never killed at a place that was met is killed there.

A play is the same until the first kill that is new. So whoever aims at one place of a play that met it does hit it;
whoever aims at several at once hits most of them, for fewer plays.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from sim.chaos.events import Kill
from sim.chaos.script import Script
from sim.chaos.sites import Target

AT_ONCE: Final = (8, 3, 1)
"""So many places are aimed at in one play: at first, then at those that were missed, and the last time."""
KEPT: Final = 8
"""So many plays that met a place are remembered: one of them will meet others that were missed."""


class Sightings:
    """Which plays met which places."""

    def __init__(self) -> None:
        """Begin with none."""
        self._met: dict[Target, list[Script]] = defaultdict(list)

    def add(self, script: Script, met: Iterable[Target]) -> None:
        """Remember that the play of *script* met *met*."""
        for target in met:
            if len(self._met[target]) < KEPT:
                self._met[target].append(script)

    def aimed(self, targets: Iterable[Target], at_once: int) -> Iterator[Script]:
        """Iterate over few scripts that aim at all *targets*, at *at_once* of them each; by seed and place."""
        left = {target for target in targets if target in self._met}
        while left:
            by_seed: dict[int, set[Target]] = defaultdict(set)
            scripts = {script.seed: script for target in left for script in self._met[target]}
            for target in left:
                for script in self._met[target]:
                    by_seed[script.seed].add(target)
            seed = min(by_seed, key=lambda one: (-min(len(by_seed[one]), at_once), one))
            some = sorted(by_seed[seed])[:at_once]
            left -= set(some)
            yield with_kills(scripts[seed], some)


def with_kills(script: Script, targets: Iterable[Target]) -> Script:
    """Answer *script* with a death more at each of *targets*, as soon as somebody comes there."""
    kills = (Kill(at=0, function=site.partition(" ")[0], nth=1, when=when, site=site) for site, when in targets)
    return replace(script, events=(*kills, *script.events))
