"""What a step observed, and how that compares with its expectation."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Outcome: TypeAlias = Literal["as expected", "different", "failed", "skipped"]
"""`different`: AWS responded, but not as expected. `failed`: the step did not get its answer."""
Evidence: TypeAlias = Mapping[str, Any]
"""Facts that support what was observed, as JSON values."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that a step got."""

    observed: str
    outcome: Outcome
    evidence: Evidence = {}


class StepResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One row of the report."""

    id: str
    question: str
    expectation: str
    observed: str
    """For a skipped or failed step, the reason."""
    outcome: Outcome
    seconds: float
    """Duration of the step."""
    evidence: Evidence = {}


def compare(observed: str, *, is_expected: bool, evidence: Evidence | None = None) -> Observation:
    """Return an observation that is `as expected`, or else `different`."""
    return Observation(
        observed=observed, outcome="as expected" if is_expected else "different", evidence=evidence or {}
    )


class StepSkipped(Exception):
    """A step cannot be run here; the message is the reason."""


class StepFailed(Exception):
    """A step did not get an answer; the message is the reason."""
