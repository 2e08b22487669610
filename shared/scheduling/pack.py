"""First fit: on what stands, then on what this run has opened, then on a new node of the heaviest NodePool that can.

Which nodes may take a pod at all is known as a set of bits; the door that every pod goes through checks what bits do
not say: room, and domains that are not decided yet.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from shared.model.pods import Pod
from shared.model.resources import NODES, Vector
from shared.scheduling.aims import Aim
from shared.scheduling.demand import PodClass
from shared.scheduling.lookout import Lookout
from shared.scheduling.nodeset import Nodes
from shared.scheduling.opened import Offer, Opened, offer
from shared.scheduling.placement import Options
from shared.scheduling.shelf import Mask
from shared.scheduling.standing import Standing
from shared.scheduling.templates import Narrowed, Template

ALL: Final[Nodes] = -1
Put: TypeAlias = tuple[int, PodClass, Aim, Sequence[Pod]]
"""The node, counted with those that stand, and what it was given."""
Part: TypeAlias = tuple[int, int]
"""Some pods of a class: from the one place up to the other. A list of them, time and again, would be long."""
LOOK: Final = 256
"""So many nodes are tried between two looks at the clock."""


class Packing(Lookout, kw_only=True, eq=False):
    """The state of a run."""

    standing: list[Standing]
    templates: tuple[Template, ...]
    limits: dict[str, dict[str, int]]
    """By NodePool: what is left of its limits."""
    options: Options
    opened: list[Opened] = msgspec.field(default_factory=list)
    sealed: Nodes = 0
    """Nodes that take no more pods in this run."""
    targets: tuple[Mask, ...] = ()
    """By template: the types that a new node is, if they do; empty: any."""
    given_up: int = 0
    """Preferences, counted per pod, that were not held."""
    is_over: Callable[[], bool] | None = None
    """Whether time is up; asked now and then."""
    over: bool = False
    """Whether it was, when last asked."""
    looks: int = 0
    reached: set[int] = msgspec.field(default_factory=set)
    """Ids of the classes that everything was tried for."""
    wheres: dict[tuple[int, frozenset[int]], tuple[tuple[int, Narrowed], ...]] = msgspec.field(default_factory=dict)
    """By shape of pod, and templates left out: which templates make a node for it, and what is left of each."""
    trail: list[Put] = msgspec.field(default_factory=list)
    """What was put where, in order; pods that are at home aside."""

    def __post_init__(self) -> None:
        """Take in the nodes that stand."""
        if not self.nodes.hosts and self.standing:
            self.nodes.stand(self.standing)
            self.topology.seen_on(self.nodes.hosts)

    def fork(self) -> "Packing":
        """Answer a packing that starts where this one is, before anything was opened."""
        standing = [
            msgspec.structs.replace(
                node,
                ports=list(node.ports),
                attached={driver: set(keys) for driver, keys in node.attached.items()},
                pods=list(node.pods),
            )
            for node in self.standing
        ]
        return type(self)(
            standing=standing,
            templates=self.templates,
            limits={name: dict(left) for name, left in self.limits.items()},
            topology=self.topology.fork(),
            options=self.options,
            nodes=self.nodes.fork(),
            is_over=self.is_over,
            over=self.over,
            wheres=self.wheres,
        )

    def place(self, pods: PodClass) -> list[Pod]:
        """Place what can be placed of *pods*; answer the rest, in order."""
        done, is_done = 0, False
        self._look()
        while done < len(pods.pods) and not is_done and not self.over:
            done, is_done = self._relaxing(pods, done)
        if not self.over:
            self.reached.add(id(pods))
        return pods.pods[done:] if done else pods.pods

    def is_late(self) -> bool:
        """Whether time is up, asked at once."""
        self.over = self.over or (self.is_over is not None and self.is_over())
        return self.over

    def place_at_home(self, pods: PodClass, homes: Mapping[str, int]) -> list[Pod]:
        """Place those of *pods* that a node is already on its way for; answer the rest, in order."""
        if not homes:
            return pods.pods
        return [pod for pod in pods.pods if pod.name not in homes or not self._at_home(pods, pod, homes[pod.name])]

    def place_on_standing(self, pods: PodClass) -> list[Pod]:
        """Place those of *pods* that have room, with all they prefer, on what is there; answer the rest, in order."""
        if not self.standing or pods.stages[0].is_contradictory:
            return pods.pods
        return pods.pods[self._fill(pods, pods.aims[0], (0, len(pods.pods)), (1 << len(self.standing)) - 1) :]

    def open(self, template: Template, state: Narrowed, mask: Mask) -> int | None:
        """Open a node that may be of the types in *mask*, still empty; answer its number, None if it cannot be."""
        node = self._blank(template, mask & state.mask)
        if node is None or not template.meets_minima(state, node.mask):
            return None
        node.state = state
        self._charge(template, node.mask)
        self._join(node)
        return node.number

    def within_limits(self, template: Template, mask: Mask) -> Mask:
        """Answer those of *mask* that one node more may be as far as the limits of its NodePool go."""
        limits = self.limits.get(template.pool.name)
        if limits is None:
            return mask
        return 0 if limits.get(NODES, 1) < 1 else mask & template.shelf.within(_without_nodes(limits))

    def affordable(self, node: Opened) -> Mask:
        """Answer the types that *node* may become as far as its NodePool's limits go."""
        shelf, limits = node.template.shelf, self.limits[node.template.pool.name]
        left = {name: amount + shelf.largest(node.mask, name) for name, amount in _without_nodes(limits).items()}
        return shelf.within(left)

    def grow(self, node: Opened, more: Mask) -> None:
        """Let *node* be of the types in *more*, too, and take what it may become off the limits."""
        shelf, limits = node.template.shelf, self.limits[node.template.pool.name]
        for name in _without_nodes(limits):
            limits[name] -= shelf.largest(node.mask | more, name) - shelf.largest(node.mask, name)
        node.mask |= more

    def seal(self) -> None:
        """Let the nodes that were opened so far take no more pods."""
        self.sealed = ((1 << len(self.opened)) - 1) << len(self.standing)

    def place_on(self, number: int, pods: PodClass, some: list[Pod]) -> int:
        """Place as many of *some* as the opened node takes, with all they prefer; answer how many."""
        return self.put((len(self.standing) + number, pods, pods.aims[0], some))

    def put(self, one: Put) -> int:
        """Place as many of the pods as the node takes; answer how many."""
        number, pods, aim, some = one
        bit, is_moving, done = 1 << number, aim.bonds.is_moving, 0
        while done < len(some) and not self.over and self._is_able(number, pods, aim):
            version = self._version(aim)
            count = self._on(bit, pods, aim, list(some[done : done + 1] if is_moving else some[done:]))
            done += count
            if not count or (self._version(aim) == version and not is_moving):
                break
        return done

    def _relaxing(self, pods: PodClass, done: int) -> tuple[int, bool]:
        """Try stage after stage, after the first *done*; answer how many are done then, and whether no more can be.

        Where a pod for which something was given up may let the next have all it prefers, that is tried anew.
        """
        is_wary, count = False, len(pods.pods)
        for number, aim in enumerate(pods.aims):
            if aim.stage.is_contradictory:
                continue
            taken = self._sweep(pods, aim, (done, done + 1 if is_wary else count))
            self.given_up += number * taken
            done += taken
            if done == count:
                return done, True
            if taken and is_wary:
                return done, False
            is_wary = is_wary or aim.bonds.may_recover
        return done, True

    def _sweep(self, pods: PodClass, aim: Aim, part: Part) -> int:
        """Place *part* on nodes that are there, and on new ones; answer how many found a place."""
        start, end = part
        done = start + self._fill(pods, aim, part, ALL & ~self.sealed)
        while done < end and not self.over:
            count = self._on_new(pods, aim, (done, end))
            if not count:
                break
            done += count
            if aim.bonds.watched and done < end:
                done += self._fill(pods, aim, (done, end), ALL)
        return done - start

    def _fill(self, pods: PodClass, aim: Aim, part: Part, within: Nodes) -> int:
        """Place *part* on nodes *within*; answer how many found a place."""
        done, end = part
        while done < end and not self.over:
            version = self._version(aim)
            able = self._able(pods, aim) & within
            if not able:
                break
            some = pods.pods[done : done + 1 if aim.bonds.is_moving else end]
            count = self._through((able, version), pods, aim, some)
            done += count
            if not count or (self._version(aim) == version and not aim.bonds.is_moving):
                break
        return done - part[0]

    def _through(self, start: tuple[Nodes, int], pods: PodClass, aim: Aim, some: list[Pod]) -> int:
        """Place *some* on nodes that are able, as long as that does not change which ones are.

        *start*: these nodes, as of that version.

        What stands is filled one node after the other. Of the opened nodes the one with the fewest pods, the oldest of
        these, takes as many as it can; or one, if other pods matter at some stage.
        """
        nodes, bonds, done, index = self.nodes, aim.bonds, 0, 0
        able, version = start
        is_bound = any(pods.bound)
        front = able & nodes.standing
        while able and done < len(some) and not self.over:
            if front:
                part = front
            elif index < len(nodes.order):
                part = able & nodes.ranks[nodes.order[index]]
            else:
                break
            if not part:
                index += 1
                continue
            bit = part & -part
            is_single = is_bound and not front and able != bit
            count = self._on(bit, pods, aim, some[done : done + 1] if is_single else some[done:])
            done += count
            if not count or not is_single or bonds.is_once:
                able ^= bit
                front &= able
            if count and bonds.watched and self._version(aim) != version:
                break
        return done

    def _on(self, bit: Nodes, pods: PodClass, aim: Aim, some: list[Pod]) -> int:
        """Place as many of *some* as the node *bit* takes now."""
        self._look()
        number = bit.bit_length() - 1
        count = (
            self._most(self.nodes.hosts[number], aim, len(some)) if aim.bonds.watched or aim.bonds.hosts else len(some)
        )
        if count <= 0:
            return 0
        place = self._on_standing if number < len(self.standing) else self._on_opened
        done = place(number, pods, aim, some[:count] if count < len(some) else some)
        if done:
            self.trail.append((number, pods, aim, some[:done]))
        return done

    def _look(self) -> None:
        self.looks += 1
        if not self.looks % LOOK:
            self.is_late()

    def _on_standing(self, number: int, pods: PodClass, aim: Aim, some: list[Pod]) -> int:
        node = self.standing[number]
        if aim.wish.names_hosts and not _agrees(node, aim):
            return 0
        count = node.room(pods, len(some))
        if count:
            self._settle(number, pods, some[:count])
        elif not pods.drivers:
            self.nodes.refuse(aim.shape, number, node.free[:2])
        return count

    def _on_opened(self, number: int, pods: PodClass, aim: Aim, some: list[Pod]) -> int:
        node = self.opened[number - len(self.standing)]
        found = offer(node, pods, len(some), self._states(node.template, node.state, pods, aim))
        if found is None:
            if not aim.bonds.domains or not self._could_ever(node, pods, aim):
                self.nodes.refuse(aim.shape, number, node.free())
            return 0
        self._take(number, node, pods, found, some)
        return found.count

    def _could_ever(self, node: Opened, pods: PodClass, aim: Aim) -> bool:
        """Whether *node* has room for one such pod, other pods aside."""
        return offer(node, pods, 1, node.template.narrow_to(node.state, aim.wish)) is not None

    def _at_home(self, pods: PodClass, pod: Pod, number: int) -> bool:
        """Whether *pod* could be put where it is expected; what other pods are about was settled before."""
        home = self.standing[number]
        admits = any(home.admits(aim.stage) for aim in pods.aims if not aim.stage.is_contradictory)
        if not admits or not any(home.satisfies(one) for one in pods.alternatives) or not home.room(pods, 1):
            return False
        self._settle(number, pods, [pod])
        return True

    def _settle(self, number: int, pods: PodClass, some: list[Pod]) -> None:
        node = self.standing[number]
        node.put(pods, [pod.name for pod in some])
        if pods.counted:
            self.topology.record(pods.counted, node.place, len(some), 1 << number)

    def _on_new(self, pods: PodClass, aim: Aim, part: Part) -> int:
        """Open a node for *part*, and place as many as it takes."""
        done, end = part
        self._look()
        for number, template in enumerate(self.templates):
            masks = (self.targets[number], template.start.mask) if self.targets else (template.start.mask,)
            for mask in masks:
                node = self._blank(template, mask)
                count = 0 if node is None else self._most(node.host, aim, end - done)
                found = self._first_offer(node, pods, aim, count) if node is not None and count > 0 else None
                if node is not None and found is not None:
                    self._charge(template, node.mask & found.state.mask, pods)
                    joined, first = self._join(node), pods.pods[done : done + found.count]
                    self._take(joined, node, pods, found, first)
                    self.trail.append((joined, pods, aim, first))
                    return found.count
        return 0

    def _join(self, node: Opened) -> int:
        self.opened.append(node)
        return self.nodes.open(node.host, node.template, node.state)

    def _blank(self, template: Template, mask: Mask) -> Opened | None:
        mask = self.within_limits(template, mask)
        if not mask:
            return None
        number = len(self.opened)
        nothing: Vector = (0,) * len(template.shelf.axes.names)
        return Opened(
            number=number, host=f"new-{number:06d}", template=template, state=template.start, mask=mask, used=nothing
        )

    def _first_offer(self, node: Opened, pods: PodClass, aim: Aim, count: int) -> Offer | None:
        states = self._states(node.template, node.state, pods, aim)
        found = offer(node, pods, count, states)
        if found is not None or self.options.min_values_policy == "Strict":
            return found
        found = offer(node, pods, 1, states, any_variety=True)
        if found is None:
            return None
        node.state = node.template.with_minima_lowered(node.template.start, found.mask)
        node.is_relaxed = True
        return offer(node, pods, count, self._states(node.template, node.state, pods, aim))

    def _charge(self, template: Template, mask: Mask, pods: PodClass | None = None) -> None:
        """Take the largest that the node may be, with its first pod if there is one, off the limits."""
        limits = self.limits.get(template.pool.name)
        if limits is None:
            return
        if pods is not None:
            mask = template.holding(mask, pods.need, pods.ports)
        for name in limits:
            limits[name] -= 1 if name == NODES else template.shelf.largest(mask, name)

    def _take(self, number: int, node: Opened, pods: PodClass, found: Offer, some: list[Pod]) -> None:
        """Let *node* have the first of *some*, as was offered."""
        self.nodes.rise(1 << number, len(node.pods), len(node.pods) + found.count)
        place, bit = node.template.place(found.state), 1 << number
        node.used, node.mask = found.used, found.mask
        node.ports.extend(pods.ports)
        names = [pod.name for pod in some[: found.count]]
        node.pods.extend(names)
        if found.state is not node.state:
            node.state = found.state
            self.nodes.move(number, node.template, found.state)
            before, node.waiting = node.waiting, []
            for group, name in before:
                still = self.topology.settle((group,), place, node.host, bit, 1)
                node.waiting.extend((one, name) for one in still)
        if pods.counted:
            waiting = self.topology.settle(pods.counted, place, node.host, bit, found.count)
            node.waiting.extend((one, name) for name in names for one in waiting)


def _agrees(node: Standing, aim: Aim) -> bool:
    wish = aim.wish
    return node.satisfies(wish.requirements) and any(node.satisfies(one) for one in wish.alternatives)


def _without_nodes(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in limits.items() if name != NODES}
