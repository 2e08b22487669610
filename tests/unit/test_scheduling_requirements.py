"""Selectors, affinity to nodes, taints, preferences, weights and minValues."""

import pytest
from msgspec.structs import replace

from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODECLASS, NODEPOOL, ZONE
from shared.model.pods import AffinityTerm, HostPort, PodSpec, PreferredTerm, SpreadConstraint
from shared.model.selectors import selector as selecting
from shared.model.taints import Taint, Toleration
from shared.scheduling.placement import Options
from shared.scheduling.relaxation import stages
from shared.scheduling.solve import solve
from tests.unit.catalogues import SIZES, daemon, instance_type, needs, node, placed, pod, pool, world

GPU = Taint(key="gpu", effect="NoSchedule")
SOFT = Taint(key="soft", effect="PreferNoSchedule")


@pytest.mark.parametrize(
    ("selector", "where"),
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
def test_a_node_selector_is_met_or_the_pod_waits(selector: dict[str, str], where: str) -> None:
    some = pool(labels=(("team", "a"),), requirements=needs(("any", "Exists", ())))
    placement = solve(world(pod("one", node_selector=tuple(sorted(selector.items()))), node_pools=(some,)))
    assert placed(placement) == {"one": where}


@pytest.mark.parametrize("key", ["a", "b", "c"])
def test_a_node_is_narrowed_to_what_its_pods_ask(key: str) -> None:
    (made,) = solve(world(pod("one", node_selector=((ZONE, key),)))).new_nodes
    assert made.requirements[ZONE].values == {key}
    assert made.cheapest.zone == key


def test_pods_that_cannot_be_together_get_two_nodes() -> None:
    assert len(solve(world(*(pod(zone, node_selector=((ZONE, zone),)) for zone in "ab"))).new_nodes) == 2


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
def test_a_label_nobody_defines_can_only_be_unwanted(operator: str, values: tuple[str, ...], *, fits: bool) -> None:
    some = pod("one", required_terms=(needs(("mine", operator, values)),))
    assert bool(solve(world(some)).new_nodes) is fits


def test_a_label_is_not_defined_by_another_pod_that_does_not_want_it() -> None:
    unwanted = pod("big", "2", required_terms=(needs(("mine", "NotIn", ("b",))),))
    assert placed(solve(world(unwanted, pod("one", node_selector=(("mine", "a"),)))))["one"] == "RequirementsNotMet"


def test_terms_are_tried_in_order_until_one_works() -> None:
    terms = tuple(needs((ZONE, "In", (zone,))) for zone in "zyb")
    (made,) = solve(world(pod("one", required_terms=terms))).new_nodes
    assert made.requirements[ZONE].values == {"b"}


def test_a_term_that_was_dropped_beside_a_preference_is_tried_without_it() -> None:
    terms = (needs((ZONE, "In", ("b",))), needs((ZONE, "In", ("z",))))
    never = PreferredTerm(weight=1, requirements=needs((ARCH, "In", ("arm64",))))
    (made,) = solve(world(pod("one", required_terms=terms, preferred_terms=(never,)))).new_nodes
    assert made.requirements[ZONE].values == {"b"}
    soft = (pool(taints=(SOFT,)),)
    assert placed(solve(world(pod("one", required_terms=terms), node_pools=soft))) == {"one": "default"}


@pytest.mark.parametrize(("zones", "got"), [("a", "a"), ("z", "c"), ("zb", "b")])
def test_preferences_hold_where_they_can_the_heaviest_first(zones: str, got: str) -> None:
    preferred = tuple(
        PreferredTerm(weight=9 - number, requirements=needs((ZONE, "In", (zone,)))) for number, zone in enumerate(zones)
    )
    required = (needs((ZONE, "In", (got, "c"))),)
    (made,) = solve(world(pod("one", preferred_terms=preferred, required_terms=required))).new_nodes
    assert got in made.requirements[ZONE].values


def test_a_preference_for_pods_that_are_nowhere_outlives_none_that_could_hold() -> None:
    near, nowhere = (
        AffinityTerm(topology_key=key, selector=selecting({"app": app}), weight=weight)
        for key, app, weight in ((ZONE, "db", 50), (HOSTNAME, "none", 5))
    )
    there = pod("db", "14", labels={"app": "db"}, node_selector=((ZONE, "b"),))
    some = pod("one", "14", preferred_pod_affinity=(near, nowhere))
    nodes = solve(world(there, some)).new_nodes
    assert [node.requirements[ZONE].values for node in nodes] == [frozenset("b")] * 2


def test_preferences_may_be_ignored() -> None:
    some = pod("one", preferred_terms=(PreferredTerm(weight=1, requirements=needs((ZONE, "In", ("b",)))),))
    (made,) = solve(world(some), options=Options(preference_policy="Ignore")).new_nodes
    assert ZONE not in made.requirements


def test_a_pod_that_contradicts_itself_waits() -> None:
    some = pod("one", node_selector=(("team", "a"),), required_terms=(needs(("team", "In", ("b",))),))
    placement = solve(world(some, node_pools=(pool(),)))
    assert placed(placement) == {"one": "RequirementsNotMet"}
    assert "contradict" in placement.unschedulable[0].message


@pytest.mark.parametrize(
    ("tolerations", "where"),
    [
        ((), "TaintNotTolerated"),
        ((Toleration(key="gpu", operator="Exists"),), "default"),
        ((Toleration(operator="Exists"),), "default"),
        ((Toleration(key="gpu", operator="Exists", effect="NoExecute"),), "TaintNotTolerated"),
    ],
)
def test_the_taints_of_a_pool_must_be_tolerated(tolerations: tuple[Toleration, ...], where: str) -> None:
    placement = solve(world(pod("one", tolerations=tolerations), node_pools=(pool(taints=(GPU,)),)))
    assert placed(placement) == {"one": where}


def test_startup_taints_are_no_obstacle() -> None:
    assert solve(world(pod("one"), node_pools=(pool(startup_taints=(GPU,)),))).new_nodes


def test_a_taint_that_discourages_is_tolerated_last() -> None:
    pools = (pool("soft", weight=9, taints=(SOFT,)), pool("plain"))
    assert placed(solve(world(pod("one"), node_pools=pools))) == {"one": "plain"}
    assert placed(solve(world(pod("one"), node_pools=pools[:1]))) == {"one": "soft"}


def test_a_node_that_discourages_is_used_last() -> None:
    cluster = world(pod("one"), nodes=(node("here", taints=(SOFT,)),))
    assert placed(solve(cluster)) == {"one": "default"}
    assert placed(solve(replace(cluster, node_pools=()))) == {"one": "here"}


def test_the_heaviest_pool_comes_first_then_the_last_name() -> None:
    pools = (pool("a", weight=1), pool("b"), pool("c", weight=1))
    assert placed(solve(world(pod("one"), node_pools=pools))) == {"one": "c"}


def test_a_lighter_pool_takes_what_the_heavier_cannot() -> None:
    pools = (pool("small", weight=9, requirements=needs((INSTANCE_TYPE, "In", ("m.02",)))), pool("any"))
    assert placed(solve(world(pod("one", "1"), pod("big", "16"), node_pools=pools))) == {"one": "small", "big": "any"}


VARIOUS = pool(requirements=needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 3}))


