"""`python -m docs.screenshots`: commands as they look on a terminal, as SVG in docs/images, and a report as PNG.

What is shown is what comes out: a play of a shipped scenario is kept as a journal, and commands are asked about it. The
text of each picture is in it, so a test can tell whether a command still says the same. The report is painted by a
browser without a window, where there is one; elsewhere its picture stays as it is.
"""

import io
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pytest

from cli.main import main as joiner
from docs.screenshots.pictures import WIDTH, drawn
from shared.report.code import code_digest

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "docs" / "images"
SCENARIO: Final = "examples/scenarios/no-capacity.yaml"
JOURNAL: Final = "journal"
REPORT: Final = "report.png"
_TERMINAL: Final = {"COLUMNS": str(WIDTH), "LINES": "60", "TERM": "xterm", "NO_COLOR": "", "JOINER_BUCKET_NAME": ""}
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "firefox")
_SECONDS: Final = re.compile(r"\b\d+\.\d+ s\b")


class Shot(msgspec.Struct, frozen=True, kw_only=True):
    """One picture."""

    name: str
    command: str
    """As it is typed, in the folder of the repository."""
    most: int | None = None
    """Lines that are shown."""


_PLAN: Final = "joiner plan -f examples/plan --instance-types examples/catalogue.json"
SHOTS: Final = (
    Shot(name="plan", command=f"{_PLAN} --now 2026-11-21T09:00:00Z"),
    Shot(name="explain", command=f"joiner explain nodepool default --journal {JOURNAL}", most=40),
    Shot(name="replay-list", command=f"joiner replay --list --journal {JOURNAL}"),
    Shot(
        name="replay",
        command=f"joiner replay provision 08:02:00 --journal {JOURNAL} --with examples/replay/larger.yaml",
    ),
)


class _Terminal(io.StringIO):
    """Hears what is written, and has colours."""

    def isatty(self) -> bool:
        return True


def prepare(folder: Path) -> None:
    """Play the scenario, and leave its bucket in *folder*.

    Raises:
        RuntimeError: it did not go as expected.
    """
    with chdir(ROOT), redirect_stdout(io.StringIO()) as said:
        status = joiner(["demo", "--scenario", SCENARIO, "--page", "none", "--journal", str(folder)])
    if status:
        raise RuntimeError(f"{SCENARIO}: {said.getvalue()}")


def said_by(shot: Shot, journal: Path) -> str:
    """Answer what the terminal gets, colours too; what differs each time, as durations, is replaced.

    Raises:
        RuntimeError: the command does not work.
    """
    words = [str(journal) if word == JOURNAL else word for word in shlex.split(shot.command)[1:]]
    told, wrong = _Terminal(), io.StringIO()
    with chdir(ROOT), pytest.MonkeyPatch.context() as patch, redirect_stdout(told), redirect_stderr(wrong):
        for name, value in _TERMINAL.items():
            patch.setenv(name, value)
        status = joiner(words)
    if status not in (0, 1, 3) or wrong.getvalue():
        raise RuntimeError(f"{shot.command}: exit code {status}: {wrong.getvalue()}")
    text = told.getvalue().replace(str(journal), JOURNAL)
    return _SECONDS.sub("0.1 s", text.replace(code_digest(), "0123456789ab"))


def browser() -> str:
    """Answer where a browser is, "" if there is none."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), "")


def paint(page: Path, picture: Path, program: str) -> None:
    """Have *program* paint *page* without a window.

    Raises:
        subprocess.SubprocessError: it does not.
    """
    with TemporaryDirectory() as profile:
        where = ["--profile", profile] if "firefox" in program else ["--no-sandbox", f"--user-data-dir={profile}"]
        how = ["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1400", f"--screenshot={picture}"]
        command = [program, *where, *how, page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> int:
    """Write every picture; say which, and what was left out."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        journal, page = Path(folder, JOURNAL), Path(folder, "report.html")
        prepare(journal)
        for shot in SHOTS:
            path = FOLDER / f"{shot.name}.svg"
            path.write_text(drawn(shot.command, said_by(shot, journal), shot.most), encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        program = browser()
        if not program:
            sys.stdout.write(f"{REPORT} stays as it is: no browser here, of {', '.join(BROWSERS)}\n")
            return 0
        with redirect_stdout(io.StringIO()):
            joiner(["report", str(page), "--journal", str(journal)])
        page.write_text(page.read_text(encoding="utf-8").replace(str(journal), JOURNAL), encoding="utf-8")
        paint(page, FOLDER / REPORT, program)
        sys.stdout.write(f"{(FOLDER / REPORT).relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
