"""Gangs: their pods get all their nodes or none."""

from datetime import timedelta
from functools import partial
from itertools import chain, repeat
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.provisioning import gang_planning, gang_zones
from shared.decide.provisioning.capacity_buffers import BufferedPlacement, plan_with_buffers
from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.scheduling.scheduler import NOT_REACHED_MESSAGE
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import GANG, GANG_SIZE, GANG_TOPOLOGY, ZONE
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.core.requirements import Requirement, build_requirements
from shared.model.core.resources import parse_resources
from shared.model.decisions.placement import Placement, SchedulingOptions, Unschedulable
from shared.model.kubernetes.gangs.gang import PodGroup
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gangs import needs_pod_groups
from tests.support.catalogues import (
    NOW,
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
)

TYPES = (make_instance_type("m.04", 4),)
"""One instance type, which holds one pod of 3 CPUs."""


def make_gang(name: str, size: int, count: int | None = None, cpu: str = "3", **fields: Any) -> list[Pod]:
    """Return pods of a gang that needs *size* pods, *size* of them unless *count* is given."""
    return [join_gang(make_pod(f"{name}-{number}", cpu, **fields), name, size) for number in range(count or size)]


def join_gang(pod: Pod, name: str, size: int | str) -> Pod:
    annotations = {GANG: name, GANG_SIZE: str(size)}
    return replace(pod, meta=replace(pod.meta, annotations=build_pairs(annotations)))


def make_limited_cluster(*pods: Pod, max_cpu: int, **fields: Any) -> ClusterSnapshot:
    pool = make_node_pool(limits=parse_resources({"cpu": str(max_cpu)}))
    return make_cluster_snapshot(*pods, types=TYPES, node_pools=(pool,), has_gangs=True, **fields)


def plan(cluster: ClusterSnapshot, **options: Any) -> Placement:
    return plan_pods(ClusterState(cluster), **options).placement


def find_message(placement: Placement, pod: str) -> str:
    [message] = [item.message for item in placement.unschedulable if item.pod == f"shop/{pod}"]
    return message


def test_gang_that_fits_gets_all_its_nodes() -> None:
    placement = plan(make_limited_cluster(*make_gang("train", 3), max_cpu=12))
    assert locate_pods(placement) == dict.fromkeys(("train-0", "train-1", "train-2"), "default")


def test_gang_that_does_not_fit_gets_no_node_and_its_events_say_why() -> None:
    placement = plan(make_limited_cluster(*make_gang("train", 3), max_cpu=8))
    assert set(locate_pods(placement).values()) == {"GangNotPlaced"}
    assert not placement.new_nodes
    message = find_message(placement, "train-0")
    assert message.startswith("gang shop/train needs nodes for all its 3 pods or none: train-2 does not fit: ")
    assert "NodePool default" in message


def test_setting_off_plans_part_of_a_gang() -> None:
    cluster = make_limited_cluster(*make_gang("train", 3), max_cpu=8)
    placement = plan(replace(cluster, has_gangs=False))
    assert sorted(locate_pods(placement).values()) == ["LimitExceeded", "default", "default"]


def test_limits_that_a_gang_cannot_use_are_left_to_other_pods() -> None:
    pods = (*make_gang("train", 3), make_pod("web", "3"), make_pod("api", "3"))
    placement = plan(make_limited_cluster(*pods, max_cpu=8))
    locations = locate_pods(placement)
    assert (locations["web"], locations["api"]) == ("default", "default")
    assert len(placement.new_nodes) == 2


def test_pods_on_existing_nodes_count() -> None:
    node = make_node("standing")
    cluster = make_limited_cluster(*make_gang("train", 3), max_cpu=8, nodes=(node,))
    assert sorted(locate_pods(plan(cluster)).values()) == ["default", "default", "standing"]


def test_of_two_gangs_that_both_do_not_fit_the_one_of_higher_priority_gets_nodes() -> None:
    important = [replace(pod, priority=9) for pod in make_gang("zebra", 3)]
    placement = plan(make_limited_cluster(*make_gang("ant", 4), *important, max_cpu=12))
    locations = locate_pods(placement)
    assert {locations[f"zebra-{number}"] for number in range(3)} == {"default"}
    assert {locations[f"ant-{number}"] for number in range(4)} == {"GangNotPlaced"}


def test_with_priority_under_limits_a_gang_of_higher_priority_takes_the_place_of_another() -> None:
    important = [replace(pod, priority=9) for pod in make_gang("zebra", 2)]
    cluster = make_limited_cluster(*make_gang("ant", 2), *important, max_cpu=12)
    locations = locate_pods(plan(cluster, options=SchedulingOptions(priority_under_limits=True)))
    assert locations["zebra-0"] == locations["zebra-1"] == "default"
    assert locations["ant-0"] == locations["ant-1"] == "GangNotPlaced"


