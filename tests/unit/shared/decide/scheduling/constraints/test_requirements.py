"""Node selectors, node affinity, taints, preferences, weights and minValues."""

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.constraints.preference_relaxation import build_relaxation_stages
from shared.model.core.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODECLASS, NODEPOOL, ZONE
from shared.model.core.selectors import build_label_selector as selecting
from shared.model.core.taints import Taint, Toleration
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import AffinityTerm, PodSpec, PreferredTerm, SpreadConstraint
from tests.support.catalogues import (
    SIZES,
    locate_pods,
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

GPU = Taint(key="gpu", effect="NoSchedule")
SOFT = Taint(key="soft", effect="PreferNoSchedule")


@pytest.mark.parametrize(
    ("selector", "location"),
    [
        ({ZONE: "b"}, "default"),
        ({"failure-domain.beta.kubernetes.io/zone": "b"}, "default"),
        ({ZONE: "z"}, "RequirementsNotMet"),
        ({ARCH: "arm64"}, "RequirementsNotMet"),
        ({CAPACITY_TYPE: "spot"}, "RequirementsNotMet"),
        ({NODEPOOL: "default"}, "default"),
        ({NODEPOOL: "other"}, "RequirementsNotMet"),
        ({NODECLASS: "default"}, "default"),
        ({"unknown": "x"}, "RequirementsNotMet"),
        ({"team": "a"}, "default"),
        ({"team": "b"}, "RequirementsNotMet"),
        ({"any": "thing"}, "default"),
    ],
)
def test_pod_is_scheduled_only_when_its_node_selector_can_be_met(selector: dict[str, str], location: str) -> None:
    node_pool = make_node_pool(labels=(("team", "a"),), requirements=make_requirements(("any", "Exists", ())))
    placement = solve(
        make_cluster_snapshot(make_pod("one", node_selector=tuple(sorted(selector.items()))), node_pools=(node_pool,))
    )
    assert locate_pods(placement) == {"one": location}


@pytest.mark.parametrize("key", ["a", "b", "c"])
def test_node_requirements_are_narrowed_to_the_node_selector_of_its_pods(key: str) -> None:
    (new_node,) = solve(make_cluster_snapshot(make_pod("one", node_selector=((ZONE, key),)))).new_nodes
    assert new_node.requirements[ZONE].values == {key}
    assert new_node.cheapest.zone == key


def test_pods_with_contradictory_node_selectors_get_two_nodes() -> None:
    assert (
        len(solve(make_cluster_snapshot(*(make_pod(zone, node_selector=((ZONE, zone),)) for zone in "ab"))).new_nodes)
        == 2
    )


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ("a",), False),
        ("Exists", (), False),
        ("Gt", ("1",), False),
        ("NotIn", ("a",), True),
        ("DoesNotExist", (), True),
    ],
)
def test_undefined_label_satisfies_only_not_in_and_does_not_exist(
    operator: str, values: tuple[str, ...], *, fits: bool
) -> None:
    pod = make_pod("one", required_terms=(make_requirements(("mine", operator, values)),))
    assert bool(solve(make_cluster_snapshot(pod)).new_nodes) is fits


def test_pod_with_not_in_does_not_define_the_label_for_another_pod() -> None:
    unwanted = make_pod("big", "2", required_terms=(make_requirements(("mine", "NotIn", ("b",))),))
    assert (
        locate_pods(solve(make_cluster_snapshot(unwanted, make_pod("one", node_selector=(("mine", "a"),)))))["one"]
        == "RequirementsNotMet"
    )


def test_required_node_affinity_terms_are_tried_in_order() -> None:
    terms = tuple(make_requirements((ZONE, "In", (zone,))) for zone in "zyb")
    (new_node,) = solve(make_cluster_snapshot(make_pod("one", required_terms=terms))).new_nodes
    assert new_node.requirements[ZONE].values == {"b"}


def test_earlier_required_term_is_retried_after_preferences_are_relaxed() -> None:
    terms = (make_requirements((ZONE, "In", ("b",))), make_requirements((ZONE, "In", ("z",))))
    never = PreferredTerm(weight=1, requirements=make_requirements((ARCH, "In", ("arm64",))))
    (new_node,) = solve(
        make_cluster_snapshot(make_pod("one", required_terms=terms, preferred_terms=(never,)))
    ).new_nodes
    assert new_node.requirements[ZONE].values == {"b"}
    soft = (make_node_pool(taints=(SOFT,)),)
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", required_terms=terms), node_pools=soft))) == {
        "one": "default"
    }


@pytest.mark.parametrize(("zones", "expected_zone"), [("a", "a"), ("z", "c"), ("zb", "b")])
def test_preferences_are_met_where_possible_in_order_of_weight(zones: str, expected_zone: str) -> None:
    preferred = tuple(
        PreferredTerm(weight=9 - number, requirements=make_requirements((ZONE, "In", (zone,))))
        for number, zone in enumerate(zones)
    )
    required = (make_requirements((ZONE, "In", (expected_zone, "c"))),)
    (new_node,) = solve(
        make_cluster_snapshot(make_pod("one", preferred_terms=preferred, required_terms=required))
    ).new_nodes
    assert expected_zone in new_node.requirements[ZONE].values


