"""The programs of a control plane: found in KUBEBUILDER_ASSETS, or built once from go.mod and main.go beside this file.

The build is kept in the user's cache folder under the version of Kubernetes and a digest of what it was made from.
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
_MADE_FROM: Final = ("go.mod", "go.sum", "main.go", "binaries.py")
_IMPATIENCE_SECONDS: Final = 2
_TELL_EVERY_SECONDS: Final = 10
LONGEST_SECONDS: Final = 45 * 60
"""For downloads and compilation; a second attempt finds what the first has fetched and compiled."""
_PACKAGES: Final = 2800
"""What an empty Go build cache has to compile, in minutes."""
_VERSIONED: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

Say = Callable[[str], None]


class NoPrograms(Exception):
    """There is no control plane to start; the message says what would help."""


def tell(line: str) -> None:
    """Print *line* for the person who waits, past whatever captures standard error."""
    print(line, file=sys.__stderr__, flush=True)


def programs(wanted: tuple[str, ...] = PROGRAMS, say: Say = tell) -> Path:
    """Answer a folder that has *wanted*; builds it the first time (minutes), and says so.

    A folder in KUBEBUILDER_ASSETS that has only some of them is not used: versions do not mix.

    Raises:
        NoPrograms: there is no Go, or the build fails or takes longer than `LONGEST_SECONDS`.
    """
    there = found(wanted)
    if there:
        return there
    folder = home()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent / "lock", say):
        if not folder.is_dir():
            _build(folder, say)
    return folder


def found(wanted: tuple[str, ...] = PROGRAMS) -> Path | None:
    """Answer the folder that has *wanted* already; None if there is none."""
    given = os.environ.get(ASSETS, "")
    if given and all(os.access(Path(given, name), os.X_OK) for name in wanted):
        return Path(given)
    return home() if home().is_dir() else None


def home() -> Path:
    """Answer the folder of what is built from these sources; it is there once it is whole."""
    return cache() / f"{version()}-{digest()[:12]}"


def cache() -> Path:
    """Answer where builds are kept; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "joiner", "controlplane")


def version() -> str:
    """Answer the version of Kubernetes that go.mod asks for, as 1.36.3."""
    found = re.search(r"^\s+k8s\.io/kubernetes v(\S+)$", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    assert found
    return found[1]


def digest() -> str:
    """Answer a digest of everything that a build depends on."""
    whole = sha256()
    for name in _MADE_FROM:
        whole.update((SOURCE / name).read_bytes())
    return whole.hexdigest()


@contextmanager
def _alone(lock: Path, say: Say) -> Iterator[None]:
    """Hold *lock*; whoever had it may have done the work meanwhile."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("control plane: waiting for the build that another process has begun")
            fcntl.flock(held, fcntl.LOCK_EX)
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
        _compile(fresh / ETCD, Path(workshop, "log"), say)
        for name in PROGRAMS[1:]:
            os.link(fresh / ETCD, fresh / name)
        fresh.rename(folder)


def _compile(target: Path, log: Path, say: Say) -> None:
    command = ["nice", "go", "build", "-v", "-trimpath", "-ldflags", _linker_flags(), "-o", str(target), "."]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    with log.open("w") as output, _running(command, environment, output) as build:
        begun = time.monotonic()
        pause = _IMPATIENCE_SECONDS
        while _is_running(build, pause):
            pause = _TELL_EVERY_SECONDS
            done = sum(not line.startswith("go: ") for line in log.read_text().splitlines())
            waited = time.monotonic() - begun
            whole = f"{done} of at most {_PACKAGES} packages"
            say(f"control plane: building Kubernetes {version()}, this once: {whole}, {waited:.0f} s")
            if waited > LONGEST_SECONDS:
                break
    if build.returncode:
        end = "\n".join(log.read_text().splitlines()[-20:])
        how = "failed" if build.returncode > 0 else f"was given up after {LONGEST_SECONDS} s"
        raise NoPrograms(f"`{' '.join(command[1:3])}` in {SOURCE} {how}:\n{end}")


@contextmanager
def _running(command: list[str], environment: dict[str, str], output: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
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


def _linker_flags() -> str:
    """Answer what a release has: an API server without a version breaks every client that asks for it."""
    major, minor, _ = version().split(".")
    facts = {
        "gitVersion": f"v{version()}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "unknown",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    stamps = (f"-X {package}.{name}={value}" for package in _VERSIONED for name, value in facts.items())
    return " ".join(("-s", "-w", *stamps))
