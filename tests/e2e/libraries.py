"""What stands in the layer's place: the same lock, installed for this machine, and the runtime interface client.

The layer's wheels are for arm64, which this machine may not run. It is installed once and kept by the digest of what it
is made of.
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
SOURCES: Final = ("requirements-lambda.lock", "requirements.lock", "infra/bundling.py", "tests/e2e/libraries.py")
RUNTIME: Final = frozenset({"awslambdaric", "simplejson", "snapshot-restore-py"})
"""What Lambda's own image has besides the layer."""


class Libraries(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter, and the folder that it finds the layer's packages in."""

    python: str
    version: str
    folder: Path

    def __str__(self) -> str:
        """Say which Python it is."""
        return f"Python {self.version} ({self.python})"


def libraries() -> Libraries:
    """Answer them; installs them the first time (half a minute, from the package registry)."""
    whole = sha256(b"\0".join((ROOT / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    kept = CACHE / whole
    if not kept.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            made = Path(fresh, "made")
            _install(made)
            try:
                made.rename(kept)
            except OSError:
                if not kept.is_dir():  # another process has installed them meanwhile
                    raise
    python, version = (kept / "python").read_text().splitlines()
    return Libraries(python=python, version=version, folder=kept / "libraries")


def _install(fresh: Path) -> None:
    from infra import bundling  # noqa: PLC0415 - it starts node, for what is installed already nobody needs it

    python = bundling.interpreter() or sys.executable
    version = subprocess.check_output([python, "-c", "import platform; print(platform.python_version())"], text=True)
    short = ".".join(version.split(".")[:2])
    bundling.install(fresh / "libraries", version=short, platform="")
    entries = re.split(r"^(?=[a-z])", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    runtime = "".join(entry for entry in entries if entry.partition("==")[0] in RUNTIME)
    subprocess.run(
        [*bundling.INSTALL, f"--python-version={short}", f"--target={fresh / 'libraries'}"],
        check=True,
        input=runtime,
        text=True,
    )
    bundling.precompile(fresh / "libraries", python)
    (fresh / "python").write_text(f"{python}\n{version}")
