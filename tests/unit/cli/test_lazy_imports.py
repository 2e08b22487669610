"""Commands that print neither a table nor a page start without rich and Jinja2.

The CEL library imports rich itself, so `lint` and `convert` are not listed here.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
CATALOG = ("--instance-types", "examples/catalogue.json")
CLUSTER = ("-f", "examples/cluster", *CATALOG)
CODE = """
import contextlib, io, json, sys
from cli.main import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main({arguments!r})
print(json.dumps(sorted({{"jinja2", "rich"}} & {{*sys.modules}})))
"""


def list_imported_libraries(*arguments: str) -> list[str]:
    """Return which of rich and Jinja2 the process of a command imports."""
    command = [sys.executable, "-c", CODE.format(arguments=[*arguments])]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    imported_libraries: list[str] = json.loads(process.stdout)
    return imported_libraries


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["--help"], ["--version"], ["help", "plan"], ["completion", "bash"]),
        ["drift", *CLUSTER],
        ["status", *CLUSTER, "-o", "json"],
        ["explain", "nodepool", "default", "--journal", "examples/journal"],
    ],
    ids=" ".join,
)
def test_simple_commands_start_without_rich_and_jinja(arguments: list[str]) -> None:
    assert list_imported_libraries(*arguments) == []


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("demo", "playground")])
def test_the_help_of_a_command_needs_neither(command: str) -> None:
    assert list_imported_libraries(command, "--help") == []


def test_a_table_needs_rich_and_a_page_needs_jinja() -> None:
    assert list_imported_libraries("status", *CLUSTER) == ["rich"]
    assert list_imported_libraries("report", "-", "--journal", "examples/journal") == ["jinja2"]
