"""Where pods go, by name."""

from collections.abc import Iterable, Mapping

from shared.disruption.ground import Ground
from shared.model.objects import Pairs
from shared.model.pods import Pod


def moves_of(ground: Ground, moves: Iterable[tuple[Pod, int]], names: Mapping[int, str]) -> Pairs:
    """Answer pods and nodes in the order in which pods were placed; *names*: of the nodes that are new."""
    base = len(ground.standing)
    return tuple((pod.name, ground.standing[number].name if number < base else names[number]) for pod, number in moves)
