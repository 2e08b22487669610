"""A series of simulated weeks: its tasks, their progress, and one record per task."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import msgspec
import pytest

from sim.soak.ideal_costs import IdealFigures
from sim.soak.policies import POLICIES
from sim.soak.report.results import SoakRecord
from sim.soak.report.summary import SoakSummary
from sim.soak.soak_run import SoakSample
from sim.soak.soak_runner import SoakProgress, SoakTask, list_tasks, run_series, run_task

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
SHORT_TASK = SoakTask(world="steady", policy=None, days=1 / 24, seed=1, size=0.1)


def build_sample(hours: float, usd_per_hour: float) -> SoakSample:
    return SoakSample(
        at=MONDAY + timedelta(hours=hours), nodes=3, vcpus=12, running=40, waiting=0, usd_per_hour=usd_per_hour
    )


def test_ideal_costs_come_before_the_policies_of_each_world_and_seed() -> None:
    tasks = list(list_tasks(["steady"], [1, 2], [POLICIES["default"], POLICIES["never"]], days=1, size=0.5))
    assert [task.title for task in tasks] == [
        "steady 1 ideal",
        "steady 1 default",
        "steady 1 never",
        "steady 2 ideal",
        "steady 2 default",
        "steady 2 never",
    ]
    assert tasks[0].key == ("steady", "", 1, 1, 0.5)
    assert tasks[1].key == ("steady", "default", 1, 1, 0.5)


def test_only_ideal_costs_compute_lower_bounds() -> None:
    tasks = list_tasks(["steady"], [1], [POLICIES["never"]], days=1, size=1, has_bounds=True)
    assert [task.has_bounds for task in tasks] == [True, False]


def test_a_world_with_commitments_has_no_ideal_costs() -> None:
    tasks = list_tasks(["committed"], [1], [POLICIES["never"]], days=1, size=1)
    assert [task.title for task in tasks] == ["committed 1 never"]


def test_progress_is_printed_every_six_simulated_hours_with_the_mean_cost() -> None:
    file = StringIO()
    progress = SoakProgress(msgspec.structs.replace(SHORT_TASK, policy=POLICIES["never"], days=1), file)
    for hours, usd_per_hour in ((0, 1.0), (3, 2.0), (6, 3.0)):
        progress.record_sample(build_sample(hours, usd_per_hour))
    (line,) = file.getvalue().splitlines()
    assert line.startswith("steady 1 never")
    assert " 25% " in line
    assert line.endswith("Mon 23 06:00    3 nodes   40 pods  mean $2.000/h")


def test_progress_of_ideal_costs_has_no_cluster() -> None:
    file = StringIO()
    SoakProgress(SHORT_TASK, file).record_hour(0)
    assert file.getvalue().split() == ["steady", "1", "ideal", "0%", "0.0m", "left"]


def test_a_task_without_a_policy_computes_ideal_costs() -> None:
    file = StringIO()
    record = run_task(SHORT_TASK, file)
    assert isinstance(record, IdealFigures)
    assert record.usd_per_hour > 0
    assert file.getvalue().startswith("steady 1 ideal")


def test_a_task_with_a_policy_simulates_its_week() -> None:
    record = run_task(msgspec.structs.replace(SHORT_TASK, policy=POLICIES["never"]), StringIO())
    assert isinstance(record, SoakSummary)
    assert (record.world, record.policy, record.days, record.seed, record.size) == ("steady", "never", 1 / 24, 1, 0.1)
    assert record.violations == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_series_returns_a_record_of_each_task_in_any_number_of_processes(jobs: int) -> None:
    tasks = [msgspec.structs.replace(SHORT_TASK, seed=seed) for seed in (1, 2)]
    records: list[SoakRecord] = []
    run_series(tasks, jobs, records.append)
    assert sorted(record.seed for record in records) == [1, 2]
