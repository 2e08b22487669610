"""What the layer holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra import bundling


def test_the_layer_is_a_part_of_what_is_tested() -> None:
    environment = (bundling.ROOT / "requirements.lock").read_text().splitlines()
    assert {line for line in bundling.LOCK.read_text().splitlines() if "==" in line} < set(environment)


def test_the_layer_holds_wheels_of_the_lambda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command) if check else None)
    monkeypatch.setattr(bundling, "precompile", lambda _: None)
    assert bundling.UvBundling().try_bundle(str(tmp_path), image="unused")
    [[python, *options]] = commands
    assert python == sys.executable
    assert {"--require-hashes", "--only-binary=:all:", f"--target={tmp_path}/python"} < set(options)


def test_our_own_code_is_shipped_without_what_this_machine_made_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bundling, "precompile", lambda _: None)
    assert bundling.OwnBundling().try_bundle(str(tmp_path), image="unused")
    assert {one.name for one in tmp_path.iterdir()} == {"functions", "shared"}
    assert (tmp_path / "shared" / "aws" / "branches.json").exists()
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize("is_there", [True, False])
def test_bytecode_is_made_by_a_python_of_the_lambdas_version_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_there: bool
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, returncode=0 if is_there else 2, stdout="/usr/bin/python3.13\n")

    monkeypatch.setattr(subprocess, "run", run)
    bundling.precompile(tmp_path)
    assert commands[0][-1] == "3.13"
    made = [command for command in commands if "compileall" in command]
    assert [command[0] for command in made] == (["/usr/bin/python3.13"] if is_there else [])


def test_the_layer_has_no_more_than_is_used(tmp_path: Path) -> None:
    for name in ("botocore/data/ec2", "botocore/data/chime", "kubernetes/client", "msgspec"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "botocore" / "data" / "endpoints.json").touch()
    bundling.prune(tmp_path)
    left = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")}
    assert left == {"botocore", "botocore/data", "botocore/data/ec2", "botocore/data/endpoints.json", "msgspec"}


def test_every_service_that_is_called_is_in_the_layer() -> None:
    sources = "".join(one.read_text() for one in (bundling.ROOT / "shared" / "aws").glob("*.py"))
    called = set(re.findall(r"\.(?:patient|once)\(\"([a-z0-9-]+)\"", sources))
    assert len(called) >= 6
    assert called <= set(bundling.SERVICES)


def test_no_function_imports_what_the_layer_has_not() -> None:
    functions = [one.parent.name for one in (bundling.ROOT / "functions").glob("*/handler.py")]
    assert len(functions) == 5
    wanted = "; ".join(f"import functions.{name}.handler" for name in sorted(functions))
    code = f"import sys; sys.modules.update(dict.fromkeys({bundling.LEFT_OUT})); {wanted}"
    subprocess.run(
        [sys.executable, "-c", f"{code}; import aws_lambda_powertools.metrics"], check=True, cwd=bundling.ROOT
    )
