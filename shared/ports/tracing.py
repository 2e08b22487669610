"""Port for traces: a segment of the trace of an invocation, which measures what a block of code does."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class OpenSegment(Protocol):
    """Opens a segment; leaving the context closes it, and an exception that leaves it marks the segment as failed."""

    def __call__(
        self, name: str, annotations: Mapping[str, str], *, is_remote: bool = False
    ) -> AbstractContextManager[object]:
        """Open a segment *name* within the open one; *annotations* are keys by which traces can be found.

        *is_remote*: the segment is a call to another service.
        """


def open_no_segment(
    name: str, annotations: Mapping[str, str], *, is_remote: bool = False
) -> AbstractContextManager[object]:
    """Measure nothing: tracing is off."""
    del name, annotations, is_remote
    return nullcontext()
