"""What the layer holds."""

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
    assert bundling.UvBundling().try_bundle(str(tmp_path), image="unused")
    [[python, *options]] = commands
    assert python == sys.executable
    assert {"--require-hashes", "--only-binary=:all:", f"--target={tmp_path}/python"} < set(options)
