"""Manifests of older API versions, and the output of `joiner convert` for each.

They contain the fields that were served then; the broken ones contain the mistakes that were copied most often. After
an intended change, regenerate the outputs and read the difference::

    .venv/bin/python -m tests.golden.older
"""

import io
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from cli.main import main

FOLDER: Final = Path(__file__).parent / "manifests"
NAMES: Final = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def run_convert(name: str) -> tuple[int, str, str]:
    """Return exit code, standard output and error output for the manifest called *name*."""
    out, error_output = io.StringIO(), io.StringIO()
    with chdir(FOLDER), redirect_stdout(out), redirect_stderr(error_output):
        code = main(["convert", "-f", f"{name}.yaml"])
    return code, out.getvalue(), error_output.getvalue()


def build_expectation(name: str) -> str:
    """Return the stored text of a conversion: the output, with the messages as comments after it."""
    code, out, error_output = run_convert(name)
    notes = "".join(f"# {line}\n" for line in error_output.splitlines())
    return f"{out}# exit code {code}\n{notes}"


def _write() -> None:
    for name in NAMES:
        FOLDER.joinpath(f"{name}.txt").write_text(build_expectation(name))


if __name__ == "__main__":
    _write()
