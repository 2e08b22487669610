"""How long each function takes from nothing to its first call, in processor seconds, from what is deployed.

The bundle is that of `infra.bundling` with wheels for this machine, run by a Python of the Lambda's version if one is
here. Nothing but the bundle and the standard library can be imported. The first call is cut off where it would open a
connection: what comes before it is all ours, what comes after is waiting.

    python -m tests.benchmarks.bench_cold_start
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from infra import bundling

RUNS: Final = 7
FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog", "watch")
PROBE: Final = """
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


def build(folder: Path, version: str) -> None:
    """Put into *folder* what is deployed, with wheels for this machine and Python *version*."""
    bundling.install(folder, version=version, platform="")
    bundling.OwnBundling("", {}).try_bundle(str(folder))


def cold_start(python: str, function: str, *folders: Path) -> tuple[float, float]:
    """Answer the processor seconds of importing *function* from *folders*, and from there to its first call.

    Raises:
        subprocess.CalledProcessError: it did not get so far.
    """
    command = [python, "-I", "-S", "-B", "-c", PROBE, function, *map(str, folders)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
    loaded, called = map(float, done.stdout.split())
    return loaded, called


def sizes(folder: Path, python: str) -> Iterator[tuple[str, float]]:
    """Build what is deployed in *folder*, for the Lambda's machine, and answer its parts' zipped sizes in MB."""
    for name, part in (("layer", bundling.UvBundling(python)), ("own code", bundling.OwnBundling(python, {}))):
        (folder / name).mkdir()
        part.try_bundle(str(folder / name))
        yield name, Path(shutil.make_archive(str(folder / name), "zip", folder / name)).stat().st_size / 1e6


def main() -> None:
    """Print a table."""
    python = bundling.interpreter()
    version = bundling.VERSION if python else f"{sys.version_info.major}.{sys.version_info.minor}"
    with TemporaryDirectory() as name:
        for what, size in sizes(Path(name), python):
            sys.stdout.write(f"{what}, zipped{', with bytecode' if python else ''}: {size:.1f} MB\n")
        folder = Path(name) / "here"
        build(folder, version)
        for kind in ("as source", "with bytecode"):
            for function in FUNCTIONS:
                runs = [cold_start(python or sys.executable, function, folder) for _ in range(RUNS)]
                loaded, called = (median(one[part] for one in runs) * 1000 for part in (0, 1))
                said = f"{loaded:.0f} + {called:.0f} = {loaded + called:.0f} ms"
                sys.stdout.write(f"{function}, Python {version} {kind}: import + first call {said}\n")
            bundling.precompile(folder, python or sys.executable)


if __name__ == "__main__":
    main()
