"""Trials: what a packing places, or takes away, is noted in a frame, and can be undone from there.

A trial costs what its own pods cost, not what the cluster does. Frames nest, so that a set of nodes can grow.
"""

from collections.abc import Iterable

import msgspec

from shared.model.pods import Pod
from shared.model.resources import Vector
from shared.scheduling.demand import PodClass
from shared.scheduling.nodeset import Nodes
from shared.scheduling.opened import Offer, Opened
from shared.scheduling.pack import Packing


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """What a node that stands was before it was touched."""

    free: Vector
    ports: int
    attached: dict[str, set[str]]
    pods: int


class Frame(msgspec.Struct, kw_only=True, eq=False):
    """What has to be known to undo a trial."""

    sealed: Nodes
    may_open: int
    limits: dict[str, dict[str, int]]
    refused: dict[int, Nodes]
    ranks: dict[int, Nodes]
    order: list[int]
    at: list[int]
    """Of opened nodes: their sites."""
    opened: int
    groups: dict[int, tuple[dict[str, int], list[int]]] = msgspec.field(default_factory=dict)
    stands: dict[int, Stand] = msgspec.field(default_factory=dict)
    opens: dict[int, Opened] = msgspec.field(default_factory=dict)
    gone: dict[int, dict[str, Pod]] = msgspec.field(default_factory=dict)
    """Nodes that were cleared, with the movable pods that were there."""
    moves: list[tuple[Pod, int]] = msgspec.field(default_factory=list)
    """In the order in which they were placed."""


class Trials(Packing, kw_only=True, eq=False):
    """A packing that can be put back as it was."""

    residents: dict[int, dict[str, Pod]] = msgspec.field(default_factory=dict)
    """By node: the movable pods that are there now, by name."""
    may_open: int = 0
    """So many more new nodes a trial may have."""
    frames: list[Frame] = msgspec.field(default_factory=list)

    def begin(self, *, may_open: int = 0) -> Frame:
        """Begin a trial."""
        nodes = self.nodes
        self.trail.clear()
        frame = Frame(
            sealed=self.sealed,
            may_open=self.may_open,
            limits={name: dict(left) for name, left in self.limits.items()},
            refused=dict(nodes.refused),
            ranks=dict(nodes.ranks),
            order=list(nodes.order),
            at=nodes.at[len(self.standing) :],
            opened=len(self.opened),
        )
        self.frames.append(frame)
        self.may_open = may_open
        return frame

    def keep(self) -> None:
        """Let the last trial be part of the one around it, or of what is so."""
        frame = self.frames.pop()
        self.may_open = frame.may_open
        if self.frames:
            outer = self.frames[-1]
            outer.groups = frame.groups | outer.groups
            outer.stands = frame.stands | outer.stands
            opens = {number: one for number, one in frame.opens.items() if number < outer.opened}
            outer.opens = opens | outer.opens
            outer.gone = frame.gone | outer.gone
            outer.moves.extend(frame.moves)

    def undo(self) -> None:
        """Let everything be as it was before the last frame."""
        frame = self.frames.pop()
        touched = self._close(frame)
        self._restore_nodes(frame, touched)
        for number, (counts, levels) in frame.groups.items():
            group = self.topology.groups[number]
            group.counts, group.levels = counts, levels
            group.version += 1
        self.residents.update(frame.gone)
        for pod, number in frame.moves:
            if number in self.residents:
                self.residents[number].pop(pod.name, None)
        self.sealed, self.may_open, self.limits = frame.sealed, frame.may_open, frame.limits

    def seal_opened(self) -> None:
        """Let nodes that were opened so far take no more pods in any trial to come."""
        self.sealed |= ((1 << len(self.opened)) - 1) << len(self.standing)

    def _save(self, groups: Iterable[int]) -> None:
        saved = self.frames[-1].groups if self.frames else None
        for number in groups if saved is not None else ():
            if saved is not None and number not in saved:
                group = self.topology.groups[number]
                saved[number] = (dict(group.counts), list(group.levels))

    def _settle(self, number: int, pods: PodClass, some: list[Pod]) -> None:
        if self.frames:
            self._note(number)
        super()._settle(number, pods, some)
        self._moved(number, some)

    def _take(self, number: int, node: Opened, pods: PodClass, found: Offer, some: list[Pod]) -> None:
        if self.frames:
            frame, index = self.frames[-1], number - len(self.standing)
            if index < frame.opened and index not in frame.opens:
                frame.opens[index] = msgspec.structs.replace(
                    node, ports=list(node.ports), pods=list(node.pods), waiting=list(node.waiting)
                )
        super()._take(number, node, pods, found, some)
        self._moved(number, some[: found.count])

    def _moved(self, number: int, some: list[Pod]) -> None:
        home = self.residents.setdefault(number, {})
        for pod in some:
            home[pod.name] = pod
        if self.frames:
            self.frames[-1].moves.extend((pod, number) for pod in some)

    def _note(self, number: int) -> None:
        stands = self.frames[-1].stands
        if number not in stands:
            node = self.standing[number]
            stands[number] = Stand(
                free=node.free,
                ports=len(node.ports),
                attached={driver: set(keys) for driver, keys in node.attached.items()} if node.attached else {},
                pods=len(node.pods),
            )

    def _close(self, frame: Frame) -> Nodes:
        """Close what was opened in *frame*; answer the opened nodes that it touched, as bits."""
        nodes, base, touched = self.nodes, len(self.standing), 0
        for index in range(len(self.opened)):
            number = base + index
            bit = 1 << number
            nodes.members[nodes.at[number]] &= ~bit
            if index < frame.opened:
                nodes.at[number] = frame.at[index]
                nodes.members[frame.at[index]] |= bit
            if index >= frame.opened or index in frame.opens:
                touched |= bit
        for index, one in frame.opens.items():
            self.opened[index] = one
        for index in range(frame.opened, len(self.opened)):
            self.residents.pop(base + index, None)
        del nodes.hosts[base + frame.opened :], nodes.at[base + frame.opened :], self.opened[frame.opened :]
        nodes.ranks, nodes.order = frame.ranks, frame.order
        return touched

    def _restore_nodes(self, frame: Frame, touched: Nodes) -> None:
        nodes = self.nodes
        for number, was in frame.stands.items():
            node = self.standing[number]
            node.free, node.attached = was.free, was.attached
            del node.ports[was.ports :], node.pods[was.pods :]
            touched |= 1 << number
        for shape, bits in nodes.refused.items():
            if bits & touched:
                nodes.refused[shape] = (bits & ~touched) | (frame.refused.get(shape, 0) & touched)
        self._forget(touched)

    def _forget(self, touched: Nodes) -> None:
        """Forget how little was left on the nodes *touched*: it will be seen again."""
        nodes = self.nodes
        for masks in nodes.scarce:
            for level, bits in enumerate(masks):
                if bits & touched:
                    masks[level] = bits & ~touched
        while touched:
            bit = touched & -touched
            touched ^= bit
            number = bit.bit_length() - 1
            nodes.levels.pop((0, number), None)
            nodes.levels.pop((1, number), None)
