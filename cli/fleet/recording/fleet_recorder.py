"""Records nodes and pods over time: each observation adds only what changed since the last one."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.fleet.document.pod_columns import NO_NODE, NO_NODE_ENDED
from cli.fleet.recording.observed_objects import ObservedNode, ObservedPod

_STATES_OF_LAUNCH: Final = ("requested", "launched")
"""States that a node never returns to: an observation of them after a later state is older than that state."""


class RecordedNode(msgspec.Struct, kw_only=True):
    """A node with its states so far."""

    node: ObservedNode
    started_at: datetime
    ended_at: datetime | None = None
    last_seen_at: datetime
    states: list[tuple[datetime, str]]
    """State changes, in the order of the observations."""


class RecordedPod(msgspec.Struct, kw_only=True):
    """A pod with its places so far."""

    pod: ObservedPod
    started_at: datetime
    ended_at: datetime | None = None
    places: list[tuple[datetime, int]]
    """Changes of the place, in the order of the observations: an index of a node, `NO_NODE` or `NO_NODE_ENDED`."""
    was_unschedulable: bool = False
    running_since: datetime | None = None


class FleetRecorder:
    """Collects the nodes and pods of one cluster."""

    def __init__(self) -> None:
        """Start without nodes and pods."""
        self.nodes: list[RecordedNode] = []
        self.pods: list[RecordedPod] = []
        self.change_count = 0
        """Grows with each change: an observation that differs in nothing adds nothing."""
        self._index_by_key: dict[str, int] = {}
        """Of the nodes that exist, by their key."""
        self._index_by_node_name: dict[str, int] = {}
        """Of the newest node, by the Node's name: pods are bound to Nodes."""
        self._pod_index_by_key: dict[str, int] = {}
        """Of the pods that exist."""
        self._pod_keys_by_name: dict[str, list[str]] = {}
        """Keys of all pods by namespace and name, oldest first."""

    def observe_node(self, at: datetime, node: ObservedNode) -> None:
        """Record that *node* exists at *at*."""
        index = self._find_node(node)
        if index is None:
            index = len(self.nodes)
            self.change_count += 1
            self.nodes.append(RecordedNode(node=node, started_at=node.created_at or at, last_seen_at=at, states=[]))
        recorded_node = self.nodes[index]
        merged_node = _merge_node(recorded_node.node, node)
        self.change_count += merged_node != recorded_node.node
        recorded_node.node = merged_node
        self._index_by_key[node.key] = index
        if node.name != node.claim:
            self._index_by_node_name[node.name] = index
        recorded_node.last_seen_at = max(recorded_node.last_seen_at, at)
        last_state = recorded_node.states[-1][1] if recorded_node.states else "requested"
        if node.state not in _STATES_OF_LAUNCH or last_state in _STATES_OF_LAUNCH:
            self._add_state(recorded_node, at, node.state)

    def _find_node(self, node: ObservedNode) -> int | None:
        index = self._index_by_key.get(node.key)
        if index is None and node.claim:  # a pod, or the Node, was observed before the NodeClaim
            index = self._index_by_key.pop(node.name, None)
        return index

    def _add_state(self, recorded_node: RecordedNode, at: datetime, state: str) -> None:
        if recorded_node.states and recorded_node.states[-1][0] == at:
            recorded_node.states.pop()
        if not recorded_node.states or recorded_node.states[-1][1] != state:
            recorded_node.states.append((at, state))
            self.change_count += 1

    def remove_node(self, at: datetime, key: str) -> None:
        """Record that the node with *key* is gone at *at*; a node that was not observed is ignored."""
        index = self._index_by_key.pop(key, None)
        if index is None:
            return
        recorded_node = self.nodes[index]
        recorded_node.ended_at = at
        self._add_state(recorded_node, at, "gone")

    def observe_pod(self, at: datetime, pod: ObservedPod) -> None:
        """Record that *pod* exists at *at*."""
        index = self._pod_index_by_key.get(pod.key)
        if index is None:
            index = len(self.pods)
            self._pod_index_by_key[pod.key] = index
            self._pod_keys_by_name.setdefault(f"{pod.namespace}/{pod.name}", []).append(pod.key)
            started_at = min(pod.created_at or at, at)
            self.change_count += 1
            self.pods.append(RecordedPod(pod=pod, started_at=started_at, places=[(started_at, NO_NODE)]))
        recorded_pod = self.pods[index]
        self.change_count += pod != recorded_pod.pod
        recorded_pod.pod = pod
        recorded_pod.was_unschedulable |= pod.was_unschedulable
        recorded_pod.running_since = recorded_pod.running_since or pod.running_since
        if pod.is_ended:
            self._end_pod(recorded_pod, at)
        elif pod.node_name:
            bound_at = max(min(pod.bound_since or at, at), recorded_pod.places[-1][0])
            self._add_place(recorded_pod, bound_at, self._get_node_index(at, pod.node_name))

    def remove_pod(self, at: datetime, key: str) -> None:
        """Record that the pod with *key* is gone at *at*; a pod that was not observed is ignored."""
        index = self._pod_index_by_key.pop(key, None)
        if index is not None:
            self._end_pod(self.pods[index], at)

    def _end_pod(self, recorded_pod: RecordedPod, at: datetime) -> None:
        if recorded_pod.ended_at is None:
            recorded_pod.ended_at = at
            self._add_place(recorded_pod, at, NO_NODE_ENDED)

    def _add_place(self, recorded_pod: RecordedPod, at: datetime, place: int) -> None:
        if recorded_pod.places[-1][1] != place:
            recorded_pod.places.append((at, place))
            self.change_count += 1

    def _get_node_index(self, at: datetime, node_name: str) -> int:
        """Return the index of the Node; a Node that was not observed is added without properties."""
        if node_name not in self._index_by_node_name:
            self.observe_node(at, ObservedNode(key=node_name, name=node_name, state="ready"))
        return self._index_by_node_name[node_name]

    def remove_pod_by_name(self, at: datetime, name: str) -> None:
        """Record that the newest pod with the namespace and name *name*, like ``shop/cart``, is gone at *at*."""
        for key in reversed(self._pod_keys_by_name.get(name, [])):
            index = self._pod_index_by_key.get(key)
            if index is not None and self.pods[index].started_at <= at:
                self.remove_pod(at, key)
                return

    def observe_all(
        self,
        at: datetime,
        nodes: Iterable[ObservedNode],
        pods: Iterable[ObservedPod],
        min_unseen_time: timedelta = timedelta(),
    ) -> None:
        """Record the complete lists of nodes and pods at *at*: nodes and pods that are not in them are gone.

        A node that was observed less than *min_unseen_time* before stays: the lists can be older than it.
        """
        node_list, pod_list = list(nodes), list(pods)
        pod_keys = {pod.key for pod in pod_list}
        for node in node_list:
            self.observe_node(at, node)
        for pod in pod_list:
            self.observe_pod(at, pod)
        for key in sorted(self._pod_index_by_key.keys() - pod_keys):
            self.remove_pod(at, key)
        self._remove_missing_nodes(at, node_list, min_unseen_time)

    def observe_nodes(self, at: datetime, nodes: Sequence[ObservedNode]) -> None:
        """Record the complete list of nodes at *at*: nodes that are not in it are gone."""
        for node in nodes:
            self.observe_node(at, node)
        self._remove_missing_nodes(at, nodes, timedelta())

    def _remove_missing_nodes(self, at: datetime, nodes: Sequence[ObservedNode], min_unseen_time: timedelta) -> None:
        for key in sorted(self._index_by_key.keys() - {node.key for node in nodes}):
            if at - self.nodes[self._index_by_key[key]].last_seen_at >= min_unseen_time:
                self.remove_node(at, key)


def _merge_node(earlier: ObservedNode, node: ObservedNode) -> ObservedNode:
    """Return *node* with the values of *earlier* where *node* has none."""
    fields = {
        name: value
        for name in ObservedNode.__struct_fields__
        if not getattr(node, name) and (value := getattr(earlier, name))
    }
    is_node_deleted = node.name == node.claim != "" and earlier.claim == node.claim != earlier.name
    if is_node_deleted:  # the NodeClaim still exists
        fields["name"] = earlier.name
    return replace(node, **fields) if fields else node
