"""What kube-scheduler likes: nodes with much room, evenly used, with the labels that are preferred."""

from typing import Final, TypeAlias

from shared.model.pods import PodSpec
from shared.model.requirements import Requirement, Requirements
from shared.model.taints import first_untolerated
from shared.scheduling.rules import Place, is_blocked

Pair: TypeAlias = tuple[int, int]
"""Milli cpu, and bytes of memory."""
UNASKED: Final = (100, 200 * 1024 * 1024)
"""What a pod counts for when nodes are compared, if it asks for none."""
FULL: Final = 100


def liking(spec: PodSpec, terms: tuple[Requirements, ...], place: Place) -> int | None:
    """Answer what does not change about *place* for such pods: its labels and taints; None: they keep them out."""
    if is_blocked(place.taints, spec.tolerations):
        return None
    if not any(_satisfies(place, term) for term in terms):
        return None
    preferred = spec.preferred_terms
    liked = sum(term.weight for term in preferred if _satisfies(place, term.requirements))
    most = sum(term.weight for term in preferred) or 1
    soft = (taint for taint in place.taints if taint.effect == "PreferNoSchedule")
    avoided = first_untolerated(soft, spec.tolerations) is not None
    return 2 * FULL * liked // most - 3 * FULL * avoided


def _satisfies(place: Place, wanted: Requirements) -> bool:
    return all(_is(place.by_key.get(item.key), item) for item in wanted)


def _is(own: Requirement | None, item: Requirement) -> bool:
    return item.is_tolerant() if own is None else own.intersects(item)


def score(asked: Pair, total: Pair, used: Pair, counted: Pair) -> int:
    """Answer how much kube-scheduler likes what is free: 0 to 200.

    Pairs are of cpu and memory: *asked* for by the pod, what the node has in *total*, what is *used*, and the same
    *counted* with something for those who ask for nothing.
    """
    (cpu, memory), (cpus, memories) = asked, total
    free = _percent(cpus - counted[0] - (cpu or UNASKED[0]), cpus)
    free += _percent(memories - counted[1] - (memory or UNASKED[1]), memories)
    if not cpu and not memory:
        return free // 2
    change = FULL // 2 + _balance((used[0] + cpu, used[1] + memory), total) - _balance(used, total)
    return free // 2 + FULL // 2 + (change // 2 if change >= 0 else -(-change // 2))


def _percent(free: int, total: int) -> int:
    return max(0, free) * FULL // total if total else 0


def _balance(used: Pair, total: Pair) -> int:
    """Answer, from 50 to 100, how alike the parts of cpu and of memory are that are taken."""
    if not total[0] or not total[1]:
        return FULL
    cpu, memory = min(1.0, used[0] / total[0]), min(1.0, used[1] / total[1])
    return int((1 - abs((cpu - memory) / 2)) * FULL)
