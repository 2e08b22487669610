"""Manifests as articles had them over the years, and what `joiner convert` makes of each.

They are written here from the fields that were served then; the broken ones have the mistakes that were copied most.
After a change that is meant, write the answers anew and read the difference::

    .venv/bin/python -m tests.golden.older
"""

import io
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from cli.main import main

FOLDER: Final = Path(__file__).parent / "manifests"
NAMES: Final = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def converted(name: str) -> tuple[int, str, str]:
    """Answer exit code, standard output and what is told, for the manifest called *name*."""
    out, told = io.StringIO(), io.StringIO()
    with chdir(FOLDER), redirect_stdout(out), redirect_stderr(told):
        code = main(["convert", "-f", f"{name}.yaml"])
    return code, out.getvalue(), told.getvalue()


def answer(name: str) -> str:
    """Answer what is kept of a conversion: the notes behind what was written, as comments."""
    code, out, told = converted(name)
    notes = "".join(f"# {line}\n" for line in told.splitlines())
    return f"{out}# exit code {code}\n{notes}"


def _write() -> None:
    for name in NAMES:
        FOLDER.joinpath(f"{name}.txt").write_text(answer(name))


if __name__ == "__main__":
    _write()
