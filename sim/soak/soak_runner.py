"""A series of simulated weeks: every world, seed and policy, in several processes, with progress."""

import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import timedelta
from multiprocessing import get_context
from time import monotonic, process_time
from typing import Final, TextIO

import msgspec

from sim.soak.ideal_costs import IdealFigures, build_ideal_figures, compute_ideal_costs
from sim.soak.policies import SoakPolicy
from sim.soak.report.results import SoakRecord
from sim.soak.report.summary import build_summary
from sim.soak.soak_run import SoakSample, run_week
from sim.soak.worlds.churn import ONE_DAY, ONE_HOUR
from sim.soak.worlds.world_catalog import WORLDS

COLLECTION_THRESHOLDS: Final = (100_000, 50, 100)
"""A week creates many objects and few cycles: garbage collection with the defaults took 5 % of the time."""
PROGRESS_INTERVAL: Final = 6 * ONE_HOUR
"""Simulated time between two progress lines."""


class SoakTask(msgspec.Struct, frozen=True, kw_only=True):
    """One week to simulate, or the ideal costs of a week."""

    world: str
    policy: SoakPolicy | None
    """None: the ideal costs."""
    days: float
    seed: int
    size: float
    has_bounds: bool = False

    @property
    def key(self) -> tuple[str, str, float, int, float]:
        """Key of its record."""
        return self.world, self.policy.name if self.policy is not None else "", self.days, self.seed, self.size

    @property
    def title(self) -> str:
        """Name for progress lines."""
        return f"{self.world} {self.seed} {self.policy.name if self.policy is not None else 'ideal'}"


class SoakProgress:
    """Prints a line for every six simulated hours, with the estimated time left."""

    def __init__(self, task: SoakTask, file: TextIO) -> None:
        """Start to measure the time."""
        self._task, self._file, self._started_at = task, file, monotonic()
        self._samples: list[SoakSample] = []

    def record_sample(self, sample: SoakSample) -> None:
        """Print the progress if *sample* is due."""
        self._samples.append(sample)
        elapsed = sample.at - self._samples[0].at
        if elapsed and not elapsed % PROGRESS_INTERVAL:
            cost = sum(taken.usd_per_hour for taken in self._samples) / len(self._samples)
            details = f"{sample.nodes:3} nodes {sample.running:4} pods  mean ${cost:.3f}/h"
            self._print_line(elapsed / (ONE_DAY * self._task.days), f"{sample.at:%a %d %H:%M}  {details}")

    def record_hour(self, elapsed_ratio: float) -> None:
        """Print the progress of the ideal costs."""
        self._print_line(elapsed_ratio, "")

    def _print_line(self, ratio: float, text: str) -> None:
        remaining_minutes = (monotonic() - self._started_at) * (1 / ratio - 1) / 60 if ratio else 0.0
        self._file.write(f"{self._task.title:32} {ratio:4.0%}  {remaining_minutes:5.1f}m left  {text}\n")
        self._file.flush()


def list_tasks(
    worlds: Iterable[str],
    seeds: Iterable[int],
    policies: Iterable[SoakPolicy],
    *,
    days: float,
    size: float,
    has_bounds: bool = False,
) -> Iterator[SoakTask]:
    """Yield the tasks of a series, the ideal costs of a week first.

    With commitments, there are no ideal costs: what nodes add to the bill depends on the nodes of the whole hour.
    """
    seed_list, policy_list = list(seeds), list(policies)
    for world in worlds:
        for seed in seed_list:
            has_ideal = WORLDS[world].add_commitments is None
            for policy in (None, *policy_list) if has_ideal else policy_list:
                yield SoakTask(
                    world=world,
                    policy=policy,
                    days=days,
                    seed=seed,
                    size=size,
                    has_bounds=has_bounds and policy is None,
                )


def run_task(task: SoakTask, file: TextIO | None = None) -> SoakRecord:
    """Run *task*, with progress on *file* (None: standard error), and return its record."""
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    gc.freeze()
    import sys  # noqa: PLC0415 - the standard error of the process that runs the task

    definition, progress, started_at = WORLDS[task.world], SoakProgress(task, file or sys.stderr), process_time()
    if task.policy is None:
        return _compute_ideal(task, progress, started_at)
    week = run_week(
        task.days,
        task.seed,
        size=task.size,
        definition=definition,
        policy=task.policy,
        on_sample=progress.record_sample,
    )
    return build_summary(
        week, label=task.policy.title, curve=task.policy.curve, cpu_seconds=process_time() - started_at
    )


def run_series(tasks: Iterable[SoakTask], jobs: int, on_record: Callable[[SoakRecord], None]) -> None:
    """Run *tasks* in *jobs* processes; *on_record* receives each record as soon as its task has ended."""
    task_list = list(tasks)
    if jobs == 1:
        for task in task_list:
            on_record(run_task(task))
        return
    with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(run_task, task) for task in task_list]):
            on_record(future.result())


def _compute_ideal(task: SoakTask, progress: SoakProgress, started_at: float) -> IdealFigures:
    duration = ONE_DAY * task.days

    def report_hour(elapsed: timedelta) -> None:
        if not elapsed % (4 * PROGRESS_INTERVAL):
            progress.record_hour(elapsed / duration)

    costs = compute_ideal_costs(
        WORLDS[task.world], task.days, task.seed, task.size, has_bounds=task.has_bounds, on_hour=report_hour
    )
    return build_ideal_figures(task.world, task.days, task.seed, task.size, costs, process_time() - started_at)
