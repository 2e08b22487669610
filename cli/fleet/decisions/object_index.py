"""The indexes of nodes and pods in a fleet document, by their names at a time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from cli.explain.node_records import NodeRecord
from cli.fleet.recording.fleet_recorder import RecordedNode, RecordedPod

_Entry: TypeAlias = tuple[datetime, int]


class ObjectIndex:
    """Finds nodes and pods by name; of several objects with a name, the newest that existed at the time."""

    def __init__(
        self, nodes: Sequence[RecordedNode], pods: Sequence[RecordedPod], records: Iterable[NodeRecord]
    ) -> None:
        """Index *nodes* and *pods*; *records* have the instance IDs of NodeClaims."""
        self._entries_by_name: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
        self._claim_by_instance = {record.instance: record.claim for record in records if record.instance}
        for index, recorded_node in enumerate(nodes):
            node, started_at = recorded_node.node, recorded_node.started_at
            self._entries_by_name["NodeClaim", node.claim].append((started_at, index))
            self._entries_by_name["Node", node.name].append((started_at, index))
        for index, recorded_pod in enumerate(pods):
            name = f"{recorded_pod.pod.namespace}/{recorded_pod.pod.name}"
            self._entries_by_name["Pod", name].append((recorded_pod.started_at, index))

    def find_nodes(self, objects: Iterable[tuple[str, str]], at: datetime) -> tuple[int, ...]:
        """Return the indexes of the nodes in *objects*, each once."""
        names = (
            ("NodeClaim", self._claim_by_instance.get(name, "")) if kind == "Instance" else (kind, name)
            for kind, name in objects
            if kind in ("Node", "NodeClaim", "Instance") and name
        )
        return self._find(names, at)

    def find_pods(self, objects: Iterable[tuple[str, str]], at: datetime) -> tuple[int, ...]:
        """Return the indexes of the pods in *objects*."""
        return self._find(((kind, name) for kind, name in objects if kind == "Pod"), at)

    def _find(self, names: Iterable[tuple[str, str]], at: datetime) -> tuple[int, ...]:
        indexes: dict[int, None] = {}
        for key in names:
            entries = self._entries_by_name.get(key, ())
            existing = [entry for entry in entries if entry[0] <= at] or entries[:1]
            if existing:
                indexes[max(existing)[1]] = None
        return tuple(indexes)
