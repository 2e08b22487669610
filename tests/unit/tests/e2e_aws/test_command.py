"""Tests of `python -m tests.e2e_aws` with a confirmation: exit codes, cleanup, and the next run after a crash."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e_aws import __main__ as command
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.ledger import LEDGER_NAME, Ledger, LedgerDocument
from tests.e2e_aws.report import JSON_NAME, PAGE_NAME
from tests.e2e_aws.results import Observation
from tests.e2e_aws.steps.step import Step
from tests.support.e2e_environment import ScriptedEnvironment, make_client_error
from tests.unit.tests.e2e_aws.test_ledger import NOTHING_LEFT

Run = Callable[[Environment], Observation]
WORDS = ("--cluster", "prod", "--region", "us-east-1", "--confirm", "yes")


class StoppableEnvironment(ScriptedEnvironment):
    """A double of `AwsEnvironment`."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        """Let AWS have nothing."""
        super().__init__(folder, **NOTHING_LEFT)
        self.clients["eks"] = {"describe_cluster": {"cluster": {"version": "1.36"}}}
        self.ledger, self.run_id = ledger, ledger.document.run_id

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, StoppableEnvironment]]:
    """Return a function that runs the command with one step; it returns the exit code and the environment."""
    environments: list[StoppableEnvironment] = []

    def build_environment(*_: str, ledger: Ledger, folder: Path) -> StoppableEnvironment:
        environments.append(StoppableEnvironment(folder, ledger))
        return environments[-1]

    monkeypatch.setattr(command, "AwsEnvironment", build_environment)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run_command(run: Run, refusals: tuple[str, ...] = ()) -> tuple[int, StoppableEnvironment]:
        step = Step(id="one", question="does it work?", expectation="yes", run=run)
        monkeypatch.setattr(command, "select_steps", lambda _: (step,))
        monkeypatch.setattr(command, "list_refusals", lambda _: refusals)
        return command.main([*WORDS, "--folder", str(tmp_path)]), environments[-1]

    return run_command


def create_template(environment: Environment) -> None:
    environment.ledger.record("launch-template", "token")


def succeed(environment: Environment) -> Observation:
    create_template(environment)
    return Observation(observed="all well", outcome="as expected")


def interrupt(environment: Environment) -> Observation:
    create_template(environment)
    raise KeyboardInterrupt


def test_successful_run_ends_with_zero_and_leaves_only_the_result(start: Any, tmp_path: Path) -> None:
    code, environment = start(succeed)
    assert code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [JSON_NAME, PAGE_NAME]
    assert json.loads((tmp_path / JSON_NAME).read_text())["kubernetes"] == "1.36"
    assert environment.calls[-1] != "stop"


def test_interrupted_run_is_cleaned_up_and_reported(start: Any, tmp_path: Path, capsys: Any) -> None:
    code, environment = start(interrupt)
    assert code == 130
    assert environment.calls.index("stop") < environment.calls.index("delete_launch_template")
    assert not (tmp_path / LEDGER_NAME).exists()
    assert (tmp_path / JSON_NAME).exists()
    assert "interrupted" in capsys.readouterr().out


def test_unexpected_error_is_cleaned_up_before_it_ends_the_command(start: Any, tmp_path: Path) -> None:
    def crash(environment: Environment) -> Observation:
        create_template(environment)
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        start(crash)
    assert not (tmp_path / LEDGER_NAME).exists()


def test_different_answer_ends_with_one(start: Any) -> None:
    code, _ = start(lambda _: Observation(observed="unlike expected", outcome="different"))
    assert code == 1


def test_refused_cluster_ends_with_two_and_creates_nothing(start: Any, tmp_path: Path, capsys: Any) -> None:
    code, environment = start(succeed, ("the cluster has NodePools: use another",))
    assert (code, environment.calls) == (2, [])
    assert list(tmp_path.iterdir()) == []
    assert "refused: the cluster has NodePools" in capsys.readouterr().out


def write_crashed_run(folder: Path) -> None:
    document = LedgerDocument(cluster="other", region="eu-west-1", run_id="run0")
    Ledger(folder / LEDGER_NAME, document).record("launch-template", "left")


def test_next_run_first_removes_what_a_crashed_run_has_created(start: Any, tmp_path: Path, capsys: Any) -> None:
    write_crashed_run(tmp_path)
    code, _ = start(succeed)
    assert code == 0
    assert "unfinished run run0 on cluster other in eu-west-1" in capsys.readouterr().out
    assert not (tmp_path / LEDGER_NAME).exists()


def test_run_does_not_start_while_a_crashed_run_cannot_be_removed(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_crashed_run(tmp_path)
    monkeypatch.setitem(NOTHING_LEFT["ec2"], "delete_launch_template", make_client_error("UnauthorizedOperation"))
    code, environment = start(succeed)
    assert code == 1
    assert environment.run_id == "run0"
    assert (tmp_path / LEDGER_NAME).exists()
