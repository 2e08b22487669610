"""The same snapshots on a real API server, with the server's own metrics.

The control plane is filled over its API, as controllers would. The snapshots are taken in a process of their own, as a
function would: the memory used for filling doesn't hide the memory that a snapshot needs.
"""

import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.ports.kubernetes import Kube
from shared.ports.world import World
from shared.take.snapshot import SnapshotRequest, take_snapshot, take_trigger_snapshot
from tests.benchmarks import population
from tests.benchmarks.metering import Cost, Flow, Meter, MeteredClient, read_flows, subtract_flow
from tests.benchmarks.population import Object
from tests.controlplane.binaries import API_SERVER, ETCD, print_line, read_kubernetes_version
from tests.controlplane.definitions import install_crds
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ADMIN, API_ONLY, ControlPlane
from tests.controlplane.rights import grant_functions_role
from tests.kubernetes.manifests import make_node_class, make_node_pool
from tests.support.snapshot_world import NOW, make_world

CHANGED_POD_COUNT: Final = 100
_WRITER_THREAD_COUNT: Final = 8
_PODS: Final = "/api/v1/namespaces/default/pods"
_NODES: Final = "/api/v1/nodes"
_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the process that takes the snapshots."""

    endpoint: str
    authority: str
    token: str
    admin: str
    servers: tuple[int, ...]
    pods: int


class Budget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A measured value and the most that it may be."""

    metric: str = msgspec.field(name="what")
    limit: float = msgspec.field(name="most")
    measured: float = msgspec.field(name="was")


class BenchmarkReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All measurements, and where they were taken."""

    kubernetes: str
    machine: str
    pods: int
    nodes: int
    at_first_mib: float
    """Memory of the process before its first snapshot."""
    looks: tuple[Cost, ...]
    flow: Flow
    budgets: tuple[Budget, ...] = ()


def measure_on_real_plane(pods: int) -> BenchmarkReport:
    """Start a control plane, fill it with *pods*, and measure; the plane is stopped afterwards."""
    with ControlPlane(parts=API_ONLY, users=(FUNCTIONS,)) as plane:
        install_crds(plane)
        grant_functions_role(plane.get_client())
        fill(plane.get_client(), pods)
        pids = plane.processes.get_pids()
        task = Task(
            endpoint=plane.endpoint,
            authority=plane.certificate_authority,
            token=plane.get_token(FUNCTIONS),
            admin=plane.get_token(ADMIN),
            servers=(pids[API_SERVER], pids[ETCD]),
            pods=pods,
        )
        command = [sys.executable, "-m", "tests.benchmarks.real_plane"]
        process = subprocess.run(command, input=msgspec.json.encode(task), stdout=subprocess.PIPE, check=True)
    report = msgspec.json.decode(process.stdout, type=BenchmarkReport)
    return replace(report, budgets=_compare_with_budgets(report))


def fill(kube: Kube, pods: int) -> None:
    """Create *pods* running pods, on a tenth as many nodes, each with its NodeClaim and its CSINode."""
    nodes = pods // population.PODS_PER_NODE
    kube.create("/apis/karpenter.k8s.aws/v1/ec2nodeclasses", msgspec.json.encode(make_node_class()))
    kube.create("/apis/karpenter.sh/v1/nodepools", msgspec.json.encode(make_node_pool("default")))

    def create_object(path: str, obj: Object, status: Object | None = None) -> None:
        kube.create(path, msgspec.json.encode(obj))
        if status is not None:
            kube.patch(f"{path}/{obj['metadata']['name']}/status", msgspec.json.encode({"status": status}))

    def create_node(number: int) -> None:
        create_object(_NODES, population.make_node(number), population.make_node_status(number))
        create_object(_CLAIMS, population.make_node_claim(number), population.make_node_claim_status(number))
        create_object(_CSI_NODES, population.make_csi_node(number))

    def create_pod(number: int) -> None:
        create_object(_PODS, population.make_pod(number, nodes), population.make_pod_status(number))

    _spread_over_threads(create_node, range(nodes), "nodes")
    _spread_over_threads(create_pod, range(pods), "pods")


def _spread_over_threads(make: Callable[[int], None], numbers: range, kind: str) -> None:
    with ThreadPoolExecutor(_WRITER_THREAD_COUNT) as writers:
        for count, _ in enumerate(writers.map(make, numbers), 1):
            if count % 5000 == 0 or count == len(numbers):
                print_line(f"bench: {count} of {len(numbers)} {kind}")


def measure_snapshots(task: Task) -> BenchmarkReport:
    """Take all snapshots in this process."""
    admin = MeteredClient(task.endpoint, certificate_authority=task.authority, token=lambda: task.admin)
    kube = MeteredClient(task.endpoint, certificate_authority=task.authority, token=lambda: task.token)
    cold = replace(make_world(clock=lambda: NOW), kube=kube)
    before = read_flows(task.endpoint, task.authority, task.admin)
    meter = Meter(task.servers)
    first_peak_mib = meter.measure_since_begin("").peak_mib
    costs = tuple(_measure_costs(meter, cold, admin, task.pods))
    after = read_flows(task.endpoint, task.authority, task.admin)
    own_flow = max(
        (subtract_flow(before.get(name), flow) for name, flow in after.items() if flow.priority_level != "exempt"),
        key=lambda flow: flow.dispatched,
    )
    return BenchmarkReport(
        kubernetes=read_kubernetes_version(),
        machine=_describe_machine(),
        pods=task.pods,
        nodes=task.pods // population.PODS_PER_NODE,
        at_first_mib=first_peak_mib,
        looks=costs,
        flow=own_flow,
    )


def _measure_costs(meter: Meter, cold: World, admin: Kube, pods: int) -> Iterable[Cost]:
    warm = replace(cold, memory={})

    def measure_snapshot(label: str, take: Callable[[World], ClusterSnapshot], source_world: World) -> Cost:
        meter.begin()
        take(source_world)
        return meter.measure_since_begin(label)

    yield measure_snapshot("listed, to be remembered", take_full_snapshot, warm)
    for number in range(3):
        _write_elsewhere(admin, number)
        yield measure_snapshot("caught up, nothing changed", take_full_snapshot, warm)
    _change_pods(admin, pods)
    yield measure_snapshot(f"caught up, {CHANGED_POD_COUNT} pods changed", take_full_snapshot, warm)
    admin.patch(f"{_NODES}/{population.get_node_name(0)}", b'{"metadata":{"labels":{"a":"b"}}}')
    yield measure_snapshot("caught up, one node changed", take_full_snapshot, warm)
    _write_elsewhere(admin, 3)
    yield measure_snapshot("first look, nothing waits, remembering", take_trigger_snapshot, warm)
    yield measure_snapshot("first look, nothing waits, cold", take_trigger_snapshot, cold)
    if take_full_snapshot(warm) != take_full_snapshot(cold):
        raise AssertionError("a catch-up shows something else than a list")


def take_full_snapshot(source_world: World) -> ClusterSnapshot:
    """Read all lists."""
    return take_snapshot(source_world, SnapshotRequest())


def _write_elsewhere(admin: Kube, number: int) -> None:
    """Advance the server's resource version, as other writers always do."""
    admin.create(_CONFIG_MAPS, msgspec.json.encode({"metadata": {"name": f"something-else-{number}"}}))