def test_unsatisfiable_pod_affinity_preference_does_not_relax_satisfiable_ones() -> None:
    near, nowhere = (
        AffinityTerm(topology_key=key, selector=selecting({"app": app}), weight=weight)
        for key, app, weight in ((ZONE, "db", 50), (HOSTNAME, "none", 5))
    )
    db_pod = make_pod("db", "14", labels={"app": "db"}, node_selector=((ZONE, "b"),))
    pod = make_pod("one", "14", preferred_pod_affinity=(near, nowhere))
    nodes = solve(make_cluster_snapshot(db_pod, pod)).new_nodes
    assert [node.requirements[ZONE].values for node in nodes] == [frozenset("b")] * 2


def test_preferences_are_ignored_with_preference_policy_ignore() -> None:
    pod = make_pod(
        "one", preferred_terms=(PreferredTerm(weight=1, requirements=make_requirements((ZONE, "In", ("b",)))),)
    )
    (new_node,) = solve(make_cluster_snapshot(pod), options=SchedulingOptions(preference_policy="Ignore")).new_nodes
    assert ZONE not in new_node.requirements


def test_pod_with_contradictory_requirements_is_unschedulable() -> None:
    pod = make_pod("one", node_selector=(("team", "a"),), required_terms=(make_requirements(("team", "In", ("b",))),))
    placement = solve(make_cluster_snapshot(pod, node_pools=(make_node_pool(),)))
    assert locate_pods(placement) == {"one": "RequirementsNotMet"}
    assert "contradict" in placement.unschedulable[0].message


@pytest.mark.parametrize(
    ("tolerations", "location"),
    [
        ((), "TaintNotTolerated"),
        ((Toleration(key="gpu", operator="Exists"),), "default"),
        ((Toleration(operator="Exists"),), "default"),
        ((Toleration(key="gpu", operator="Exists", effect="NoExecute"),), "TaintNotTolerated"),
    ],
)
def test_pod_must_tolerate_the_taints_of_the_node_pool(tolerations: tuple[Toleration, ...], location: str) -> None:
    placement = solve(
        make_cluster_snapshot(make_pod("one", tolerations=tolerations), node_pools=(make_node_pool(taints=(GPU,)),))
    )
    assert locate_pods(placement) == {"one": location}


def test_startup_taints_of_a_node_pool_need_no_toleration() -> None:
    assert solve(make_cluster_snapshot(make_pod("one"), node_pools=(make_node_pool(startup_taints=(GPU,)),))).new_nodes


def test_node_pool_with_a_prefer_no_schedule_taint_is_used_last() -> None:
    pools = (make_node_pool("soft", weight=9, taints=(SOFT,)), make_node_pool("plain"))
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), node_pools=pools))) == {"one": "plain"}
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), node_pools=pools[:1]))) == {"one": "soft"}


def test_existing_node_with_a_prefer_no_schedule_taint_is_used_last() -> None:
    cluster = make_cluster_snapshot(make_pod("one"), nodes=(make_node("here", taints=(SOFT,)),))
    assert locate_pods(solve(cluster)) == {"one": "default"}
    assert locate_pods(solve(replace(cluster, node_pools=()))) == {"one": "here"}


def test_node_pools_are_tried_by_weight_then_by_name_in_reverse_order() -> None:
    pools = (make_node_pool("a", weight=1), make_node_pool("b"), make_node_pool("c", weight=1))
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), node_pools=pools))) == {"one": "c"}


def test_lighter_node_pool_is_used_for_pods_that_do_not_fit_the_heavier_one() -> None:
    pools = (
        make_node_pool("small", weight=9, requirements=make_requirements((INSTANCE_TYPE, "In", ("m.02",)))),
        make_node_pool("any"),
    )
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", "1"), make_pod("big", "16"), node_pools=pools))) == {
        "one": "small",
        "big": "any",
    }


VARIOUS = make_node_pool(requirements=make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 3}))


@pytest.mark.parametrize(("cpu", "location"), [("1", "default"), ("3", "default"), ("5", "MinValuesNotMet")])
def test_min_values_must_hold_after_filtering_by_resource_requests(cpu: str, location: str) -> None:
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", cpu), node_pools=(VARIOUS,)))) == {"one": location}


def test_pods_are_added_to_a_node_only_while_min_values_hold() -> None:
    placement = solve(
        make_cluster_snapshot(*(make_pod(f"p{number}", "1") for number in range(8)), node_pools=(VARIOUS,))
    )
    assert sorted(len(new_node.pods) for new_node in placement.new_nodes) == [4, 4]


