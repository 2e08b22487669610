"""The files of a release, and the wheel in an environment that has only the declared dependencies."""

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Final

import pytest

from cli.commands import COMMANDS
from infra.settings.settings import StackOptions
from infra.stack import release
from infra.stack.publish import ROOT, read_version

SIMULATOR_COMMANDS: Final = ("demo", "playground")
CHANGELOG: Final = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-01\n\n### Added\n\n- A thing.\n"
RUN: Final = """
import contextlib, io, json, sys
sys.path.insert(0, {folder!r})
sys.modules.update(dict.fromkeys({blocked!r}))
import cli.main
assert cli.main.__file__.startswith({folder!r}), cli.main.__file__
results = []
for arguments in {command_lines!r}:
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            exit_code = cli.main.main(arguments)
        except SystemExit as end:
            exit_code = end.code
    results.append([exit_code, output.getvalue(), errors.getvalue()])
print(json.dumps(results))
"""
"""One process for all command lines, because most of the time of a process is its start."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    release.build_wheel(folder)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed_wheel(wheel: Path) -> Path:
    folder = wheel.parent / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def iterate_dependencies(name: str) -> Iterator[str]:
    """Yield *name* and all distributions that it needs, without extras."""
    pending, visited = [name], set[str]()
    while pending:
        current = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if current in visited:
            continue
        visited.add(current)
        yield current
        try:
            requirements = distribution(current).requires or []
        except ModuleNotFoundError:
            continue  # not needed on this platform
        pending += [re.split(r"[^\w.-]", line)[0] for line in requirements if "extra ==" not in line]


def list_undeclared_modules() -> list[str]:
    """Return the top-level modules that are installed here but would not be installed with the wheel."""
    declared = {*iterate_dependencies("joiner")}
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not declared & {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners}
    )


def run_installed(folder: Path, command_lines: list[list[str]]) -> list[tuple[int, str, str]]:
    """Return exit code, standard output and standard error of each command line."""
    code = RUN.format(folder=str(folder), blocked=list_undeclared_modules(), command_lines=command_lines)
    process = subprocess.run([sys.executable, "-I", "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return [tuple(result) for result in json.loads(process.stdout)]


def test_release_notes_are_the_changelog_section_of_the_version() -> None:
    assert release.find_release_notes(CHANGELOG, "1.2.0") == "### Added\n\n- A thing.\n"


@pytest.mark.parametrize("version", ["Unreleased", "1.3.0"])
def test_version_without_changelog_entries_is_rejected(version: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"no entries below a heading '## [{version}]")):
        release.find_release_notes(CHANGELOG, version)


def test_changelog_has_a_section_for_the_project_version() -> None:
    assert release.find_release_notes(release.CHANGELOG.read_text(encoding="utf-8"), read_version())


def test_release_contains_all_files_and_checksums(tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    paths = release.build_release(folder, StackOptions(cluster="prod"), bundle=False)
    names = {path.name for path in paths}
    expected_names = {"SHA256SUMS", "joiner.cdx.json", "joiner.template.json", "release-notes.md"}
    assert expected_names < names
    assert f"joiner-{read_version()}-py3-none-any.whl" in names
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1]: line.split("  ")[0] for line in lines} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.name != "SHA256SUMS"
    }


def test_sbom_lists_all_layer_dependencies(tmp_path: Path) -> None:
    release.build_sbom(tmp_path)
    document = json.loads((tmp_path / release.SBOM_FILENAME).read_text())
    locked = (ROOT / "requirements-lambda.lock").read_text()
    assert document["bomFormat"] == "CycloneDX"
    assert {(component["name"], component["version"]) for component in document["components"]} == {
        (match[1], match[2]) for match in re.finditer(r"^([\w.-]+)==([\w.]+)", locked, flags=re.MULTILINE)
    }


def test_wheel_contains_type_markers_and_data_files(wheel: Path) -> None:
    names = {*zipfile.ZipFile(wheel).namelist()}
    paths = (path for folder in ("cli", "shared") for path in (ROOT / folder).rglob("*") if path.is_file())
    source_names = {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}
    assert {"cli/py.typed", "shared/py.typed"} <= source_names
    assert source_names <= names


def test_undeclared_development_modules_are_blocked() -> None:
    assert {"pytest", "moto", "aws_cdk", "numpy"} <= {*list_undeclared_modules()}
    assert not {"boto3", "celpy", "kubernetes", "msgspec", "yaml"} & {*list_undeclared_modules()}


def test_every_operator_command_starts_from_the_wheel(installed_wheel: Path) -> None:
    commands = [name for name in COMMANDS if name not in SIMULATOR_COMMANDS]
    results = run_installed(installed_wheel, [[command, "--help"] for command in commands])
    for command, (exit_code, output, errors) in zip(commands, results, strict=True):
        assert (exit_code, errors) == (0, "")
        assert output.startswith(f"usage: joiner {command}")


def test_offline_commands_run_from_the_wheel(installed_wheel: Path) -> None:
    catalog = ["--instance-types", "examples/catalogue.json"]
    results = run_installed(
        installed_wheel,
        [
            ["plan", "-f", "examples/plan", *catalog],
            ["consolidate", "-f", "examples/plan", *catalog],
            ["convert", "-f", "examples/older"],
            ["lint", "-f", "examples/plan"],
            ["completion", "bash"],
            ["report", "-", "--journal", "examples/journal"],
        ],
    )
    assert [exit_code for exit_code, _, _ in results] == [0, 0, 0, 0, 0, 0]
    assert all(output or errors for _, output, errors in results)
