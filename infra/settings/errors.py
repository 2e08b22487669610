"""Errors of settings: all errors of a file are reported together, so that one attempt is enough to fix them."""

from collections.abc import Iterable


class InvalidSettingsError(ValueError):
    """One or more settings are unknown or cannot be deployed; the message has one line for each of them."""

    def __init__(self, errors: Iterable[str]) -> None:
        """Report *errors*, at least one."""
        self.errors = tuple(errors)
        super().__init__("\n".join(self.errors))


def list_errors(error: ValueError) -> tuple[str, ...]:
    """Return the messages of *error*."""
    return error.errors if isinstance(error, InvalidSettingsError) else (str(error),)


def add_prefix(error: ValueError, prefix: str) -> InvalidSettingsError:
    """Return *error* with *prefix*, for example the path of the file, before each message."""
    return InvalidSettingsError(f"{prefix}: {message}" for message in list_errors(error))
