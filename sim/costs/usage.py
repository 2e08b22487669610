"""What a stack used in some time, counted while it ran."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from sim.costs.prices import CALL_PROCESSOR, LATENCY, LAUNCHING

ONE_VCPU_MB = 1769
"""With so much memory Lambda gives one whole processor, with less a part of it."""


class Used(msgspec.Struct, kw_only=True):
    """Counts of one function."""

    invocations: int = 0
    processor_seconds: float = 0.0
    """Its own: without what answered its calls."""
    calls: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """By port and method."""

    def billed(self, memory_mb: int) -> float:
        """Answer the seconds that Lambda counts: it computes as fast as its memory allows, and waits for answers."""
        count = sum(self.calls.values())
        processor = self.processor_seconds + count * CALL_PROCESSOR.total_seconds()
        waited = sum((latency(*call) * times for call, times in self.calls.items()), timedelta())
        return processor * max(1.0, ONE_VCPU_MB / memory_mb) + waited.total_seconds()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Of a whole stack."""

    lasted: timedelta
    functions: Mapping[str, Used]
    metrics: int
    """Pairs of a name and a set of dimensions."""
    log_bytes: int
    """Of our own lines."""
    stored_bytes: Mapping[str, int]
    """Put into the bucket, by the beginning of the key: ``journal/``."""

    def calls(self, port: str) -> Counter[str]:
        """Answer how often each method of *port* was called, by all."""
        found: Counter[str] = Counter()
        for used in self.functions.values():
            for (name, method), times in used.calls.items():
                if name == port:
                    found[method] += times
        return found


def latency(port: str, method: str) -> timedelta:
    """Answer how long one call waits."""
    return LAUNCHING if method == "create_fleet" else LATENCY[port]
