"""Host ports: which pods cannot be on one node."""

from collections.abc import Iterable

from shared.model.pods import HostPort


def conflict(taken: Iterable[HostPort], wanted: tuple[HostPort, ...]) -> bool:
    """Whether any of *wanted* is among *taken*."""
    return bool(wanted) and any(one.conflicts(other) for one in taken for other in wanted)
