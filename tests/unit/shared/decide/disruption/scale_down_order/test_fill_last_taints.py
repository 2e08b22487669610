"""Which nodes have the taint that makes kube-scheduler fill them last, and that plans ignore it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.scale_down_order.scale_down_order import plan_scale_down_order
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.metadata import OwnerReference
from shared.model.core.taints import FILL_LAST, Taint
from shared.model.decisions.action import TaintNode
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, locate_pods, make_node_pool, make_pod
from tests.support.disruption_fleet import (
    FREE,
    Machine,
    make_conditions,
    make_fleet,
    make_node_with_pods,
)
from tests.support.snapshot_decisions import solve

OTHER_TAINT = Taint(key="team", effect="NoSchedule", value="shop")


def make_replica(name: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="rs", controller=True)
    return make_pod(name, owners=(owner,))


def make_aged_node(name: str, age: int, *taints: Taint, pool: str = "default", **fields: object) -> Machine:
    node, claim, pods = make_node_with_pods(name, make_replica(f"{name}-pod"), pool=pool, **fields)  # type: ignore[arg-type]
    created_at = NOW - age * timedelta(minutes=10)
    return (
        replace(node, taints=taints, meta=replace(node.meta, created_at=created_at)),
        replace(claim, meta=replace(claim.meta, created_at=created_at)),
        pods,
    )


def list_taint_changes(cluster: ClusterSnapshot, *, is_on: bool = True, **options: object) -> dict[str, bool]:
    """Return by node whether it gets the taint (True) or loses it."""
    changes = plan_scale_down_order(
        ClusterState(cluster),
        has_deletion_costs=False,
        has_taints=is_on,
        **options,  # type: ignore[arg-type]
    )
    return {change.name: FILL_LAST in change.taints for change in changes if isinstance(change, TaintNode)}


def test_newest_quarter_of_each_node_pool_has_the_taint() -> None:
    other_pool = make_node_pool("spot", budgets=())
    cluster = make_fleet(
        *(make_aged_node(f"n{age}", age) for age in range(9)),
        *(make_aged_node(f"s{age}", age, pool="spot") for age in range(2)),
        pools=(FREE, other_pool),
    )
    assert list_taint_changes(cluster) == {"n0": True, "n1": True, "s0": True}


def test_the_only_node_of_a_node_pool_has_no_taint() -> None:
    assert list_taint_changes(make_fleet(make_aged_node("a", 1))) == {}


def test_taint_moves_to_a_newer_node_and_other_taints_stay() -> None:
    cluster = make_fleet(
        make_aged_node("old", 9, OTHER_TAINT, FILL_LAST),
        make_aged_node("new", 1, OTHER_TAINT),
        make_aged_node("mid", 5),
    )
    changes = plan_scale_down_order(ClusterState(cluster), has_deletion_costs=False, has_taints=True)
    assert {change.name: change.taints for change in changes if isinstance(change, TaintNode)} == {
        "old": (OTHER_TAINT,),
        "new": (OTHER_TAINT, FILL_LAST),
    }


def test_protected_node_has_no_taint() -> None:
    cluster = make_fleet(
        make_aged_node("a", 3), make_aged_node("b", 2), make_aged_node("c", 1, annotations={DO_NOT_DISRUPT: "true"})
    )
    assert list_taint_changes(cluster) == {"b": True}


def test_nodes_of_commands_and_leaving_nodes_are_not_changed() -> None:
    node, claim, pods = make_aged_node("leaving", 1, FILL_LAST)
    leaving = (node, replace(claim, meta=replace(claim.meta, deleted_at=NOW)), pods)
    cluster = make_fleet(leaving, make_aged_node("a", 2), make_aged_node("b", 3), make_aged_node("c", 4))
    assert list_taint_changes(cluster) == {"a": True}
    assert list_taint_changes(cluster, command_nodes={"a"}) == {}


@pytest.mark.parametrize("taints", [(), (FILL_LAST,)])
def test_taints_are_removed_after_the_setting_is_off(taints: tuple[Taint, ...]) -> None:
    cluster = make_fleet(make_aged_node("a", 1, *taints), make_aged_node("b", 2))
    assert list_taint_changes(cluster, is_on=False) == ({"a": False} if taints else {})


def test_taints_are_removed_while_emptiness_is_paused() -> None:
    cluster = make_fleet(make_aged_node("a", 1, FILL_LAST), make_aged_node("b", 2))
    assert list_taint_changes(cluster, paused_reasons=["Empty"]) == {"a": False}


@given(tainted=st.lists(st.booleans(), min_size=2, max_size=6), is_on=st.booleans())
def test_one_run_settles_the_taints(*, tainted: list[bool], is_on: bool) -> None:
    machines = [
        make_aged_node(f"n{number}", number, *((FILL_LAST,) if has_taint else ()))
        for number, has_taint in enumerate(tainted)
    ]
    cluster = make_fleet(*machines)
    changes = plan_scale_down_order(ClusterState(cluster), has_deletion_costs=False, has_taints=is_on)
    taints_by_name = {change.name: change.taints for change in changes if isinstance(change, TaintNode)}
    changed = replace(
        cluster,
        nodes=tuple(replace(node, taints=taints_by_name.get(node.name, node.taints)) for node in cluster.nodes),
    )
    assert list_taint_changes(changed, is_on=is_on) == {}


@pytest.mark.parametrize("stages", [("Launched", "Registered", "Initialized"), ("Launched", "Registered")])
def test_pods_are_planned_on_nodes_with_the_taint(stages: tuple[str, ...]) -> None:
    pending = make_replica("pending")
    machine = make_aged_node("a", 1, FILL_LAST, conditions=make_conditions(*stages))
    placement = solve(make_fleet(machine, pods=(pending,)))
    assert locate_pods(placement)["pending"] == "a"
    assert placement == solve(make_fleet((replace(machine[0], taints=()), *machine[1:]), pods=(pending,)))
