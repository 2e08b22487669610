"""Measure how long each deployed function takes from a cold start to its first call, in processor seconds.

The bundle is that of `infra.functions.bundling` with wheels for this machine, run by a Python of the Lambda version if
one is installed. Only the bundle and the standard library can be imported. The first call is cut off where it would
open a connection: everything before is Joiner's own work, everything after is waiting. Run it with::

    python -m tests.benchmarks.bench_cold_start
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from infra.functions import bundling

RUNS_PER_FUNCTION: Final = 7
FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog", "watch")
PROBE_SCRIPT: Final = """
import sys
from importlib import import_module
from time import process_time

name, *folders = sys.argv[1:]
sys.path[:0] = folders
began = process_time()
handler = import_module(f"functions.{name}.handler").handler
loaded = process_time()

import socket

def first_call(*_):
    print(loaded - began, process_time() - loaded, flush=True)
    raise SystemExit(0)

socket.getaddrinfo = first_call

class Context:
    aws_request_id = "cold"

    def get_remaining_time_in_millis(self):
        return 50_000

handler({"source": "schedule"}, Context())
"""
ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "CLUSTER_NAME": "demo",
    "JOINER_REGION": "us-east-1",
    "JOINER_BUCKET_NAME": "bucket",
    "JOINER_QUEUE_PREFIX": "https://queue/demo-",
    "JOINER_TABLE_NAME": "table",
}


TRACING_ENVIRONMENT: Final = {
    "AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:2000",
    "JOINER_TRACING": "on",
    "LAMBDA_TASK_ROOT": "/",
    "_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
}
"""Variables of a function with `tracing: on`; nothing receives the traces."""
TRACING: Final = bundling.LayerFeatures(has_tracing=True)


def build_bundle(folder: Path, version: str, *, features: bundling.LayerFeatures = bundling.NO_FEATURES) -> None:
    """Put the deployed code into *folder*, with wheels for this machine and Python *version*."""
    bundling.install_dependencies(folder, version=version, platform="", features=features)
    bundling.OwnBundling("", {}).try_bundle(str(folder))


def measure_cold_start(
    python: str, function: str, *folders: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> tuple[float, float]:
    """Return the processor seconds of importing *function* from *folders*, and from there to its first call.

    Raises:
        subprocess.CalledProcessError: the function failed before its first call.
    """
    command = [python, "-I", "-S", "-B", "-c", PROBE_SCRIPT, function, *map(str, folders)]
    process = subprocess.run(command, check=True, capture_output=True, text=True, env={**ENVIRONMENT, **variables})
    loaded, call_seconds = map(float, process.stdout.split())
    return loaded, call_seconds


def list_part_sizes_mb(folder: Path, python: str) -> Iterator[tuple[str, float]]:
    """Build the deployed parts in *folder* for Lambda's architecture and yield their names and zipped sizes in MB."""
    parts: dict[str, bundling.UvBundling | bundling.OwnBundling] = {
        "layer": bundling.UvBundling(python),
        "layer with tracing": bundling.UvBundling(python, features=TRACING),
        "own code": bundling.OwnBundling(python, {}),
    }
    for name, part in parts.items():
        (folder / name).mkdir()
        part.try_bundle(str(folder / name))
        yield name, Path(shutil.make_archive(str(folder / name), "zip", folder / name)).stat().st_size / 1e6


def main() -> None:
    """Print a table."""
    python = bundling.find_interpreter()
    version = bundling.PYTHON_VERSION if python else f"{sys.version_info.major}.{sys.version_info.minor}"
    with TemporaryDirectory() as name:
        for part_name, size in list_part_sizes_mb(Path(name), python):
            sys.stdout.write(f"{part_name}, zipped{', with bytecode' if python else ''}: {size:.1f} MB\n")
        folder = Path(name) / "here"
        build_bundle(folder, version)
        for kind in ("as source", "with bytecode"):
            for function in FUNCTIONS:
                runs = [
                    measure_cold_start(python or sys.executable, function, folder) for _ in range(RUNS_PER_FUNCTION)
                ]
                loaded, call_ms = (median(run[part] for run in runs) * 1000 for part in (0, 1))
                durations = f"{loaded:.0f} + {call_ms:.0f} = {loaded + call_ms:.0f} ms"
                sys.stdout.write(f"{function}, Python {version} {kind}: import + first call {durations}\n")
            bundling.compile_bytecode(folder, python or sys.executable)
        _print_tracing_durations(Path(name) / "traced", python, version)


def _print_tracing_durations(folder: Path, python: str, version: str) -> None:
    """Print the durations of one function without and with tracing, measured in turn."""
    build_bundle(folder, version, features=TRACING)
    bundling.compile_bytecode(folder, python or sys.executable)
    runs: dict[str, list[float]] = {"off": [], "on": []}
    for _ in range(RUNS_PER_FUNCTION):
        for mode, variables in (("off", {}), ("on", TRACING_ENVIRONMENT)):
            runs[mode].append(
                sum(measure_cold_start(python or sys.executable, "provision", folder, variables=variables))
            )
    for mode, durations in runs.items():
        sys.stdout.write(f"provision, tracing {mode}: {median(durations) * 1000:.0f} ms\n")


if __name__ == "__main__":
    main()
