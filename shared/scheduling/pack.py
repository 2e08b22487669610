"""First fit: on what stands, then on what this run has opened, then on a new node of the heaviest NodePool that can.

Pods that no other pod matters to are placed in bulk, all others one by one.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping

import msgspec

from shared.model.labels import HOSTNAME
from shared.model.pods import Pod
from shared.model.requirements import ANYTHING
from shared.model.resources import NODES, Vector
from shared.scheduling.demand import PodClass
from shared.scheduling.opened import Offer, Opened, could_ever, holding, offer, put
from shared.scheduling.placement import Options
from shared.scheduling.relaxation import Stage
from shared.scheduling.shelf import Mask
from shared.scheduling.standing import Block, Standing, blocks
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.topology import Topology


class Packing(msgspec.Struct, kw_only=True, eq=False):
    """The state of a run."""

    standing: list[Standing]
    templates: tuple[Template, ...]
    limits: dict[str, dict[str, int]]
    """By NodePool: what is left of its limits."""
    topology: Topology
    options: Options
    opened: list[Opened] = msgspec.field(default_factory=list)
    order: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Of the opened nodes: number of pods, number of the node."""
    admitted: dict[Stage, list[Block]] = msgspec.field(default_factory=dict)
    refused: dict[tuple[int, int], set[int]] = msgspec.field(default_factory=dict)
    """By class and stage: opened nodes that will never take such a pod again."""
    targets: tuple[Mask, ...] = ()
    """By template: the types that a new node is, if they do; empty: any."""
    given_up: int = 0
    """Preferences, counted per pod, that were not held."""

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
        return Packing(
            standing=standing,
            templates=self.templates,
            limits={name: dict(left) for name, left in self.limits.items()},
            topology=self.topology.fork(),
            options=self.options,
        )

    def place(self, pods: PodClass) -> list[Pod]:
        """Place what can be placed of *pods*; answer the rest, in order."""
        if not any(pods.bound):
            return self._relaxing(pods, pods.pods)
        return [pod for pod in pods.pods if self._relaxing(pods, [pod])]

    def place_at_home(self, pods: PodClass, homes: Mapping[str, int]) -> list[Pod]:
        """Place those of *pods* that a node is already on its way for; answer the rest, in order."""
        return [
            pod
            for pod in pods.pods
            if pod.name not in homes or not self._at_home(pods, pod, self.standing[homes[pod.name]])
        ]

    def place_on_standing(self, pods: PodClass) -> list[Pod]:
        """Place those of *pods* that have room, with all they prefer, on what is there; answer the rest, in order."""
        if pods.stages[0].is_contradictory:
            return pods.pods
        if not pods.bound[0]:
            return self._on_standing_nodes(pods, 0, pods.pods)
        return [pod for pod in pods.pods if self._on_standing_nodes(pods, 0, [pod])]

    def open(self, template: Template, state: Narrowed, mask: Mask) -> int | None:
        """Open a node that may be of the types in *mask*, still empty; answer its number, None if it cannot be."""
        node = self._blank(template, mask & state.mask)
        if node is None or not template.meets_minima(state, node.mask):
            return None
        node.state = state
        self._charge(template, node.mask)
        self.opened.append(node)
        insort(self.order, (0, node.number))
        return node.number

    def place_on(self, number: int, pods: PodClass, some: list[Pod]) -> int:
        """Place as many of *some* as the opened node takes, with all they prefer; answer how many."""
        self.refused.setdefault((id(pods), 0), set())
        return self._on_opened(number, pods, 0, some)

    def _relaxing(self, pods: PodClass, some: list[Pod]) -> list[Pod]:
        left = list(some)
        for number, stage in enumerate(pods.stages):
            if left and not stage.is_contradictory:
                before = len(left)
                left = self._sweep(pods, number, left)
                self.given_up += number * (before - len(left))
        return left

    def _sweep(self, pods: PodClass, stage: int, left: list[Pod]) -> list[Pod]:
        left = self._on_standing_nodes(pods, stage, left)
        refused = self.refused.setdefault((id(pods), stage), set())
        for _, number in list(self.order):
            if not left:
                return left
            if number not in refused:
                left = left[self._on_opened(number, pods, stage, left) :]
        while left and (count := self._on_new(pods, stage, left)):
            left = left[count:]
        return left

    def _on_standing_nodes(self, pods: PodClass, stage: int, left: list[Pod]) -> list[Pod]:
        for block in self._admitting(pods.stages[stage]):
            if not left:
                return left
            if block.may_hold(pods.need):
                left = self._on_block(block, pods, stage, left)
        return left

    def _on_block(self, block: Block, pods: PodClass, stage: int, left: list[Pod]) -> list[Pod]:
        for node in block.nodes:
            left = left[self._on_standing(node, pods, stage, left) :]
            if not left:
                return left
        block.look_again()
        return left

    def _admitting(self, stage: Stage) -> list[Block]:
        if stage not in self.admitted:
            self.admitted[stage] = blocks([node for node in self.standing if node.admits(stage)])
        return self.admitted[stage]

    def _at_home(self, pods: PodClass, pod: Pod, home: Standing) -> bool:
        """Whether *pod* could be put where it is expected; what other pods are about was settled before."""
        admits = any(home.admits(stage) for stage in pods.stages if not stage.is_contradictory)
        if not admits or not _volumes_agree(home, pods) or not home.room(pods, 1):
            return False
        self._settle(home, pods, [pod])
        return True

    def _on_standing(self, node: Standing, pods: PodClass, stage: int, left: list[Pod]) -> int:
        count = node.room(pods, len(left))
        if not count or not _volumes_agree(node, pods):
            return 0
        bound = pods.bound[stage]
        if bound:
            choices = self.topology.choices(bound, pods.selecting, node.place)
            if not any(node.satisfies(choice) for choice in choices):
                return 0
        self._settle(node, pods, left[:count])
        return count

    def _settle(self, node: Standing, pods: PodClass, some: list[Pod]) -> None:
        node.put(pods, [pod.name for pod in some])
        if pods.counted:
            self.topology.record(pods.counted, node.place, len(some))

    def _on_opened(self, number: int, pods: PodClass, stage: int, left: list[Pod]) -> int:
        node = self.opened[number]
        found = offer(node, pods, stage, len(left), self.topology)
        if found is None:
            if self._is_final(node, pods, stage):
                self.refused[id(pods), stage].add(number)
            return 0
        del self.order[bisect_left(self.order, (len(node.pods), number))]
        self._take(node, pods, found, left)
        return found.count

    def _is_final(self, node: Opened, pods: PodClass, stage: int) -> bool:
        """Whether *node* will refuse such pods ever after: on hosts, counts only rise, and room only shrinks."""
        rules = [self.topology.groups[number].rule for number in pods.bound[stage]]
        only_hosts = all(rule.key == HOSTNAME and rule.kind != "affinity" for rule in rules)
        return only_hosts or not could_ever(node, pods, stage)

    def _on_new(self, pods: PodClass, stage: int, left: list[Pod]) -> int:
        for number, template in enumerate(self.templates):
            some = (self.targets[number], template.start.mask) if self.targets else (template.start.mask,)
            for mask in some:
                node = self._blank(template, mask)
                found = None if node is None else self._first_offer(node, pods, stage, len(left))
                if node is not None and found is not None:
                    self._charge(template, holding(node, pods, 1, node.mask & found.state.mask))
                    self.opened.append(node)
                    self._take(node, pods, found, left)
                    return found.count
        return 0

    def _blank(self, template: Template, mask: Mask) -> Opened | None:
        limits = self.limits.get(template.pool.name)
        if limits is not None:
            mask = 0 if limits.get(NODES, 1) < 1 else mask & template.shelf.within(_without_nodes(limits))
        if not mask:
            return None
        nothing: Vector = (0,) * len(template.shelf.axes.names)
        return Opened(
            number=len(self.opened), template=template, state=template.start, mask=mask, used=nothing, ports=[]
        )

    def _first_offer(self, node: Opened, pods: PodClass, stage: int, count: int) -> Offer | None:
        found = offer(node, pods, stage, count, self.topology)
        if found is not None or self.options.min_values_policy == "Strict":
            return found
        found = offer(node, pods, stage, 1, self.topology, any_variety=True)
        if found is None:
            return None
        node.state = node.template.with_minima_lowered(node.template.start, found.mask)
        node.is_relaxed = True
        return offer(node, pods, stage, count, self.topology)

    def _charge(self, template: Template, mask: Mask) -> None:
        """Take the largest that the node may be, with its first pod, off the limits."""
        limits = self.limits.get(template.pool.name)
        if limits is None:
            return
        for name in limits:
            limits[name] -= 1 if name == NODES else template.shelf.largest(mask, name)

    def _take(self, node: Opened, pods: PodClass, found: Offer, left: list[Pod]) -> None:
        put(node, pods, found, [pod.name for pod in left[: found.count]], self.topology)
        insort(self.order, (len(node.pods), node.number))


def _volumes_agree(node: Standing, pods: PodClass) -> bool:
    return pods.alternatives == (ANYTHING,) or any(node.satisfies(one) for one in pods.alternatives)


def _without_nodes(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in limits.items() if name != NODES}
