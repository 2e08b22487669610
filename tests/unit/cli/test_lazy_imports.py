"""Commands import only the libraries that they need: rich, Jinja2, boto3 and moto take most of the start-up time.

The CEL library imports rich itself, so `lint` and `convert` are not listed here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
CATALOG = ("--instance-types", "examples/catalogue.json")
TERMINAL_LIBRARIES = frozenset({"jinja2", "rich"})
SIMULATOR_LIBRARIES = frozenset({"aws_cdk", "flask", "highspy", "moto", "numpy", "requests", "rich", "werkzeug"})
CLUSTER = ("-f", "examples/cluster", *CATALOG)
CODE = """
import contextlib, io, json, sys
from cli.main import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main({arguments!r})
print(json.dumps(sorted({libraries!r} & {{*sys.modules}})))
"""

FORKING_CODE = """
import contextlib, io, json, os, sys
from cli.main import main
for command in {commands!r}:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            main([command, "--help"])
        print(json.dumps({{command: sorted({libraries!r} & {{*sys.modules}})}}), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def list_imported_libraries(*arguments: str, libraries: frozenset[str] = TERMINAL_LIBRARIES) -> list[str]:
    """Return which of *libraries* the process of a command imports.

    $COLUMNS is set, because GNU readline, which pytest imports, exports it to child processes on some computers only.
    """
    command = [sys.executable, "-c", CODE.format(arguments=[*arguments], libraries={*libraries})]
    environment = {**os.environ, "COLUMNS": "100"}
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment)
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


@pytest.fixture(scope="module")
def libraries_by_command() -> dict[str, list[str]]:
    """Return which libraries the help of each command imports: a fork of one process that has imported only the CLI."""
    command = [sys.executable, "-c", FORKING_CODE.format(commands=[*COMMANDS], libraries={*TERMINAL_LIBRARIES})]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    libraries: dict[str, list[str]] = {}
    for line in process.stdout.splitlines():
        libraries |= json.loads(line)
    return libraries


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_needs_neither(command: str, libraries_by_command: dict[str, list[str]]) -> None:
    assert libraries_by_command[command] == []


def test_a_table_needs_rich_and_a_page_needs_jinja() -> None:
    assert list_imported_libraries("status", *CLUSTER) == ["rich"]
    assert list_imported_libraries("report", "-", "--journal", "examples/journal") == ["jinja2"]


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [
        (("catalog", "build", "-o", os.devnull), frozenset({"boto3", "botocore"})),
        (("catalog", "prices", "-o", os.devnull), frozenset({"boto3", "botocore"})),
        (("nodeclass", "resolve", "-f", "examples/nodeclass/al2023.yaml", "-o", "json"), frozenset[str]()),
    ],
    ids=["catalog build", "catalog prices", "nodeclass resolve"],
)
def test_embedded_cloud_starts_without_a_server_and_the_libraries_of_the_simulator(
    arguments: tuple[str, ...], libraries: frozenset[str]
) -> None:
    assert list_imported_libraries(*arguments, "--embedded", libraries=SIMULATOR_LIBRARIES | libraries) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "nodepool", "default", "--journal", "examples/journal"],
        ["history", "show", "--journal", "examples/journal"],
        ["plan", "-f", "examples/plan", *CATALOG],
        ["consolidate", *CLUSTER],
        ["status", *CLUSTER],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_on_files_start_without_the_clients_of_aws_and_kubernetes(arguments: list[str]) -> None:
    assert list_imported_libraries(*arguments, libraries=frozenset({"boto3", "kubernetes", "prompt_toolkit"})) == []


@pytest.mark.parametrize("command", ["demo", "playground"])
def test_the_help_of_simulations_needs_no_simulated_world(command: str) -> None:
    libraries = SIMULATOR_LIBRARIES | {"boto3", "jinja2", "prompt_toolkit"}
    assert list_imported_libraries(command, "--help", libraries=libraries) == []
