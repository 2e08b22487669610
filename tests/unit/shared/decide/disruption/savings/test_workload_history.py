"""The history of replicas by hour of the week, and how long savings last by its forecast."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.savings.disruption_cost import NODE_OVERLAP_PERIOD
from shared.decide.disruption.savings.workload_forecast import estimate_demand
from shared.decide.disruption.savings.workload_history import (
    compute_hour_of_week,
    find_workload_name,
    observe_workloads,
    update_history,
)
from shared.model.core.metadata import OwnerReference
from shared.model.decisions.workload_history import (
    HOURS_PER_WEEK,
    DemandForecast,
    HourlyDemand,
    ObservedWorkload,
    WorkloadHistory,
)
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import NOW, make_pod
from tests.support.disruption_fleet import (
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
SETTINGS = DisruptionSettings(overlap=NODE_OVERLAP_PERIOD)


def make_workload(replicas: int, name: str = "Deployment shop/web", pool: str = "default") -> ObservedWorkload:
    return ObservedWorkload(
        name=name, pool=pool, replicas=replicas, cpu_milli=500 * replicas, memory_bytes=1000 * replicas
    )


def get_service_replicas(hour: int) -> int:
    """Return ten replicas by day, from 8 to 20 o'clock, and two by night."""
    return 10 if 8 <= hour < 20 else 2


def build_history(hours: int, noise: int = 0) -> WorkloadHistory:
    """Return the history of a service with a daily cycle after *hours* hours; each second day is *noise* larger."""
    history = WorkloadHistory()
    for number in range(hours + 1):
        now = MONDAY + number * HOUR
        replicas = get_service_replicas(now.hour) + noise * (now.toordinal() // 7 % 2)
        history = update_history(history, [make_workload(replicas)], now)
    return history


def list_forecast_cpus(history: WorkloadHistory, now: datetime) -> list[int]:
    [forecast] = estimate_demand(history, [make_workload(2)], now)
    return [hour.cpu_milli for hour in forecast.hours]


def make_owned_pod(kind: str, owner_name: str, template_hash: str = "") -> Pod:
    pod = make_pod("p")
    owner = OwnerReference(api_version="v1", kind=kind, name=owner_name, uid="o", controller=True)
    labels = (("pod-template-hash", template_hash),) if template_hash else ()
    return replace(pod, meta=replace(pod.meta, owners=(owner,), labels=labels))


@pytest.mark.parametrize(
    ("kind", "owner_name", "template_hash", "name"),
    [
        ("ReplicaSet", "web-7d9f", "7d9f", "Deployment shop/web"),
        ("ReplicaSet", "web-7d9f", "", "ReplicaSet shop/web-7d9f"),
        ("StatefulSet", "db", "", "StatefulSet shop/db"),
        ("Job", "report-29401230", "", "CronJob shop/report"),
        ("Job", "import", "", "Job shop/import"),
        ("DaemonSet", "agent", "", ""),
    ],
)
def test_workload_of_a_pod_is_named_by_its_family(kind: str, owner_name: str, template_hash: str, name: str) -> None:
    assert find_workload_name(make_owned_pod(kind, owner_name, template_hash)) == name


def test_observation_has_replicas_requests_and_node_pool() -> None:
    pods = [replace(make_owned_pod("StatefulSet", "db"), meta=make_owned_pod("StatefulSet", "db").meta)] * 2
    [workload] = observe_workloads(make_fleet(make_node_with_pods("a", *pods)))
    assert (workload.name, workload.pool, workload.replicas) == ("StatefulSet shop/db", "default", 2)
    assert workload.cpu_milli == 2 * pods[0].spec.requests["cpu"]


def test_forecast_has_the_replicas_of_the_same_hour_of_the_week() -> None:
    now = MONDAY + timedelta(weeks=3, hours=2, minutes=30)
    cpus = list_forecast_cpus(build_history(3 * HOURS_PER_WEEK + 2), now)
    assert cpus == [500 * get_service_replicas((now + (number + 1) * HOUR).hour) for number in range(24)]


def test_first_week_uses_the_same_hour_of_the_last_observed_day() -> None:
    cpus = list_forecast_cpus(build_history(26), MONDAY + timedelta(days=1, hours=2))
    assert (cpus[:5], cpus[5:17]) == ([1000] * 5, [5000] * 12)


def test_pool_of_unknown_workloads_has_no_forecast() -> None:
    workloads = [make_workload(2), make_workload(40, "Deployment shop/new")]
    assert estimate_demand(WorkloadHistory(), workloads, MONDAY) == ()
    assert estimate_demand(build_history(26), workloads, MONDAY + timedelta(days=1, hours=2)) == ()


def test_several_observations_of_one_hour_are_averaged() -> None:
    history = WorkloadHistory()
    for minute, replicas in ((0, 2), (10, 4), (20, 6)):
        history = update_history(history, [make_workload(replicas)], MONDAY + timedelta(minutes=minute))
    history = update_history(history, [make_workload(9)], MONDAY + HOUR)
    assert (history.workloads[0].means[0], history.workloads[0].weeks[0]) == (40, 1)


def test_workload_without_pods_has_no_replicas_and_is_forgotten_when_its_means_are_zero() -> None:
    history = update_history(WorkloadHistory(), [make_workload(5)], MONDAY)
    history = update_history(history, [], MONDAY + HOUR)
    history = update_history(history, [], MONDAY + 2 * HOUR)
    assert (history.workloads[0].means[:2], history.workloads[0].weeks[:2]) == ((50, 0), (1, 1))
    for week in range(1, 30):
        history = update_history(history, [], MONDAY + timedelta(weeks=week))
        history = update_history(history, [], MONDAY + timedelta(weeks=week, hours=1))
    assert history.workloads == ()


def test_error_is_the_mean_deviation_from_the_mean() -> None:
    steady, varying = build_history(6 * HOURS_PER_WEEK), build_history(6 * HOURS_PER_WEEK, noise=4)
    assert set(steady.workloads[0].errors) == {0}
    assert 10 <= min(varying.workloads[0].errors) <= max(varying.workloads[0].errors) <= 40


observed_lists = st.lists(
    st.builds(make_workload, st.integers(1, 50), st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "p", "q"])),
    unique_by=lambda workload: workload.name,
    max_size=3,
)


