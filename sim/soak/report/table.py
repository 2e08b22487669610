"""Table of results: one row for each world and policy, as Markdown; means over the seeds."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from sim.soak.ideal_costs import IdealFigures
from sim.soak.report.results import SoakRecord
from sim.soak.report.summary import SoakSummary

NO_VALUE: Final = "-"


class PolicyRow(msgspec.Struct, frozen=True, kw_only=True):
    """The weeks of one world and policy, and their means."""

    weeks: tuple[SoakSummary, ...]
    """By seed."""
    ideals: tuple[IdealFigures, ...]
    """Of the same seeds; empty if they are not complete."""

    @property
    def usd_per_hour(self) -> float:
        """Mean cost."""
        return _compute_mean(week.usd_per_hour for week in self.weeks)

    @property
    def ideal_usd_per_hour(self) -> float:
        """Mean cost of the ideal repacking; 0 if it was not computed."""
        return _compute_mean(ideal.usd_per_hour for ideal in self.ideals)

    @property
    def over_ideal_percent(self) -> float | None:
        """How far the cost is above that of the ideal repacking."""
        return 100 * (self.usd_per_hour / self.ideal_usd_per_hour - 1) if self.ideal_usd_per_hour else None

    def compute_evictions(self, reason: str) -> float:
        """Return the mean number of evictions per pod and day for *reason*."""
        return _compute_mean(week.evictions_per_pod_day[reason] for week in self.weeks)


def build_rows(records: Iterable[SoakRecord]) -> list[PolicyRow]:
    """Return the rows of *records*, in the order of the first week of each row, by world."""
    weeks_by_row: dict[tuple[object, ...], list[SoakSummary]] = {}
    ideal_by_week: dict[tuple[object, ...], IdealFigures] = {}
    worlds: list[str] = []
    for record in records:
        if isinstance(record, IdealFigures):
            ideal_by_week[record.world, record.days, record.seed, record.size] = record
        else:
            weeks_by_row.setdefault((record.world, record.policy, record.days, record.size), []).append(record)
            worlds += [record.world] if record.world not in worlds else []
    rows = []
    for weeks in weeks_by_row.values():
        keys = [(week.world, week.days, week.seed, week.size) for week in weeks]
        ideals = tuple(ideal_by_week[key] for key in keys if key in ideal_by_week)
        rows.append(
            PolicyRow(
                weeks=tuple(sorted(weeks, key=lambda week: week.seed)),
                ideals=ideals if len(ideals) == len(weeks) else (),
            )
        )
    return sorted(rows, key=lambda row: worlds.index(row.weeks[0].world))


def format_table(records: Iterable[SoakRecord]) -> Iterator[str]:
    """Yield the lines of the tables: one for each world, length and size."""
    tables: dict[tuple[str, float, float], list[PolicyRow]] = {}
    for row in build_rows(records):
        week = row.weeks[0]
        tables.setdefault((week.world, week.days, week.size), []).append(row)
    for number, ((world, days, size), rows) in enumerate(tables.items()):
        if number:
            yield ""
        yield from _format_world(world, days, size, rows)


def _format_world(world: str, days: float, size: float, rows: Sequence[PolicyRow]) -> Iterator[str]:
    seeds = sorted({week.seed for row in rows for week in row.weeks})
    ideals = list({ideal.seed: ideal for row in rows for ideal in row.ideals}.values())
    ideal_text = (
        f"; ideal repacking ${_compute_mean(ideal.usd_per_hour for ideal in ideals):.3f}/h, without the pods that have "
        f"`do-not-disrupt` ${_compute_mean(ideal.disruptable_usd_per_hour for ideal in ideals):.3f}/h"
        if ideals
        else ""
    )
    seed_text = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    size_text = "" if size == 1 else f", size {size:g}"
    yield f"**{world}**, {days:g} {'day' if days == 1 else 'days'}, {seed_text}{size_text}{ideal_text}"
    yield ""
    cells_by_row = [_format_cells(row) for row in rows]
    headings = list(cells_by_row[0])
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for cells in cells_by_row:
        yield f"| {' | '.join(cells.values())} |"


def _format_cells(row: PolicyRow) -> dict[str, str]:
    weeks, over_ideal = row.weeks, row.over_ideal_percent
    days = sum(week.days for week in weeks)
    consolidations = sum(week.consolidation_count for week in weeks)
    wasted = sum(week.wasted_count for week in weeks)
    return {
        "policy": weeks[0].label,
        "$/h": f"{row.usd_per_hour:.3f}",
        **_format_bill(weeks),
        "above ideal": NO_VALUE if over_ideal is None else f"{over_ideal:.1f} %",
        "evictions per pod and day: consolidation": f"{row.compute_evictions('Underutilized'):.2f}",
        "drift": f"{row.compute_evictions('Drifted'):.2f}",
        "EC2": f"{row.compute_evictions(''):.2f}",
        "pods, nodes": f"{_compute_mean(week.mean_pods for week in weeks):.0f}, "
        f"{_compute_mean(week.mean_nodes for week in weeks):.1f}",
        "pods without a node": f"{_compute_mean(week.waiting_pod_share for week in weeks):.2%}",
        "launches per day": f"{sum(week.launches for week in weeks) / days:.0f}",
        "consolidations per day": f"{consolidations / days:.1f}",
        "of these, cost more than they saved": f"{wasted / consolidations:.0%}" if consolidations else NO_VALUE,
        "short-lived nodes per day": f"{sum(week.short_lived_nodes for week in weeks) / days:.1f}",
        "violations, failures": f"{sum(week.violations for week in weeks)}, {sum(week.failed_calls for week in weeks)}",
    }


def _format_bill(weeks: Sequence[SoakSummary]) -> dict[str, str]:
    """Return the cells that only worlds with commitments have."""
    bills = [week.bill_usd_per_hour for week in weeks if week.bill_usd_per_hour is not None]
    if not bills:
        return {}
    unused = _compute_mean(week.unused_usd_per_hour for week in weeks)
    return {"bill $/h": f"{_compute_mean(bills):.3f}", "unused commitments $/h": f"{unused:.3f}"}


def _compute_mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0
