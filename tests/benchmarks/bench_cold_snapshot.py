"""Measure the first snapshot of a cold container in a large cluster: listed, and loaded from stored lists.

``python -m tests.benchmarks.bench_cold_snapshot [pods]`` (default 150,000, on a thirtieth as many nodes). The API
server is on loopback and generates its responses; the bucket is a folder. Each read is a process of its own:

* list: a cold container without stored lists
* store: the same container stores its lists
* load: a cold container loads them, then watches; in the meantime, one pod in a hundred has changed
* old: the same, but the API server does not know the changes any more (410), so that it lists after all
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import perf_counter, process_time

import msgspec
from msgspec.structs import replace

from shared.cycles.setup.shared_cache import store_large_lists
from shared.kubernetes.client import KubeClient
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.take.snapshot import SnapshotRequest, take_snapshot
from sim.world.memory_ports import MemoryBucket, MemoryTable
from tests.benchmarks.generated_server import run_generated_server
from tests.support.snapshot_world import NOW, make_world

READS = ("list", "load", "old")


class ReadCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one step, as its process reports it; *peak_mib* is the highest memory of the process so far."""

    step: str
    seconds: float
    cpu_seconds: float
    peak_mib: float
    document_bytes: int = 0
    log_lines: tuple[str, ...] = ()
    pod_count: int = 0


class FolderBucket(MemoryBucket):
    """A bucket whose objects are files of a folder, so that processes can share it."""

    def __init__(self, folder: Path) -> None:
        """Use *folder*."""
        super().__init__()
        self._folder = folder

    def put(self, key: str, body: bytes) -> None:
        self._folder.joinpath(key.replace("/", "_")).write_bytes(body)

    def get(self, key: str) -> bytes:
        return self._folder.joinpath(key.replace("/", "_")).read_bytes()


class FolderTable(MemoryTable):
    """A table whose only row is a file of a folder."""

    def __init__(self, folder: Path) -> None:
        """Use *folder*."""
        super().__init__()
        self._file = folder / "row"

    def read(self, kind: str, name: str) -> TableRow | None:
        if self._file.exists():
            self._rows[kind, name] = msgspec.json.decode(self._file.read_bytes(), type=TableRow)
        return super().read(kind, name)

    def write(
        self, kind: str, name: str, body: str, *, version: int, fence: FencingToken | None = None, **_: object
    ) -> TableRow:
        row = super().write(kind, name, body, version=version, fence=fence)
        self._file.write_bytes(msgspec.json.encode(row))
        return row


def measure(step: str, action: Callable[[], int], document_bytes: Callable[[], int], log_lines: list[str]) -> ReadCost:
    """Return the cost of *action*, which returns a number of pods."""
    began, cpu_began = perf_counter(), process_time()
    pod_count = action()
    seconds, cpu_seconds = perf_counter() - began, process_time() - cpu_began
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return ReadCost(
        step=step,
        seconds=round(seconds, 2),
        cpu_seconds=round(cpu_seconds, 2),
        peak_mib=round(peak_kib / 1024, 0),
        document_bytes=document_bytes(),
        log_lines=tuple(log_lines),
        pod_count=pod_count,
    )


def read_in_this_process(step: str, endpoint: str, folder: Path) -> list[ReadCost]:
    """Take the first snapshot of a container; after the step `list`, store its lists."""
    log_lines: list[str] = []
    base = make_world(clock=lambda: NOW + timedelta(seconds=0 if step == "list" else 60))
    settings = replace(base.settings, shared_cache="on")
    world: World = replace(
        base,
        settings=settings,
        kube=KubeClient(endpoint),
        memory={},
        bucket=FolderBucket(folder),
        table=FolderTable(folder),
        emit=log_lines.append,
    )

    def count_document_bytes() -> int:
        return sum(path.stat().st_size for path in folder.iterdir())

    costs = [measure(step, lambda: len(take_snapshot(world, SnapshotRequest()).pods), lambda: 0, [])]

    def share() -> int:
        store_large_lists(world)
        return 0

    shared = measure("store" if step == "list" else "log", share, count_document_bytes, log_lines)
    return [*costs, replace(shared, log_lines=tuple(log_lines))]


def main() -> None:
    """Run the benchmark, or one of its steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pods", type=int, nargs="?", default=150_000)
    parser.add_argument("--step", choices=READS, help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        costs = read_in_this_process(args.step, args.endpoint, args.folder)
        sys.stdout.write(msgspec.json.encode(costs).decode())
        return
    with tempfile.TemporaryDirectory() as folder, run_generated_server(args.pods) as server:
        for step in READS:
            server.has_changes, server.is_history_lost = step != "list", step == "old"
            command = [sys.executable, "-m", __spec__.name, "--step", step, "--endpoint", server.endpoint]
            output = subprocess.run([*command, "--folder", folder], check=True, capture_output=True).stdout
            print_costs(msgspec.json.decode(output, type=list[ReadCost]))


def print_costs(costs: list[ReadCost]) -> None:
    """Print one line for each cost, and the log lines."""
    for cost in costs:
        document = f", {cost.document_bytes / 1e6:.1f} MB stored" if cost.step == "store" else ""
        if cost.step != "log":
            duration = f"{cost.seconds:7.2f} s, {cost.cpu_seconds:6.2f} s of CPU time"
            sys.stdout.write(f"{cost.step:6}{duration}, {cost.peak_mib:5.0f} MiB at most{document}\n")
        for line in cost.log_lines:
            fields = msgspec.json.decode(line)
            sys.stdout.write(f"       {fields['message']} {fields.get('reason', '')}\n")


if __name__ == "__main__":
    main()
