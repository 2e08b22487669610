"""Prometheus, built once from go.mod; the build is kept in the cache folder of the user, under a digest of its inputs.

Service discovery of clouds is left out (the build tag `remove_all_sd`): it is half of the server, and scrape targets of
the tests are in the configuration.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import NoPrograms, Say, print_line

MODULE: Final = "github.com/prometheus/prometheus"
SOURCE: Final = Path(__file__).parent
BUILD_TIMEOUT_SECONDS: Final = 30 * 60
_BUILD_INPUTS: Final = ("go.mod", "go.sum", "binaries.py")
_BUILD_COMMAND: Final = (
    *("nice", "go", "build", "-trimpath", "-tags=remove_all_sd", "-ldflags=-s -w"),
    *("-o={target}", f"{MODULE}/cmd/prometheus"),
)


def ensure_prometheus(say: Say = print_line) -> Path:
    """Return the program; build it the first time (minutes).

    Raises:
        NoPrograms: there is no Go, or the build fails.
    """
    program = get_program()
    if program.exists():
        return program
    if shutil.which("go") is None:
        raise NoPrograms("Prometheus is built from source once, and `go` is not on PATH: install Go 1.26 or newer")
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            say(f"prometheus: building {read_version()}, this once")
            _build(program)
    return program


def get_program() -> Path:
    """Return the path of the program; it exists once the build is complete."""
    inputs_digest = sha256(b"".join((SOURCE / name).read_bytes() for name in _BUILD_INPUTS)).hexdigest()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "joiner", "prometheus", f"{read_version()}-{inputs_digest[:12]}", "prometheus")


def read_version() -> str:
    """Return the version of the module in go.mod, as 0.316.0, which is Prometheus 3.16.0."""
    match = re.search(rf"^\s+{re.escape(MODULE)} v(\S+)", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    assert match
    return match[1]


def _build(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent, prefix="building-") as folder:
        target = Path(folder, "prometheus")
        environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
        command = [argument.format(target=target) for argument in _BUILD_COMMAND]
        try:
            subprocess.run(
                command,
                check=True,
                cwd=SOURCE,
                env=environment,
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            raise NoPrograms(f"`go build` in {SOURCE} failed:\n{error.stderr[-2000:]}") from error
        except subprocess.TimeoutExpired as error:
            raise NoPrograms(f"`go build` in {SOURCE} was given up after {BUILD_TIMEOUT_SECONDS} s") from error
        target.rename(program)
