"""Disruption that is decided and told, and not begun: what an installation does until somebody lets it.

What was begun before goes on, and what nobody chose, like interruptions, expiry and repair, is not held back.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from shared.disruption.scenes import Scene
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.lifecycle.events import about
from shared.model.action import Action

REASON: Final = "Planned"
LET: Final = "joiner:disruption is plan: deploy with joiner:disruption=active to let it"


def as_planned(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Answer *verdicts* with nodes kept that would go, in their order."""
    return tuple(_kept(one) if isinstance(one, Disrupted) else one for one in verdicts)


def _kept(one: Disrupted) -> Kept:
    return Kept(node=one.node, reason=REASON, message=f"it would go, {one.reason}: {one.message}; {LET}")


def describe_planned(verdicts: Iterable[Verdict], scene: Scene) -> Iterator[Action]:
    """Tell each NodePool how many of its nodes would go."""
    pools = {state.name: state.pool for state in scene.states}
    found = Counter(pools[one.node] for one in verdicts if one.reason == REASON and one.node in pools)
    for pool in sorted(scene.cluster.node_pools, key=lambda one: one.name):
        if found[pool.name]:
            words = f"{found[pool.name]} of its nodes would go, `joiner explain node NAME` says why; {LET}"
            yield about("NodePool", pool.meta, "DisruptionPlanned", words, scene.now)
