"""Writing the metrics of a cycle to Prometheus, after its journal entry is written and its lease is released.

Nothing here can fail a cycle or delay it for long: each request is one attempt. Metrics that were not written are
dropped, because the next cycle has newer ones. After a failure, the container makes no request for a minute, and twice
as long after each further failure.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Fault, Invalid
from shared.model.core.metrics.metric_samples import MetricSamples
from shared.ports.remote_write import RemoteWrite
from shared.ports.world import World
from shared.report.log import log
from shared.report.metrics.emf import REMOTE_WRITE_FAILURES, emit_metrics
from shared.report.remote_write.write_request import encode_requests

WRITING_FUNCTION: Final = "disrupt"
"""Runs every minute, and reads nodes, pods, NodePools and the catalog."""
MIN_INTERVAL: Final = timedelta(seconds=50)
"""Between two writes of a container: less than the interval of scheduled runs, which start seconds sooner or later."""
MIN_TIME_LEFT: Final = timedelta(seconds=20)
"""With less time left, nothing is written."""
MAX_WRITE_TIME: Final = timedelta(seconds=5)
"""No request is started later than this after the first one."""
MAX_SERIES_PER_CYCLE: Final = 50_000
FIRST_RETRY_DELAY: Final = timedelta(minutes=1)
MAX_RETRY_DELAY: Final = timedelta(minutes=15)
_MEMORY_KEY: Final = "remote write"


class WriteMemory(msgspec.Struct, kw_only=True):
    """What a container remembers about its writes."""

    written_at: datetime | None = None
    """The time of the metrics that were written last, also if the write failed."""
    retry_at: datetime | None = None
    """After a failure: when the next request may be made."""
    retry_delay: timedelta = FIRST_RETRY_DELAY


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the series of a cycle."""

    unwritten_count: int = 0
    """0 also if an error of Joiner leaves it unknown."""
    errors: tuple[str, ...] = ()
    is_endpoint_failing: bool = False
    """Whether the next requests would fail, too: the endpoint did not respond, refused the caller or the rate, or
    failed, or Joiner has an error."""


def is_write_due(function: str, taken_at: datetime, world: World) -> bool:
    """Return whether a cycle of *function* with a snapshot of *taken_at* writes its metrics."""
    if world.remote_write is None or function != WRITING_FUNCTION:
        return False
    if world.time_left is not None and world.time_left() < MIN_TIME_LEFT:
        return False
    memory = _get_memory(world)
    is_new = memory.written_at is None or taken_at - memory.written_at >= MIN_INTERVAL
    return is_new and (memory.retry_at is None or taken_at >= memory.retry_at)


def write_metrics(compute_samples: Callable[[], MetricSamples], taken_at: datetime, world: World) -> None:
    """Write the metrics of *taken_at*, the most important ones first; log what was not written."""
    if world.remote_write is None:
        return
    memory = _get_memory(world)
    memory.written_at = taken_at
    result = _compute_and_send(compute_samples, taken_at, world.remote_write, world)
    if result.is_endpoint_failing:
        memory.retry_at = taken_at + memory.retry_delay
        memory.retry_delay = min(2 * memory.retry_delay, MAX_RETRY_DELAY)
    else:
        memory.retry_at, memory.retry_delay = None, FIRST_RETRY_DELAY
    if result.errors:
        fields = {"series": result.unwritten_count, "error": result.errors[0]}
        log("WARNING", "metrics not written", world, fields)
        emit_metrics({REMOTE_WRITE_FAILURES: 1.0}, world)


def _get_memory(world: World) -> WriteMemory:
    if world.memory is None:
        return WriteMemory()
    memory = world.memory.setdefault(_MEMORY_KEY, WriteMemory())
    assert isinstance(memory, WriteMemory)  # noqa: S101 - the key is ours
    return memory


def _compute_and_send(
    compute_samples: Callable[[], MetricSamples], taken_at: datetime, endpoint: RemoteWrite, world: World
) -> WriteResult:
    """Send the metrics; an error of Joiner itself is a result too, because the cycle has done its work."""
    try:
        requests = encode_requests(compute_samples(), world.settings.cluster_name, taken_at)
        return _send_requests(requests, endpoint, world)
    except Exception as error:  # noqa: BLE001 - no metric is worth a failed cycle
        return WriteResult(errors=(f"{type(error).__name__}: {error}",), is_endpoint_failing=True)


def _send_requests(requests: Iterator[tuple[int, bytes]], endpoint: RemoteWrite, world: World) -> WriteResult:
    """Send each of *requests* once; after a failure of the endpoint, a limit or `MAX_WRITE_TIME`, send no more."""
    started_at = world.clock()
    sent_count = unwritten_count = 0
    errors: list[str] = []
    is_endpoint_failing = False
    for count, body in requests:
        if not is_endpoint_failing and not _find_limit(sent_count + count, started_at, world):
            sent_count += count
            try:
                endpoint.write(body)
                continue
            except Fault as fault:
                # An invalid request says nothing about the next one: a receiver that has newer samples refuses older.
                is_endpoint_failing = not isinstance(fault, Invalid)
                errors.append(f"{type(fault).__name__}: {fault}")
        elif not errors:
            errors.append(_find_limit(sent_count + count, started_at, world))
        unwritten_count += count
    return WriteResult(unwritten_count=unwritten_count, errors=tuple(errors), is_endpoint_failing=is_endpoint_failing)


def _find_limit(series_count: int, started_at: datetime, world: World) -> str:
    """Return the limit that is exceeded by *series_count* or by now; "" if there is none."""
    if series_count > MAX_SERIES_PER_CYCLE:
        return f"more than {MAX_SERIES_PER_CYCLE} series: set remote-write-metrics to summary or nodes"
    if world.clock() - started_at > MAX_WRITE_TIME:
        return f"not written within {MAX_WRITE_TIME.total_seconds():.0f}s"
    return ""