@pytest.mark.parametrize(("cpu", "where"), [("1", "default"), ("3", "default"), ("5", "MinValuesNotMet")])
def test_min_values_hold_after_every_filter(cpu: str, where: str) -> None:
    assert placed(solve(world(pod("one", cpu), node_pools=(VARIOUS,)))) == {"one": where}


def test_pods_go_no_further_than_min_values_allow() -> None:
    placement = solve(world(*(pod(f"p{number}", "1") for number in range(8)), node_pools=(VARIOUS,)))
    assert sorted(len(made.pods) for made in placement.new_nodes) == [4, 4]


def test_min_values_are_lowered_where_best_effort_is_enough() -> None:
    placement = solve(world(pod("one", "5"), node_pools=(VARIOUS,)), options=Options(min_values_policy="BestEffort"))
    (made,) = placement.new_nodes
    assert made.min_values_relaxed
    assert made.requirements[INSTANCE_TYPE].min_values == 2
    kept = solve(world(pod("one", "1"), node_pools=(VARIOUS,)), options=Options(min_values_policy="BestEffort"))
    assert not kept.new_nodes[0].min_values_relaxed


def test_a_pool_whose_types_are_too_few_is_named() -> None:
    some = replace(VARIOUS, requirements=needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9}))
    assert placed(solve(world(pod("one"), node_pools=(some,)))) == {"one": "MinValuesNotMet"}
    assert solve(world(pod("one"), node_pools=(some,)), options=Options(min_values_policy="BestEffort")).new_nodes


