"""A replacement for the layer: the same lock file, installed for this computer, and the runtime interface client.

The layer's wheels are for arm64, which this computer may not run. The replacement is installed once and kept under the
digest of its inputs.
"""

import re
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cdk" / "sandboxes"
SOURCES: Final = (
    "requirements-lambda.lock",
    "requirements.lock",
    "infra/functions/bundling.py",
    "infra/functions/kubernetes_client_trimming.py",
    "tests/e2e/libraries.py",
)
RUNTIME_PACKAGES: Final = frozenset({"awslambdaric", "simplejson", "snapshot-restore-py"})
"""Packages that Lambda's own image has in addition to the layer."""


class Libraries(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter, and the folder with the layer's packages."""

    python: str
    version: str
    folder: Path

    def __str__(self) -> str:
        """Return the Python version and interpreter."""
        return f"Python {self.version} ({self.python})"


def ensure_libraries() -> Libraries:
    """Return the libraries; install them the first time (half a minute, from the package registry)."""
    inputs_digest = sha256(b"\0".join((ROOT / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    folder = CACHE / inputs_digest
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            fresh_folder = Path(fresh, "made")
            _install(fresh_folder)
            try:
                fresh_folder.rename(folder)
            except OSError:
                if not folder.is_dir():  # another process has installed them meanwhile
                    raise
    python, version = (folder / "python").read_text().splitlines()
    return Libraries(python=python, version=version, folder=folder / "libraries")


def _install(fresh: Path) -> None:
    from infra.functions import (  # noqa: PLC0415 - it starts node, for what is installed already nobody needs it
        bundling,
    )

    python = bundling.find_interpreter() or sys.executable
    version = subprocess.check_output([python, "-c", "import platform; print(platform.python_version())"], text=True)
    short = ".".join(version.split(".")[:2])
    bundling.install_dependencies(fresh / "libraries", version=short, platform="")
    entries = re.split(r"^(?=[a-z])", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    runtime = "".join(entry for entry in entries if entry.partition("==")[0] in RUNTIME_PACKAGES)
    subprocess.run(
        [*bundling.INSTALL_COMMAND, f"--python-version={short}", f"--target={fresh / 'libraries'}"],
        check=True,
        input=runtime,
        text=True,
    )
    bundling.compile_bytecode(fresh / "libraries", python)
    (fresh / "python").write_text(f"{python}\n{version}")
