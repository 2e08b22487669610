"""Failures of workers: each is a violation of its seed, and no failure stops the other seeds."""

import io
import os
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sim.authorization.access_checks import AccessControl, AccessDeniedError
from sim.fault_simulation.__main__ import main
from sim.fault_simulation.checks.invariants import InvariantChecker
from sim.fault_simulation.drawing.draw_script import draw_brief_script
from sim.fault_simulation.events.script import Script
from sim.fault_simulation.run import RunResult, build_failed_result
from sim.fault_simulation.worker_pool import run_scripts

FAILING_SEED = 2
SCRIPTS = [replace(draw_brief_script(1), seed=seed) for seed in (1, FAILING_SEED, 3)]


def build_result(script: Script) -> RunResult:
    return replace(build_failed_result(script, ""), violations=())


def raise_error(script: Script) -> RunResult:
    if script.seed == FAILING_SEED:
        raise LookupError("no such zone")
    return build_result(script)


def end_process(script: Script) -> RunResult:
    if script.seed == FAILING_SEED:
        os._exit(1)
    return build_result(script)


@pytest.mark.parametrize(
    ("run", "violation"),
    [
        (raise_error, "crashed: LookupError: no such zone"),
        (end_process, "crashed: the process ended without a result"),
    ],
)
def test_failed_worker_is_a_violation_of_its_seed(run: Callable[[Script], RunResult], violation: str) -> None:
    results = list(run_scripts(SCRIPTS, 2, run))
    assert [(result.script.seed, result.violations) for result in results] == [
        (1, ()),
        (FAILING_SEED, (violation,)),
        (3, ()),
    ]


@pytest.mark.parametrize(
    ("failing_class", "failing_method", "error", "violation"),
    [
        (AccessControl, "_check_aws_call", AccessDeniedError("lifecycle lacks x"), "denied: lifecycle lacks x"),
        (InvariantChecker, "check_state", RuntimeError("bug"), "crashed: RuntimeError: bug"),
    ],
)
def test_error_in_a_run_is_reported_with_the_command_that_repeats_it(
    failing_class: type, failing_method: str, error: BaseException, violation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(failing_class, failing_method, fail)
    monkeypatch.setattr("sim.fault_simulation.__main__.draw_script", draw_brief_script)
    out = io.StringIO()
    assert main(["--first", "7", "--seeds", "1", "--jobs", "1", "--no-aim", "--no-shrink"], out) == 1
    lines = out.getvalue().splitlines()
    assert lines[0] == "seed 7: 1 violations"
    assert any(line.endswith(f"VIOLATION: {violation}") for line in lines)
    assert "again: python -m sim.fault_simulation --replay 7" in lines
    assert lines[-1] == "1 seeds, 1 violations"
