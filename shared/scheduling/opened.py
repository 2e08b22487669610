"""Nodes opened in this run: each may still become any of a set of types, which narrows with every pod."""

import msgspec

from shared.model.pods import HostPort
from shared.model.resources import Vector
from shared.scheduling.demand import PodClass
from shared.scheduling.ports import conflict
from shared.scheduling.shelf import Mask
from shared.scheduling.templates import Narrowed, Template


class Opened(msgspec.Struct, kw_only=True, eq=False):
    """A node to be, and the pods it is for."""

    number: int
    host: str
    template: Template
    state: Narrowed
    mask: Mask
    """Types that hold all its pods."""
    used: Vector
    ports: list[HostPort] = msgspec.field(default_factory=list)
    pods: list[str] = msgspec.field(default_factory=list)
    waiting: list[tuple[int, str]] = msgspec.field(default_factory=list)
    """Groups, with a pod, that could not count it yet: the node's domain is open."""
    is_relaxed: bool = False

    def free(self) -> tuple[int, int]:
        """Answer how much cpu and memory is left at most."""
        most, used = self.template.shelf.most, self.used
        return most(self.mask, 0) - used[0], most(self.mask, 1) - used[1]


class Offer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many pods a node takes, and what that makes of it."""

    count: int
    state: Narrowed
    mask: Mask
    used: Vector


def offer(
    node: Opened, pods: PodClass, count: int, states: tuple[Narrowed, ...], *, any_variety: bool = False
) -> Offer | None:
    """Answer how many of *count* pods *node* takes in the first of *states* in which it takes any; None if in none.

    *any_variety*: minValues are not looked at.
    """
    ports = pods.spec.host_ports
    if ports:
        if conflict(node.ports, ports):
            return None
        count = 1
    one = pods.times(1, node.used)
    holding = node.template.holding
    for state in states:
        room = node.mask & state.mask
        is_free = any_variety or not state.minima
        mask = holding(room, one, ports)
        if not mask or not (is_free or node.template.meets_minima(state, mask)):
            continue
        if count == 1:
            return Offer(count=1, state=state, mask=mask, used=one)
        return _most(node, pods, count, state, is_free=is_free)
    return None


def _most(node: Opened, pods: PodClass, count: int, state: Narrowed, *, is_free: bool) -> Offer:
    """Answer the most pods, one at least, up to *count*, that some type holds; doubling, then halving."""
    template, ports, room = node.template, pods.spec.host_ports, node.mask & state.mask

    def mask_for(some: int) -> Mask:
        mask = template.holding(room, pods.times(some, node.used), ports)
        return mask if is_free or template.meets_minima(state, mask) else 0

    best, mask, high = 1, mask_for(1), 2
    while high <= count and (found := mask_for(high)):
        best, mask, high = high, found, high * 2
    high = min(high, count + 1)
    while high - best > 1:
        middle = (best + high) // 2
        found = mask_for(middle)
        best, mask, high = (middle, found, high) if found else (best, mask, middle)
    return Offer(count=best, state=state, mask=mask, used=pods.times(best, node.used))
