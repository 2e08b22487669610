"""The same looks on a real API server, with its own account of them.

The plane is filled over its API, as controllers would. The looks are taken in a process of their own, as a function is:
what it needs of memory is not hidden by what the filling needed.
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

from shared.model.cluster import Cluster
from shared.ports import Kube, World
from shared.snapshot.take import Wanted, first_look, take
from tests.benchmarks import population
from tests.benchmarks.metering import Cost, Flow, Meter, MeteredClient, flows, spent
from tests.benchmarks.population import Object
from tests.controlplane.binaries import API_SERVER, ETCD, tell, version
from tests.controlplane.definitions import install
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ADMIN, API_ONLY, ControlPlane
from tests.controlplane.rights import grant
from tests.kubernetes.manifests import node_class, node_pool
from tests.unit.snapshot_world import NOW, world

CHANGES: Final = 100
_WRITERS: Final = 8
_PODS: Final = "/api/v1/namespaces/default/pods"
_NODES: Final = "/api/v1/nodes"
_CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that looks has to know."""

    endpoint: str
    authority: str
    token: str
    admin: str
    servers: tuple[int, ...]
    pods: int


class Budget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The most that something may be, and what it was."""

    what: str
    most: float
    was: float


class Account(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All that was measured, and where."""

    kubernetes: str
    machine: str
    pods: int
    nodes: int
    at_first_mib: float
    """What the process had before its first look."""
    looks: tuple[Cost, ...]
    flow: Flow
    budgets: tuple[Budget, ...] = ()


def measured(pods: int) -> Account:
    """Start a plane, fill it with *pods*, and measure; the plane is gone afterwards."""
    with ControlPlane(parts=API_ONLY, users=(FUNCTIONS,)) as plane:
        install(plane)
        grant(plane.client())
        fill(plane.client(), pods)
        pids = plane.processes.pids()
        task = Task(
            endpoint=plane.endpoint,
            authority=plane.certificate_authority,
            token=plane.token_of(FUNCTIONS),
            admin=plane.token_of(ADMIN),
            servers=(pids[API_SERVER], pids[ETCD]),
            pods=pods,
        )
        command = [sys.executable, "-m", "tests.benchmarks.real_plane"]
        done = subprocess.run(command, input=msgspec.json.encode(task), stdout=subprocess.PIPE, check=True)
    account = msgspec.json.decode(done.stdout, type=Account)
    return replace(account, budgets=_budgets(account))


def fill(kube: Kube, pods: int) -> None:
    """Create *pods* that run, on a tenth as many nodes, each with its claim and its CSINode."""
    nodes = pods // population.PODS_A_NODE
    kube.create("/apis/karpenter.k8s.aws/v1/ec2nodeclasses", msgspec.json.encode(node_class()))
    kube.create("/apis/karpenter.sh/v1/nodepools", msgspec.json.encode(node_pool("default")))

    def made(path: str, some: Object, status: Object | None = None) -> None:
        kube.create(path, msgspec.json.encode(some))
        if status is not None:
            kube.patch(f"{path}/{some['metadata']['name']}/status", msgspec.json.encode({"status": status}))

    def machine(number: int) -> None:
        made(_NODES, population.node(number), population.node_status(number))
        made(_CLAIMS, population.node_claim(number), population.node_claim_status(number))
        made(_CSI_NODES, population.csi_node(number))

    def runs(number: int) -> None:
        made(_PODS, population.pod(number, nodes), population.pod_status(number))

    _spread_over_threads(machine, range(nodes), "nodes")
    _spread_over_threads(runs, range(pods), "pods")


def _spread_over_threads(make: Callable[[int], None], numbers: range, what: str) -> None:
    with ThreadPoolExecutor(_WRITERS) as writers:
        for done, _ in enumerate(writers.map(make, numbers), 1):
            if done % 5000 == 0 or done == len(numbers):
                tell(f"bench: {done} of {len(numbers)} {what}")


def looked(task: Task) -> Account:
    """Take all looks, in this process."""
    admin = MeteredClient(task.endpoint, certificate_authority=task.authority, token=lambda: task.admin)
    kube = MeteredClient(task.endpoint, certificate_authority=task.authority, token=lambda: task.token)
    cold = replace(world(clock=lambda: NOW), kube=kube)
    before = flows(task.endpoint, task.authority, task.admin)
    meter = Meter(task.servers)
    at_first = meter.cost("").peak_mib
    costs = tuple(_costs(meter, cold, admin, task.pods))
    after = flows(task.endpoint, task.authority, task.admin)
    ours = max(
        (spent(before.get(name), flow) for name, flow in after.items() if flow.priority_level != "exempt"),
        key=lambda flow: flow.dispatched,
    )
    return Account(
        kubernetes=version(),
        machine=_machine(),
        pods=task.pods,
        nodes=task.pods // population.PODS_A_NODE,
        at_first_mib=at_first,
        looks=costs,
        flow=ours,
    )


