"""The methods of disruption, in their order: the first that has something to do is the only one that does it."""

from collections.abc import Callable
from typing import Final, TypeAlias

from shared.disruption import emptiness
from shared.disruption.verdicts import Sweep
from shared.model.cluster import Cluster

Method: TypeAlias = Callable[[Cluster, frozenset[str]], Sweep]

METHODS: Final[tuple[Method, ...]] = (emptiness.decide,)


def decide(cluster: Cluster, nominated: frozenset[str] = frozenset()) -> Sweep:
    """Answer the first method's sweep that disrupts a node, else the last one's."""
    sweep = Sweep()
    for method in METHODS:
        sweep = method(cluster, nominated)
        if sweep.disrupted():
            break
    return sweep
