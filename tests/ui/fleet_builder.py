"""Build fleet documents by hand: nodes, pods and decisions, with strings as indexes."""

from typing import Any, Final

START_MS: Final = 1_795_770_000_000
"""2026-11-27T09:00:00Z."""
STATES: Final = (
    "requested",
    "launched",
    "registered",
    "ready",
    "cordoned",
    "draining",
    "interrupted",
    "blocked",
    "gone",
    "lost",
)
NODE_COLUMNS: Final = [
    "name",
    "claim",
    "pool",
    "instanceType",
    "family",
    "zone",
    "capacityType",
    "arch",
    "cpuMilli",
    "memoryMiB",
    "podCapacity",
    "price",
    "start",
    "end",
    "why",
]
POD_COLUMNS: Final = ["namespace", "name", "workload", "cpuMilli", "memoryMiB", "start", "end", "priority"]
SIZES: Final = {
    "m7g.large": (1930, 7100, 29, 0.0344),
    "m7g.xlarge": (3920, 14800, 58, 0.0689),
    "c7g.2xlarge": (7910, 14600, 58, 0.1229),
    "r7g.xlarge": (3920, 30600, 58, 0.0905),
    "m7g.4xlarge": (15890, 59800, 234, 0.2754),
}
"""CPU in milli, memory in MiB, pods, and USD per hour on spot."""


class FleetBuilder:
    """Collects the columns of a fleet document. Times are seconds since its start."""

    def __init__(self, *, kind: str = "demo", title: str = "Demo fleet") -> None:
        """Begin a document from a source of *kind*."""
        self.strings: list[str] = []
        self._indexes: dict[str, int] = {}
        self.nodes: dict[str, list[Any]] = {name: [] for name in NODE_COLUMNS}
        self.pods: dict[str, list[Any]] = {name: [] for name in POD_COLUMNS}
        self.states: list[tuple[int, int, int]] = []
        self.places: list[tuple[int, int, int, int | None]] = []
        self.decisions: list[dict[str, Any]] = []
        self.markers: list[dict[str, Any]] = []
        self.reasons: list[dict[str, Any]] = []
        self.pools: list[dict[str, Any]] = []
        self.series: list[dict[str, Any]] = []
        self.source = {
            "kind": kind,
            "cluster": "demo",
            "title": title,
            "live": False,
            "timeZone": "UTC",
            "notes": ["A fleet of the tests of the page.", "Prices are synthetic."],
        }

    def intern(self, text: str) -> int:
        """Return the index of *text* in the strings."""
        if text not in self._indexes:
            self._indexes[text] = len(self.strings)
            self.strings.append(text)
        return self._indexes[text]

    def add_pool(self, name: str, summary: str, limits: dict[str, str] | None = None) -> None:
        self.pools.append({"name": name, "weight": 0, "limits": limits, "summary": summary})

    def add_node(self, seconds: float, name: str, instance_type: str, *, pool: int, zone: str, capacity: str) -> int:
        """Add a node that is requested at *seconds*; returns its index."""
        cpu, memory, pods, spot = SIZES[instance_type]
        price = spot if capacity == "spot" else round(spot * 2.6, 4)
        values = {
            "name": self.intern(name),
            "claim": self.intern(f"default-{name[-5:]}"),
            "pool": pool,
            "instanceType": self.intern(instance_type),
            "family": self.intern(instance_type.split(".", maxsplit=1)[0]),
            "zone": self.intern(zone),
            "capacityType": self.intern(capacity),
            "arch": self.intern("arm64"),
            "cpuMilli": cpu,
            "memoryMiB": memory,
            "podCapacity": pods,
            "price": price,
            "start": to_ms(seconds),
            "end": None,
            "why": None,
        }
        for column, value in values.items():
            self.nodes[column].append(value)
        node = len(self.nodes["name"]) - 1
        self.set_state(seconds, node, "requested")
        return node

    def set_state(self, seconds: float, node: int, state: str) -> None:
        self.states.append((to_ms(seconds), node, STATES.index(state)))
        if state == "gone":
            self.nodes["end"][node] = to_ms(seconds)

    def explain_node(
        self, node: int, lines: list[str], blocked: list[str], alternatives: list[tuple[str, float]]
    ) -> None:
        offers = [
            {
                "instanceType": self.intern(name),
                "capacityType": self.intern("spot"),
                "zone": self.intern("eu-west-1a"),
                "price": p,
            }
            for name, p in alternatives
        ]
        self.nodes["why"][node] = len(self.reasons)
        self.reasons.append({"lines": lines, "alternatives": offers, "blockedBy": blocked})

    def add_pod(self, seconds: float, name: str, workload: str, cpu: int, memory: int, namespace: str = "shop") -> int:
        """Add a pending pod; returns its index."""
        values = {
            "namespace": self.intern(namespace),
            "name": self.intern(name),
            "workload": self.intern(workload),
            "cpuMilli": cpu,
            "memoryMiB": memory,
            "start": to_ms(seconds),
            "end": None,
            "priority": 0,
        }
        for column, value in values.items():
            self.pods[column].append(value)
        pod = len(self.pods["name"]) - 1
        self.place(seconds, pod, -1)
        return pod

    def place(self, seconds: float, pod: int, node: int, reason: str | None = None) -> None:
        self.places.append((to_ms(seconds), pod, node, None if reason is None else self.intern(reason)))
        if node == -2:
            self.pods["end"][pod] = to_ms(seconds)

    def decide(self, seconds: float, kind: str, title: str, lines: list[str], **fields: Any) -> int:
        """Add a decision; returns its index."""
        decision = {
            "t": to_ms(seconds),
            "id": f"2026-11-27T09:{int(seconds) // 60:02d}:{int(seconds) % 60:02d}Z-{kind}-{len(self.decisions)}",
            "function": "provision" if kind == "launch" else "disrupt",
            "kind": kind,
            "title": title,
            "lines": lines,
            "nodes": [],
            "pods": [],
            "savesUsdPerHour": None,
            "replay": f"joiner replay 2026-11-27T09:{int(seconds) // 60:02d}",
        } | fields
        self.decisions.append(decision)
        return len(self.decisions) - 1

    def mark(self, seconds: float, kind: str, title: str, decision: int | None = None) -> None:
        self.markers.append({"t": to_ms(seconds), "kind": kind, "title": title, "decision": decision})

    def build(self, seconds: float) -> dict[str, Any]:
        """Return the document of the first *seconds*."""
        states, places = sorted(self.states), sorted(self.places, key=lambda place: place[0])
        return {
            "format": "joiner.fleet",
            "version": 1,
            "source": self.source | {"generatedAt": to_ms(seconds)},
            "start": to_ms(0),
            "end": to_ms(seconds),
            "strings": self.strings,
            "nodePools": self.pools,
            "nodes": self.nodes,
            "nodeStates": dict(zip(("t", "node", "state"), _transpose(states, 3), strict=True)),
            "pods": self.pods,
            "podPlaces": dict(zip(("t", "pod", "node", "reason"), _transpose(places, 4), strict=True)),
            "decisions": sorted(self.decisions, key=lambda decision: decision["t"]),
            "markers": sorted(self.markers, key=lambda marker: marker["t"]),
            "why": self.reasons,
            "series": self.series,
            "totals": {
                "costUsd": 0.8123,
                "savedUsd": 0.3011,
                "comparedWith": "no consolidation",
                "evictionsByReason": {},
            },
        }


def to_ms(seconds: float) -> int:
    return START_MS + round(seconds * 1000)


def _transpose(rows: list[Any], columns: int) -> list[list[Any]]:
    return [[row[column] for row in rows] for column in range(columns)]