def _costs(meter: Meter, cold: World, admin: Kube, pods: int) -> Iterable[Cost]:
    warm = replace(cold, memory={})

    def look(what: str, by: Callable[[World], Cluster], at: World) -> Cost:
        meter.begin()
        by(at)
        return meter.cost(what)

    yield look("listed, to be remembered", everything, warm)
    for number in range(3):
        _write_elsewhere(admin, number)
        yield look("caught up, nothing changed", everything, warm)
    _change(admin, pods)
    yield look(f"caught up, {CHANGES} pods changed", everything, warm)
    admin.patch(f"{_NODES}/{population.node_name(0)}", b'{"metadata":{"labels":{"a":"b"}}}')
    yield look("caught up, one node changed", everything, warm)
    _write_elsewhere(admin, 3)
    yield look("first look, nothing waits, remembering", first_look, warm)
    yield look("first look, nothing waits, cold", first_look, cold)
    if everything(warm) != everything(cold):
        raise AssertionError("a catch-up shows something else than a list")


def everything(at: World) -> Cluster:
    """Read all lists."""
    return take(at, Wanted())


def _write_elsewhere(admin: Kube, number: int) -> None:
    """Move the server's version on, as there is always something that does."""
    admin.create(_CONFIG_MAPS, msgspec.json.encode({"metadata": {"name": f"something-else-{number}"}}))


def _change(admin: Kube, pods: int) -> None:
    for number in range(CHANGES):
        name = population.pod(number * (pods // CHANGES), 1)["metadata"]["name"]
        admin.patch(f"{_PODS}/{name}/status", b'{"status":{"message":"changed"}}')


def _budgets(account: Account) -> tuple[Budget, ...]:
    listed = account.looks[0]
    quiet = [cost for cost in account.looks if cost.look == "caught up, nothing changed"]
    middle = sorted(quiet, key=lambda cost: cost.wall_ms)[len(quiet) // 2]
    return (
        Budget(what="listed: seconds of our processor", most=2, was=round(listed.own_cpu_ms / 1e3, 2)),
        Budget(what="listed: MiB at most", most=300, was=listed.peak_mib),
        Budget(what="nothing changed: KB", most=200, was=round(middle.bytes_received / 1e3, 1)),
        Budget(what="nothing changed: ms", most=300, was=middle.wall_ms),
    )


def _machine() -> str:
    names = [line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")]
    return f"{cpu_count()} x {(names or [platform.machine()])[0]}, Python {platform.python_version()}"


def _cpu_info() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def table(account: Account) -> str:
    """Write *account* for a person."""
    head = f"{'':42}{'requests':>9}{'KB':>11}{'ms':>8}{'our cpu':>9}{'theirs':>8}{'MiB':>7}"
    lines = [
        f"{one.look:42}{one.requests:9}{one.bytes_received / 1e3:11,.1f}{one.wall_ms:8,.0f}{one.own_cpu_ms:9,.0f}"
        f"{one.server_cpu_ms:8,.0f}{one.peak_mib:7,.0f}"
        for one in account.looks
    ]
    flow = account.flow
    served = (
        f"flow schema {flow.flow_schema}, priority level {flow.priority_level}: {flow.dispatched} requests, "
        f"{flow.seats} seats each, waited {flow.waited_ms} ms in all, {flow.rejected} refused"
    )
    return "\n".join(
        (
            f"{account.pods} pods, {account.nodes} nodes, kube-apiserver {account.kubernetes}, {account.machine}",
            head,
            *lines,
            f"before the first look: {account.at_first_mib:,.0f} MiB",
            served,
            *(
                f"{'met   ' if one.was <= one.most else 'MISSED'} {one.what}: {one.was:,} of {one.most:,}"
                for one in account.budgets
            ),
            "",
        )
    )


def main() -> None:
    """Look, as standard input says; write what it cost."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    sys.stdout.buffer.write(msgspec.json.encode(looked(task)))


if __name__ == "__main__":
    main()
