"""Writing metrics: when they are due, failures, delays and limits."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from shared.errors import Forbidden, Invalid, Unreachable
from shared.model.core.metrics.metric_samples import MetricSamples
from shared.ports.world import World
from shared.report.remote_write.send_metrics import (
    MAX_RETRY_DELAY,
    MAX_SERIES_PER_CYCLE,
    MAX_WRITE_TIME,
    MIN_INTERVAL,
    MIN_TIME_LEFT,
    is_write_due,
    write_metrics,
)
from sim.remote_write.write_request import decode_write_request
from tests.support.actions_world import Outside

METRICS: MetricSamples = {"joiner_pods_pending": [((), 3.0)]}
MINUTE = timedelta(minutes=1)


class Receiver:
    """Receives requests; raises *fault* instead, if there is one."""

    def __init__(self) -> None:
        """Start with a receiver that accepts everything."""
        self.bodies: list[bytes] = []
        self.fault: Exception | None = None
        self.on_request: Callable[[], object] = lambda: None

    def write(self, body: bytes) -> None:
        """Record the request."""
        self.bodies.append(body)
        self.on_request()
        if self.fault is not None:
            raise self.fault


class Writer:
    """One container with a receiver, and its log."""

    def __init__(self, **settings: str) -> None:
        """Start a container."""
        self.outside, self.receiver = Outside(**settings), Receiver()
        self.world: World = replace(self.outside.build_world(), remote_write=self.receiver, memory={})

    @property
    def now(self) -> datetime:
        """The current time."""
        return self.outside.clock.get_time()

    def run_cycle(self, metrics: MetricSamples = METRICS) -> int:
        """Write the metrics if this is due; return the number of requests."""
        before = len(self.receiver.bodies)
        if is_write_due("disrupt", self.now, self.world):
            write_metrics(lambda: metrics, self.now, self.world)
        return len(self.receiver.bodies) - before

    def run_minutes(self, count: int) -> list[int]:
        """Run a cycle per minute; return the number of requests of each."""
        requests = []
        for _ in range(count):
            requests.append(self.run_cycle())
            self.outside.clock.advance(MINUTE)
        return requests

    def list_logged_errors(self) -> list[tuple[int, str]]:
        """Return the number of series and the error of each line about metrics that were not written."""
        lines = [json.loads(line) for line in self.outside.lines]
        return [(line["series"], line["error"]) for line in lines if line.get("message") == "metrics not written"]


def test_only_disrupt_writes_and_only_with_an_endpoint() -> None:
    writer = Writer()
    assert is_write_due("disrupt", writer.now, writer.world)
    assert not any(
        is_write_due(name, writer.now, writer.world)
        for name in ("provision", "lifecycle", "interrupt", "catalog", "watch")
    )
    without_endpoint = replace(writer.world, remote_write=None)
    assert not is_write_due("disrupt", writer.now, without_endpoint)
    write_metrics(lambda: METRICS, writer.now, without_endpoint)
    assert (writer.receiver.bodies, writer.outside.lines) == ([], [])


def test_metrics_are_written_once_a_minute_with_the_name_of_the_cluster() -> None:
    writer = Writer()
    assert writer.run_cycle() == 1
    writer.outside.clock.advance(MIN_INTERVAL - timedelta(seconds=1))
    assert writer.run_cycle() == 0
    writer.outside.clock.advance(timedelta(seconds=1))
    assert writer.run_cycle() == 1
    [series] = decode_write_request(writer.receiver.bodies[-1])
    assert series.labels == (("__name__", "joiner_pods_pending"), ("cluster", "joiner"))
    assert writer.outside.lines == []


def test_container_without_memory_writes_in_each_cycle() -> None:
    writer = Writer()
    writer.world = replace(writer.world, memory=None)
    assert [writer.run_cycle(), writer.run_cycle()] == [1, 1]


def test_nothing_is_written_with_little_time_left() -> None:
    writer = Writer()
    writer.world = replace(writer.world, time_left=lambda: MIN_TIME_LEFT - timedelta(seconds=1))
    assert writer.run_cycle() == 0
    writer.world = replace(writer.world, time_left=lambda: MIN_TIME_LEFT)
    assert writer.run_cycle() == 1


def test_endpoint_that_does_not_respond_gets_fewer_and_fewer_requests_until_it_does() -> None:
    writer = Writer()
    writer.receiver.fault = Unreachable("remote write to prometheus: timeout")
    assert writer.run_minutes(16) == [1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert writer.run_minutes(31).count(1) == 31 // (MAX_RETRY_DELAY // MINUTE)
    writer.receiver.fault = None
    writer.outside.clock.advance(MAX_RETRY_DELAY)
    assert writer.run_minutes(3) == [1, 1, 1]


def test_failed_write_is_logged_and_counted() -> None:
    writer = Writer(metrics="all")
    writer.receiver.fault = Forbidden("remote write to aps: HTTP 403")
    writer.run_cycle()
    assert writer.list_logged_errors() == [(1, "Forbidden: remote write to aps: HTTP 403")]
    [line] = [json.loads(line) for line in writer.outside.lines if '"_aws"' in line]
    assert line["RemoteWriteFailures"] == [1.0]


def test_error_of_joiner_fails_no_cycle_and_delays_the_next_write() -> None:
    writer = Writer(metrics="all")
    writer.receiver.fault = ValueError("defect of the adapter")
    assert writer.run_minutes(4) == [1, 1, 0, 1]
    assert writer.list_logged_errors() == [(0, "ValueError: defect of the adapter")] * 3
    assert sum("RemoteWriteFailures" in line for line in writer.outside.lines) == 3


def test_metrics_that_cannot_be_computed_fail_no_cycle() -> None:
    writer = Writer()

    def fail() -> MetricSamples:
        raise KeyError("m5.large")

    write_metrics(fail, writer.now, writer.world)
    assert writer.list_logged_errors() == [(0, "KeyError: 'm5.large'")]
    assert writer.receiver.bodies == []
    assert not is_write_due("disrupt", writer.now + MINUTE - timedelta(seconds=1), writer.world)


def test_refused_samples_hold_up_neither_other_requests_nor_the_next_cycle() -> None:
    writer = Writer()
    writer.receiver.fault = Invalid("out of order sample")
    metrics = {"joiner_a": [((("a", str(number)),), 1.0) for number in range(2001)]}
    assert writer.run_cycle(metrics) == 2
    assert writer.list_logged_errors() == [(2001, "Invalid: out of order sample")]
    writer.outside.clock.advance(MINUTE)
    assert writer.run_cycle(metrics) == 2


def test_failing_endpoint_gets_no_further_request_in_the_cycle() -> None:
    writer = Writer()
    writer.receiver.fault = Unreachable("timeout")
    metrics = {"joiner_a": [((("a", str(number)),), 1.0) for number in range(6000)]}
    assert writer.run_cycle(metrics) == 1
    assert writer.list_logged_errors() == [(6000, "Unreachable: timeout")]


def test_no_request_is_started_after_5s() -> None:
    writer = Writer()
    writer.receiver.on_request = lambda: writer.outside.clock.advance(MAX_WRITE_TIME / 2 + timedelta(seconds=1))
    metrics = {"joiner_a": [((("a", str(number)),), 1.0) for number in range(10_000)]}
    assert writer.run_cycle(metrics) == 2
    assert writer.list_logged_errors() == [(6000, "not written within 5s")]


def test_at_most_50000_series_are_written_the_first_ones() -> None:
    writer = Writer()
    first = {"joiner_a": [((("a", str(number)),), 1.0) for number in range(MAX_SERIES_PER_CYCLE)]}
    assert writer.run_cycle({**first, "karpenter_z": [((), 1.0)]}) == 25
    assert writer.list_logged_errors() == [(1, "more than 50000 series: set remote-write-metrics to summary or nodes")]
