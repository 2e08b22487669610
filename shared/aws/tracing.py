"""Traces in AWS X-Ray, with the Tracer of Powertools: imported only if `tracing` is on.

The Lambda service opens the segment of the invocation, and its X-Ray daemon sends all segments. Calls of the AWS
clients are segments of their own, because the SDK of X-Ray wraps botocore.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from aws_lambda_powertools.tracing import Tracer

from shared.ports.tracing import OpenSegment

SERVICE: Final = "joiner"
_MAX_NAME_LENGTH: Final = 200
_FORBIDDEN_IN_NAMES: Final = re.compile(r"[^\w\s.:/%&#=+\-@]", re.ASCII)
"""Characters that a segment's name cannot have (AWS X-Ray Developer Guide, "Segment documents")."""


def build_open_segment() -> OpenSegment:
    """Return what opens the segments of this container; from now on, calls of AWS clients are traced."""
    tracer = Tracer(service=SERVICE, auto_patch=False)
    tracer.patch(["botocore"])

    @contextmanager
    def open_segment(name: str, annotations: Mapping[str, str], *, is_remote: bool = False) -> Iterator[None]:
        provider: Any = tracer.provider
        namespace = {"namespace": "remote" if is_remote else "local"}
        with provider.in_subsegment(_format_name(name), **namespace) as segment:
            for key, value in annotations.items():
                segment.put_annotation(key, value)
            yield

    return open_segment


def _format_name(name: str) -> str:
    return _FORBIDDEN_IN_NAMES.sub("_", name)[:_MAX_NAME_LENGTH]
