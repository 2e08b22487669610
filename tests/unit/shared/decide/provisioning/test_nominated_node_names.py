"""Nominated node names: which pods get one, when, and which nodes stay closed in the meantime."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.provisioning.nominated_node_names import plan_nominations
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NOMINATED_PODS, NOMINATED_UNTIL, REGISTERED
from shared.model.core.metadata import Condition, build_pairs
from shared.model.core.taints import UNREGISTERED, Taint
from shared.model.decisions.action import CreateNodeClaim, FollowUp, PatchMetadata
from shared.model.decisions.placement import ExistingNodePlacement, Placement
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, SpreadConstraint
from shared.state.cluster_state import ClusterState
from shared.state.nominations import (
    build_nominations,
    compute_pod_digest,
    find_nominated_node_names,
    parse_nominated_pods,
)
from tests.support.catalogues import NOW, attach_claim, make_cluster_snapshot, make_node, make_pod
from tests.support.snapshot_decisions import build_placement_actions, solve

READY = Condition(type="Ready", status="True")
SPREAD = SpreadConstraint(topology_key="topology.kubernetes.io/zone", max_skew=1)
LARGE, LARGER, SMALL = make_pod("large", "3"), make_pod("larger", "3500m"), make_pod("small", "500m")


def make_joined_node(
    name: str, *pods: str, age: int = 5, ready: bool = True, registered: bool = False
) -> tuple[Node, NodeClaim]:
    """A node of 4 cpu that joined *age* seconds ago, made for *pods*."""
    joined_node, claim = attach_claim(make_node(name), initialized=False)
    labels = build_pairs(dict(joined_node.meta.labels) | {REGISTERED: "true" if registered else "false"})
    created = NOW - timedelta(seconds=age)
    marks = ",".join(sorted(compute_pod_digest(f"shop/{pod}") for pod in pods))
    conditions = (READY,) if ready else ()
    joined_node = replace(
        joined_node, meta=replace(joined_node.meta, labels=labels, created_at=created), conditions=conditions
    )
    return joined_node, replace(
        claim, meta=replace(claim.meta, annotations=((NOMINATED_PODS, marks),), created_at=created)
    )


def build_cluster(*pods: Pod, machines: tuple[tuple[Node, NodeClaim], ...]) -> ClusterSnapshot:
    return make_cluster_snapshot(
        *pods, nodes=tuple(node for node, _ in machines), node_claims=tuple(claim for _, claim in machines)
    )


def with_nominated_node(pod: Pod, name: str) -> Pod:
    return replace(pod, nominated_node_name=name)


def list_nominations(cluster: ClusterSnapshot, max_pods: int = 600) -> list[tuple[str, str]]:
    """Return pairs of pod and nominated node; those of open nodes first, then by node."""
    plan = plan_nominations(ClusterState(cluster), max_pods)
    places = [hint for _, hints in sorted(plan.nominations_by_node.items()) for hint in hints]
    return [(hint.name, hint.node) for hint in (*plan.nominations, *places)]


TWO = (make_joined_node("n1", "large"), make_joined_node("n2", "small"))


def test_different_pods_are_nominated_smallest_first() -> None:
    cluster = build_cluster(LARGE, SMALL, machines=TWO)
    assert list_nominations(cluster) == [("large", "n1"), ("small", "n2")]
    plan = plan_nominations(ClusterState(cluster))
    assert [(hint.namespace, hint.uid) for hint in plan.nominations_by_node["n1"]] == [("shop", "uid-shop-large")]
    assert not plan.closed_nodes
    assert not plan.nominations
    larger_cluster = build_cluster(
        SMALL, LARGE, make_pod("other"), machines=(make_joined_node("n1", "large", "small"),)
    )
    assert list_nominations(larger_cluster) == [("small", "n1"), ("large", "n1")]


@pytest.mark.parametrize(
    ("case", "cluster"),
    [
        (
            "one planned node for both pods",
            build_cluster(LARGE, SMALL, machines=(make_joined_node("n1", "large", "small"),)),
        ),
        (
            "equal pods",
            build_cluster(
                LARGE, make_pod("twin", "3"), machines=(make_joined_node("n1", "large"), make_joined_node("n2", "twin"))
            ),
        ),
        ("pod is bound", build_cluster(make_pod("large", "3", on="n1"), SMALL, machines=TWO)),
        ("pod not yet marked unschedulable", build_cluster(LARGE, replace(SMALL, conditions=()), machines=TWO)),
        ("no pending pods", build_cluster(machines=TWO)),
    ],
)
def test_pods_get_no_nomination_when_it_makes_no_difference(case: str, cluster: ClusterSnapshot) -> None:
    assert case
    assert list_nominations(cluster) == []


def test_equal_pods_with_topology_spread_are_nominated() -> None:
    apart = [make_pod(name, spread=(SPREAD,)) for name in ("a", "b")]
    assert list_nominations(
        build_cluster(*apart, machines=(make_joined_node("n1", "a"), make_joined_node("n2", "b")))
    ) == [("a", "n1"), ("b", "n2")]


def test_pods_without_a_planned_node_make_nominations_of_other_pods_necessary() -> None:
    assert list_nominations(build_cluster(LARGE, SMALL, machines=(make_joined_node("n1", "large"),))) == [
        ("large", "n1")
    ]


@pytest.mark.parametrize(
    ("node_name", "is_nominated"),
    [("n1", True), ("gone", True), ("n2", False)],
    ids=["nominated for its planned node", "nominated for a deleted node", "preempting on another node"],
)
def test_nomination_does_not_override_preemption(node_name: str, *, is_nominated: bool) -> None:
    cluster = build_cluster(with_nominated_node(LARGE, node_name), SMALL, make_pod("other", "2"), machines=TWO)
    assert (("large", "n1") in list_nominations(cluster)) is is_nominated


def test_nomination_is_renewed_when_the_planned_node_changes() -> None:
    machines = (
        make_joined_node("n1", "large", age=40),
        make_joined_node("n3", "large", age=3),
        make_joined_node("n2", "small"),
    )
    assert list_nominations(
        build_cluster(with_nominated_node(LARGE, "n1"), with_nominated_node(SMALL, "n2"), machines=machines)
    ) == [
        ("small", "n2"),
        ("large", "n3"),
    ]


def test_node_that_is_not_ready_stays_closed_and_its_pods_are_nominated_later() -> None:
    cluster = build_cluster(LARGE, SMALL, machines=(make_joined_node("n1", "large", ready=False), TWO[1]))
    assert plan_nominations(ClusterState(cluster)).closed_nodes == {"n1"}
    assert list_nominations(cluster) == [("small", "n2")]


UNINITIALIZED = Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule", value="true")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
TEAM = Taint(key="team", effect="NoSchedule")


@pytest.mark.parametrize(("taint", "is_closed"), [(UNINITIALIZED, True), (NOT_READY, True), (TEAM, False)])
def test_unregistered_taint_is_kept_while_ephemeral_taints_remain(taint: Taint, *, is_closed: bool) -> None:
    joined_node, claim = make_joined_node("n1", "large")
    machine = (replace(joined_node, taints=(UNREGISTERED, taint)), claim)
    assert (
        "n1" in plan_nominations(ClusterState(build_cluster(LARGE, SMALL, machines=(machine, TWO[1])))).closed_nodes
    ) is is_closed


def test_node_with_startup_taints_is_opened_and_its_pods_are_nominated_after_their_removal() -> None:
    for registered in (False, True):
        joined_node, claim = make_joined_node("n1", "large", ready=False, registered=registered)
        claim = replace(claim, startup_taints=(TEAM,))
        waiting = build_cluster(LARGE, SMALL, machines=((replace(joined_node, taints=(TEAM,)), claim), TWO[1]))
        assert not plan_nominations(ClusterState(waiting)).closed_nodes
        assert list_nominations(waiting) == [("small", "n2")]
    joined_node, claim = make_joined_node("n1", "large", registered=True)
    usable = build_cluster(LARGE, SMALL, machines=((joined_node, replace(claim, startup_taints=(TEAM,))), TWO[1]))
    assert list_nominations(usable) == [("large", "n1"), ("small", "n2")]


def test_closed_nodes_are_opened_after_a_timeout() -> None:
    assert not plan_nominations(
        ClusterState(
            build_cluster(LARGE, SMALL, machines=(make_joined_node("n1", "large", ready=False, age=45), TWO[1]))
        )
    ).closed_nodes
    machines = (make_joined_node("n1", "large", "larger", age=120), make_joined_node("n2", "small", age=120))
    assert not plan_nominations(ClusterState(build_cluster(LARGE, LARGER, SMALL, machines=machines)), 1).closed_nodes


def test_nodes_are_opened_within_the_nomination_limit_and_at_least_one_per_run() -> None:
    machines = (make_joined_node("n1", "large", "larger"), TWO[1])
    cluster = build_cluster(LARGE, LARGER, SMALL, machines=machines)
    assert (list_nominations(cluster, 2), plan_nominations(ClusterState(cluster), 2).closed_nodes) == (
        [("large", "n1"), ("larger", "n1")],
        frozenset({"n2"}),
    )
    assert (list_nominations(cluster, 1), plan_nominations(ClusterState(cluster), 1).closed_nodes) == (
        [("large", "n1"), ("larger", "n1")],
        frozenset({"n2"}),
    )
    assert plan_nominations(ClusterState(cluster), 3).closed_nodes == frozenset()


def test_nominations_do_not_exceed_the_free_resources_of_an_open_node() -> None:
    machines = (make_joined_node("n1", "large", "larger", "tiny", registered=True), TWO[1])
    cluster = build_cluster(LARGE, LARGER, make_pod("tiny", "100m"), SMALL, machines=machines)
    assert list_nominations(cluster) == [("tiny", "n1"), ("larger", "n1"), ("small", "n2")]
    cluster = build_cluster(
        with_nominated_node(LARGE, "n1"), LARGER, make_pod("tiny", "100m"), SMALL, machines=machines
    )
    assert list_nominations(cluster) == [("tiny", "n1"), ("small", "n2")]


def test_deleting_node_gets_no_nominations() -> None:
    joined_node, claim = make_joined_node("n1", "large")
    joined_node = replace(joined_node, meta=replace(joined_node.meta, deleted_at=NOW))
    assert list_nominations(build_cluster(LARGE, SMALL, machines=((joined_node, claim), TWO[1]))) == [("small", "n2")]


# What hints mean to planning


def test_pod_nominated_by_joiner_is_scheduled_on_its_planned_node() -> None:
    cluster = build_cluster(with_nominated_node(LARGE, "n1"), SMALL, machines=TWO)
    assert solve(cluster).existing == (
        ExistingNodePlacement(node="claim-n1", pods=("shop/large",)),
        ExistingNodePlacement(node="claim-n2", pods=("shop/small",)),
    )


def test_pod_nominated_for_a_missing_or_deleting_node_is_scheduled_again() -> None:
    assert solve(build_cluster(with_nominated_node(LARGE, "gone"), machines=())).new_nodes[0].pods == ("shop/large",)
    joined_node, claim = make_joined_node("n1", "large", registered=True)
    going = replace(claim, meta=replace(claim.meta, deleted_at=NOW))
    assert solve(build_cluster(with_nominated_node(LARGE, "n1"), machines=((joined_node, going),))).new_nodes[
        0
    ].pods == ("shop/large",)


def test_preempting_pod_is_not_scheduled() -> None:
    assert solve(build_cluster(with_nominated_node(make_pod("other", "2"), "n1"), machines=TWO)) == Placement()
    hints = find_nominated_node_names(
        ClusterState(
            build_cluster(
                with_nominated_node(make_pod("other"), "n1"),
                with_nominated_node(LARGE, "n1"),
                with_nominated_node(SMALL, "x"),
                machines=TWO,
            )
        )
    )
    assert hints.node_by_pod == {"shop/large": "n1"}
    assert hints.stale_pods == {"shop/small"}


def test_newest_node_claim_is_the_planned_node_of_a_pod() -> None:
    machines = (make_joined_node("n1", "large", age=3), make_joined_node("n2", "large", age=9))
    cluster = build_cluster(LARGE, machines=machines)
    [home] = build_nominations(ClusterState(cluster).nodes, NOW).values()
    assert home.name == "claim-n1"


# What is decided about a plan


def make_registered_node(seconds: int, *pods: str) -> tuple[Node, NodeClaim]:
    joined_node, claim = make_joined_node("n1", *pods, registered=True)
    since = Condition(type="Registered", status="True", since=NOW - timedelta(seconds=seconds))
    return joined_node, replace(claim, conditions=(since,))


def list_annotations(cluster: ClusterSnapshot, name: str) -> dict[str, str]:
    """Return the annotations that are written to the object *name*."""
    annotations: dict[str, str] = {}
    for action in build_placement_actions(cluster, solve(cluster)):
        if isinstance(action, PatchMetadata) and action.name == name:
            annotations |= dict(action.annotations)
    return annotations


@pytest.mark.parametrize(
    ("seconds", "other_nodes", "count"),
    [
        (0, (), 0),
        (19, (), 0),
        (20, (), 1),
        (20, (make_joined_node("n2", "larger"),), 0),
        (60, (make_joined_node("n2", "larger"),), 1),
    ],
)
def test_pods_of_a_recently_registered_node_are_not_scheduled_again(
    seconds: int, other_nodes: tuple[tuple[Node, NodeClaim], ...], count: int
) -> None:
    machines = (make_registered_node(seconds, "large"), *other_nodes)
    cluster = build_cluster(LARGE, LARGER, make_pod("foreign", "2", on="n1"), machines=machines)
    cluster = cluster if other_nodes else replace(cluster, pods=cluster.pods[::2])
    actions = build_placement_actions(cluster, solve(cluster))
    assert sum(isinstance(action, CreateNodeClaim) for action in actions) == count
    assert any(isinstance(action, FollowUp) and action.function == "provision" for action in actions)


def test_settling_pods_are_planned_together_with_pods_of_a_new_node() -> None:
    cluster = build_cluster(
        LARGE, SMALL, make_pod("foreign", "3800m", on="n1"), machines=(make_registered_node(1, "large"),)
    )
    [creation] = [
        action for action in build_placement_actions(cluster, solve(cluster)) if isinstance(action, CreateNodeClaim)
    ]
    assert creation.pods == ("shop/large", "shop/small")


def test_node_claim_annotation_is_updated_with_pods_planned_later() -> None:
    cluster = build_cluster(LARGE, SMALL, machines=(make_joined_node("n1", "large"),))
    annotations = list_annotations(cluster, "claim-n1")
    assert set(annotations[NOMINATED_PODS].split(",")) == {
        compute_pod_digest("shop/large"),
        compute_pod_digest("shop/small"),
    }
    assert NOMINATED_UNTIL in annotations
    assert NOMINATED_PODS not in list_annotations(
        build_cluster(LARGE, machines=(make_joined_node("n1", "large"),)), "claim-n1"
    )


def test_registered_node_is_nominated_and_its_node_claim_lists_the_pods() -> None:
    cluster = build_cluster(LARGE, SMALL, machines=(make_registered_node(1, "large"),))
    assert set(list_annotations(cluster, "n1")) == {NOMINATED_UNTIL}
    assert set(list_annotations(cluster, "claim-n1")) == {NOMINATED_PODS}


def test_pod_is_listed_on_only_one_node_claim() -> None:
    machines = (make_registered_node(1, "large", "other"), make_joined_node("n2", "small"))
    cluster = build_cluster(LARGE, SMALL, make_pod("foreign", "2", on="n1"), machines=machines)
    assert list_annotations(cluster, "claim-n1")[NOMINATED_PODS] == compute_pod_digest("shop/other")
    assert compute_pod_digest("shop/large") in list_annotations(cluster, "claim-n2")[NOMINATED_PODS]


def test_initialized_node_gets_no_new_nominated_pods() -> None:
    node_in_use, claim = attach_claim(make_node("n1"))
    assert set(list_annotations(build_cluster(LARGE, machines=((node_in_use, claim),)), "n1")) == {NOMINATED_UNTIL}
    assert not list_annotations(build_cluster(LARGE, machines=((node_in_use, claim),)), "claim-n1")
    assert parse_nominated_pods(claim) == frozenset()
