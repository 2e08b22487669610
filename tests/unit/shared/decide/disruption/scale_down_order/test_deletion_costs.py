"""Which pods get a deletion cost, and that no value of a user is ever changed."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.scale_down_order.deletion_costs import MAX_CHANGES_PER_RUN, plan_deletion_costs
from shared.decide.disruption.scale_down_order.emptiable_nodes import compute_deletion_cost
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT, OWN_DELETION_COST, POD_DELETION_COST, SCALE_DOWN_DISABLED
from shared.model.core.metadata import ObjectMeta, OwnerReference, build_pairs
from shared.model.decisions.action import SetDeletionCost
from shared.model.kubernetes.deletion_cost import get_user_deletion_cost
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode
from tests.support.catalogues import NOW, make_node, make_node_pool, make_pod
from tests.support.disruption_fleet import FREE, Machine, make_fleet, make_node_with_pods

STATIC = replace(FREE, replicas=2)
NEVER = replace(FREE, consolidate_after=None)


def make_replica(name: str, replica_set: str = "web", kind: str = "ReplicaSet", **annotations: str) -> Pod:
    keys = {"user": POD_DELETION_COST, "mark": OWN_DELETION_COST, "protected": DO_NOT_DISRUPT}
    pod = make_pod(name)
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=replica_set, uid=replica_set, controller=True)
    pairs = build_pairs({keys[key]: value for key, value in annotations.items()})
    return replace(pod, meta=replace(pod.meta, owners=(owner,), annotations=pairs, uid=f"uid-{name}"))


def make_marked(name: str, age: int, replica_set: str = "web") -> Pod:
    """Return a pod that Joiner has marked; its node has this age, and the first letter of the pod as its name."""
    cost = str(compute_cost(name[0], age))
    return make_replica(name, replica_set, user=cost, mark=cost)


def make_aged_node(name: str, age: int, *pods: Pod, **fields: object) -> Machine:
    """Return a node that was created *age* times ten minutes ago."""
    node, claim, node_pods = make_node_with_pods(name, *pods, **fields)  # type: ignore[arg-type]
    created_at = NOW - age * timedelta(minutes=10)
    return (
        replace(node, meta=replace(node.meta, created_at=created_at)),
        replace(claim, meta=replace(claim.meta, created_at=created_at)),
        node_pods,
    )


def compute_cost(name: str, age: int) -> int:
    return compute_deletion_cost(ClusterState(make_fleet(make_aged_node(name, age))).node_by_name[name])


def compute_age(cost: int) -> int:
    """Return the age that *cost* stands for."""
    return (-compute_cost("a", 0) - 1) // 64 - (-cost - 1) // 64


def plan_changes(cluster: ClusterSnapshot, **options: object) -> tuple[SetDeletionCost, ...]:
    return plan_deletion_costs(ClusterState(cluster), **options)  # type: ignore[arg-type]


def list_changes(cluster: ClusterSnapshot, **options: object) -> dict[str, int | None]:
    """Return by pod the age of the node that its new deletion cost stands for; None if it is removed."""
    return {
        change.name: compute_age(change.cost) if change.cost is not None else None
        for change in plan_changes(cluster, **options)
    }


def apply_changes(cluster: ClusterSnapshot, changes: tuple[SetDeletionCost, ...]) -> ClusterSnapshot:
    """Return *cluster* after the executor has performed *changes*."""
    change_by_uid = {change.uid: change for change in changes}
    return replace(cluster, pods=tuple(_apply_change(pod, change_by_uid.get(pod.meta.uid)) for pod in cluster.pods))


def _apply_change(pod: Pod, change: SetDeletionCost | None) -> Pod:
    if change is None:
        return pod
    annotations = dict(pod.meta.annotations)
    for key in (POD_DELETION_COST, OWN_DELETION_COST):
        annotations.pop(key, None)
        if change.cost is not None:
            annotations[key] = str(change.cost)
    return replace(pod, meta=replace(pod.meta, annotations=build_pairs(annotations)))


def test_pods_on_newer_nodes_have_a_lower_deletion_cost_and_are_patched_first() -> None:
    cluster = make_fleet(
        make_aged_node("a", 60, make_replica("a1"), make_replica("a2")),
        make_aged_node("b", 2, make_replica("b1"), cpu=16),
        make_aged_node("c", 2000, make_replica("c1"), make_replica("c2"), cpu=2),
    )
    costs = list_changes(cluster)
    assert costs == {"b1": 2, "a1": 60, "a2": 60, "c1": 2000, "c2": 2000}
    assert list(costs) == ["b1", "a1", "a2", "c1", "c2"]


def test_nodes_that_were_created_together_have_an_order() -> None:
    cluster = make_fleet(*(make_aged_node(f"n{number}", 5, make_replica(f"p{number}")) for number in range(5)))
    assert len({change.cost for change in plan_changes(cluster)}) == 5


@given(st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)), st.text())  # noqa: DTZ001 - UTC is added below
def test_deletion_costs_are_negative_and_do_not_hide_pods_from_karpenter(created_at: datetime, name: str) -> None:
    node = replace(make_node("a"), meta=ObjectMeta(name=name, created_at=created_at.replace(tzinfo=UTC)))
    assert -(2**27) < compute_deletion_cost(StateNode(node=node)) < 0


def test_the_only_node_of_a_node_pool_gets_no_deletion_cost() -> None:
    assert list_changes(make_fleet(make_aged_node("a", 1, make_replica("a1")))) == {}


def test_pods_are_patched_once_in_the_life_of_their_node() -> None:
    cluster = make_fleet(
        make_aged_node("a", 5, make_marked("a1", 5), cpu=16),
        make_aged_node("b", 9, make_marked("b1", 9), make_replica("b2")),
        make_aged_node("d", 7, make_marked("d1", 7), make_marked("d2", 7, "api"), cpu=4),
    )
    assert list_changes(cluster) == {"b2": 9}
    assert list_changes(replace(cluster, taken_at=cluster.taken_at + timedelta(days=1))) == {"b2": 9}


@pytest.mark.parametrize(
    ("options", "pools", "pod"),
    [
        ({}, (STATIC,), make_replica("a1")),
        ({}, (NEVER,), make_replica("a1")),
        ({"paused_reasons": ["Empty"]}, (FREE,), make_replica("a1")),
        ({"paused_reasons": ["default/Empty"]}, (FREE,), make_replica("a1")),
        ({}, (FREE,), make_replica("a1", "db", "StatefulSet")),
        ({}, (FREE,), make_replica("a1", "db", "StatefulSet", protected="true")),
    ],
    ids=["static", "consolidateAfter Never", "paused", "paused in the NodePool", "StatefulSet", "do-not-disrupt"],
)
def test_nodes_that_a_scale_down_cannot_empty_are_not_preferred(
    options: dict[str, object], pools: tuple[object, ...], pod: Pod
) -> None:
    cluster = make_fleet(
        make_aged_node("a", 1, pod),
        make_aged_node("b", 2, replace(pod, meta=replace(pod.meta, name="b1", uid="b1"))),
        pools=pools,  # type: ignore[arg-type]
    )
    assert list_changes(cluster, **options) == {}


def test_pool_that_removes_only_empty_nodes_gets_deletion_costs() -> None:
    when_empty = make_node_pool(budgets=(), consolidation_policy="WhenEmpty")
    cluster = make_fleet(
        make_aged_node("a", 1, make_replica("a1")), make_aged_node("b", 2, make_replica("b1")), pools=(when_empty,)
    )
    assert list_changes(cluster) == {"a1": 1, "b1": 2}


def test_replica_set_with_a_deletion_cost_of_a_user_keeps_its_order() -> None:
    cluster = make_fleet(
        make_aged_node("a", 1, make_marked("a1", 1), make_marked("a2", 1, "api")),
        make_aged_node("b", 2, make_replica("b1", user="3")),
        make_aged_node("c", 3, make_replica("c1", "api")),
    )
    assert list_changes(cluster) == {"a1": None, "c1": 3}


def test_deletion_cost_that_a_user_has_changed_is_kept() -> None:
    cluster = make_fleet(
        make_aged_node("a", 1, make_replica("a1", user="-3", mark="-9")),
        make_aged_node("b", 2, make_replica("b1")),
        make_aged_node("c", 3, make_replica("c1")),
    )
    assert list_changes(cluster) == {}


@pytest.mark.parametrize("annotation", [DO_NOT_DISRUPT, SCALE_DOWN_DISABLED])
def test_deletion_cost_is_removed_from_pods_of_a_node_that_is_protected_later(annotation: str) -> None:
    cluster = make_fleet(
        make_aged_node("a", 1, make_marked("a1", 1), annotations={annotation: "true"}),
        make_aged_node("b", 2, make_replica("b1")),
        make_aged_node("c", 3, make_replica("c1")),
    )
    assert list_changes(cluster) == {"b1": 2, "c1": 3, "a1": None}


def test_pods_on_nodes_of_commands_are_not_changed() -> None:
    cluster = make_fleet(make_aged_node("a", 1, make_replica("a1")), make_aged_node("b", 2, make_replica("b1")))
    assert list_changes(cluster, command_nodes={"a"}) == {"b1": 2}


def test_changes_of_one_run_are_limited_and_the_next_runs_continue() -> None:
    machines = [
        make_aged_node(f"n{number}", number, *(make_replica(f"p{number}-{pod}") for pod in range(40)), cpu=64)
        for number in range(2)
    ]
    cluster = make_fleet(*machines)
    counts = []
    while changes := plan_changes(cluster):
        counts.append(len(changes))
        cluster = apply_changes(cluster, changes)
    assert counts == [MAX_CHANGES_PER_RUN, 80 - MAX_CHANGES_PER_RUN]


PODS = st.tuples(
    st.sampled_from(("web", "api", "db")),
    st.sampled_from(("ReplicaSet", "ReplicaSet", "StatefulSet")),
    st.sampled_from(("", "", "", "3", "-9")),
    st.sampled_from(("", "", "-9", "-8")),
)


@st.composite
def build_fleets(draw: st.DrawFn) -> ClusterSnapshot:
    """Draw a fleet whose pods have deletion costs of users, of Joiner, or none."""
    machines = []
    for number, drawn_pods in enumerate(draw(st.lists(st.lists(PODS, max_size=4), max_size=5))):
        pods = [
            make_replica(
                f"{number}-{place}",
                replica_set,
                kind,
                **({"user": user} if user else {}),
                **({"mark": mark} if mark else {}),
            )
            for place, (replica_set, kind, user, mark) in enumerate(drawn_pods)
        ]
        machines.append(make_aged_node(f"n{number}", number, *pods, cpu=draw(st.sampled_from((2, 4, 8)))))
    return make_fleet(*machines)


def collect_user_values(cluster: ClusterSnapshot) -> Counter[tuple[str, str]]:
    return Counter((pod.name, cost) for pod in cluster.pods if (cost := get_user_deletion_cost(pod)))


@given(build_fleets())
def test_values_of_users_survive_and_the_plan_settles_after_one_run(cluster: ClusterSnapshot) -> None:
    changed = apply_changes(cluster, plan_changes(cluster))
    assert collect_user_values(changed) >= collect_user_values(cluster)
    assert plan_changes(changed) == ()


@given(build_fleets(), st.randoms())
def test_plan_does_not_depend_on_the_order_of_pods_and_nodes(cluster: ClusterSnapshot, random: object) -> None:
    pods, nodes = list(cluster.pods), list(cluster.nodes)
    random.shuffle(pods)  # type: ignore[attr-defined]
    random.shuffle(nodes)  # type: ignore[attr-defined]
    shuffled = replace(cluster, pods=tuple(pods), nodes=tuple(nodes))
    assert set(plan_changes(shuffled)) == set(plan_changes(cluster))
