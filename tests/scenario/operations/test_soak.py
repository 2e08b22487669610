"""Hours of a simulated week: no forbidden event happens, and consolidation saves money."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from sim.soak import __main__ as command
from sim.soak.churn import ONE_DAY, ChurnEvent, build_churn, compute_target_replicas
from sim.soak.monitor import SoakMonitor
from sim.soak.plot import render_chart
from sim.soak.soak_run import SoakResult, run_week
from sim.soak.soak_workloads import (
    NODE_POOLS,
    SERVICE_WORKLOADS,
    SERVICES_POOL,
    SPOT_POOL,
    PoolBudget,
    build_job,
    build_manifests,
)
from sim.soak.soak_world import SoakWorld
from sim.soak.summary import SoakSummary, build_summary, format_lines
from tests.scenario.worlds import CLAIMS

SOAK_HOURS = 1.5
WORKLOAD_SCALE = 0.2
MONDAY_NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def make_event(minutes: float, kind: str, name: str = "", replicas: int = 0) -> ChurnEvent:
    event_fields = {
        "after": timedelta(minutes=minutes).total_seconds(),
        "kind": kind,
        "name": name,
        "replicas": replicas,
    }
    event = msgspec.convert(event_fields, ChurnEvent, strict=False)
    job_manifest = build_job(name, 2, timedelta(minutes=6), is_guarded=True) if kind == "apply" else None
    return msgspec.structs.replace(event, manifest=job_manifest)


CHURN = (
    make_event(0, "scale", "web", 24),
    make_event(0, "scale", "api", 4),
    make_event(5, "apply", "job"),
    make_event(15, "deploy", "mail"),
    make_event(16, "delete", "mail"),
    make_event(18, "interrupt"),
    make_event(20, "scale", "web", 3),
    make_event(50, "release"),
)


@cache
def run_soak(*, consolidates: bool) -> SoakResult:
    return run_week(
        SOAK_HOURS / 24, 1, size=WORKLOAD_SCALE, churn=CHURN, consolidates=consolidates, has_ideal=consolidates
    )


def summarize_soak() -> SoakSummary:
    return build_summary(run_soak(consolidates=True), run_soak(consolidates=False))


@pytest.mark.parametrize("consolidates", [True, pytest.param(False, marks=pytest.mark.no_cover)])
def test_simulated_week_violates_no_budget_and_has_no_failed_invocation(*, consolidates: bool) -> None:
    week = run_soak(consolidates=consolidates)
    assert week.violations == ()
    assert week.failed_invocations == ()
    assert week.interruptions == 1
    assert week.samples[-1].waiting == 0


def test_consolidation_lowers_the_mean_hourly_cost() -> None:
    summary = summarize_soak()
    assert summary.mean_usd_per_hour < summary.without_usd_per_hour
    ideals = [sample.ideal for sample in run_soak(consolidates=True).samples if sample.ideal is not None]
    assert all(ideal.bound <= ideal.repacked for ideal in ideals if ideal.bound is not None)
    assert len(ideals) == 2
    assert ideals[0].bound is not None
    assert run_soak(consolidates=True).replacements > 0
    assert run_soak(consolidates=False).replacements == 0


def test_no_node_is_consolidated_shortly_after_its_launch_without_changes() -> None:
    assert run_soak(consolidates=True).short_lived_without_changes == ()


def test_evictions_have_a_disruption_reason() -> None:
    reasons = {eviction.reason for eviction in run_soak(consolidates=True).evictions}
    assert {"Underutilized", "Drifted"} <= reasons <= {"Underutilized", "Drifted", "Empty", ""}


def test_chart_is_well_formed_svg_with_every_line() -> None:
    svg = render_chart(run_soak(consolidates=True), run_soak(consolidates=False))
    root = ET.fromstring(svg)  # noqa: S314 - our own
    kinds = {polyline.get("class") for polyline in root.iter("{http://www.w3.org/2000/svg}polyline")}
    assert kinds == {"line ours", "line without", "line ideal"}
    assert [circle.get("class") for circle in root.iter("{http://www.w3.org/2000/svg}circle")] == ["bound"]
    assert "prefers-color-scheme:dark" in svg
    assert "new images" in svg


def test_summary_is_formatted_as_a_markdown_table() -> None:
    table = list(format_lines(summarize_soak()))
    assert all(line.startswith("|") and line.count("|") == 3 for line in table)
    assert any("violations" in line and line.endswith("| 0 |") for line in table)


@pytest.mark.parametrize("output", ["text", "json"])
def test_command_prints_the_summary_and_writes_the_chart(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded_arguments: list[tuple[float, int, float]] = []

    def record_arguments(days: float, seed: int, size: float) -> tuple[SoakResult, SoakResult]:
        recorded_arguments.append((days, seed, size))
        return run_soak(consolidates=True), run_soak(consolidates=False)

    monkeypatch.setattr(command, "run_both_weeks", record_arguments)
    assert command.main(["--days", "2", "--seed", "3", "-o", output, "--plot", str(tmp_path / "weeks.svg")]) == 0
    assert recorded_arguments == [(2, 3, 1)]
    assert (tmp_path / "weeks.svg").read_text().startswith("<svg")
    printed = capsys.readouterr().out
    if output == "json":
        assert msgspec.json.decode(printed)["figures"] == msgspec.to_builtins(summarize_soak())
    else:
        assert printed.splitlines() == list(format_lines(summarize_soak()))


def test_progress_line_is_printed_for_every_sample(capsys: pytest.CaptureFixture[str]) -> None:
    for sample in run_soak(consolidates=True).samples:
        command.print_progress(sample)
    assert len(capsys.readouterr().err.splitlines()) == 2


# What happens


def test_same_seed_produces_the_same_churn_and_a_different_seed_does_not() -> None:
    assert build_churn(2, 1) == build_churn(2, 1)
    assert build_churn(2, 1) != build_churn(2, 2)


def test_seven_day_churn_contains_every_kind_of_event() -> None:
    churn_events = build_churn(7, 1)
    assert {event.kind for event in churn_events} == {"scale", "deploy", "apply", "delete", "interrupt", "release"}
    assert [event.after for event in churn_events if event.kind == "release"] == [ONE_DAY * 3.5]
    assert list(churn_events) == sorted(churn_events, key=lambda one: one.after)
    assert {event.name for event in churn_events if event.kind == "deploy"} == {
        workload.name for workload in SERVICE_WORKLOADS
    }


def test_load_peaks_at_the_configured_hour_and_is_lower_on_weekends() -> None:
    [web] = [workload for workload in SERVICE_WORKLOADS if workload.name == "web"]
    monday, sunday = (datetime(2026, 11, day, web.peak_hour, tzinfo=UTC) for day in (23, 22))
    night = monday.replace(hour=3)
    assert (
        compute_target_replicas(web, night, 1)
        < compute_target_replicas(web, sunday, 1)
        < compute_target_replicas(web, monday, 1)
    )


def test_spot_interruption_event_is_skipped_without_spot_instances() -> None:
    assert not SoakWorld(1).apply_event(make_event(0, "interrupt"))


# Who watches


@pytest.mark.parametrize(
    ("limit", "reason", "now", "allows"),
    [
        (PoolBudget(percent=20), "Empty", MONDAY_NOON, 3),
        (PoolBudget(count=2), "Empty", MONDAY_NOON, 2),
        (PoolBudget(count=2, reasons=("Drifted",)), "Empty", MONDAY_NOON, None),
        (PoolBudget(count=1, in_office_hours=True), "Empty", MONDAY_NOON, 1),
        (PoolBudget(count=1, in_office_hours=True), "Empty", MONDAY_NOON.replace(hour=17), None),
        (PoolBudget(count=1, in_office_hours=True), "Empty", MONDAY_NOON.replace(day=22), None),
    ],
)
def test_pool_budget_allows_the_expected_number_of_nodes(
    limit: PoolBudget, reason: str, now: datetime, allows: int | None
) -> None:
    assert limit.compute_allowed(reason, 11, now) == allows


def test_nodepool_allows_the_smallest_of_its_budgets() -> None:
    pools = {node_pool.name: node_pool for node_pool in NODE_POOLS}
    assert pools[SERVICES_POOL].compute_allowed("Underutilized", 20, MONDAY_NOON) == 1
    assert pools[SERVICES_POOL].compute_allowed("Empty", 20, MONDAY_NOON) == 4
    assert pools[SPOT_POOL].compute_allowed("Empty", 20, MONDAY_NOON) == 3


def build_monitored_world() -> tuple[SoakWorld, SoakMonitor]:
    world = SoakWorld(1)
    world.apply(build_manifests(0.7))
    witness = SoakMonitor(world)
    world.run(timedelta(minutes=6))
    assert witness.violations == []
    return world, witness


def test_monitor_reports_evictions_and_terminations_that_violate_a_rule() -> None:
    world, witness = build_monitored_world()
    api = world.cluster.api
    lie = {"status": {"disruptionsAllowed": 9}}
    api.patch("poddisruptionbudgets.policy", "web", lie, "default", "status")
    for name in _list_pod_names(world, "web")[:4]:
        api.evict("default", name)
    for claim in api.list(CLAIMS):
        reason = {"type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": "Drifted"}
        conditions = [*claim["status"]["conditions"], reason | {"lastTransitionTime": "2026-11-21T08:00:00Z"}]
        api.patch(CLAIMS, claim["metadata"]["name"], {"status": {"conditions": conditions}}, "", "status")
    api.evict("default", _list_pod_names(world, "ledger")[0])
    for instance in world.list_active_instances():
        world.cloud.instances.terminate_immediately(instance.instance_id)
    text = "\n".join(witness.violations)
    assert "was evicted: web has" in text
    assert "nodes of services go (Drifted), allowed are" in text
    assert "was evicted (Drifted) past do-not-disrupt" in text
    assert "ended under" in text


def _list_pod_names(world: SoakWorld, app: str) -> list[str]:
    pods = world.cluster.list_pods("default")
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get("app") == app]
