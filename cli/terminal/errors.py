"""The error that a command reports for an unreadable input."""


class InputError(Exception):
    """An input that could not be read; the message says which one, why, and what to do."""
