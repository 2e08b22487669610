"""Measure what a snapshot of a large cluster costs the API server: full lists, catch-up, and the first trigger.

``python -m tests.benchmarks.bench_snapshot [pods]``: the product's client over HTTP, in front of a cluster in memory,
in one process and on one core with it. Requests and bytes are counted at the server's socket; the server's time is
included.

``--real``: in front of a real API server, which is started and filled for that (minutes; needs Go the first time). The
time of the client and of the server are reported separately and compared with a budget; ``-o json`` writes JSON.
"""

import argparse
import sys
from collections.abc import Callable
from io import BufferedIOBase
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any, ClassVar, cast

import msgspec
from msgspec.structs import replace

from shared.kubernetes.client import KubeClient
from shared.model.cluster import ClusterSnapshot
from shared.ports.world import World
from shared.take.snapshot import SnapshotRequest, take_snapshot, take_trigger_snapshot
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.benchmarks import real_plane
from tests.contract.kube_front import Front, run_server
from tests.support.snapshot_world import NOW, make_world

CLAIMS = "nodeclaims.karpenter.sh"
FILLER = "x" * 512
FILLERS_PER_OBJECT = 10
"""Number of FILLER annotations per object: with them a pod has 6.5 KB, like a real pod with managed fields and
status.
"""


class CountingFile:
    """A socket's file that counts the bytes written to it."""

    def __init__(self, file: BufferedIOBase) -> None:
        """Write to *file*."""
        self._file = file

    def write(self, data: bytes) -> int:
        Metered.sent += len(data)
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Metered(Front):
    """An HTTP handler in front of the cluster that counts requests and bytes."""

    requests: ClassVar[int] = 0
    sent: ClassVar[int] = 0

    def setup(self) -> None:
        super().setup()
        self.wfile = cast("BufferedIOBase", CountingFile(self.wfile))

    def parse_request(self) -> bool:
        Metered.requests += 1
        return super().parse_request()


def build_filled_api_server(pods: int) -> ApiServer:
    """Return a cluster of *pods* running pods, on a tenth as many nodes, each with its NodeClaim."""
    api = ApiServer(Clock())
    annotations = {f"example.com/{part}": FILLER for part in range(FILLERS_PER_OBJECT)}
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    requirements = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]
    for number in range(pods // 10):
        name = f"node-{number:05d}"
        meta = {"name": name, "annotations": annotations}
        capacity = {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}}
        api.create("nodes", {"metadata": meta, "spec": {"providerID": f"aws:///a/i-{number:017x}"}, "status": capacity})
        api.create(CLAIMS, {"metadata": {"name": name}, "spec": {"nodeClassRef": ref, "requirements": requirements}})
        status = {"providerID": f"aws:///a/i-{number:017x}", "nodeName": name}
        api.patch(CLAIMS, name, {"status": status}, subresource="status")
    resources = {"requests": {"cpu": "250m", "memory": "512Mi"}}
    for number in range(pods):
        spec = {
            "containers": [{"name": "app", "image": "registry.example.com/app:1", "resources": resources}],
            "nodeName": f"node-{number % (pods // 10):05d}",
        }
        pod_metadata = {
            "name": f"app-{number:05d}",
            "labels": {"app": f"app-{number % 40}"},
            "annotations": annotations,
        }
        api.create("pods", {"metadata": pod_metadata, "spec": spec}, "default")
    return api


def change_pods(api: ApiServer, changes: int) -> None:
    """Change the status of *changes* pods."""
    for number in range(changes):
        api.patch("pods", f"app-{number * 7:05d}", {"status": {"phase": "Running"}}, "default", "status")


def measure_snapshot(label: str, take: Callable[[World], ClusterSnapshot], source_world: World) -> ClusterSnapshot:
    """Print what taking a snapshot costs."""
    Metered.requests = Metered.sent = 0
    began = perf_counter()
    cluster = take(source_world)
    duration_ms = (perf_counter() - began) * 1e3
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    cost = f"{Metered.requests:4} requests {Metered.sent / 1e3:12,.1f} KB {duration_ms:7,.0f} ms"
    sys.stdout.write(f"{label:42}{cost}, {peak:,.0f} MB at most so far\n")
    return cluster


def take_full_snapshot(source_world: World) -> ClusterSnapshot:
    """Read all lists."""
    return take_snapshot(source_world, SnapshotRequest())


def measure_all_snapshots(api: ApiServer, cold: World) -> None:
    """Measure every way to take a snapshot."""
    warm = replace(cold, memory={})
    measure_snapshot("listed", take_full_snapshot, cold)
    measure_snapshot("listed, to be remembered", take_full_snapshot, warm)
    for number in range(3):
        api.create("configmaps", {"metadata": {"name": f"something-else-{number}"}}, "default")
        measure_snapshot("caught up, nothing changed", take_full_snapshot, warm)
    change_pods(api, 200)
    caught_up = measure_snapshot("caught up, 200 pods changed", take_full_snapshot, warm)
    if caught_up != take_full_snapshot(cold):
        raise AssertionError("a catch-up shows something else than a list")
    api.patch("nodes", "node-00000", {"metadata": {"labels": {"a": "b"}}})
    measure_snapshot("caught up, one node changed", take_full_snapshot, warm)
    api.create("configmaps", {"metadata": {"name": "something-else"}}, "default")
    measure_snapshot("first look, nothing waits, remembering", take_trigger_snapshot, warm)
    measure_snapshot("first look, nothing waits, cold", take_trigger_snapshot, cold)


def measure_in_memory(pods: int) -> None:
    """Measure a cluster of *pods* in memory."""
    api = build_filled_api_server(pods)
    Metered.kube = InMemoryKube(api)
    for endpoint in run_server(Metered):
        measure_all_snapshots(api, replace(make_world(clock=lambda: NOW), kube=KubeClient(endpoint)))


def measure_real_api_server(pods: int, output: str) -> None:
    """Measure a real API server with *pods* pods."""
    report = real_plane.measure_on_real_plane(pods)
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n")
    else:
        sys.stdout.write(real_plane.format_table(report))


def main() -> None:
    """Run the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pods", type=int, nargs="?", default=20_000)
    parser.add_argument("--real", action="store_true", help="in front of a real API server")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="of --real")
    args = parser.parse_args()
    if args.real:
        measure_real_api_server(args.pods, args.output)
    else:
        measure_in_memory(args.pods)


if __name__ == "__main__":
    main()
