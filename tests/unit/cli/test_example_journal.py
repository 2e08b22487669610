"""The commands of the help that read `examples/journal`."""

import shlex
from pathlib import Path

import pytest

import cli.cost.command
import cli.explain.command
import cli.replay.command
import cli.report.command
from cli.main import main
from tests.support.cli.example_journal import FOLDER, MAX_SIZE_BYTES

Out = pytest.CaptureFixture[str]
HELP_TEXTS = "\n".join(
    module.EXAMPLES for module in (cli.cost.command, cli.explain.command, cli.replay.command, cli.report.command)
)
COMMANDS = [
    line.strip().partition("   ")[0].partition(" | ")[0]
    for line in HELP_TEXTS.splitlines()
    if "examples/journal" in line
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_example_on_the_example_journal_works(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    (tmp_path / "examples").symlink_to(FOLDER.parent)
    monkeypatch.chdir(tmp_path)
    is_replay = command.startswith("joiner replay")  # newer code may decide differently
    assert main(shlex.split(command)[1:]) in ((0, 3) if is_replay else (0,))
    captured = capsys.readouterr()
    assert captured.out
    assert not captured.err


def test_every_journal_command_has_an_example() -> None:
    assert {command.split()[1] for command in COMMANDS} == {"cost", "explain", "replay", "report"}
    assert len(COMMANDS) > 8


def test_example_journal_is_small_and_explains_a_pending_pod(capsys: Out) -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < MAX_SIZE_BYTES
    assert main(["explain", "pod", "training", "--journal", str(FOLDER)]) == 0
    assert "no instance type has 1 nvidia.com/gpu" in capsys.readouterr().out
