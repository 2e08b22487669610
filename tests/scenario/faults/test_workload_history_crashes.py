"""The row of the workload history survives crashes and concurrent writers.

No hour is lost or counted twice, and no run of a finite pod is counted twice.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.cycles.interactions.workload_history import update_forecasts
from shared.cycles.setup.run_cycle import PLANNER_LEASE
from shared.decide.disruption.savings.workload_history import compute_hour_of_week
from shared.errors import Unreachable
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import OwnerReference, Problem
from shared.model.decisions.workload_history import WorkloadHistory
from shared.ports.storage import TableRow
from shared.ports.world import World as Ports
from shared.store.lease import LEASE_TTL, hold_lease
from shared.store.table_rows import decode_body_text
from shared.store.workload_history import ROW_KIND, ROW_NAME, read_workload_history
from sim.fault_tap import Killed, PortCall, Tap
from tests.support.actions_world import Outside
from tests.support.catalogues import make_pod
from tests.support.disruption_fleet import make_fleet, make_node_with_pods
from tests.unit.shared.decide.disruption.savings.test_run_time_history import make_finite_pod

MINUTES = 150
RUN_MINUTES = 7
WEB = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="web", uid="web", controller=True)


def take_cluster(outside: Outside, minute: int) -> ClusterSnapshot:
    """Return the cluster at *minute*: in hour h, 2 + h web pods, and Job pods that run 7m, one after the other."""
    now = outside.clock.get_time()
    web_pods = [make_pod(f"w{number}", "100m", owners=(WEB,)) for number in range(2 + now.hour % 5)]
    number = minute // RUN_MINUTES
    job_pod = make_finite_pod(f"j{number}", owner_name=f"report-2940{number:04}")
    started_at = now - timedelta(minutes=minute % RUN_MINUTES)
    job_pod = replace(job_pod, started_at=started_at)
    return replace(make_fleet(make_node_with_pods("a", *web_pods, job_pod)), taken_at=now)


class Recorder:
    """Runs the part of `disrupt` that keeps the history, every minute; a killed container loses its memory."""

    def __init__(self, tap: Tap | None = None) -> None:
        """Start with an empty table; *tap* gets every call."""
        self.outside, self.tap, self.problems = Outside(), tap, list[Problem]()
        self.memory: dict[str, object] = {}
        self.kills = 0

    def build_ports(self, name: str, memory: dict[str, object], tap: Tap | None = None) -> Ports:
        ports = self.outside.build_world(name, tap=tap or self.tap)
        return replace(ports, settings=replace(ports.settings, workload_history="on"), memory=memory)

    def run_once(self, minute: int) -> None:
        ports = self.build_ports(f"disrupt-{minute}", self.memory)
        try:
            with hold_lease(ports, PLANNER_LEASE) as fence:
                if fence is not None:
                    update_forecasts(ports, take_cluster(self.outside, minute), fence, self.problems)
        except Killed:
            self.memory, self.kills = {}, self.kills + 1

    def run(self) -> WorkloadHistory:
        for minute in range(MINUTES):
            self.run_once(minute)
            self.outside.clock.run_until(self.outside.clock.get_time() + timedelta(minutes=1))
        return read_history(self.outside)


def read_row(outside: Outside) -> TableRow:
    row = outside.table.read(ROW_KIND, ROW_NAME)
    assert row is not None
    return row


def read_history(outside: Outside) -> WorkloadHistory:
    return decode_body_text(read_row(outside).body, WorkloadHistory)


def fail_at(number: int, phase: str, error: BaseException) -> Callable[[PortCall], None]:
    """Return a tap that raises *error* in the *number*th write of the history."""
    calls = []

    def tap(call: PortCall) -> None:
        if call.port == "table" and call.method == "write" and call.detail.startswith(ROW_KIND) and call.phase == phase:
            calls.append(call)
            if len(calls) == number:
                raise error

    return tap


def summarize(history: WorkloadHistory) -> dict[str, Any]:
    """Return the closed hours of the web pods, which are the same in every minute of an hour."""
    [web] = [record for record in history.workloads if record.name == "StatefulSet shop/web"]
    return {"means": web.means, "weeks": web.weeks, "errors": web.errors}


def count_runs(history: WorkloadHistory) -> int:
    return sum(record.run_count for record in history.run_times)


UNDISTURBED_WRITES = 15


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("number", range(1, UNDISTURBED_WRITES + 1))
def test_function_killed_at_any_write_of_the_history_loses_no_hour_and_counts_none_twice(
    number: int, phase: str
) -> None:
    undisturbed, killed = Recorder(), Recorder(fail_at(number, phase, Killed("now")))
    expected, history = undisturbed.run(), killed.run()
    assert (killed.kills, killed.problems) == (1, [])
    assert summarize(history) == summarize(expected)
    assert max(history.workloads[0].weeks) == 1
    assert read_row(undisturbed.outside).version == UNDISTURBED_WRITES
    lost_runs = count_runs(expected) - count_runs(history)
    assert 0 <= lost_runs <= 3, "a run is counted at most once; a killed container forgets those of 10 to 20 minutes"


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("number", [1, 4, 7, 12])
def test_write_without_a_response_is_counted_once(number: int, phase: str) -> None:
    undisturbed, failing = Recorder(), Recorder(fail_at(number, phase, Unreachable("no response")))
    expected, history = undisturbed.run(), failing.run()
    assert [problem.message for problem in failing.problems] == ["Unreachable: no response"]
    assert summarize(history) == summarize(expected)
    assert count_runs(history) <= count_runs(expected)


def test_controller_that_lost_its_lease_does_not_write_the_history() -> None:
    """The first container stops before its write for longer than the lease lasts; the second one writes."""
    recorder = Recorder()
    recorder.run()
    memories: tuple[dict[str, object], dict[str, object]] = ({}, {})
    histories: list[WorkloadHistory] = []
    recorder.outside.clock.run_until(recorder.outside.clock.get_time() + timedelta(minutes=30))

    def write_first(call: PortCall) -> None:
        is_write = call.port == "table" and call.method == "write" and call.phase == "before"
        if is_write and call.detail.startswith(ROW_KIND) and not histories:
            recorder.outside.clock.run_until(recorder.outside.clock.get_time() + LEASE_TTL)
            second = recorder.build_ports("second", memories[1])
            with hold_lease(second, PLANNER_LEASE) as second_fence:
                assert second_fence is not None
                cluster = take_cluster(recorder.outside, MINUTES + 1)
                update_forecasts(second, cluster, second_fence, recorder.problems)
            histories.append(read_history(recorder.outside))

    first = recorder.build_ports("first", memories[0], write_first)
    with hold_lease(first, PLANNER_LEASE) as fence:
        assert fence is not None
        update_forecasts(first, take_cluster(recorder.outside, MINUTES), fence, recorder.problems)
    assert histories == [read_history(recorder.outside)]
    assert recorder.problems == []


def test_two_writers_that_read_the_same_row_count_their_hour_once() -> None:
    """Also without a lease, the version of the row lets only one of them write."""
    recorder = Recorder()
    recorder.run()
    recorder.outside.clock.run_until(recorder.outside.clock.get_time() + timedelta(minutes=30))
    version = read_row(recorder.outside).version
    cluster = take_cluster(recorder.outside, MINUTES)
    versions: list[int] = []

    def write_first(call: PortCall) -> None:
        is_write = call.port == "table" and call.method == "write" and call.phase == "before"
        if is_write and call.detail.startswith(ROW_KIND) and not versions:
            versions.append(version)
            update_forecasts(recorder.build_ports("second", {}), cluster, fence, recorder.problems)

    first = recorder.build_ports("first", {}, write_first)
    with hold_lease(first, PLANNER_LEASE) as token:
        assert token is not None
        fence = token
        update_forecasts(first, cluster, fence, recorder.problems)
    assert versions == [version]
    assert read_row(recorder.outside).version == version + 1
    assert read_history(recorder.outside).observation_count == 1


def test_two_containers_that_take_turns_count_each_run_at_most_once() -> None:
    """Each of them sees every second minute, and both see the same runs end."""
    recorder = Recorder()
    memories: tuple[dict[str, object], dict[str, object]] = ({}, {})
    for minute in range(MINUTES):
        recorder.memory = memories[minute % 2]
        recorder.run_once(minute)
        recorder.outside.clock.run_until(recorder.outside.clock.get_time() + timedelta(minutes=1))
    expected, runs = Recorder().run(), count_runs(read_history(recorder.outside))
    assert summarize(read_history(recorder.outside)) == summarize(expected)
    assert count_runs(expected) // 3 <= runs <= count_runs(expected)
    assert count_runs(expected) >= MINUTES // RUN_MINUTES - 2


def test_truncated_row_causes_no_forecast_and_is_reported() -> None:
    recorder = Recorder()
    recorder.run()
    body = read_row(recorder.outside).body
    for length in range(0, len(body), max(len(body) // 40, 1)):
        row = read_row(recorder.outside)
        recorder.outside.table.write(ROW_KIND, ROW_NAME, body[:length], version=row.version)
        problems: list[Problem] = []
        history, _ = read_workload_history(recorder.build_ports("one", {}), problems)
        assert history == WorkloadHistory()
        assert [problem.kind for problem in problems] == [ROW_KIND]


def test_without_the_setting_nothing_is_read_written_or_remembered() -> None:
    recorder = Recorder()
    ports = recorder.build_ports("one", recorder.memory)
    ports = replace(ports, settings=replace(ports.settings, workload_history="off"))
    with hold_lease(ports, PLANNER_LEASE) as fence:
        assert fence is not None
        call_count = len(recorder.outside.calls)
        assert update_forecasts(ports, take_cluster(recorder.outside, 0), fence, recorder.problems) == ((), ())
        assert len(recorder.outside.calls) == call_count
    assert recorder.memory == {}


def test_recorded_hours_are_those_of_the_clock() -> None:
    recorder = Recorder()
    history = recorder.run()
    [web] = [record for record in history.workloads if record.name == "StatefulSet shop/web"]
    hours = [number for number, weeks in enumerate(web.weeks) if weeks]
    began = recorder.outside.clock.get_time() - timedelta(minutes=MINUTES)
    assert hours == [compute_hour_of_week(began + timedelta(hours=number)) for number in range(len(hours))]
    assert [web.means[hour] for hour in hours] == [10 * (2 + hour % 24 % 5) for hour in hours]
