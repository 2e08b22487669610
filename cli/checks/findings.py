"""What a check finds: five words for how it is, and for all but the first what to do."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from cli.checks.facts import Facts, Unseen

Level = Literal["ok", "later", "unseen", "warn", "fail"]
LEVELS: Final = get_args(Level)
"""From the best to the worst: `later` is made by the installation, `unseen` could not be looked at."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list."""

    check: str
    """Its name, which stays."""
    level: Level
    what: str
    remedy: str = ""
    """Empty only where all is well."""


Check: TypeAlias = Callable[[Facts], Iterator[Finding]]


class Findings:
    """Makes findings of one check."""

    def __init__(self, check: str) -> None:
        """Name the check."""
        self._made = partial(Finding, check=check)

    def ok(self, what: str) -> Finding:
        """Answer that all is well."""
        return self._made(level="ok", what=what)

    def later(self, what: str, remedy: str) -> Finding:
        """Answer that it is not there yet, as is expected before an installation."""
        return self._made(level="later", what=what, remedy=remedy)

    def warn(self, what: str, remedy: str) -> Finding:
        """Answer what works, and will not for ever."""
        return self._made(level="warn", what=what, remedy=remedy)

    def fail(self, what: str, remedy: str) -> Finding:
        """Answer what does not work."""
        return self._made(level="fail", what=what, remedy=remedy)

    def unseen(self, what: str, part: Unseen, right: str) -> Finding:
        """Answer that *what* could not be looked at; *right* is what it takes."""
        remedy = f"let yourself have {right}" if part.is_denied else "look again when it answers"
        said = f"{what}: could not be looked at: {part.why}"
        return self._made(level="unseen", what=said, remedy=part.remedy or remedy)