def test_min_values_are_relaxed_with_policy_best_effort() -> None:
    placement = solve(
        make_cluster_snapshot(make_pod("one", "5"), node_pools=(VARIOUS,)),
        options=SchedulingOptions(min_values_policy="BestEffort"),
    )
    (new_node,) = placement.new_nodes
    assert new_node.min_values_relaxed
    assert new_node.requirements[INSTANCE_TYPE].min_values == 2
    unrelaxed_placement = solve(
        make_cluster_snapshot(make_pod("one", "1"), node_pools=(VARIOUS,)),
        options=SchedulingOptions(min_values_policy="BestEffort"),
    )
    assert not unrelaxed_placement.new_nodes[0].min_values_relaxed


def test_node_pool_with_fewer_instance_types_than_min_values_is_reported() -> None:
    node_pool = replace(
        VARIOUS, requirements=make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9})
    )
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), node_pools=(node_pool,)))) == {
        "one": "MinValuesNotMet"
    }
    assert solve(
        make_cluster_snapshot(make_pod("one"), node_pools=(node_pool,)),
        options=SchedulingOptions(min_values_policy="BestEffort"),
    ).new_nodes


def test_min_values_count_only_values_of_instance_types_that_the_node_pool_allows() -> None:
    node_pool = make_node_pool(requirements=make_requirements((ZONE, "In", ("a", "b", "z")), minimum={ZONE: 3}))
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), node_pools=(node_pool,)))) == {
        "one": "MinValuesNotMet"
    }
    types = (*SIZES, make_instance_type("far", 2, zones=("z",)))
    assert solve(make_cluster_snapshot(make_pod("one"), types=types, node_pools=(node_pool,))).new_nodes


def test_node_is_dropped_when_max_instance_types_is_below_min_values() -> None:
    placement = solve(
        make_cluster_snapshot(make_pod("one"), node_pools=(VARIOUS,)), options=SchedulingOptions(max_instance_types=2)
    )
    assert locate_pods(placement) == {"one": "MinValuesNotMet"}
    lenient = SchedulingOptions(max_instance_types=2, min_values_policy="BestEffort")
    assert solve(make_cluster_snapshot(make_pod("one"), node_pools=(VARIOUS,)), options=lenient).new_nodes


def test_min_values_policy_best_effort_does_not_relax_resources_or_host_ports() -> None:
    placement = solve(
        make_cluster_snapshot(make_pod("one", "99"), node_pools=(VARIOUS,)),
        options=SchedulingOptions(min_values_policy="BestEffort"),
    )
    assert locate_pods(placement) == {"one": "NoInstanceTypeFits"}
    ports = (HostPort(port=80),)
    clash = make_cluster_snapshot(
        make_pod("one", host_ports=ports), node_pools=(VARIOUS,), daemon_sets=(make_daemon_set("d", host_ports=ports),)
    )
    assert (
        "a host port of the pod (80/TCP)"
        in solve(clash, options=SchedulingOptions(min_values_policy="BestEffort")).unschedulable[0].message
    )


def test_preferences_are_relaxed_in_the_order_of_karpenter() -> None:
    zone = make_requirements((ZONE, "In", ("b",)))
    soft = [SpreadConstraint(topology_key=key, max_skew=1, when_unsatisfiable="ScheduleAnyway") for key in "xy"]
    hard = SpreadConstraint(topology_key="z", max_skew=1)
    pod_spec = PodSpec(
        required_terms=(zone, make_requirements((ARCH, "Exists", ()))),
        preferred_terms=(PreferredTerm(weight=1, requirements=zone),),
        preferred_pod_affinity=(AffinityTerm(topology_key="a", weight=1), AffinityTerm(topology_key="b", weight=2)),
        preferred_pod_anti_affinity=(AffinityTerm(topology_key="c", weight=1),),
        spread=(soft[0], hard, soft[1]),
    )
    stages = [
        (
            stage.strict.items[0].key,
            "".join(term.topology_key for term in (*stage.affinity, *stage.anti_affinity)),
            ZONE in stage.requirements,
            "".join(constraint.topology_key for constraint in stage.spread),
            len(stage.tolerations),
        )
        for stage in build_relaxation_stages(pod_spec, "Respect", discouraged=True)
    ]
    assert stages == [
        (ZONE, "bac", True, "xzy", 0),
        (ARCH, "bac", True, "xzy", 0),
        (ARCH, "ac", True, "xzy", 0),
        (ARCH, "c", True, "xzy", 0),
        (ARCH, "", True, "xzy", 0),
        (ARCH, "", False, "xzy", 0),
        (ARCH, "", False, "yz", 0),
        (ARCH, "", False, "z", 0),
        (ARCH, "", False, "z", 1),
        (ZONE, "", True, "z", 0),
        (ZONE, "", True, "z", 1),
    ]
    assert len(build_relaxation_stages(pod_spec, "Ignore", discouraged=False)) == 2
