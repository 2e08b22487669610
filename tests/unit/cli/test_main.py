"""The command line: help, exit codes, what goes where."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commands import COMMANDS
from cli.demo import command as demo_command
from cli.main import build_parser, main
from tests.support.cli.cli_objects import make_pod

Out = pytest.CaptureFixture[str]
SLOW = {"boto3", "botocore", "kubernetes", "moto", "msgspec", "shared", "sim", "yaml"}


def test_version_flag_prints_the_package_version(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == "joiner 0.1.0\n"


def test_without_a_command_help_is_printed(capsys: Out) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: joiner")


def test_process_arguments_are_used_by_default(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["joiner"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("usage: joiner")


def test_help_lists_commands_examples_and_exit_codes(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    output = capsys.readouterr().out
    assert "joiner demo --scenario" in output
    assert "exit codes: 0" in output
    assert "run a scenario on a simulated cloud and cluster" in output


@pytest.mark.parametrize("command", COMMANDS)
def test_listed_command_description_matches_the_command_parser(command: str, capsys: Out) -> None:
    """The list is written where no command is imported; it would not notice that one of them changed."""
    outputs = []
    for arguments in ([], [command]):
        with pytest.raises(SystemExit, match="0"):
            main([*arguments, "--help"])
        outputs.append(capsys.readouterr().out)
    listed, command_parser = build_parser(""), build_parser(command)
    assert listed.format_help() == command_parser.format_help() == outputs[0]
    assert outputs[1].startswith(f"usage: joiner {command}")


def list_slow_imports(*arguments: str) -> set[str]:
    """Return the slow packages that a separate process imports."""
    code = "import sys; from cli.main import main; main(sys.argv[1:]); print('\\n' + ' '.join(sys.modules))"
    process = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in process.stdout.splitlines()[-1].split()} & SLOW


def test_help_needs_no_slow_imports() -> None:
    assert list_slow_imports() == set()


def test_plan_imports_only_needed_modules(tmp_path: Path) -> None:
    cluster, catalogue = tmp_path / "cluster.json", "examples/catalogue.json"
    cluster.write_text(json.dumps(make_pod("a")))
    assert list_slow_imports("plan", "-f", str(cluster), "--instance-types", catalogue) == {"msgspec", "shared"}
    assert "yaml" in list_slow_imports("plan", "-f", "examples/plan", "--instance-types", catalogue)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fly"], "unknown command 'fly'"),
        (["demo", "--sceanrio", "x"], "unrecognized arguments"),
        (["demo", "-o", "xml"], "invalid choice: 'xml'"),
        (["demo", "--seed", "seven"], "invalid int value: 'seven'"),
    ],
)
def test_invalid_usage_exits_with_2_and_is_reported(arguments: list[str], words: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def build_raiser(error: BaseException) -> Callable[[object], int]:
    def run(_: object) -> int:
        raise error

    return run


def test_interrupt_exits_with_130(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_command, "run", build_raiser(KeyboardInterrupt()))
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


def test_closed_output_pipe_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_command, "run", build_raiser(BrokenPipeError()))
    with (tmp_path / "pipe").open("w", encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["demo"]) == 0
        out.write("the interpreter's last flush")
    assert (tmp_path / "pipe").read_text(encoding="utf-8") == ""


def test_unexpected_exception_is_not_suppressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_command, "run", build_raiser(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["demo"])
