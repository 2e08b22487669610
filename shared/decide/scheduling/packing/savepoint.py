"""A savepoint of a packing: what the changes after it must restore when they are rolled back."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from shared.decide.scheduling.devices.occupied_devices import OccupiedDevices
from shared.decide.scheduling.nodes.existing_node import ExistingNode
from shared.decide.scheduling.nodes.node_index import Nodes
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.topology.topology import Topology
from shared.model.core.resources import Vector
from shared.model.karpenter.spot_share import ShareUsage


class ExistingNodeState(msgspec.Struct, frozen=True, kw_only=True):
    """State of an existing node before it was changed."""

    free: Vector
    port_count: int
    attached: dict[str, set[str]]
    pod_count: int
    devices: OccupiedDevices | None


class Savepoint(msgspec.Struct, kw_only=True, eq=False):
    """The state of a packing; of nodes and topology groups only of those that were changed since."""

    closed_nodes: Nodes
    max_new_nodes: int
    remaining_limits: dict[str, dict[str, int]]
    share_usages: dict[str, ShareUsage]
    refusing_nodes: dict[int, Nodes]
    nodes_by_pod_count: dict[int, Nodes]
    pod_counts: list[int]
    class_by_open_node: list[int]
    """The node equivalence class numbers of the open nodes."""
    open_node_count: int
    node_by_claim: dict[str, int]
    saved_groups: dict[int, tuple[dict[str, int], list[int]]] = msgspec.field(default_factory=dict)
    existing_node_states: dict[int, ExistingNodeState] = msgspec.field(default_factory=dict)
    open_nodes: dict[int, OpenNodeClaim] = msgspec.field(default_factory=dict)

    def save_existing_node(self, number: int, node: ExistingNode) -> None:
        """Save the state of *node* before its first change."""
        if number not in self.existing_node_states:
            self.existing_node_states[number] = ExistingNodeState(
                free=node.free,
                port_count=len(node.ports),
                attached={driver: set(keys) for driver, keys in node.attached.items()} if node.attached else {},
                pod_count=len(node.pods),
                devices=node.devices,
            )

    def save_open_node(self, index: int, node: OpenNodeClaim) -> None:
        """Save the state of *node*, if it was open before, before its first change."""
        if index < self.open_node_count and index not in self.open_nodes:
            self.open_nodes[index] = replace(
                node, ports=list(node.ports), pods=list(node.pods), uncounted_pods=list(node.uncounted_pods)
            )

    def save_groups(self, topology: Topology, group_numbers: Iterable[int]) -> None:
        """Save the counts of topology groups before their first change."""
        for number in group_numbers:
            if number not in self.saved_groups:
                group = topology.groups[number]
                self.saved_groups[number] = (dict(group.counts), list(group.host_levels))

    def merge_inner(self, inner: "Savepoint") -> None:
        """Add what changed since the later savepoint *inner*, which is given up."""
        self.saved_groups = inner.saved_groups | self.saved_groups
        self.existing_node_states = inner.existing_node_states | self.existing_node_states
        earlier_nodes = {number: node for number, node in inner.open_nodes.items() if number < self.open_node_count}
        self.open_nodes = earlier_nodes | self.open_nodes