def test_gang_that_was_left_out_for_a_larger_one_is_tried_again() -> None:
    large = [replace(pod, priority=9) for pod in make_gang("large", 9)]
    placement = plan(make_limited_cluster(*make_gang("small", 2), *large, max_cpu=12))
    locations = locate_pods(placement)
    assert (locations["small-0"], locations["small-1"]) == ("default", "default")
    assert locations["large-0"] == "GangNotPlaced"


def test_gang_that_is_tried_again_and_does_not_fit_next_to_another_stays_out() -> None:
    large, middle = ([replace(pod, priority=rank) for pod in make_gang(f"rank-{rank}", 12 // rank)] for rank in (1, 4))
    most_important = [replace(pod, priority=9) for pod in make_gang("huge", 9)]
    small = [replace(pod, priority=2) for pod in make_gang("small", 2)]
    locations = locate_pods(plan(make_limited_cluster(*large, *middle, *most_important, *small, max_cpu=12)))
    assert {locations[f"rank-4-{number}"] for number in range(3)} == {"default"}
    assert locations["small-0"] == locations["huge-0"] == locations["rank-1-0"] == "GangNotPlaced"


def test_incomplete_gang_waits() -> None:
    placement = plan(make_limited_cluster(*make_gang("train", 4, count=3), max_cpu=100))
    assert set(locate_pods(placement).values()) == {"GangIncomplete"}
    assert "3 of its 4 pods exist: waiting for the others" in find_message(placement, "train-0")


def test_gang_waits_for_pods_that_kube_scheduler_has_not_tried() -> None:
    first, second = make_gang("train", 2)
    gated = replace(second, conditions=(Condition(type="PodScheduled", status="False", reason="SchedulingGated"),))
    placement = plan(make_limited_cluster(first, gated, max_cpu=100))
    assert locate_pods(placement) == {"train-0": "GangIncomplete"}
    assert "kube-scheduler has not tried train-1 yet" in find_message(placement, "train-0")


def test_running_pods_of_a_gang_count() -> None:
    first, second = make_gang("train", 2)
    node = make_node("standing")
    running = replace(first, node_name="standing", phase="Running", conditions=())
    placement = plan(make_limited_cluster(running, second, max_cpu=4, nodes=(node,)))
    assert locate_pods(placement) == {"train-1": "default"}


@pytest.mark.parametrize(("minutes", "location"), [(4, "GangIncomplete"), (6, "default")])
def test_missing_pods_of_a_gang_that_has_been_running_have_completed(minutes: int, location: str) -> None:
    first, second = make_gang("train", 3, count=2)
    started_at = NOW - timedelta(minutes=minutes)
    running = replace(first, node_name="standing", phase="Running", conditions=(), started_at=started_at)
    placement = plan(make_limited_cluster(running, second, max_cpu=100, nodes=(make_node("standing"),)))
    assert locate_pods(placement) == {"train-1": location}


def test_more_pods_than_the_size_need_not_fit() -> None:
    placement = plan(make_limited_cluster(*make_gang("train", 2, count=3), max_cpu=8))
    assert sorted(locate_pods(placement).values()) == ["LimitExceeded", "default", "default"]


def test_size_one_is_planned_alone() -> None:
    placement = plan(make_limited_cluster(*make_gang("train", 1, count=3), max_cpu=8))
    assert sorted(locate_pods(placement).values()) == ["LimitExceeded", "default", "default"]


@pytest.mark.parametrize("size", ["many", "0", "-1", "10001"])
def test_invalid_size_names_the_annotation_and_the_fix(size: str) -> None:
    pods = [join_gang(make_pod(f"train-{number}"), "train", size) for number in range(2)]
    message = find_message(plan(make_limited_cluster(*pods, max_cpu=100)), "train-0")
    assert f"joiner.dev/gang-size: '{size}' is not a number from 1 to 10,000: write the number of pods" in message


def test_gang_with_a_withheld_pod_gets_no_node() -> None:
    cluster = make_limited_cluster(*make_gang("train", 2), max_cpu=100)
    placement = plan(cluster, withheld=frozenset({"shop/train-1"}))
    assert locate_pods(placement) == {"train-0": "GangNotPlaced"}
    assert "train-1 must not get new nodes" in find_message(placement, "train-0")


def join_zone_gang(pod: Pod, topology: str = "zone") -> Pod:
    annotations = build_pairs((*pod.meta.annotations, (GANG_TOPOLOGY, topology)))
    return replace(pod, meta=replace(pod.meta, annotations=annotations))


def test_gang_in_one_zone_is_planned_where_all_its_pods_fit_at_the_lowest_price() -> None:
    types = (
        make_instance_type("m.04", 4, zones=("a", "b")),
        make_instance_type("n.04", 4, zones=("c",), price=0.1),
        make_instance_type("o.04", 4, zones=("b",), price=0.15),
    )
    nodes = (make_node("standing", labels={ZONE: "a"}),)
    pods = [join_zone_gang(pod) for pod in make_gang("train", 3)]
    cluster = make_cluster_snapshot(*pods, types=types, nodes=nodes, has_gangs=True)
    placement = plan(cluster)
    assert {node.requirements[ZONE].values for node in placement.new_nodes} == {frozenset("c")}
    assert (len(placement.new_nodes), placement.unschedulable) == (3, ())
    spread = plan(make_cluster_snapshot(*make_gang("train", 3), types=types, nodes=nodes, has_gangs=True))
    assert "standing" in locate_pods(spread).values()


def test_gang_in_one_zone_stays_in_the_zone_of_its_nodes() -> None:
    pods = [join_zone_gang(pod) for pod in make_gang("train", 3)]
    running = replace(pods[0], node_name="standing", phase="Running", conditions=())
    node = make_node("standing", labels={ZONE: "b"})
    placement = plan(make_cluster_snapshot(running, *pods[1:], types=TYPES, nodes=(node,), has_gangs=True))
    assert {node.requirements[ZONE].values for node in placement.new_nodes} == {frozenset("b")}


def test_gang_whose_zones_are_not_compared_gets_another_zone_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_zones, "MAX_ZONE_TRIALS", 0)
    types = (make_instance_type("small", 1, zones=("a", "b")), make_instance_type("m.04", 4, zones=("c",)))
    pods = [join_zone_gang(pod) for pod in make_gang("train", 3)]
    cluster = make_cluster_snapshot(*pods, types=types, has_gangs=True)
    runs = [replace(cluster, taken_at=NOW + timedelta(minutes=minutes)) for minutes in range(12)]
    launched = [bool(plan(run).new_nodes) for run in runs]
    assert any(launched)
    assert not all(launched)


def test_only_zones_that_node_pools_and_pods_allow_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_zones, "MAX_ZONE_TRIALS", 0)
    zone_c, zones_bc = (build_requirements([Requirement(key=ZONE, values=frozenset(values))]) for values in ("c", "bc"))
    types = (make_instance_type("m.04", 4, zones=("a", "b", "c")),)
    pods = [join_zone_gang(pod) for pod in make_gang("train", 3)]
    limited_pods = [replace(pod, spec=replace(pod.spec, required_terms=(zone_c,))) for pod in pods]
    for pool, members in ((make_node_pool(requirements=zone_c), pods), (make_node_pool(), limited_pods)):
        cluster = make_cluster_snapshot(*members, types=types, node_pools=(pool,), has_gangs=True)
        for minutes in range(6):
            assert len(plan(replace(cluster, taken_at=NOW + timedelta(minutes=minutes))).new_nodes) == 3
    cluster = make_cluster_snapshot(
        *pods, types=types, node_pools=(make_node_pool(requirements=zones_bc),), has_gangs=True
    )
    runs = [replace(cluster, taken_at=NOW + timedelta(minutes=minutes)) for minutes in range(12)]
    assert {zone for run in runs for node in plan(run).new_nodes for zone in node.requirements[ZONE].values} == set(
        "bc"
    )


def test_invalid_topology_names_the_annotation_and_the_fix() -> None:
    pods = [join_zone_gang(pod, "rack") for pod in make_gang("train", 2)]
    message = find_message(plan(make_limited_cluster(*pods, max_cpu=100)), "train-0")
    assert "joiner.dev/gang-topology: 'rack' is not a topology: write zone, or remove it" in message


@pytest.mark.parametrize("max_cpu", [8, 100])
def test_time_limit_never_launches_a_part_of_a_gang(max_cpu: int) -> None:
    cluster = make_limited_cluster(*make_gang("train", 4), make_pod("web", "1"), max_cpu=max_cpu)
    for polls in range(60):
        placement = plan(cluster, is_over=partial(next, chain(repeat(0, polls), repeat(1))))
        placed = {name for node in placement.new_nodes for name in node.pods if "train" in name}
        assert len(placed) in (0, 4), f"{polls} polls"


def cut_plan(pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the time limit end each plan before *pod* is placed."""

    def plan_and_cut(*args: Any, **options: Any) -> BufferedPlacement:
        buffered = plan_with_buffers(*args, **options)
        placement = buffered.placement
        new_nodes = tuple(
            replace(node, pods=tuple(name for name in node.pods if name != pod)) for node in placement.new_nodes
        )
        cut = (Unschedulable(pod=pod, reason="NotReached", message=NOT_REACHED_MESSAGE),)
        return replace(buffered, placement=replace(placement, new_nodes=new_nodes, unschedulable=cut, next_pod=pod))

    monkeypatch.setattr(gang_planning, "plan_with_buffers", plan_and_cut)


def test_gang_that_the_time_limit_cuts_is_removed_from_the_plan_with_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_plan("shop/train-3", monkeypatch)
    web_and_api = (make_pod("web", "1"), make_pod("api", "4", labels={"size": "large"}))
    types = (*TYPES, make_instance_type("m.08", 8))
    node = make_node("standing", cpu="1")
    cluster = make_cluster_snapshot(
        *make_gang("train", 4, cpu="1"), *web_and_api, types=types, nodes=(node,), has_gangs=True
    )
    placement = plan(cluster, is_over=lambda: True)
    locations = locate_pods(placement)
    assert {locations[f"train-{number}"] for number in range(4)} == {"NotReached"}
    assert not any("train" in name for node in placement.new_nodes for name in node.pods)
    assert not any("train" in name for fit in placement.existing for name in fit.pods)
    assert placement.next_pod == "shop/train-3"
    assert set(locations) == {"api", "web", *(f"train-{number}" for number in range(4))}
    assert {locations["api"], locations["web"]} <= {"default", "standing", "NotReached"}


def test_gangs_that_were_left_out_are_not_tried_again_after_the_time_limit() -> None:
    large = [replace(pod, priority=9) for pod in make_gang("large", 9)]
    cluster = make_limited_cluster(*make_gang("small", 2), *large, max_cpu=12)
    plans_before_the_limit = 2
    with pytest.MonkeyPatch.context() as monkeypatch:
        plans = count_plans(monkeypatch)
        placement = plan(cluster, is_over=lambda: len(plans) > plans_before_the_limit)
    assert set(locate_pods(placement).values()) == {"GangNotPlaced"}
    assert len(plans) == plans_before_the_limit + 1


def test_gang_keeps_the_cause_why_it_does_not_fit() -> None:
    def list_causes(*pods: Pod) -> set[object]:
        return {item.cause for item in plan(make_limited_cluster(*pods, max_cpu=8)).unschedulable}

    assert list_causes(*make_gang("train", 3)) == {"LimitExceeded"}
    assert list_causes(*make_gang("train", 2, cpu="64")) == {"NoInstanceTypeFits"}
    assert list_causes(*make_gang("train", 3, count=2)) == {None}


def count_plans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets an item for each plan."""
    plans: list[object] = []

    def count_plan(*args: Any, **options: Any) -> BufferedPlacement:
        plans.append(options)
        return plan_with_buffers(*args, **options)

    monkeypatch.setattr(gang_planning, "plan_with_buffers", count_plan)
    return plans


def test_many_gangs_that_do_not_fit_need_few_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = count_plans(monkeypatch)
    pods = [pod for number in range(60) for pod in make_gang(f"gang{number:02}", 2)]
    placement = plan(make_limited_cluster(*pods, max_cpu=4))
    assert set(locate_pods(placement).values()) == {"GangNotPlaced"}
    assert len(plans) <= gang_planning.MAX_GANG_TRIALS + 2


def test_pods_of_a_pod_group_need_its_min_member() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    pods = [make_pod(f"train-{number}", "3", labels=labels) for number in range(3)]
    group = PodGroup(meta=ObjectMeta(name="train", namespace="shop"), min_member=3)
    cluster = make_limited_cluster(*pods, max_cpu=8)
    assert "PodGroup shop/train does not exist" in find_message(plan(cluster), "train-0")
    assert set(locate_pods(plan(replace(cluster, pod_groups=(group,)))).values()) == {"GangNotPlaced"}
    small_group = replace(group, min_member=2)
    locations = locate_pods(plan(replace(cluster, pod_groups=(small_group,))))
    assert sorted(locations.values()) == ["LimitExceeded", "default", "default"]


def test_pod_groups_are_read_for_pods_with_and_without_a_node() -> None:
    pending = make_pod("train-0", "3", labels={"scheduling.x-k8s.io/pod-group": "train"})
    running = replace(pending, node_name="standing", phase="Running", conditions=())
    completed = replace(running, phase="Succeeded")
    for pod, is_needed in ((pending, True), (running, True), (completed, False), (make_pod("web"), False)):
        assert needs_pod_groups(make_cluster_snapshot(pod)) is is_needed
