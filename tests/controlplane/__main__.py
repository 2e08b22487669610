"""`python -m tests.controlplane`: build the control plane before somebody needs it, or say why that cannot be.

Exit codes: 0 it is there, 1 the build failed, 3 this machine cannot build it (no Go, Go too old, no disk).
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import ASSETS, SOURCE, NoPrograms, cache, found, programs

CANNOT: Final = 3
NEEDED_GB: Final = 6
"""Modules, what they compile to, and the programs."""
PATIENCE: Final = 600
"""In seconds, while Go fetches the toolchain that go.mod asks for."""


def main() -> int:
    """Build it unless it is built; progress goes to standard error, what went wrong to standard output."""
    why = hindrance()
    if why:
        sys.stdout.write(f"{why}\n")
        return CANNOT
    try:
        sys.stderr.write(f"control plane: {programs()}\n")
    except NoPrograms as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


def hindrance() -> str:
    """Answer why this machine cannot build a control plane that it does not have, and what would help; "": it can."""
    if found():
        return ""
    go = shutil.which("go")
    if go is None:
        return f"`go` is not on PATH: install Go 1.26 or newer (https://go.dev/dl), or set {ASSETS}."
    command = [go, "env", "GOCACHE", "GOMODCACHE"]
    try:
        # In the folder of go.mod, so that it is the toolchain that go.mod asks for which answers.
        answer = subprocess.run(command, check=True, cwd=SOURCE, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"`go env` in {SOURCE} has no answer after {PATIENCE} s: does it wait for a toolchain?"
    except subprocess.CalledProcessError as error:
        return f"this Go does not build what {SOURCE / 'go.mod'} asks for: {error.stderr.strip()}"
    places = [cache(), *map(Path, answer.stdout.split())]
    short = [place for place in places if _free_gb(place) < NEEDED_GB]
    return f"{NEEDED_GB} GB of disk are needed; {short[0]} has {_free_gb(short[0]):.1f}." if short else ""


def _free_gb(place: Path) -> float:
    there = next(each for each in (place, *place.parents) if each.exists())
    return shutil.disk_usage(there).free / 1e9


if __name__ == "__main__":
    sys.exit(main())
