"""Nodes opened in this run: each may still become any of a set of types, which narrows with every pod."""

from collections.abc import Iterator
from operator import add

import msgspec

from shared.model.labels import HOSTNAME
from shared.model.pods import HostPort
from shared.model.requirements import ANYTHING, Requirement
from shared.model.resources import Vector
from shared.model.taints import first_untolerated
from shared.scheduling.demand import PodClass
from shared.scheduling.ports import conflict
from shared.scheduling.rules import Place
from shared.scheduling.shelf import Mask
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.topology import Topology


class Opened(msgspec.Struct, kw_only=True, eq=False):
    """A node to be, and the pods it is for."""

    number: int
    template: Template
    state: Narrowed
    mask: Mask
    """Types that hold all its pods."""
    used: Vector
    ports: list[HostPort]
    pods: list[str] = msgspec.field(default_factory=list)
    waiting: list[tuple[int, str]] = msgspec.field(default_factory=list)
    """Groups, with a pod, that could not count it yet: the node's domain is open."""
    is_relaxed: bool = False


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """How many pods a node takes, and what that makes of it."""

    count: int
    state: Narrowed
    mask: Mask


def place_of(node: Opened, state: Narrowed) -> Place:
    """Answer what is known of *node* if it is narrowed to *state*."""
    host = Requirement(key=HOSTNAME, values=frozenset((f"new-{node.number:06d}",)))
    by_key = {item.key: item for item in state.requirements}
    defined = frozenset(item.key for item in node.template.start.requirements)
    return Place(by_key=by_key | {HOSTNAME: host}, taints=node.template.pool.taints, is_fixed=False, defined=defined)


def offer(
    node: Opened, pods: PodClass, stage: int, count: int, topology: Topology, *, any_variety: bool = False
) -> Offer | None:
    """Answer how many of *count* pods *node* takes at *stage*, at least one; None if none.

    *any_variety*: minValues are not looked at.
    """
    asked = pods.stages[stage]
    taints = node.template.pool.taints
    if taints and first_untolerated(taints, asked.tolerations) is not None:
        return None
    if pods.ports:
        if conflict(node.ports, pods.ports):
            return None
        count = 1
    if not could_ever(node, pods, stage):
        return None
    for state in _states(node, pods, stage, topology):
        minima_of = None if any_variety else state
        found = _most(node, pods, 1 if pods.bound[stage] else count, state, minima_of)
        if found is not None:
            return found
    return None


def could_ever(node: Opened, pods: PodClass, stage: int) -> bool:
    """Whether *node* has room for one such pod, other pods aside."""
    wanted = node.template.narrow(node.state, pods.stages[stage].requirements)
    return wanted is not None and bool(holding(node, pods, 1, node.mask & wanted.mask))


def _states(node: Opened, pods: PodClass, stage: int, topology: Topology) -> Iterator[Narrowed]:
    """Answer what *node* may be narrowed to: by where the volumes can be, then by the domains, the best first."""
    narrow, bound = node.template.narrow, pods.bound[stage]
    wanted = narrow(node.state, pods.stages[stage].requirements)
    for alternative in pods.alternatives if wanted is not None else ():
        state = None if wanted is None else narrow(wanted, alternative)
        if state is None:
            continue
        choices = topology.choices(bound, pods.selecting, place_of(node, state)) if bound else [ANYTHING]
        for choice in choices:
            chosen = narrow(state, choice)
            if chosen is not None:
                yield chosen


def _most(node: Opened, pods: PodClass, count: int, state: Narrowed, minima_of: Narrowed | None) -> Offer | None:
    """Answer the most pods, up to *count*, that some type holds; doubling, then halving."""

    def mask_for(some: int) -> Mask:
        mask = holding(node, pods, some, node.mask & state.mask)
        return mask if minima_of is None or node.template.meets_minima(minima_of, mask) else 0

    best, mask, high = 0, 0, 1
    while high <= count and (found := mask_for(high)):
        best, mask, high = high, found, high * 2
    high = min(high, count + 1)
    while high - best > 1:
        middle = (best + high) // 2
        found = mask_for(middle)
        best, mask, high = (middle, found, high) if found else (best, mask, middle)
    return Offer(count=best, state=state, mask=mask) if best else None


def holding(node: Opened, pods: PodClass, count: int, mask: Mask) -> Mask:
    """Answer the types in *mask* that hold what is on *node*, *count* more pods, and the daemons of each type."""
    shelf = node.template.shelf
    needed = pods.times(count, node.used)
    found = 0
    for group in node.template.overheads:
        part = mask & group.mask
        if part and not conflict(group.ports, pods.ports):
            found |= shelf.fitting(part, tuple(map(add, needed, group.needs)))
    return found


def put(node: Opened, pods: PodClass, taken: Offer, names: list[str], topology: Topology) -> None:
    """Take *names* in as was offered."""
    node.used = pods.times(len(names), node.used)
    node.state, node.mask = taken.state, taken.mask
    node.ports.extend(pods.ports)
    node.pods.extend(names)
    if not pods.counted and not node.waiting:
        return
    place = place_of(node, node.state)
    before, node.waiting = node.waiting, []
    for number, name in before:
        node.waiting.extend((still, name) for still in topology.record((number,), place))
    for name in names:
        node.waiting.extend((still, name) for still in topology.record(pods.counted, place))
