"""Node index: the nodes of a run as bits of integers.

Existing nodes come first, in their order, then the opened nodes.

The question which nodes can take a pod then takes a few AND operations. Existing nodes are tried in their order; of the
opened nodes the one with the fewest pods comes first, then the oldest: nodes with the same number of pods are a bit
set, too. Nodes that differ in nothing but their host form an equivalence class: the constraints of a pod are compared
with equivalence classes, not with nodes. A node that had no capacity for a shape of pod never will have: nodes only
fill up.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.constraints.topology_constraint import NodeDomains
from shared.decide.scheduling.nodes.existing_node import ExistingNode
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate, NodeConstraints
from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import Requirements
from shared.model.core.taints import find_untolerated_taint

MAX_LEVEL_COUNT: Final = 128
"""Number of levels, enough for every amount of memory below 16 EiB."""
Nodes: TypeAlias = int
"""A bit set of nodes."""


class NodeEquivalenceClass(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What equal nodes have in common: everything but the host."""

    domains: NodeDomains
    single_values: dict[str, str]
    """Labels with exactly one possible value."""
    example: ExistingNode | None = None
    template: NodeClaimTemplate | None = None
    state: NarrowedTemplate | None = None

    def can_satisfy(self, constraints: NodeConstraints) -> bool:
        """Return whether the nodes satisfy, or can be narrowed to satisfy, *constraints*; the hostname is ignored."""
        if self.template is not None and self.state is not None:
            return bool(self.template.narrow_to_constraints(self.state, constraints))
        example = self.example
        if example is None or find_untolerated_taint(self.domains.taints, constraints.tolerations) is not None:
            return False
        return example.can_satisfy(constraints.requirements.without((HOSTNAME,))) and any(
            example.can_satisfy(alternative.without((HOSTNAME,))) for alternative in constraints.volume_alternatives
        )


