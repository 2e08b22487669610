"""What a look at a large cluster costs the API server: listed, caught up with, and at a glance.

``python -m tests.benchmarks.bench_snapshot [pods]``: the product's client over HTTP, in front of a cluster in memory,
in one process and on one core with it. Requests and bytes are counted at the server's socket; its time counts too.

``--real``: in front of a real API server, which is started and filled for that (minutes; needs Go the first time). Our
time and the server's are told apart, and what is measured is held to a budget; ``-o json`` writes it for a program.
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

from shared.kube.client import KubeClient
from shared.model.cluster import Cluster
from shared.ports import World
from shared.snapshot.take import Wanted, first_look, take
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from tests.benchmarks import real_plane
from tests.contract.kube_front import Front, serve
from tests.unit.snapshot_world import NOW, world

CLAIMS = "nodeclaims.karpenter.sh"
FILLER = "x" * 512
PARTS = 10
"""Times FILLER: with that a pod is 6.5 KB, as one with its managed fields and its status is."""


class Counted:
    """A socket's file that counts."""

    def __init__(self, file: BufferedIOBase) -> None:
        """Write to *file*."""
        self._file = file

    def write(self, data: bytes) -> int:
        Metered.sent += len(data)
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Metered(Front):
    """HTTP in front of the cluster, counting."""

    requests: ClassVar[int] = 0
    sent: ClassVar[int] = 0

    def setup(self) -> None:
        super().setup()
        self.wfile = cast("BufferedIOBase", Counted(self.wfile))

    def parse_request(self) -> bool:
        Metered.requests += 1
        return super().parse_request()


def filled(pods: int) -> ApiServer:
    """Answer a cluster of *pods* that run, on a tenth as many nodes, each with its claim."""
    api = ApiServer(Clock())
    annotations = {f"example.com/{part}": FILLER for part in range(PARTS)}
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    wanted = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]
    for number in range(pods // 10):
        name = f"node-{number:05d}"
        meta = {"name": name, "annotations": annotations}
        capacity = {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}}
        api.create("nodes", {"metadata": meta, "spec": {"providerID": f"aws:///a/i-{number:017x}"}, "status": capacity})
        api.create(CLAIMS, {"metadata": {"name": name}, "spec": {"nodeClassRef": ref, "requirements": wanted}})
        status = {"providerID": f"aws:///a/i-{number:017x}", "nodeName": name}
        api.patch(CLAIMS, name, {"status": status}, subresource="status")
    asked = {"requests": {"cpu": "250m", "memory": "512Mi"}}
    for number in range(pods):
        spec = {
            "containers": [{"name": "app", "image": "registry.example.com/app:1", "resources": asked}],
            "nodeName": f"node-{number % (pods // 10):05d}",
        }
        labelled = {"name": f"app-{number:05d}", "labels": {"app": f"app-{number % 40}"}, "annotations": annotations}
        api.create("pods", {"metadata": labelled, "spec": spec}, "default")
    return api


def churn(api: ApiServer, changes: int) -> None:
    """Change as many pods."""
    for number in range(changes):
        api.patch("pods", f"app-{number * 7:05d}", {"status": {"phase": "Running"}}, "default", "status")


def measured(what: str, look: Callable[[World], Cluster], at: World) -> Cluster:
    """Tell what *look* costs."""
    Metered.requests = Metered.sent = 0
    began = perf_counter()
    cluster = look(at)
    took = (perf_counter() - began) * 1e3
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    cost = f"{Metered.requests:4} requests {Metered.sent / 1e3:12,.1f} KB {took:7,.0f} ms"
    sys.stdout.write(f"{what:42}{cost}, {peak:,.0f} MB at most so far\n")
    return cluster


def everything(at: World) -> Cluster:
    """Read all lists."""
    return take(at, Wanted())


def told(api: ApiServer, cold: World) -> None:
    """Measure all ways to look."""
    warm = replace(cold, memory={})
    measured("listed", everything, cold)
    measured("listed, to be remembered", everything, warm)
    for number in range(3):
        api.create("configmaps", {"metadata": {"name": f"something-else-{number}"}}, "default")
        measured("caught up, nothing changed", everything, warm)
    churn(api, 200)
    caught_up = measured("caught up, 200 pods changed", everything, warm)
    if caught_up != everything(cold):
        raise AssertionError("a catch-up shows something else than a list")
    api.patch("nodes", "node-00000", {"metadata": {"labels": {"a": "b"}}})
    measured("caught up, one node changed", everything, warm)
    api.create("configmaps", {"metadata": {"name": "something-else"}}, "default")
    measured("first look, nothing waits, remembering", first_look, warm)
    measured("first look, nothing waits, cold", first_look, cold)


def in_memory(pods: int) -> None:
    """Measure a cluster of *pods* in memory."""
    api = filled(pods)
    Metered.kube = InMemoryKube(api)
    for endpoint in serve(Metered):
        told(api, replace(world(clock=lambda: NOW), kube=KubeClient(endpoint)))


def really(pods: int, output: str) -> None:
    """Measure a real API server with *pods*."""
    account = real_plane.measured(pods)
    if output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(account), indent=1).decode() + "\n")
    else:
        sys.stdout.write(real_plane.table(account))


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pods", type=int, nargs="?", default=20_000)
    parser.add_argument("--real", action="store_true", help="in front of a real API server")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="of --real")
    chosen = parser.parse_args()
    if chosen.real:
        really(chosen.pods, chosen.output)
    else:
        in_memory(chosen.pods)


if __name__ == "__main__":
    main()
