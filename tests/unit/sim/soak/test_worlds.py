"""Tests of the churn of the worlds: a function of seed, length and size, with the events that the world promises."""

from datetime import UTC, datetime

import pytest

from sim.soak.worlds.churn import ONE_DAY, ONE_HOUR
from sim.soak.worlds.mixed import SERVICE_WORKLOADS, build_churn, compute_target_replicas
from sim.soak.worlds.soak_workloads import SATURDAY_INDEX
from sim.soak.worlds.world_catalog import WORLDS
from sim.time.virtual_clock import DEFAULT_START_TIME

WEEK = 7


@pytest.mark.parametrize("world", WORLDS)
def test_same_seed_produces_the_same_churn_and_a_different_seed_does_not(world: str) -> None:
    definition = WORLDS[world]
    assert definition.build_churn(2, 1, 1.0) == definition.build_churn(2, 1, 1.0)
    assert definition.build_churn(2, 1, 1.0) != definition.build_churn(2, 2, 1.0)
    assert list(definition.build_manifests(0.5, 1)) == list(definition.build_manifests(0.5, 1))


@pytest.mark.parametrize("world", WORLDS)
def test_churn_is_in_order_and_within_the_week(world: str) -> None:
    events = WORLDS[world].build_churn(WEEK, 1, 1.0)
    assert [event.after for event in events] == sorted(event.after for event in events)
    assert events[-1].after < WEEK * ONE_DAY
    assert [event.after for event in events if event.kind == "release"] == [ONE_DAY * 3.5]


@pytest.mark.parametrize("world", WORLDS)
def test_a_smaller_size_has_fewer_pods(world: str) -> None:
    definition = WORLDS[world]
    small, large = (
        sum(manifest["spec"].get("replicas", 0) for manifest in definition.build_manifests(size, 1))
        for size in (0.2, 1)
    )
    assert 0 < small < large


def test_mixed_week_contains_every_kind_of_event() -> None:
    churn_events = build_churn(WEEK, 1)
    assert {event.kind for event in churn_events} == {"scale", "deploy", "apply", "delete", "interrupt", "release"}
    assert {event.name for event in churn_events if event.kind == "deploy"} == {
        workload.name for workload in SERVICE_WORKLOADS
    }


def test_mixed_load_peaks_at_the_configured_hour_and_is_lower_on_weekends() -> None:
    [web] = [workload for workload in SERVICE_WORKLOADS if workload.name == "web"]
    monday, sunday = (datetime(2026, 11, day, web.peak_hour, tzinfo=UTC) for day in (23, 22))
    night = monday.replace(hour=3)
    assert (
        compute_target_replicas(web, night, 1)
        < compute_target_replicas(web, sunday, 1)
        < compute_target_replicas(web, monday, 1)
    )


def test_steady_replicas_stay_close_to_their_usual_number() -> None:
    steady = WORLDS["steady"]
    usual_replicas = {service.name: service.replicas[0] for service in steady.list_services(1.0, 1)}
    scalings = [event for event in steady.build_churn(WEEK, 1, 1.0) if event.kind == "scale"]
    assert scalings
    assert all(abs(event.replicas - usual_replicas[event.name]) <= 1 for event in scalings)


def test_batch_jobs_run_for_minutes_to_hours() -> None:
    seconds = sorted(
        int(event.manifest["spec"]["template"]["metadata"]["annotations"]["sim.joiner.dev/run-seconds"])
        for event in WORLDS["batch"].build_churn(WEEK, 1, 1.0)
        if event.manifest is not None
    )
    assert len(seconds) > WEEK * 10
    assert seconds[0] < 600
    assert seconds[-1] > 4 * 3600


def test_development_deployments_have_no_replica_at_night_and_at_weekends() -> None:
    replicas_by_name: dict[str, int] = {}
    for event in WORLDS["development"].build_churn(WEEK, 1, 1.0):
        at = DEFAULT_START_TIME + event.after
        if event.kind == "scale":
            assert at.weekday() < SATURDAY_INDEX
            replicas_by_name[event.name] = event.replicas
        if event.kind == "scale" and at.hour == 3:
            pytest.fail(f"{event.name} is scaled at {at}")
    midnight = 5 * ONE_DAY + 16 * ONE_HOUR
    running: dict[str, int] = {}
    for event in WORLDS["development"].build_churn(WEEK, 1, 1.0):
        if event.kind == "scale" and event.after <= midnight:
            running[event.name] = event.replicas
    assert set(running.values()) == {0}