class NodeIndex(msgspec.Struct, kw_only=True, eq=False):
    """The nodes of a run, and their shared properties."""

    hosts: list[str] = msgspec.field(default_factory=list)
    class_by_node: list[int] = msgspec.field(default_factory=list)
    """By node: the index of its equivalence class."""
    equivalence_classes: list[NodeEquivalenceClass] = msgspec.field(default_factory=list)
    members: list[Nodes] = msgspec.field(default_factory=list)
    """By equivalence class: its nodes."""
    class_by_state: dict[NarrowedTemplate, int] = msgspec.field(default_factory=dict)
    """By narrowed template: the index of its equivalence class."""
    satisfying_classes: dict[int, tuple[int, list[int]]] = msgspec.field(default_factory=dict)
    """By node constraints: the number of equivalence classes that were checked, and those that satisfy the
    constraints.
    """
    refusing_nodes: dict[int, Nodes] = msgspec.field(default_factory=dict)
    """By shape of pod: nodes that cannot hold it any more."""
    depleted: tuple[list[Nodes], ...] = msgspec.field(
        default_factory=lambda: ([0] * MAX_LEVEL_COUNT, [0] * MAX_LEVEL_COUNT)
    )
    """Of cpu and of memory, by level: nodes that are known to have less free, up to the highest level requested so
    far.
    """
    max_level: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    level_by_node: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)
    """By axis and node: the lowest level that the node cannot provide."""
    existing: Nodes = 0
    nodes_by_pod_count: dict[int, Nodes] = msgspec.field(default_factory=dict)
    """By number of pods: the opened nodes with that number."""
    pod_counts: list[int] = msgspec.field(default_factory=list)
    """The numbers of pods that occur, ascending."""

    def fork(self) -> "NodeIndex":
        """Return a copy that can be filled independently."""
        return NodeIndex(
            hosts=list(self.hosts),
            class_by_node=list(self.class_by_node),
            equivalence_classes=list(self.equivalence_classes),
            members=list(self.members),
            class_by_state=dict(self.class_by_state),
            satisfying_classes={
                constraints_number: (count, list(class_numbers))
                for constraints_number, (count, class_numbers) in self.satisfying_classes.items()
            },
            refusing_nodes=dict(self.refusing_nodes),
            depleted=tuple(list(level_masks) for level_masks in self.depleted),
            max_level=list(self.max_level),
            level_by_node=dict(self.level_by_node),
            existing=self.existing,
            nodes_by_pod_count=dict(self.nodes_by_pod_count),
            pod_counts=list(self.pod_counts),
        )

    def find_satisfying(self, constraints: NodeConstraints) -> list[int]:
        """Return the equivalence classes that can satisfy *constraints*."""
        count, class_numbers = self.satisfying_classes.get(constraints.number, (0, []))
        if count < len(self.equivalence_classes):
            class_numbers += [
                number
                for number in range(count, len(self.equivalence_classes))
                if self.equivalence_classes[number].can_satisfy(constraints)
            ]
            self.satisfying_classes[constraints.number] = (len(self.equivalence_classes), class_numbers)
        return class_numbers

    def can_class_satisfy(self, class_number: int, constraints: NodeConstraints) -> bool:
        """Return whether nodes of the equivalence class can satisfy *constraints*.

        A class of opened nodes is checked alone, because its template remembers the result.
        """
        equivalence_class = self.equivalence_classes[class_number]
        if equivalence_class.template is not None:
            return equivalence_class.can_satisfy(constraints)
        return class_number in self.find_satisfying(constraints)

    def add_existing(self, nodes: Iterable[ExistingNode]) -> None:
        """Add the existing nodes."""
        class_by_likeness: dict[object, int] = {}
        for node in nodes:
            key = _build_likeness_key(node)
            if key not in class_by_likeness:
                class_by_likeness[key] = self._add_class(
                    NodeEquivalenceClass(
                        domains=node.node_domains, single_values=node.node_domains.get_known_labels(), example=node
                    )
                )
            self._add_node(node.host, class_by_likeness[key])
        self.existing = (1 << len(self.hosts)) - 1

    def open_node(self, host: str, template: NodeClaimTemplate, state: NarrowedTemplate) -> int:
        """Add an opened, empty node; return its number."""
        number = self._add_node(host, self._get_class_number(template, state))
        self._add_to_rank(1 << number, 0)
        return number

    def update_pod_count(self, bit: Nodes, before: int, after: int) -> None:
        """Record that the opened node *bit* has *after* pods instead of *before*."""
        remaining_nodes = self.nodes_by_pod_count[before] ^ bit
        self.nodes_by_pod_count[before] = remaining_nodes
        if not remaining_nodes:
            del self.nodes_by_pod_count[before]
            del self.pod_counts[bisect_left(self.pod_counts, before)]
        self._add_to_rank(bit, after)

    def move_node(self, number: int, template: NodeClaimTemplate, state: NarrowedTemplate) -> None:
        """Assign node *number* to the equivalence class of *state*."""
        bit = 1 << number
        self.members[self.class_by_node[number]] ^= bit
        self.class_by_node[number] = self._get_class_number(template, state)
        self.members[self.class_by_node[number]] |= bit

    def refuse_shape(self, shape: int, number: int, free: Iterable[int]) -> None:
        """Record that node *number* has no capacity for *shape*; at most *free* cpu and memory are free on it."""
        bit = 1 << number
        self.refusing_nodes[shape] = self.refusing_nodes.get(shape, 0) | bit
        for axis, amount in enumerate(free):
            known_level = self.level_by_node.get((axis, number), MAX_LEVEL_COUNT)
            level = compute_level(amount) + 1
            if level < known_level:
                level_masks = self.depleted[axis]
                for depleted_level in range(level, min(known_level, self.max_level[axis] + 1)):
                    level_masks[depleted_level] |= bit
                self.level_by_node[axis, number] = level

    def find_too_full(self, shape: int, need: Sequence[int]) -> Nodes:
        """Return the nodes without capacity for *shape* or with less free cpu or memory than *need*."""
        cpu, memory = compute_level(need[0]), compute_level(need[1])
        if cpu > self.max_level[0]:
            self._raise_max_level(0, cpu)
        if memory > self.max_level[1]:
            self._raise_max_level(1, memory)
        return self.refusing_nodes.get(shape, 0) | self.depleted[0][cpu] | self.depleted[1][memory]

    def _raise_max_level(self, axis: int, level: int) -> None:
        """Fill the level masks of *axis* up to *level*."""
        level_masks, before = self.depleted[axis], self.max_level[axis]
        for depleted_level in range(before + 1, level + 1):
            level_masks[depleted_level] = level_masks[before]
        for (level_axis, number), lowest_level in self.level_by_node.items():
            if level_axis == axis:
                for depleted_level in range(max(lowest_level, before + 1), level + 1):
                    level_masks[depleted_level] |= 1 << number
        self.max_level[axis] = level

    def _add_to_rank(self, bit: Nodes, pod_count: int) -> None:
        if pod_count in self.nodes_by_pod_count:
            self.nodes_by_pod_count[pod_count] |= bit
        else:
            self.nodes_by_pod_count[pod_count] = bit
            insort(self.pod_counts, pod_count)

    def _get_class_number(self, template: NodeClaimTemplate, state: NarrowedTemplate) -> int:
        if state not in self.class_by_state:
            domains = template.get_node_domains(state)
            self.class_by_state[state] = self._add_class(
                NodeEquivalenceClass(
                    domains=domains, single_values=template.get_known_labels(state), template=template, state=state
                )
            )
        return self.class_by_state[state]

    def _add_class(self, equivalence_class: NodeEquivalenceClass) -> int:
        self.equivalence_classes.append(equivalence_class)
        self.members.append(0)
        return len(self.equivalence_classes) - 1

    def _add_node(self, host: str, class_number: int) -> int:
        number = len(self.hosts)
        self.hosts.append(host)
        self.class_by_node.append(class_number)
        self.members[class_number] |= 1 << number
        return number


def compute_level(amount: int) -> int:
    """Return the exponent of the greatest power of the square root of two up to *amount*; 0 for amounts up to 1."""
    return min((amount * amount).bit_length() - 1, MAX_LEVEL_COUNT - 1) if amount > 0 else 0


def _build_likeness_key(node: ExistingNode) -> object:
    labels = Requirements(
        items=tuple(item for key, item in sorted(node.node_domains.by_key.items()) if key != HOSTNAME)
    )
    return (
        labels,
        node.node_domains.taints,
        node.node_domains.is_fixed,
        node.node_domains.defined,
        node.type_index,
        node.mask,
    )
