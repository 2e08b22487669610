"""Scenarios in which nodes are disrupted: a full sweep, drift of all nodes, and a storm of Spot interruptions."""

from datetime import datetime, timedelta
from typing import Any, Final

from shared.store.commands import COMMAND_KIND, CURSOR_KIND, CURSOR_NAME
from sim.world import manifests
from tests.benchmarks.scale.container import Call
from tests.benchmarks.scale.results import Measure
from tests.benchmarks.scale.scale_world import ScaleWorld, get_seconds
from tests.benchmarks.scale.seeding import CLAIMS

MAX_SWEEP_INVOCATIONS: Final = 20
NODES_PER_INTERRUPTION: Final = 5
"""With 5,000 nodes, a storm of 1,000 interruptions."""
STORM_SECONDS: Final = 60
TIME_AFTER_STORM: Final = timedelta(seconds=15)
TAINT_GOAL_SECONDS: Final = 3.0
NODES_PATH: Final = "/api/v1/nodes/"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"


def measure_sweep(world: ScaleWorld) -> tuple[Measure, ...]:
    """Run disrupt in a new container, and again as long as it has stored where to continue."""
    world.restart_containers()
    seconds = 0.0
    for _ in range(MAX_SWEEP_INVOCATIONS):
        seconds += get_seconds(world.invoke("disrupt"))
        if not has_cursor(world):
            break
    return (
        Measure(name="invocations", value=len(world.invocations)),
        Measure(name="all nodes evaluated after", value=seconds, unit="s", goal=60, kind="seconds"),
    )


def has_cursor(world: ScaleWorld) -> bool:
    """Return whether the last run of disrupt has stored where the next one continues."""
    cursor = world.table.read(CURSOR_KIND, CURSOR_NAME)
    return cursor is not None and bool(cursor.body)


def measure_drift(world: ScaleWorld) -> tuple[Measure, ...]:
    """Change the EC2NodeClass so that all nodes drift: disrupt finds that in its first run, and acts in its second."""
    for function in ("lifecycle", "disrupt"):
        world.invoke(function)
    world.invocations.clear()
    world.apply([manifests.build_node_class(tags={"generation": "2"})])
    for function in ("catalog", "lifecycle"):
        world.invoke(function)
    detection = world.invoke("disrupt")
    claims = world.cluster.api.list(CLAIMS)
    replacement = world.invoke("disrupt")
    return (
        Measure(name="drifted NodeClaims", value=sum(map(_is_drifted, claims))),
        Measure(name="drift found after", value=get_seconds(detection), unit="s", goal=55, kind="seconds"),
        Measure(name="first commands after", value=get_seconds(replacement), unit="s", goal=55, kind="seconds"),
        Measure(name="disruption commands", value=len(world.table.list_rows(COMMAND_KIND))),
    )


def _is_drifted(claim: dict[str, Any]) -> bool:
    return any(condition["type"] == "Drifted" for condition in claim["status"]["conditions"])


def measure_interruptions(world: ScaleWorld) -> tuple[Measure, ...]:
    """Interrupt every fifth node within a minute, and measure the time from the warning to the taint of its node."""
    world.is_measured = True
    recorder = _TaintRecorder(world)
    world.on_call = recorder.record_call
    spot_ids = [item.instance_id for item in world.list_active_instances() if item.capacity_type == "spot"]
    interrupted_ids = spot_ids[: max(1, len(world.cluster.api.list("nodes")) // NODES_PER_INTERRUPTION)]
    for second in range(STORM_SECONDS):
        first = len(interrupted_ids) * second // STORM_SECONDS
        for instance_id in interrupted_ids[first : len(interrupted_ids) * (second + 1) // STORM_SECONDS]:
            recorder.warn(instance_id)
        world.run(timedelta(seconds=1))
    world.run(TIME_AFTER_STORM)
    taint_seconds = sorted(recorder.taint_seconds.values())
    return (
        Measure(name="interrupted nodes", value=len(interrupted_ids)),
        Measure(name="interrupted nodes without taint", value=len(interrupted_ids) - len(taint_seconds), goal=0),
        Measure(name="tainted after, median", value=taint_seconds[len(taint_seconds) // 2], unit="s", kind="seconds"),
        Measure(
            name="tainted after, p99",
            value=taint_seconds[len(taint_seconds) * 99 // 100],
            unit="s",
            goal=TAINT_GOAL_SECONDS,
            kind="seconds",
        ),
        Measure(name="tainted after, longest", value=taint_seconds[-1], unit="s", kind="seconds"),
    )


class _TaintRecorder:
    """Records how long after its Spot interruption warning a node gets its taint."""

    def __init__(self, world: ScaleWorld) -> None:
        self._world = world
        self._name_by_instance = {
            str(node["spec"]["providerID"]).rpartition("/")[2]: str(node["metadata"]["name"])
            for node in world.cluster.api.list("nodes")
        }
        self._warned_at: dict[str, datetime] = {}
        self.taint_seconds: dict[str, float] = {}
        """By the name of the node."""

    def warn(self, instance_id: str) -> None:
        self._world.cloud.instances.interrupt(instance_id)
        self._warned_at[self._name_by_instance[instance_id]] = self._world.clock.get_time()

    def record_call(self, _: str, call: Call, elapsed_seconds: float) -> None:
        port, method, arguments = call[:3]
        if (port, method) != ("kube", "patch") or not str(arguments[0]).startswith(NODES_PATH):
            return
        name = str(arguments[0]).removeprefix(NODES_PATH)
        if name in self._warned_at and DISRUPTED_TAINT.encode() in bytes(arguments[1]):
            waited = self._world.clock.get_time() - self._warned_at[name]
            self.taint_seconds.setdefault(name, waited.total_seconds() + elapsed_seconds)
