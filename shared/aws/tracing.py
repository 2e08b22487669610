"""Traces in AWS X-Ray, with the Tracer of Powertools: imported only if `tracing` is on.

The Lambda service opens the segment of the invocation, and its X-Ray daemon sends all segments. Calls of the AWS
clients are segments of their own, because the SDK of X-Ray wraps botocore.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import Any, Final

from aws_lambda_powertools.tracing import Tracer

from shared.ports.tracing import OpenSegment

SERVICE: Final = "joiner"
_MAX_NAME_LENGTH: Final = 200
_FORBIDDEN_IN_NAMES: Final = re.compile(r"[^\w\s.:/%&#=+\-@]", re.ASCII)
"""Characters that a segment's name cannot have (AWS X-Ray Developer Guide, "Segment documents")."""


def build_open_segment() -> OpenSegment:
    """Return what opens the segments of this container; from now on, calls of AWS clients are traced.

    The SDK keeps the open segments of each thread. A thread that has the context of another one (`contextvars`) opens
    its segments within the segment that was open there.
    """
    tracer = Tracer(service=SERVICE, auto_patch=False)
    tracer.patch(["botocore"])
    open_segment_of_context: ContextVar[tuple[int, Any]] = ContextVar("open_segment_of_context", default=(0, None))

    @contextmanager
    def open_segment(name: str, annotations: Mapping[str, str], *, is_remote: bool = False) -> Iterator[None]:
        provider: Any = tracer.provider
        namespace = {"namespace": "remote" if is_remote else "local"}
        thread, outer_segment = open_segment_of_context.get()
        if outer_segment is not None and thread != get_ident():
            provider.set_trace_entity(outer_segment)
        with provider.in_subsegment(_format_name(name), **namespace) as segment:
            for key, value in annotations.items():
                segment.put_annotation(key, value)
            token = open_segment_of_context.set((get_ident(), segment))
            try:
                yield
            finally:
                open_segment_of_context.reset(token)

    return open_segment


def _format_name(name: str) -> str:
    return _FORBIDDEN_IN_NAMES.sub("_", name)[:_MAX_NAME_LENGTH]