def test_min_values_count_values_of_types_that_the_pool_allows() -> None:
    some = pool(requirements=needs((ZONE, "In", ("a", "b", "z")), minimum={ZONE: 3}))
    assert placed(solve(world(pod("one"), node_pools=(some,)))) == {"one": "MinValuesNotMet"}
    types = (*SIZES, instance_type("far", 2, zones=("z",)))
    assert solve(world(pod("one"), types=types, node_pools=(some,))).new_nodes


def test_a_list_cut_below_min_values_drops_the_node() -> None:
    placement = solve(world(pod("one"), node_pools=(VARIOUS,)), options=Options(max_instance_types=2))
    assert placed(placement) == {"one": "MinValuesNotMet"}
    lenient = Options(max_instance_types=2, min_values_policy="BestEffort")
    assert solve(world(pod("one"), node_pools=(VARIOUS,)), options=lenient).new_nodes


def test_best_effort_does_not_make_room() -> None:
    placement = solve(world(pod("one", "99"), node_pools=(VARIOUS,)), options=Options(min_values_policy="BestEffort"))
    assert placed(placement) == {"one": "NoInstanceTypeFits"}
    ports = (HostPort(port=80),)
    clash = world(pod("one", host_ports=ports), node_pools=(VARIOUS,), daemon_sets=(daemon("d", host_ports=ports),))
    assert (
        "a host port of the pod's (80/TCP)"
        in solve(clash, options=Options(min_values_policy="BestEffort")).unschedulable[0].message
    )


def test_preferences_are_given_up_in_karpenters_order() -> None:
    zone = needs((ZONE, "In", ("b",)))
    soft = [SpreadConstraint(topology_key=key, max_skew=1, when_unsatisfiable="ScheduleAnyway") for key in "xy"]
    hard = SpreadConstraint(topology_key="z", max_skew=1)
    some = PodSpec(
        required_terms=(zone, needs((ARCH, "Exists", ()))),
        preferred_terms=(PreferredTerm(weight=1, requirements=zone),),
        preferred_pod_affinity=(AffinityTerm(topology_key="a", weight=1), AffinityTerm(topology_key="b", weight=2)),
        preferred_pod_anti_affinity=(AffinityTerm(topology_key="c", weight=1),),
        spread=(soft[0], hard, soft[1]),
    )
    found = [
        (
            stage.strict.items[0].key,
            "".join(one.topology_key for one in (*stage.affinity, *stage.anti_affinity)),
            ZONE in stage.requirements,
            "".join(one.topology_key for one in stage.spread),
            len(stage.tolerations),
        )
        for stage in stages(some, "Respect", discouraged=True)
    ]
    assert found == [
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
    assert len(stages(some, "Ignore", discouraged=False)) == 2
