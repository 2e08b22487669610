"""The programs of a control plane: found in KUBEBUILDER_ASSETS, or built once from go.mod and main.go.

The build is kept in the user's cache folder under the version of Kubernetes and a digest of its inputs.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLERS: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KUBECTL: Final = "kubectl"
KWOK: Final = "kwok"
STAGES: Final = "kwok-stages"
PROGRAMS: Final = (ETCD, API_SERVER, CONTROLLERS, SCHEDULER, KUBECTL, KWOK, STAGES)

ASSETS: Final = "KUBEBUILDER_ASSETS"
SOURCE: Final = Path(__file__).parent
_BUILD_INPUTS: Final = ("go.mod", "go.sum", "main.go", "binaries.py")
_FIRST_REPORT_SECONDS: Final = 2
_REPORT_INTERVAL_SECONDS: Final = 10
BUILD_TIMEOUT_SECONDS: Final = 45 * 60
"""For downloads and compilation; a second attempt reuses what the first has downloaded and compiled."""
_MAX_PACKAGE_COUNT: Final = 2800
"""Packages that a build with an empty Go build cache compiles; this takes minutes."""
_VERSIONED_PACKAGES: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

Say = Callable[[str], None]


class NoPrograms(Exception):
    """There is no control plane to start; the message names a fix."""


def print_line(line: str) -> None:
    """Print *line* to the original standard error, so that it is visible even if standard error is captured."""
    print(line, file=sys.__stderr__, flush=True)


def ensure_programs(names: tuple[str, ...] = PROGRAMS, say: Say = print_line) -> Path:
    """Return a folder that has the programs *names*; build it the first time (minutes), with progress messages.

    A folder in KUBEBUILDER_ASSETS that lacks some of them is not used: versions do not mix.

    Raises:
        NoPrograms: there is no Go, or the build fails or takes longer than `BUILD_TIMEOUT_SECONDS`.
    """
    existing_folder = find_programs(names)
    if existing_folder:
        return existing_folder
    folder = get_build_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _hold_lock(folder.parent / "lock", say):
        if not folder.is_dir():
            _build(folder, say)
    return folder


def find_programs(names: tuple[str, ...] = PROGRAMS) -> Path | None:
    """Return the existing folder with the programs *names*; None if there is none."""
    assets = os.environ.get(ASSETS, "")
    if assets and all(os.access(Path(assets, name), os.X_OK) for name in names):
        return Path(assets)
    return get_build_folder() if get_build_folder().is_dir() else None


def get_build_folder() -> Path:
    """Return the folder for programs built from these sources; it exists once the build is complete."""
    return get_cache_folder() / f"{read_kubernetes_version()}-{compute_inputs_digest()[:12]}"


def get_cache_folder() -> Path:
    """Return the folder where builds are kept; it may not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "joiner", "controlplane")


def read_kubernetes_version() -> str:
    """Return the version of Kubernetes in go.mod, as 1.36.3."""
    match = re.search(r"^\s+k8s\.io/kubernetes v(\S+)$", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    assert match
    return match[1]


def compute_inputs_digest() -> str:
    """Return a digest of everything that a build depends on."""
    inputs_digest = sha256()
    for name in _BUILD_INPUTS:
        inputs_digest.update((SOURCE / name).read_bytes())
    return inputs_digest.hexdigest()


@contextmanager
def _hold_lock(lock: Path, say: Say) -> Iterator[None]:
    """Hold *lock*; its previous holder may have completed the build."""
    with lock.open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("control plane: waiting for the build that another process has begun")
            fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def _build(folder: Path, say: Say) -> None:
    if shutil.which("go") is None:
        raise NoPrograms(
            "A real control plane is built from source once, and `go` is not on PATH: install Go 1.26 or newer "
            f"(https://go.dev/dl), or name a folder with {', '.join(PROGRAMS)} in {ASSETS}."
        )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as workshop:
        fresh = Path(workshop, "programs")
        fresh.mkdir()
        _compile_programs(fresh / ETCD, Path(workshop, "log"), say)
        for name in PROGRAMS[1:]:
            os.link(fresh / ETCD, fresh / name)
        fresh.rename(folder)


def _compile_programs(target: Path, log: Path, say: Say) -> None:
    command = ["nice", "go", "build", "-v", "-trimpath", "-ldflags", _build_linker_flags(), "-o", str(target), "."]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    with log.open("w") as output, _run_build(command, environment, output) as build:
        started_at = time.monotonic()
        pause = _FIRST_REPORT_SECONDS
        while _is_running(build, pause):
            pause = _REPORT_INTERVAL_SECONDS
            package_count = sum(not line.startswith("go: ") for line in log.read_text().splitlines())
            elapsed_seconds = time.monotonic() - started_at
            progress = f"{package_count} of at most {_MAX_PACKAGE_COUNT} packages"
            say(
                f"control plane: building Kubernetes {read_kubernetes_version()}, this once: {progress}, "
                f"{elapsed_seconds:.0f} s"
            )
            if elapsed_seconds > BUILD_TIMEOUT_SECONDS:
                break
    if build.returncode:
        end = "\n".join(log.read_text().splitlines()[-20:])
        outcome = "failed" if build.returncode > 0 else f"was given up after {BUILD_TIMEOUT_SECONDS} s"
        raise NoPrograms(f"`{' '.join(command[1:3])}` in {SOURCE} {outcome}:\n{end}")


@contextmanager
def _run_build(command: list[str], environment: dict[str, str], output: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
    build = subprocess.Popen(command, cwd=SOURCE, env=environment, stdout=output, stderr=output)
    try:
        yield build
    finally:
        build.kill()
        build.wait()


def _is_running(build: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        build.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _build_linker_flags() -> str:
    """Return the linker flags of a release: an API server without a version breaks clients that read its version."""
    major, minor, _ = read_kubernetes_version().split(".")
    facts = {
        "gitVersion": f"v{read_kubernetes_version()}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "unknown",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    stamps = (f"-X {package}.{name}={value}" for package in _VERSIONED_PACKAGES for name, value in facts.items())
    return " ".join(("-s", "-w", *stamps))
