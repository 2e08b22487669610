"""Which pods get a deletion cost, and that no value of a user is ever changed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.deletion_cost.deletion_costs import MAX_CHANGES_PER_RUN, plan_deletion_costs
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT, OWN_DELETION_COST, POD_DELETION_COST, SCALE_DOWN_DISABLED
from shared.model.core.metadata import OwnerReference, build_pairs
from shared.model.decisions.action import SetDeletionCost
from shared.model.kubernetes.deletion_cost import get_user_deletion_cost
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_node_pool, make_pod
from tests.support.disruption_fleet import FREE, make_fleet, make_node_with_pods

STATIC = replace(FREE, replicas=2)
NEVER = replace(FREE, consolidate_after=None)


def make_replica(name: str, replica_set: str = "web", kind: str = "ReplicaSet", **annotations: str) -> Pod:
    keys = {"user": POD_DELETION_COST, "mark": OWN_DELETION_COST, "protected": DO_NOT_DISRUPT}
    pod = make_pod(name)
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=replica_set, uid=replica_set, controller=True)
    pairs = build_pairs({keys[key]: value for key, value in annotations.items()})
    return replace(pod, meta=replace(pod.meta, owners=(owner,), annotations=pairs, uid=f"uid-{name}"))


def make_marked(name: str, cost: int, replica_set: str = "web") -> Pod:
    return make_replica(name, replica_set, user=str(cost), mark=str(cost))


def list_changes(cluster: ClusterSnapshot, **options: object) -> dict[str, int | None]:
    return {
        change.name: change.cost
        for change in plan_deletion_costs(ClusterState(cluster), **options)  # type: ignore[arg-type]
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


def test_pods_on_emptier_nodes_have_a_lower_deletion_cost() -> None:
    """Pods of one CPU: a is half full, b at 6 %, c full, d at 75 %."""
    cluster = make_fleet(
        make_node_with_pods("a", make_replica("a1"), make_replica("a2")),
        make_node_with_pods("b", make_replica("b1"), cpu=16),
        make_node_with_pods("c", make_replica("c1"), make_replica("c2"), cpu=2),
        make_node_with_pods("d", make_replica("d1"), make_replica("d2"), make_replica("d3")),
    )
    costs = list_changes(cluster)
    assert costs == {"b1": -100, "a1": -50, "a2": -50, "d1": -30, "d2": -30, "d3": -30}
    assert list(costs) == ["b1", "a1", "a2", "d1", "d2", "d3"]


def test_the_only_node_of_a_node_pool_gets_no_deletion_cost() -> None:
    assert list_changes(make_fleet(make_node_with_pods("a", make_replica("a1")))) == {}


def test_pods_are_patched_only_if_the_utilization_of_their_own_node_changes_by_a_step() -> None:
    cluster = make_fleet(
        make_node_with_pods("a", make_marked("a1", -100), cpu=16),
        make_node_with_pods("b", make_marked("b1", -70), make_replica("b2")),
        make_node_with_pods("c", make_marked("c1", -80)),
        make_node_with_pods("d", make_marked("d1", -50), make_marked("d2", -50, "api"), cpu=4),
    )
    assert list_changes(cluster) == {"b1": -50, "b2": -50}


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
        make_node_with_pods("a", pod),
        make_node_with_pods("b", replace(pod, meta=replace(pod.meta, name="b1", uid="b1"))),
        pools=pools,  # type: ignore[arg-type]
    )
    assert list_changes(cluster, **options) == {}


def test_pool_that_removes_only_empty_nodes_gets_deletion_costs() -> None:
    when_empty = make_node_pool(budgets=(), consolidation_policy="WhenEmpty")
    cluster = make_fleet(
        make_node_with_pods("a", make_replica("a1")), make_node_with_pods("b", make_replica("b1")), pools=(when_empty,)
    )
    assert list_changes(cluster) == {"a1": -80, "b1": -80}


def test_replica_set_with_a_deletion_cost_of_a_user_keeps_its_order() -> None:
    cluster = make_fleet(
        make_node_with_pods("a", make_marked("a1", -50), make_marked("a2", -50, "api")),
        make_node_with_pods("b", make_replica("b1", user="3")),
        make_node_with_pods("c", make_replica("c1", "api")),
    )
    assert list_changes(cluster) == {"a1": None, "c1": -80}


def test_deletion_cost_that_a_user_has_changed_is_kept() -> None:
    cluster = make_fleet(
        make_node_with_pods("a", make_replica("a1", user="-3", mark="-9")),
        make_node_with_pods("b", make_replica("b1")),
        make_node_with_pods("c", make_replica("c1")),
    )
    assert list_changes(cluster) == {}


@pytest.mark.parametrize("annotation", [DO_NOT_DISRUPT, SCALE_DOWN_DISABLED])
def test_deletion_cost_is_removed_from_pods_of_a_node_that_is_protected_later(annotation: str) -> None:
    cluster = make_fleet(
        make_node_with_pods("a", make_marked("a1", -9), annotations={annotation: "true"}),
        make_node_with_pods("b", make_replica("b1")),
        make_node_with_pods("c", make_replica("c1")),
    )
    assert list_changes(cluster) == {"b1": -80, "c1": -80, "a1": None}


def test_pods_on_nodes_of_commands_are_not_changed() -> None:
    cluster = make_fleet(make_node_with_pods("a", make_replica("a1")), make_node_with_pods("b", make_replica("b1")))
    assert list_changes(cluster, command_nodes={"a"}) == {"b1": -80}


def test_changes_of_one_run_are_limited_and_the_next_runs_continue() -> None:
    machines = [
        make_node_with_pods(f"n{number}", *(make_replica(f"p{number}-{pod}") for pod in range(40)), cpu=64)
        for number in range(2)
    ]
    cluster = make_fleet(*machines)
    counts = []
    while changes := plan_deletion_costs(ClusterState(cluster)):
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
        machines.append(make_node_with_pods(f"n{number}", *pods, cpu=draw(st.sampled_from((2, 4, 8)))))
    return make_fleet(*machines)


def collect_user_values(cluster: ClusterSnapshot) -> Counter[tuple[str, str]]:
    return Counter((pod.name, cost) for pod in cluster.pods if (cost := get_user_deletion_cost(pod)))


@given(build_fleets())
def test_values_of_users_survive_and_the_plan_settles_after_one_run(cluster: ClusterSnapshot) -> None:
    changed = apply_changes(cluster, plan_deletion_costs(ClusterState(cluster)))
    assert collect_user_values(changed) >= collect_user_values(cluster)
    assert plan_deletion_costs(ClusterState(changed)) == ()


@given(build_fleets(), st.randoms())
def test_plan_does_not_depend_on_the_order_of_pods_and_nodes(cluster: ClusterSnapshot, random: object) -> None:
    pods, nodes = list(cluster.pods), list(cluster.nodes)
    random.shuffle(pods)  # type: ignore[attr-defined]
    random.shuffle(nodes)  # type: ignore[attr-defined]
    shuffled = replace(cluster, pods=tuple(pods), nodes=tuple(nodes))
    assert set(plan_deletion_costs(ClusterState(shuffled))) == set(plan_deletion_costs(ClusterState(cluster)))
