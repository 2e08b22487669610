"""Hours of a simulated week: no forbidden event happens, and consolidation saves money."""

from datetime import UTC, datetime, timedelta
from functools import cache

import msgspec
import pytest

from sim.soak.ideal_costs import compute_ideal_costs
from sim.soak.monitor import SoakMonitor
from sim.soak.policies import POLICIES
from sim.soak.report.summary import SoakSummary, build_summary
from sim.soak.soak_run import SoakResult, run_week
from sim.soak.soak_world import SoakWorld
from sim.soak.worlds.churn import ChurnEvent
from sim.soak.worlds.mixed import MIXED_WORLD, NODE_POOLS
from sim.soak.worlds.soak_workloads import SERVICES_POOL, SPOT_POOL, PoolBudget, build_job
from sim.soak.worlds.world_catalog import WORLDS
from sim.soak.worlds.world_definition import with_policy
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
def run_soak(policy: str) -> SoakResult:
    return run_week(SOAK_HOURS / 24, 1, size=WORKLOAD_SCALE, churn=CHURN, policy=POLICIES[policy])


def summarize_soak(policy: str) -> SoakSummary:
    return build_summary(run_soak(policy))


@pytest.mark.parametrize("policy", ["default", pytest.param("never", marks=pytest.mark.no_cover)])
def test_simulated_week_violates_no_budget_and_has_no_failed_invocation(policy: str) -> None:
    week = run_soak(policy)
    assert week.violations == ()
    assert week.failed_invocations == ()
    assert week.interruptions == 1
    assert week.samples[-1].waiting == 0


def test_consolidation_lowers_the_mean_hourly_cost() -> None:
    assert summarize_soak("default").usd_per_hour < summarize_soak("never").usd_per_hour
    assert summarize_soak("default").consolidation_count > 0
    assert summarize_soak("never").consolidation_count == 0


def test_no_node_is_consolidated_shortly_after_its_launch_without_changes() -> None:
    assert run_soak("default").short_lived_without_changes == ()


def test_evictions_have_a_disruption_reason() -> None:
    reasons = {eviction.reason for eviction in run_soak("default").evictions}
    assert {"Underutilized", "Drifted"} <= reasons <= {"Underutilized", "Drifted", "Empty", ""}


def test_every_eviction_by_consolidation_belongs_to_a_consolidation_that_was_carried_out() -> None:
    week = run_soak("default")
    evictions = sum(eviction.reason == "Underutilized" for eviction in week.evictions)
    assert sum(outcome.evictions for outcome in week.consolidations) == evictions > 0
    assert all(outcome.hours <= SOAK_HOURS for outcome in week.consolidations)
    assert all((outcome.overlap_usd > 0) == (outcome.created > 0) for outcome in week.consolidations)


def test_karpenters_rule_has_no_payback_period_in_the_run_and_only_there() -> None:
    definition = WORLDS["steady"]
    results = [
        run_week(1 / 24, 1, size=0.1, definition=definition, policy=POLICIES[name])
        for name in ("default", "karpenter", "default")
    ]
    assert results[0].samples == results[2].samples
    assert [result.policy for result in results] == ["default", "karpenter", "default"]


@pytest.mark.parametrize("world", ["steady", "batch", "development"])
def test_every_other_world_runs_without_violation(world: str) -> None:
    week = run_week(0.75 / 24, 2, size=0.15, definition=WORLDS[world])
    assert week.violations == ()
    assert week.failed_invocations == ()
    assert week.samples[-1].running > week.samples[-1].waiting


# Ideal costs


def test_ideal_costs_are_at_least_the_lower_bound_and_below_the_actual_costs() -> None:
    costs = compute_ideal_costs(MIXED_WORLD, 2 / 24, 1, WORKLOAD_SCALE, has_bounds=True)
    assert len(costs) == 2
    assert costs[0].bound is not None
    assert 0 < costs[0].bound <= costs[0].repacked
    assert costs[1].bound is None
    week = run_week(1 / 24, 1, size=WORKLOAD_SCALE)
    assert costs[0].repacked < build_summary(week).usd_per_hour


def test_ideal_cost_falls_when_a_job_completes() -> None:
    batch = WORLDS["batch"]
    job = ChurnEvent(
        after=timedelta(minutes=30),
        kind="apply",
        name="batch-job",
        manifest=build_job("batch-job", 12, timedelta(minutes=50), is_guarded=True),
    )
    definition = msgspec.structs.replace(batch, build_churn=lambda *_: (job,))
    before, during, after = compute_ideal_costs(definition, 3 / 24, 1, WORKLOAD_SCALE)
    assert before.repacked == after.repacked < during.repacked
    assert during.disruptable == before.disruptable, "the pods of the Job must not be disrupted"


# Who watches


def test_spot_interruption_event_is_skipped_without_spot_instances() -> None:
    assert not SoakWorld(1).apply_event(make_event(0, "interrupt"))


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
    world.apply(MIXED_WORLD.build_manifests(0.7))
    witness = SoakMonitor(world, NODE_POOLS)
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
    world.request_checks.log.check_request("catalog", "ec2", "DescribeSpotPriceHistory", {"MaxResults": 1001})
    text = "\n".join(witness.violations)
    assert "AWS rejects ec2:DescribeSpotPriceHistory of catalog" in text
    assert "was evicted: web has" in text
    assert "nodes of services go (Drifted), allowed are" in text
    assert "was evicted (Drifted) past do-not-disrupt" in text
    assert "ended under" in text


def test_annotation_of_the_command_line_is_on_the_nodepool_that_it_names() -> None:
    definition = with_policy(MIXED_WORLD, "Balanced", [("spot", "joiner.dev/minimum-savings-percent", "10")])
    manifests = {manifest["metadata"]["name"]: manifest for manifest in definition.build_manifests(0.1)}
    assert manifests[SPOT_POOL]["metadata"]["annotations"] == {"joiner.dev/minimum-savings-percent": "10"}
    assert "annotations" not in manifests[SERVICES_POOL]["metadata"]
    assert manifests[SERVICES_POOL]["spec"]["disruption"]["consolidationPolicy"] == "Balanced"


def _list_pod_names(world: SoakWorld, app: str) -> list[str]:
    pods = world.cluster.list_pods("default")
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"].get("app") == app]
