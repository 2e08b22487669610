"""Pods stay until their replacement node is ready, unless their instance ends first."""

from datetime import timedelta

import pytest

from shared.decide.lifecycle.termination.replacement_wait import find_reclaim_time
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.taints import Toleration
from shared.model.core.units import format_instant
from shared.model.decisions.action import EvictPod, FollowUp, PublishEvent
from shared.model.kubernetes.pod import PodSpec
from tests.support.lifecycle_cases import (
    NOW,
    STAGES,
    Case,
    filter_actions,
    get_status_patch,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_pod,
    make_true_conditions,
    make_unknown_condition,
)
from tests.support.snapshot_decisions import decide_lifecycle

REPLACEMENT_CLAIM_BY_POD = {"shop/cart": "new"}


def build_draining_cluster(
    seconds: float, *pods: Case, end: float | None = None, grace: float | None = None, **fields: Case
) -> ClusterSnapshot:
    """Return a cluster whose drain was announced *seconds* ago and whose instance ends in *end* seconds."""
    annotations = {labels.ENDS_AT: format_instant(NOW + timedelta(seconds=end))} if end is not None else {}
    node_claim = make_claim(
        deleted=get_time_before(seconds=seconds),
        conditions=(
            *make_true_conditions(*STAGES),
            make_unknown_condition("Drained", "Draining", get_time_before(seconds=seconds)),
        ),
        termination_grace_period=timedelta(seconds=grace) if grace is not None else None,
    )
    draining_node = make_node(going=True, deleted=get_time_before(seconds=seconds), annotations=annotations, **fields)
    return make_cluster(
        node_claims=(node_claim,), nodes=(draining_node,), pods=pods or (make_pod(),), instances=(make_instance(),)
    )


def list_evicted_pods(cluster: ClusterSnapshot, replacement_claim_by_pod: Case = REPLACEMENT_CLAIM_BY_POD) -> list[str]:
    return [
        eviction.name
        for eviction in filter_actions(
            EvictPod, decide_lifecycle(cluster, replacement_claim_by_pod=replacement_claim_by_pod)
        )
    ]


def test_pod_is_evicted_only_after_its_replacement_node_is_ready() -> None:
    world = build_draining_cluster(30, make_pod("cart"), make_pod("other"))
    assert list_evicted_pods(world) == ["other"]
    assert list_evicted_pods(world, {}) == ["cart", "other"]


@pytest.mark.parametrize(("seconds", "leaves"), [(119, False), (120, True)])
@pytest.mark.parametrize("end", [None, 3600])
def test_eviction_waits_at_most_two_minutes_for_the_replacement_node(
    seconds: float,
    leaves: bool,  # noqa: FBT001
    end: float | None,
) -> None:
    assert bool(list_evicted_pods(build_draining_cluster(seconds, end=end))) is leaves


@pytest.mark.parametrize(
    ("pods", "needs"),
    [
        ([make_pod()], 45),
        ([make_pod(grace_period=timedelta(seconds=60)), make_pod("other")], 75),
        (
            [make_pod(), make_pod("top", priority_class="system-cluster-critical", grace_period=timedelta(seconds=10))],
            55,
        ),
        ([make_pod(), make_pod("agent", daemon=True, grace_period=timedelta(seconds=300))], 45),
        ([make_pod(), make_pod("done", phase="Succeeded", grace_period=timedelta(seconds=300))], 45),
        (
            [
                make_pod(),
                make_pod(
                    "tough", spec=PodSpec(tolerations=(Toleration(operator="Exists"),)), grace_period=timedelta(300)
                ),
            ],
            45,
        ),
    ],
)
@pytest.mark.parametrize("deadline_kind", ["end", "grace"])
def test_pods_are_evicted_early_enough_for_the_grace_periods_of_all_priority_tiers(
    pods: Case, needs: float, deadline_kind: str
) -> None:
    late = {"end": needs} if deadline_kind == "end" else {"grace": needs + 20}
    early = {key: value + 1 for key, value in late.items()}
    assert "cart" in list_evicted_pods(build_draining_cluster(20, *pods, **late))
    assert "cart" not in list_evicted_pods(build_draining_cluster(20, *pods, **early))


@pytest.mark.parametrize(("seconds", "leaves"), [(14, False), (15, True)])
def test_eviction_on_an_interrupted_node_waits_15_seconds_for_replacement_planning(
    seconds: float,
    leaves: bool,  # noqa: FBT001
) -> None:
    assert bool(list_evicted_pods(build_draining_cluster(seconds, end=100), {})) is leaves
    assert list_evicted_pods(build_draining_cluster(seconds), {}) == ["cart"]
    assert list_evicted_pods(build_draining_cluster(seconds, make_pod("agent", daemon=True), end=100), {}) == ["agent"]


def test_pods_on_a_node_that_is_not_ready_do_not_wait_for_a_replacement() -> None:
    assert list_evicted_pods(build_draining_cluster(30, ready=False)) == ["cart"]


def test_unreadable_reclaim_time_annotation_is_ignored() -> None:
    assert find_reclaim_time((make_node(annotations={labels.ENDS_AT: "soon"}), make_node("b"))) is None


def test_drain_waiting_for_a_replacement_node_publishes_events_and_requeues_after_5_seconds() -> None:
    actions = decide_lifecycle(build_draining_cluster(90), replacement_claim_by_pod=REPLACEMENT_CLAIM_BY_POD)
    words = "pod shop/cart waits for replacement node new to be ready"
    assert words in get_status_patch(actions)["conditions"]["Drained"]["message"]
    events = [
        (event.kind, event.message)
        for event in filter_actions(PublishEvent, actions)
        if event.reason == "DisruptionWaitingReadiness"
    ]
    assert events == [
        ("NodeClaim", f"1 pod waiting for replacement nodes: {words}"),
        ("Node", f"1 pod waiting for replacement nodes: {words}"),
    ]
    assert [follow_up.after.total_seconds() for follow_up in filter_actions(FollowUp, actions)] == [5]
