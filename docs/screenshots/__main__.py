"""`python -m docs.screenshots`: terminal output of commands as SVG in docs/images, and pages as PNG.

The output is real: a simulation of a shipped scenario writes a journal, and the commands run against it. The text is
stored in each picture, so that a test can detect when a command prints something else. A headless browser draws the
pages of `joiner demo` and `joiner report`; without a browser, their pictures stay unchanged.
"""

import io
import re
import shlex
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pytest

from cli.main import main as joiner
from docs.screenshots.page_pictures import BROWSERS, draw_pages, find_browser
from docs.screenshots.pictures import TERMINAL_WIDTH, render_terminal
from shared.store.shared_cache.code_digest import compute_code_digest

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "docs" / "images"
SCENARIO: Final = "examples/scenarios/no-capacity.yaml"
JOURNAL: Final = "journal"
_TERMINAL: Final = {
    "COLUMNS": str(TERMINAL_WIDTH),
    "LINES": "60",
    "TERM": "xterm",
    "NO_COLOR": "",
    "JOINER_BUCKET_NAME": "",
}
_SECONDS_PATTERN: Final = re.compile(r"\b\d+\.\d+ s\b")


class Screenshot(msgspec.Struct, frozen=True, kw_only=True):
    """A screenshot of one command."""

    name: str
    command: str
    """The command line, typed in the folder of the repository."""
    max_lines: int | None = None
    """The number of output lines shown; None: all."""
    width: int = TERMINAL_WIDTH
    """Columns of the picture."""


_PLAN_COMMAND: Final = "joiner plan -f examples/plan --instance-types examples/catalogue.json"
SCREENSHOTS: Final = (
    Screenshot(name="demo", command="joiner demo --page none", max_lines=24, width=128),
    Screenshot(name="plan", command=f"{_PLAN_COMMAND} --now 2026-11-21T09:00:00Z"),
    Screenshot(name="explain", command=f"joiner explain nodepool default --journal {JOURNAL}", max_lines=40),
    Screenshot(name="replay-list", command=f"joiner replay --list --journal {JOURNAL}"),
    Screenshot(
        name="replay",
        command=f"joiner replay provision 08:02:00 --journal {JOURNAL} --with examples/replay/larger.yaml",
    ),
)


class _Terminal(io.StringIO):
    """A text buffer that claims to be a terminal, so that commands use colors."""

    def isatty(self) -> bool:
        return True


def prepare_journal(folder: Path) -> None:
    """Simulate the scenario and write its journal to *folder*.

    Raises:
        RuntimeError: the simulation failed.
    """
    with chdir(ROOT), redirect_stdout(io.StringIO()) as output:
        status = joiner(["demo", "--scenario", SCENARIO, "--page", "none", "--journal", str(folder)])
    if status:
        raise RuntimeError(f"{SCENARIO}: {output.getvalue()}")


def capture_command_output(screenshot: Screenshot, journal: Path) -> str:
    """Run the command and return its terminal output with colors; varying parts such as durations are replaced.

    Raises:
        RuntimeError: the command failed.
    """
    arguments = [str(journal) if word == JOURNAL else word for word in shlex.split(screenshot.command)[1:]]
    terminal, error_output = _Terminal(), io.StringIO()
    with chdir(ROOT), pytest.MonkeyPatch.context() as patch, redirect_stdout(terminal), redirect_stderr(error_output):
        for name, value in _TERMINAL.items():
            patch.setenv(name, value)
        status = joiner(arguments)
    if status not in (0, 1, 3) or error_output.getvalue():
        raise RuntimeError(f"{screenshot.command}: exit code {status}: {error_output.getvalue()}")
    text = terminal.getvalue().replace(str(journal), JOURNAL)
    return _SECONDS_PATTERN.sub("0.1 s", text.replace(compute_code_digest(), "0123456789ab"))


def draw_screenshot(screenshot: Screenshot, journal: Path) -> str:
    """Run the command and return its picture."""
    output = capture_command_output(screenshot, journal)
    return render_terminal(screenshot.command, output, screenshot.max_lines, screenshot.width)


def write_pages(folder: Path, journal: Path) -> dict[str, Path]:
    """Write the pages of the demo and of a report about *journal* to *folder*; return them by name.

    Raises:
        RuntimeError: a command failed.
    """
    pages = {name: folder / f"{name}.html" for name in ("demo", "report")}
    with redirect_stdout(io.StringIO()) as output:
        status = joiner(["demo", "--page", str(pages["demo"])]) or joiner(
            ["report", str(pages["report"]), "--journal", str(journal)]
        )
    if status:
        raise RuntimeError(output.getvalue())
    for page in pages.values():
        page.write_text(page.read_text(encoding="utf-8").replace(str(journal), JOURNAL), encoding="utf-8")
    return pages


def main() -> int:
    """Write every picture; print the written files and what was skipped."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        journal = Path(folder, JOURNAL)
        prepare_journal(journal)
        for screenshot in SCREENSHOTS:
            path = FOLDER / f"{screenshot.name}.svg"
            path.write_text(draw_screenshot(screenshot, journal), encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        program = find_browser()
        if not program:
            sys.stdout.write(f"the pictures of pages stay as they are: no browser here, of {', '.join(BROWSERS)}\n")
            return 0
        for path in draw_pages(write_pages(Path(folder), journal), FOLDER, program):
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
