"""Runs steps in order and removes what they created, also after a failure or Ctrl-C."""

from collections.abc import Callable, Sequence
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from shared.errors import Fault
from tests.e2e_aws.cleanup import CleanupFailed, list_remains, remove_entries, remove_step_entries
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.results import Observation, StepFailed, StepResult, StepSkipped
from tests.e2e_aws.steps.step import Step

EXPECTED_ERRORS: Final = (
    *(StepFailed, CleanupFailed, Fault, BotoCoreError, ClientError),
    *(AssertionError, IndexError, KeyError, OSError, ValueError),
)
"""Errors that fail one step; the others run all the same."""
Printer = Callable[[str], None]


def run_steps(environment: Environment, steps: Sequence[Step], results: list[StepResult], print_line: Printer) -> None:
    """Run *steps* and append to *results*, which an interruption keeps. Each step's own resources are removed."""
    for step in steps:
        print_line(f"{step.id}: {step.question}")
        result = _run_step(environment, step, results)
        results.append(result)
        print_line(f"  {result.outcome}: {result.observed}")


def record_run(environment: Environment) -> None:
    """Record what has the tag of the run: the last cleanup finds instances that earlier ones did not see."""
    for kind in ("launch-template", "instances"):
        environment.ledger.record(kind, environment.run_id, "run")


def clean_up(environment: Environment, print_line: Printer) -> list[str]:
    """Remove everything in the ledger; return what remains, with the errors of its removal."""
    print_line("cleanup: removing what the test created")
    remains = remove_entries(environment, "step", "run")
    try:
        remains += list_remains(environment)
    except EXPECTED_ERRORS as error:
        remains.append(f"cannot check what remains: {error}")
    for line in remains:
        print_line(f"  REMAINS: {line}")
    if not remains:
        print_line("  nothing remains")
    return remains


def _run_step(environment: Environment, step: Step, earlier: Sequence[StepResult]) -> StepResult:
    started_at = environment.get_now()
    blocked_by = [result.id for result in earlier if result.id in step.requires and result.outcome in _BLOCKING]
    if blocked_by:
        observation = Observation(observed=f"step {blocked_by[0]} did not succeed", outcome="skipped")
    else:
        observation = _observe(environment, step)
        observation = _add_removal_errors(observation, remove_step_entries(environment))
    return StepResult(
        id=step.id,
        question=step.question,
        expectation=step.expectation,
        observed=observation.observed,
        outcome=observation.outcome,
        seconds=round((environment.get_now() - started_at).total_seconds(), 1),
        evidence=observation.evidence,
    )


_BLOCKING: Final = ("failed", "skipped")


def _observe(environment: Environment, step: Step) -> Observation:
    try:
        return step.run(environment)
    except StepSkipped as error:
        return Observation(observed=str(error), outcome="skipped")
    except EXPECTED_ERRORS as error:
        return Observation(observed=f"{type(error).__name__}: {error}", outcome="failed")


def _add_removal_errors(observation: Observation, errors: Sequence[str]) -> Observation:
    """Return *observation*, which fails if something could not be removed."""
    if not errors:
        return observation
    observed = f"{observation.observed}; not removed: {'; '.join(errors)}"
    return Observation(observed=observed, outcome="failed", evidence=observation.evidence)
