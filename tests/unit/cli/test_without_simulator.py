"""Commands for real clusters run where the dependency group `sim` is not installed.

Imports within functions are held by an import contract: only `cli.aws.embedded_api` leads to `sim`.
"""

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import pytest

from cli.commands import COMMANDS, get_command_module

ROOT: Final = Path(__file__).resolve().parents[3]
SIMULATOR_COMMANDS: Final = ("demo", "playground")
BLOCK: Final = "import sys; sys.modules.update(dict.fromkeys({names!r}))\n"
"""Makes an import of these modules, and of all below them, fail."""
RUN: Final = "from cli.main import main; sys.exit(main({arguments!r}))"


def list_blocked_modules() -> list[str]:
    """Return `sim` and the top-level modules of the packages that only the dependency group `sim` names."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    packages = {requirement.partition(">")[0].partition("=")[0].partition("[")[0] for requirement in groups["sim"]}
    modules = (name for name, owners in packages_distributions().items() if packages & {*map(str.lower, owners)})
    return sorted({"sim", *(name for name in modules if name.isidentifier())})


def run_without_simulator(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCK.format(names=list_blocked_modules()) + code]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def list_modules() -> list[str]:
    """Return the modules of the command line, except the folders of the commands that run the simulator."""
    paths = sorted((ROOT / "cli").rglob("*.py"))
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in paths
        if path.relative_to(ROOT).parts[1] not in SIMULATOR_COMMANDS
    ]


def test_simulator_dependencies_are_blocked() -> None:
    assert {"sim", "highspy", "moto", "numpy", "werkzeug"} <= {*list_blocked_modules()}
    for name in ("sim.cloud.cloud", "moto", "cli.demo.command"):
        assert "ModuleNotFoundError" in run_without_simulator(f"import {name}").stderr


def test_modules_of_other_commands_import_without_the_simulator() -> None:
    names = list_modules()
    assert {get_command_module(command) for command in COMMANDS if command not in SIMULATOR_COMMANDS} <= {*names}
    result = run_without_simulator(f"from importlib import import_module\nfor name in {names!r}: import_module(name)")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "-f", "examples/plan"],
        ["lint", "-f", "examples/plan", "--instance-types", "examples/catalogue.json"],
        ["plan", "-f", "examples/plan", "--instance-types", "examples/catalogue.json"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_file_based_commands_run_without_the_simulator(arguments: list[str]) -> None:
    result = run_without_simulator(RUN.format(arguments=arguments))
    assert result.returncode == 0, result.stderr
