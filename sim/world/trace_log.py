"""Segments of the functions' traces, as AWS X-Ray receives them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec


class RecordedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment that an invocation opened."""

    path: tuple[str, ...]
    """The names of the segments around it and its own."""
    annotations: dict[str, str]
    is_remote: bool


class TraceLog:
    """Records the segments of one invocation after the other."""

    def __init__(self) -> None:
        """Start without segments."""
        self.segments: list[RecordedSegment] = []
        self._open_names: list[str] = []

    @contextmanager
    def open_segment(self, name: str, annotations: Mapping[str, str], *, is_remote: bool = False) -> Iterator[None]:
        """Implement `shared.ports.tracing.OpenSegment`."""
        self._open_names.append(name)
        self.segments.append(
            RecordedSegment(path=tuple(self._open_names), annotations=dict(annotations), is_remote=is_remote)
        )
        try:
            yield
        finally:
            self._open_names.pop()
