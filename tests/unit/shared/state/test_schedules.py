"""Schedules in a snapshot: every decision sees the NodePools and CapacityBuffers as they are at its time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.budgets.budget import compute_allowed_disruptions
from shared.decide.disruption.pauses import PauseSettings, find_pauses, is_intentional_pause
from shared.decide.provisioning.capacity_buffers import resolve_buffers
from shared.decide.provisioning.static_capacity import decide_static_capacity, explain_static_change
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import format_pause
from shared.model.karpenter.money_limit import list_limits
from shared.state.cluster_state import ClusterState
from shared.state.pauses import find_launch_pause_message, list_active_pauses
from shared.state.schedules import apply_schedules, get_usual
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

EVENING = datetime(2026, 11, 23, 21, tzinfo=UTC)
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
NIGHT = "night: 0 20 * * * 11h"


def make_pool_document(schedule: str, **spec: Any) -> dict[str, Any]:
    template = {
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        }
    }
    annotations = {"joiner.dev/schedule": schedule} if schedule else {}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "uid": "1", "annotations": annotations},
        "spec": {"template": template} | spec,
    }


def make_buffer_documents(schedule: str, **spec: Any) -> list[dict[str, Any]]:
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 20, "template": {"spec": {"containers": [container]}}},
    }
    buffer = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "room", "namespace": "shop", "annotations": {"joiner.dev/schedule": schedule}},
        "spec": {"scalableRef": {"kind": "Deployment", "name": "web", "apiGroup": "apps"}} | spec,
    }
    return [deployment, buffer]


def build_cluster(schedule: str, at: datetime, **spec: Any) -> ClusterSnapshot:
    return build_snapshot_from_documents([make_pool_document(schedule, **spec)], at)


def read_problem(documents: list[dict[str, Any]]) -> Problem:
    (problem,) = build_snapshot_from_documents(documents, NOON).problems
    return problem


def test_window_replaces_values_of_the_spec_while_it_is_open() -> None:
    consolidation = "consolidation-policy=WhenEmpty consolidate-after=Never budget=0:Empty"
    schedule = f"{NIGHT} limits.cpu=0 limits.usd-per-hour=2 {consolidation}"
    spec = {"limits": {"cpu": "100", "memory": "1Gi"}, "disruption": {"consolidateAfter": "30s"}}
    (asleep,), (awake,) = (build_cluster(schedule, at, **spec).node_pools for at in (EVENING, NOON))
    assert list_limits(asleep) == {"cpu": 0, "memory": 1 << 30, "usd-per-hour": 2_000_000}
    assert (asleep.consolidation_policy, asleep.consolidate_after) == ("WhenEmpty", None)
    assert compute_allowed_disruptions(asleep, "Empty", 10, EVENING).count == 0
    assert compute_allowed_disruptions(asleep, "Drifted", 10, EVENING).count > 10
    assert get_usual(asleep) == awake
    assert awake.limits is not None
    assert (awake.limits["cpu"], awake.consolidate_after, awake.usual) == (100_000, timedelta(seconds=30), None)


def test_static_nodepool_has_the_replicas_of_its_schedule() -> None:
    schedule = "day: 0 7 * * mon-fri 13h replicas=3"
    day, night = (ClusterState(build_cluster(schedule, at, replicas=0)) for at in (NOON, EVENING))
    assert explain_static_change(day) == "NodePool default has spec.replicas 3"
    assert explain_static_change(night) == ""
    assert not any(isinstance(action, CreateNodeClaim) for action in decide_static_capacity(night))


def test_size_of_a_window_replaces_both_sizes_of_a_capacity_buffer() -> None:
    documents = make_buffer_documents(f"{NIGHT} replicas=1", percentage=50, replicas=2)
    sizes = [len(resolve_buffers(build_snapshot_from_documents(documents, at))[0].pods) for at in (NOON, EVENING)]
    assert sizes == [10, 1]


def test_limit_of_a_window_limits_a_capacity_buffer() -> None:
    documents = make_buffer_documents(f"{NIGHT} limits.cpu=0", replicas=2)
    sizes = [len(resolve_buffers(build_snapshot_from_documents(documents, at))[0].pods) for at in (NOON, EVENING)]
    assert sizes == [2, 0]


def test_schedule_can_pause_launches_and_disruption_reasons_of_its_nodepool() -> None:
    cluster = build_cluster(f"{NIGHT} paused=Launches,Drifted", EVENING)
    (pool,) = cluster.node_pools
    message = find_launch_pause_message(pool, cluster)
    assert message.startswith(
        "launches are paused: until 2026-11-24T07:00:00Z: schedule window night; joiner.dev/sched"
    )
    assert "to resume now, remove paused= from window night" in message
    pauses, problems = find_pauses(cluster, (), (), PauseSettings())
    assert [(pause.pool, pause.reason, pause.is_intentional) for pause in pauses.items] == [
        ("default", "Drifted", True)
    ]
    assert is_intentional_pause(format_pause(pauses.items[0]))
    assert problems == ()
    assert list_active_pauses(build_cluster(f"{NIGHT} paused=Launches,Drifted", NOON)) == ((), ())


@pytest.mark.parametrize(
    ("schedule", "spec", "words"),
    [
        (f"{NIGHT} replicas=0", {}, "replicas needs a NodePool with spec.replicas: write limits.nodes=0"),
        (f"{NIGHT} limits.cpu=1", {"replicas": 1}, "with spec.replicas, only nodes can be limited"),
        (f"{NIGHT} limits.usd-per-hour=1", {"replicas": 1}, "with spec.replicas, only nodes can be limited"),
        (f"{NIGHT} consolidate-after=1m", {"replicas": 1}, "nodes of a NodePool with spec.replicas are not consolidat"),
        ("0 20 * * * 11 paused=true", {}, "not a duration: '11'"),
    ],
)
def test_nodepool_with_an_invalid_schedule_is_left_out_with_its_error(
    schedule: str, spec: dict[str, Any], words: str
) -> None:
    problem = read_problem([make_pool_document(schedule, **spec)])
    assert (problem.kind, problem.name) == ("NodePool", "default")
    assert problem.message.startswith("metadata.annotations[joiner.dev/schedule]: ")
    assert words in problem.message


def test_capacity_buffer_with_an_invalid_schedule_is_left_out_with_its_error() -> None:
    problem = read_problem(make_buffer_documents(f"{NIGHT} paused=true", replicas=1))
    assert (problem.kind, problem.name) == ("CapacityBuffer", "shop/room")
    assert "'paused' is not a value of this kind" in problem.message
    _, document = make_buffer_documents(f"{NIGHT} percentage=10")
    document["spec"] = {"podTemplateRef": {"name": "web"}, "replicas": 1}
    assert "percentage needs spec.scalableRef" in read_problem([document]).message


def test_snapshot_without_schedules_is_not_copied() -> None:
    cluster = build_cluster("", NOON)
    assert apply_schedules(cluster) is cluster


@given(st.integers(0, 20_000), st.integers(0, 20_000))
@settings(max_examples=30, deadline=None)
def test_schedules_applied_again_depend_only_on_the_last_time(first: int, second: int) -> None:
    schedule = f"{NIGHT} limits.cpu=0 paused=true\nweekend: 0 7 * * sat 48h limits.cpu=1 budget=0"
    instants = [NOON + timedelta(minutes=minutes) for minutes in (first, second)]
    cluster = build_cluster(schedule, instants[0], limits={"cpu": "10"})
    assert apply_schedules(cluster) == cluster
    moved = apply_schedules(replace(cluster, taken_at=instants[1]))
    assert moved == build_cluster(schedule, instants[1], limits={"cpu": "10"})
