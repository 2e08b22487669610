"""Usage of a stack during some time, counted while it ran."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from sim.operating_costs.list_prices import CPU_TIME_PER_CALL, CREATE_FLEET_LATENCY, LATENCY_BY_PORT

MEMORY_MB_PER_VCPU = 1769
"""Memory with which a Lambda function has one full vCPU; with less it has a fraction."""


class FunctionUsage(msgspec.Struct, kw_only=True):
    """Usage of one function."""

    invocations: int = 0
    processor_seconds: float = 0.0
    """Of the function alone, without the time in which the simulation answered its calls."""
    calls: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """By port and method."""

    def estimate_billed_seconds(self, memory_mb: int) -> float:
        """Return the seconds that Lambda bills: processor time scaled by the memory, plus the latency of the calls."""
        count = sum(self.calls.values())
        cpu_seconds = self.processor_seconds + count * CPU_TIME_PER_CALL.total_seconds()
        waited_time = sum((get_latency(*call) * times for call, times in self.calls.items()), timedelta())
        return cpu_seconds * max(1.0, MEMORY_MB_PER_VCPU / memory_mb) + waited_time.total_seconds()


class StackUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a whole stack."""

    duration: timedelta
    functions: Mapping[str, FunctionUsage]
    metrics: int
    """Pairs of a metric name and a set of dimensions."""
    log_bytes: int
    """Of the lines of the functions, without those of Lambda."""
    messages: int = 0
    """Messages sent to the follow-up queues; one request can send ten."""
    written_samples: int = 0
    """Written to Prometheus by remote write."""
    stored_bytes: Mapping[str, int]
    """Written to the bucket, by prefix of the key: ``journal/``."""

    def count_calls(self, port: str) -> Counter[str]:
        """Return how often all functions together called each method of *port*."""
        count_by_method: Counter[str] = Counter()
        for function_usage in self.functions.values():
            for (called_port, method), times in function_usage.calls.items():
                if called_port == port:
                    count_by_method[method] += times
        return count_by_method


def get_latency(port: str, method: str) -> timedelta:
    """Return the latency of one call."""
    return CREATE_FLEET_LATENCY if method == "create_fleet" else LATENCY_BY_PORT[port]