def _change_pods(admin: Kube, pods: int) -> None:
    for number in range(CHANGED_POD_COUNT):
        name = population.make_pod(number * (pods // CHANGED_POD_COUNT), 1)["metadata"]["name"]
        admin.patch(f"{_PODS}/{name}/status", b'{"status":{"message":"changed"}}')


def _compare_with_budgets(report: BenchmarkReport) -> tuple[Budget, ...]:
    list_cost = report.looks[0]
    unchanged_costs = [cost for cost in report.looks if cost.look == "caught up, nothing changed"]
    median_cost = sorted(unchanged_costs, key=lambda cost: cost.wall_ms)[len(unchanged_costs) // 2]
    return (
        Budget(metric="listed: seconds of our processor", limit=2, measured=round(list_cost.own_cpu_ms / 1e3, 2)),
        Budget(metric="listed: MiB at most", limit=300, measured=list_cost.peak_mib),
        Budget(metric="nothing changed: KB", limit=200, measured=round(median_cost.bytes_received / 1e3, 1)),
        Budget(metric="nothing changed: ms", limit=300, measured=median_cost.wall_ms),
    )


def _describe_machine() -> str:
    names = [line.partition(":")[2].strip() for line in _read_cpu_info() if line.startswith("model name")]
    return f"{cpu_count()} x {(names or [platform.machine()])[0]}, Python {platform.python_version()}"


def _read_cpu_info() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def format_table(report: BenchmarkReport) -> str:
    """Return *report* as a table for a person."""
    head = f"{'':42}{'requests':>9}{'KB':>11}{'ms':>8}{'our cpu':>9}{'theirs':>8}{'MiB':>7}"
    lines = [
        f"{cost.look:42}{cost.requests:9}{cost.bytes_received / 1e3:11,.1f}{cost.wall_ms:8,.0f}{cost.own_cpu_ms:9,.0f}"
        f"{cost.server_cpu_ms:8,.0f}{cost.peak_mib:7,.0f}"
        for cost in report.looks
    ]
    flow = report.flow
    flow_line = (
        f"flow schema {flow.flow_schema}, priority level {flow.priority_level}: {flow.dispatched} requests, "
        f"{flow.seats} seats each, waited {flow.waited_ms} ms in all, {flow.rejected} refused"
    )
    return "\n".join(
        (
            f"{report.pods} pods, {report.nodes} nodes, kube-apiserver {report.kubernetes}, {report.machine}",
            head,
            *lines,
            f"before the first look: {report.at_first_mib:,.0f} MiB",
            flow_line,
            *(
                f"{'met   ' if budget.measured <= budget.limit else 'MISSED'} {budget.metric}: "
                f"{budget.measured:,} of {budget.limit:,}"
                for budget in report.budgets
            ),
            "",
        )
    )


def main() -> None:
    """Read the task from standard input, take the snapshots, and write the report."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    sys.stdout.buffer.write(msgspec.json.encode(measure_snapshots(task)))


if __name__ == "__main__":
    main()
