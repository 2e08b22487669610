"""A step of the test whose check either returns what it saw, or raises ExpectationFailed."""

from collections.abc import Callable
from typing import Final

from tests.e2e.cdk import ExpectationFailed
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.results import Observation
from tests.e2e_aws.steps.step import Step

LATE_SCHEDULE_ERROR: Final = "User: scheduler.amazonaws.com is not authorized to perform: sts:AssumeRole"
"""The error of a schedule that is invoked while the stack is deleted: its role is deleted before the schedule."""


def build_check(name: str, check: Callable[[], str], *, requires: tuple[str, ...] = ("deploy",)) -> Step:
    """Return a step that expects *check* to return what it saw; an ExpectationFailed makes it `different`."""

    def run(_: Environment) -> Observation:
        try:
            return Observation(observed=check(), outcome="as expected")
        except ExpectationFailed as error:
            return Observation(observed=str(error), outcome="different")

    return Step(id=name, question=f"emulation: {name}", expectation="no failure", run=run, requires=requires)
