"""Result of a check: one of five levels and a message, with a fix for every level except `ok`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from cli.facts.model import DoctorFacts, ReadFailure

CheckLevel = Literal["ok", "later", "unseen", "warn", "fail"]
CHECK_LEVELS: Final = get_args(CheckLevel)
"""From best to worst: `later` is created by the installation, `unseen` could not be read."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report."""

    check: str
    """Name of the check, which is stable."""
    level: CheckLevel
    message: str
    fix: str = ""
    """Empty only for the level `ok`."""


Check: TypeAlias = Callable[[DoctorFacts], Iterator[CheckResult]]


class CheckReporter:
    """Builds the results of one check; each method is named after the outcome."""

    def __init__(self, check: str) -> None:
        """Set the name of the check."""
        self._build_result = partial(CheckResult, check=check)

    def accept(self, message: str) -> CheckResult:
        """Return a result for a check that passed."""
        return self._build_result(level="ok", message=message)

    def defer(self, message: str, fix: str) -> CheckResult:
        """Return a result for a part that does not exist yet, as expected before an installation."""
        return self._build_result(level="later", message=message, fix=fix)

    def warn(self, message: str, fix: str) -> CheckResult:
        """Return a result for a part that works, but will fail at some time."""
        return self._build_result(level="warn", message=message, fix=fix)

    def fail(self, message: str, fix: str) -> CheckResult:
        """Return a result for a part that does not work."""
        return self._build_result(level="fail", message=message, fix=fix)

    def skip(self, subject: str, failure: ReadFailure, permission: str) -> CheckResult:
        """Return a result for *subject*, which could not be read; *permission* is what the caller needs."""
        fix = f"grant yourself {permission}" if failure.is_denied else "run doctor again when it responds"
        message = f"{subject}: cannot be read: {failure.reason}"
        return self._build_result(level="unseen", message=message, fix=failure.fix or fix)
