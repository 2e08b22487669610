"""Targeted kills: a second pass that kills handlers at call sites that were reached but never had a kill.

Runs of the same script are identical up to the first additional kill. A script with one target that its run reached
therefore always hits it; a script with several targets hits most of them, with fewer runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from sim.fault_simulation.events.call_sites import KillTarget
from sim.fault_simulation.events.script import Script
from sim.fault_simulation.events.script_events import Kill

TARGETS_PER_RUN: Final = (8, 3, 1)
"""How many targets one run has in the successive passes: the later passes repeat those that were missed."""
MAX_SCRIPTS_PER_TARGET: Final = 8
"""How many scripts are remembered per target: one of them probably reaches other missed targets too."""


class SiteSightings:
    """Which scripts reach which call sites."""

    def __init__(self) -> None:
        """Create an empty index."""
        self._scripts_by_target: dict[KillTarget, list[Script]] = defaultdict(list)

    def add(self, script: Script, reached_targets: Iterable[KillTarget]) -> None:
        """Remember that the run of *script* reached the targets *met*."""
        for target in reached_targets:
            if len(self._scripts_by_target[target]) < MAX_SCRIPTS_PER_TARGET:
                self._scripts_by_target[target].append(script)

    def build_targeted_scripts(self, targets: Iterable[KillTarget], targets_per_run: int) -> Iterator[Script]:
        """Yield few scripts that together have all *targets*, up to *at_once* each.

        In the order of seed and call site.
        """
        remaining_targets = {target for target in targets if target in self._scripts_by_target}
        while remaining_targets:
            targets_by_seed: dict[int, set[KillTarget]] = defaultdict(set)
            scripts = {  # sorted, because several scripts have the same seed
                script.seed: script
                for target in sorted(remaining_targets)
                for script in self._scripts_by_target[target]
            }
            for target in remaining_targets:
                for script in self._scripts_by_target[target]:
                    targets_by_seed[script.seed].add(target)
            target_counts = {
                seed: min(len(seed_targets), targets_per_run) for seed, seed_targets in targets_by_seed.items()
            }
            seed = min(target_counts, key=lambda candidate_seed: (-target_counts[candidate_seed], candidate_seed))
            selected_targets = sorted(targets_by_seed[seed])[:targets_per_run]
            remaining_targets -= set(selected_targets)
            yield with_kills(scripts[seed], selected_targets)


def with_kills(script: Script, targets: Iterable[KillTarget]) -> Script:
    """Return *script* with an additional kill at each of *targets*, at the first call."""
    kills = (Kill(at=0, function=site.partition(" ")[0], nth=1, when=when, site=site) for site, when in targets)
    return replace(script, events=(*kills, *script.events))
