"""`python -m tests.controlplane`: build the control plane in advance, or report why that is impossible.

Exit codes: 0 it is built, 1 the build failed, 3 this computer cannot build it (no Go, Go too old, too little disk).
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.controlplane.binaries import ASSETS, SOURCE, NoPrograms, ensure_programs, find_programs, get_cache_folder

CANNOT_BUILD_EXIT_CODE: Final = 3
MIN_FREE_DISK_GB: Final = 6
"""For Go modules, compiled packages, and the programs."""
GO_ENV_TIMEOUT_S: Final = 600
"""While Go downloads the toolchain that go.mod requires."""


def main() -> int:
    """Build it unless it is built; print progress to standard error and errors to standard output."""
    obstacle = find_build_obstacle()
    if obstacle:
        sys.stdout.write(f"{obstacle}\n")
        return CANNOT_BUILD_EXIT_CODE
    try:
        sys.stderr.write(f"control plane: {ensure_programs()}\n")
    except NoPrograms as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


def find_build_obstacle() -> str:
    """Return why this computer cannot build a missing control plane, with a fix; "" if it can or needn't."""
    if find_programs():
        return ""
    go = shutil.which("go")
    if go is None:
        return f"`go` is not on PATH: install Go 1.26 or newer (https://go.dev/dl), or set {ASSETS}."
    command = [go, "env", "GOCACHE", "GOMODCACHE"]
    try:
        # Run in the folder of go.mod, so that the toolchain that go.mod requires answers.
        process = subprocess.run(
            command, check=True, cwd=SOURCE, capture_output=True, text=True, timeout=GO_ENV_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"`go env` in {SOURCE} has no answer after {GO_ENV_TIMEOUT_S} s: does it wait for a toolchain?"
    except subprocess.CalledProcessError as error:
        return f"this Go does not build what {SOURCE / 'go.mod'} asks for: {error.stderr.strip()}"
    folders = [get_cache_folder(), *map(Path, process.stdout.split())]
    small_folders = [folder for folder in folders if _get_free_gb(folder) < MIN_FREE_DISK_GB]
    return (
        f"{MIN_FREE_DISK_GB} GB of disk are needed; {small_folders[0]} has {_get_free_gb(small_folders[0]):.1f}."
        if small_folders
        else ""
    )


def _get_free_gb(place: Path) -> float:
    existing_folder = next(folder for folder in (place, *place.parents) if folder.exists())
    return shutil.disk_usage(existing_folder).free / 1e9


if __name__ == "__main__":
    sys.exit(main())