@given(st.lists(st.tuples(st.integers(1, 400), observed_lists), max_size=12), st.randoms())
def test_update_does_not_depend_on_the_order_of_workloads(
    updates: list[tuple[int, list[ObservedWorkload]]], random: object
) -> None:
    first = second = WorkloadHistory()
    now = MONDAY
    for minutes, workloads in updates:
        now += timedelta(minutes=minutes)
        shuffled = list(workloads)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        first, second = update_history(first, workloads, now), update_history(second, shuffled, now)
        assert update_history(first, shuffled, now) == first
    assert first == second
    assert all(0 <= mean <= 500 for record in first.workloads for mean in record.means)
    forecasts = estimate_demand(first, [], now)
    assert forecasts == estimate_demand(second, [], now)
    assert all(len(forecast.hours) == 24 for forecast in forecasts)


def make_forecast(first_hours: int, low: int, high: int, error: int = 0) -> DemandForecast:
    """Return a forecast of *low* millicores for *first_hours* hours, and then of *high*."""
    hours = tuple(
        HourlyDemand(
            cpu_milli=low if number < first_hours else high,
            memory_bytes=0,
            cpu_error_milli=error,
            memory_error_bytes=0,
        )
        for number in range(24)
    )
    return DemandForecast(pool="default", starts_at=NOW + HOUR, hours=hours, weeks=4)


def decide_with_forecast(forecast: DemandForecast, quiet: timedelta = timedelta(hours=20)) -> tuple[list[object], str]:
    """Return the commands and the message about a node of 4 vCPUs that one of 2 vCPUs can replace."""
    node, claim, pods = make_node_with_pods("a", make_web_pod("1", "1500m"))
    past = tuple(replace(condition, since=NOW - timedelta(days=2)) for condition in claim.conditions)
    machine = (node, replace(claim, conditions=past, last_pod_event_at=NOW - quiet), pods)
    decision = decide_disruption(make_fleet(machine), replace(SETTINGS, forecasts=(forecast,)))
    return list(summarize_commands(decision)), str(get_verdict(decision, "a")[-1])


def test_savings_last_until_the_forecast_needs_the_capacity_again() -> None:
    commands, message = decide_with_forecast(make_forecast(5, 1500, 3500))
    assert commands == [("SingleNode", ["a"], ["m.02"])]
    assert "over an expected 6h (±0s: NodePool default needs the capacity again Saturday 18:00 UTC" in message
    assert "replicas of 4 weeks" in message


def test_node_is_kept_if_the_forecast_needs_it_soon() -> None:
    forecast = replace(make_forecast(0, 1500, 3500), starts_at=NOW + timedelta(minutes=2))
    commands, message = decide_with_forecast(forecast, timedelta(hours=5))
    assert commands == []
    assert "for an expected 2m" in message


def test_error_of_the_forecast_delays_the_hour_at_which_capacity_is_needed() -> None:
    _, message = decide_with_forecast(make_forecast(5, 1500, 2100, error=400))
    assert "over an expected 20h, costs" in message
    assert "over an expected 6h (±0s" in decide_with_forecast(make_forecast(5, 1500, 2100))[1]


def test_forecast_never_makes_a_command_pay_sooner() -> None:
    """A pod has changed a minute ago: hourly means do not know whether it changes again in the next minute."""
    commands, message = decide_with_forecast(make_forecast(24, 1500, 1500), timedelta(minutes=1))
    assert commands == []
    assert "when nothing has changed for" in message


def test_pods_that_have_not_changed_for_a_day_outweigh_the_forecast() -> None:
    forecast = replace(make_forecast(0, 1500, 3500), starts_at=NOW + timedelta(minutes=2))
    commands, _ = decide_with_forecast(forecast, timedelta(days=1))
    assert commands == [("SingleNode", ["a"], ["m.02"])]


def test_hours_of_the_week_start_on_monday() -> None:
    assert (compute_hour_of_week(MONDAY), compute_hour_of_week(MONDAY - HOUR)) == (0, 167)
