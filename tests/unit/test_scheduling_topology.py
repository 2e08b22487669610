"""Spread, affinity and anti-affinity."""

from collections import Counter

import pytest
from msgspec.structs import replace

from shared.model.cluster import Namespace
from shared.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.objects import pairs
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.selectors import EVERYTHING, LabelSelector, selector
from shared.model.taints import Taint
from shared.scheduling.placement import Options, Placement
from shared.scheduling.solve import claims, solve
from tests.unit.catalogues import SIZES, claimed, instance_type, needs, node, placed, pod, pool, sizes, world

WEB = selector({"app": "web"})


def spread(key: str = ZONE, skew: int = 1, **fields: object) -> SpreadConstraint:
    return replace(SpreadConstraint(topology_key=key, max_skew=skew, selector=WEB), **fields)


def term(key: str = HOSTNAME, some: LabelSelector | None = WEB, **fields: object) -> AffinityTerm:
    return replace(AffinityTerm(topology_key=key, selector=some), **fields)


def web(number: int | str, **fields: object) -> Pod:
    return replace(pod(f"web-{number}", labels={"app": "web"}), spec=replace(pod("x").spec, **fields))


def zones(placement: Placement) -> dict[str, int]:
    """How many pods the new nodes have in each zone, by the zone's name."""
    found: Counter[str] = Counter()
    for made in placement.new_nodes:
        found["".join(sorted(made.requirements[ZONE].values))] += len(made.pods)
    return dict(found)


def test_pods_spread_over_the_zones_that_pools_can_make() -> None:
    assert zones(solve(world(*(web(n, spread=(spread(),)) for n in range(7))))) == {"a": 3, "b": 2, "c": 2}


@pytest.mark.parametrize(("skew", "count"), [(1, 6), (2, 3)])
def test_pods_spread_over_hosts(skew: int, count: int) -> None:
    placement = solve(world(*(web(n, spread=(spread(HOSTNAME, skew),)) for n in range(6))))
    assert sizes(placement) == [skew] * count


def test_running_pods_count_in_a_spread() -> None:
    running = [replace(web(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    placement = solve(world(*running, *(web(n, spread=(spread(),)) for n in range(4)), nodes=(node("here", "0"),)))
    assert zones(placement) == {"b": 2, "c": 2}


def test_pods_on_nodes_that_the_pod_may_not_be_on_do_not_count() -> None:
    running = [replace(web(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    some = web(1, spread=(spread(),), node_selector=(("kubernetes.io/arch", "amd64"),))
    far = node("here", "0", labels={"kubernetes.io/arch": "arm64"})
    assert zones(solve(world(*running, some, nodes=(far,)))) == {"a": 1}


def test_pods_count_where_a_label_must_not_be() -> None:
    unlike = needs(("karpenter.k8s.aws/instance-gpu-name", "DoesNotExist", ()))
    some = {"required_terms": (unlike,), "spread": (spread(HOSTNAME),)}
    assert sizes(solve(world(*(web(n, **some) for n in range(3))))) == [1, 1, 1]


def test_pods_that_end_do_not_count() -> None:
    ends = [replace(web("r0"), node_name="here", phase="Succeeded"), replace(web("r1"), node_name="here")]
    ends[1] = replace(ends[1], meta=replace(ends[1].meta, deleted_at=ends[1].meta.created_at))
    placement = solve(world(*ends, *(web(n, spread=(spread(),)) for n in range(3)), nodes=(node("here", "0"),)))
    assert zones(placement) == {"a": 1, "b": 1, "c": 1}


def test_a_node_that_the_pod_may_not_be_on_is_no_domain() -> None:
    far = node("far", "0", labels={ZONE: "z", "kubernetes.io/arch": "arm64"})
    some = [web(n, spread=(spread(),), node_selector=(("kubernetes.io/arch", "amd64"),)) for n in range(4)]
    assert zones(solve(world(*some, nodes=(far,)))) == {"a": 2, "b": 1, "c": 1}


def test_a_taint_that_discourages_leaves_a_node_in_a_spread_that_honors_taints() -> None:
    running = [replace(web(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    soft = node("here", "0", taints=(Taint(key="soft", effect="PreferNoSchedule"),))
    honor = spread(node_taints_policy="Honor")
    assert zones(solve(world(*running, *(web(n, spread=(honor,)) for n in range(2)), nodes=(soft,)))) == {
        "b": 1,
        "c": 1,
    }


def test_pods_of_others_do_not_count_in_a_spread() -> None:
    running = [replace(pod(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    placement = solve(world(*running, web(1, spread=(spread(),)), nodes=(node("here", "0"),)))
    assert zones(placement) == {"a": 1}


def test_a_spread_uses_only_zones_that_the_pod_may_be_in() -> None:
    some = {"spread": (spread(),), "required_terms": (needs((ZONE, "In", ("a",))), needs((ZONE, "In", ("b",))))}
    assert zones(solve(world(*(web(n, **some) for n in range(4))))) == {"a": 2, "b": 2}
    some["required_terms"] = (needs((ZONE, "In", ("b",))),)
    assert zones(solve(world(*(web(n, **some) for n in range(4))))) == {"b": 4}


def test_a_spread_that_ignores_affinity_counts_zones_that_the_pod_may_not_be_in() -> None:
    some = {
        "spread": (spread(node_affinity_policy="Ignore"),),
        "required_terms": (needs((ZONE, "In", ("b",))),),
    }
    placement = solve(world(*(web(n, **some) for n in range(3))))
    assert zones(placement) == {"b": 1}
    assert {one.reason for one in placement.unschedulable} == {"TopologyNotSatisfied"}
    assert "topology spread over topology.kubernetes.io/zone" in placement.unschedulable[0].message


def test_a_spread_that_honors_taints_leaves_out_tainted_zones() -> None:
    taint = (Taint(key="mine", effect="NoSchedule"),)
    pools = (pool("a", requirements=needs((ZONE, "In", ("a",)))), pool("b", taints=taint))
    honors = [web(n, spread=(spread(node_taints_policy="Honor"),)) for n in range(4)]
    assert zones(solve(world(*honors, node_pools=pools))) == {"a": 4}
    ignores = [web(n, spread=(spread(),)) for n in range(4)]
    assert zones(solve(world(*ignores, node_pools=pools))) == {"a": 1}


def test_fewer_domains_than_asked_for_hold_the_pods_back() -> None:
    few = pool(requirements=needs((ZONE, "In", ("a", "b"))))
    some = [web(n, spread=(spread(min_domains=3),)) for n in range(5)]
    assert zones(solve(world(*some, node_pools=(few,)))) == {"a": 1, "b": 1}
    assert zones(solve(world(*some))) == {"a": 2, "b": 2, "c": 1}


def test_a_spread_that_may_be_broken_is_given_up() -> None:
    only = pool(requirements=needs((ZONE, "In", ("a",))))
    soft = spread(min_domains=2, when_unsatisfiable="ScheduleAnyway")
    assert (
        len(placed(solve(world(web(1, spread=(soft,)), web(2, spread=(soft, spread(HOSTNAME))), node_pools=(only,)))))
        == 2
    )
    assert not solve(world(*(web(n, spread=(soft,)) for n in range(3)), node_pools=(only,))).unschedulable
    ignored = solve(world(web(1, spread=(soft,))), options=Options(preference_policy="Ignore"))
    assert ZONE not in ignored.new_nodes[0].requirements


def test_a_revision_spreads_for_itself() -> None:
    own = spread(match_label_keys=("rev", "none"))
    old = [replace(web(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    new = web(1, spread=(own,))
    new = replace(new, meta=replace(new.meta, labels=pairs({"app": "web", "rev": "2"})))
    assert zones(solve(world(*old, new, nodes=(node("here", "0"),)))) == {"a": 1}


def test_an_unknown_topology_key_is_not_satisfied() -> None:
    for some in (
        {"spread": (spread("rack"),)},
        {"pod_affinity": (term("rack"),)},
        {"pod_anti_affinity": (term("rack"),)},
    ):
        assert placed(solve(world(web(1, **some)))) == {"web-1": "TopologyNotSatisfied"}


def test_a_custom_key_of_the_pool_is_a_topology() -> None:
    some = pool(requirements=needs(("rack", "In", ("r1", "r2"))))
    placement = solve(world(*(web(n, spread=(spread("rack"),)) for n in range(4)), node_pools=(some,)))
    assert sorted(min(made.requirements["rack"].values) for made in placement.new_nodes) == ["r1", "r2"]


def test_capacity_types_are_a_topology() -> None:
    types = (instance_type("m", 8, capacity_types=("spot", "on-demand")),)
    placement = solve(world(*(web(n, spread=(spread(CAPACITY_TYPE),)) for n in range(4)), types=types))
    assert sorted(made.cheapest.capacity_type for made in placement.new_nodes) == ["on-demand", "spot"]


def test_two_constraints_on_one_key_agree_on_a_domain() -> None:
    both = (spread(), spread(selector=selector({"app": "db"})))
    running = (replace(pod("db", labels={"app": "db"}), node_name="here", conditions=()),)
    cluster = world(*running, *(web(n, spread=both) for n in range(3)), nodes=(node("here", "0"),))
    assert zones(solve(cluster)) == {"a": 1, "b": 1, "c": 1}


def test_pods_apart_get_a_host_each() -> None:
    assert sizes(solve(world(*(web(n, pod_anti_affinity=(term(),)) for n in range(4))))) == [1, 1, 1, 1]


def test_pods_apart_stay_off_hosts_that_are_taken() -> None:
    running = replace(web("r"), node_name="here", conditions=())
    placement = solve(world(running, web(1, pod_anti_affinity=(term(),)), nodes=(node("here"), node("there"))))
    assert placed(placement) == {"web-1": "there"}


def test_a_running_pod_keeps_others_away() -> None:
    guard = replace(pod("guard", pod_anti_affinity=(term(),)), node_name="here", conditions=())
    placement = solve(world(guard, web(1), pod("other"), nodes=(node("here"), node("there"))))
    assert placed(placement) == {"web-1": "there", "other": "here"}


def test_a_pending_pod_keeps_others_away() -> None:
    placement = solve(world(pod("guard", "2", pod_anti_affinity=(term(),)), web(1)))
    assert len(placement.new_nodes) == 2


def test_a_node_without_the_label_is_open_to_whom_others_keep_away() -> None:
    guard = replace(pod("guard", pod_anti_affinity=(term("rack"),)), node_name="here", conditions=())
    nodes = (node("here", labels={"rack": "r1"}), node("plain"))
    assert placed(solve(world(guard, web(1), nodes=nodes))) == {"web-1": "plain"}
    assert placed(solve(world(guard, web(1), nodes=nodes[:1]))) == {"web-1": "default"}


def test_pods_apart_by_zone_take_every_zone_their_node_may_be_in() -> None:
    placement = solve(world(*(web(n, pod_anti_affinity=(term(ZONE),)) for n in range(2))))
    assert sorted(placed(placement).values()) == ["TopologyNotSatisfied", "default"]
    fixed = [web(z, pod_anti_affinity=(term(ZONE),), node_selector=((ZONE, z),)) for z in "ab"]
    assert zones(solve(world(*fixed))) == {"a": 1, "b": 1}


def test_pods_together_follow_the_first() -> None:
    placement = solve(world(*(web(n, pod_affinity=(term(ZONE),)) for n in range(40))))
    assert zones(placement) == {"a": 40}


def test_a_set_of_pods_that_began_in_one_zone_does_not_begin_in_another() -> None:
    where = (("web-1", "a"), ("web-2", "b"))
    both = [web(name[-1], pod_affinity=(term(ZONE),), node_selector=((ZONE, zone),)) for name, zone in where]
    assert sorted(placed(solve(world(*both))).values()) == ["TopologyNotSatisfied", "default"]
    running = replace(web("r"), node_name="here", conditions=())
    assert placed(solve(world(running, both[1], nodes=(node("here", "0"),)))) == {"web-2": "TopologyNotSatisfied"}


def test_types_that_a_pool_excludes_are_domains_of_their_labels_and_not_of_zones() -> None:
    family, category = "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-category"
    types = [
        instance_type(name, 4, labels={family: [name], category: [name[0]]}, zones=zones_)
        for name, zones_ in (("m1", "ab"), ("m2", "ab"), ("g1", "abz"))
    ]
    some = pool(requirements=needs((category, "In", ("m",))))
    by_family = [web(number, spread=(spread(family),)) for number in range(3)]
    assert sorted(placed(solve(world(*by_family, types=types, node_pools=(some,)))).values()) == [
        "TopologyNotSatisfied",
        "default",
        "default",
    ]
    by_zone = [web(number, spread=(spread(),)) for number in range(4)]
    assert zones(solve(world(*by_zone, types=types, node_pools=(some,)))) == {"a": 2, "b": 2}


def test_pods_together_follow_who_runs() -> None:
    running = replace(web("r"), node_name="here", conditions=())
    nodes = (node("here", "0", labels={ZONE: "b"}),)
    assert zones(solve(world(running, web(1, pod_affinity=(term(ZONE),)), nodes=nodes))) == {"b": 1}
    same_host = solve(world(running, web(1, pod_affinity=(term(),)), nodes=(node("here"), node("a"))))
    assert placed(same_host) == {"web-1": "here"}


def test_a_follower_waits_for_whom_it_follows() -> None:
    follower = pod("big", "3", pod_affinity=(term(),))
    placement = solve(world(follower, web(1)))
    assert sizes(placement) == [2]
    assert placed(solve(world(follower))) == {"big": "TopologyNotSatisfied"}


def test_a_preferred_neighbour_is_given_up() -> None:
    preferred = term(weight=5)
    assert placed(solve(world(pod("p", preferred_pod_affinity=(preferred,))))) == {"p": "default"}
    apart = [web(n, preferred_pod_anti_affinity=(preferred,)) for n in range(3)]
    assert sizes(solve(world(*apart))) == [1, 1, 1]
    assert not solve(world(*apart, node_pools=(), nodes=(node("here"),))).unschedulable


@pytest.mark.parametrize(
    ("fields", "apart"),
    [
        ({}, False),
        ({"namespaces": ("bank",)}, True),
        ({"namespace_selector": EVERYTHING}, True),
        ({"namespace_selector": selector({"tier": "x"})}, True),
        ({"namespace_selector": selector({"tier": "y"})}, False),
        ({"namespaces": ("bank",), "namespace_selector": selector({"tier": "y"})}, True),
        ({"selector": None}, False),
        ({"namespaces": ("bank",), "mismatch_label_keys": ("app",)}, False),
    ],
)
def test_a_term_is_about_the_namespaces_it_names(fields: dict[str, object], *, apart: bool) -> None:
    other = replace(web("r"), node_name="here", conditions=())
    other = replace(other, meta=replace(other.meta, namespace="bank"))
    spaces = (Namespace(name="bank", labels=(("tier", "x"),)), Namespace(name="shop"))
    some = replace(term(), **fields)
    cluster = world(other, web(1, pod_anti_affinity=(some,)), nodes=(node("here"),), namespaces=spaces)
    assert placed(solve(cluster)) == {"web-1": "default" if apart else "here"}


@pytest.mark.parametrize(("revision", "where"), [("1", "default"), ("2", "here")])
def test_a_term_may_be_about_pods_of_the_same_revision(revision: str, where: str) -> None:
    running = pod("r", labels={"app": "web", "rev": "1"}, on="here")
    apart = (term(match_label_keys=("rev",)),)
    some = pod("x", labels={"app": "web", "rev": revision}, pod_anti_affinity=apart)
    assert placed(solve(world(running, some, nodes=(node("here"),)))) == {"x": where}


def test_a_pod_that_is_counted_once_its_nodes_zone_is_known() -> None:
    plain = [replace(web("plain"), spec=replace(pod("x", "2").spec))]
    placement = solve(world(*plain, web(1, spread=(spread(),)), web(2, spread=(spread(),)), types=SIZES[:2]))
    assert zones(placement) == {"a": 2, "b": 1}
    assert not placement.approximations


def test_a_pod_that_cannot_be_counted_is_listed() -> None:
    full = replace(web("full"), spec=replace(pod("x", "4").spec))
    placement = solve(world(full, web(1, spread=(spread(),)), types=SIZES[:2]))
    assert [(one.pod, one.constraint) for one in placement.approximations] == [
        ("shop/web-full", "topology spread over topology.kubernetes.io/zone: undecided until launch")
    ]


def test_what_is_on_its_way_counts() -> None:
    cluster = world(*(web(n, spread=(spread(),), pod_anti_affinity=(term(),)) for n in range(4)))
    again = replace(cluster, node_claims=claims(solve(cluster), cluster))
    assert not solve(again).new_nodes
    more = replace(again, pods=(*again.pods, web(9, spread=(spread(),))))
    assert not {"a"} & set(zones(solve(more)))


def test_nodes_of_our_own_are_domains() -> None:
    own, claim = claimed(node("far", "0", labels={ZONE: "z"}))
    cluster = world(*(web(n, spread=(spread(),)) for n in range(4)), nodes=(own,), node_claims=(claim,))
    placement = solve(cluster)
    assert zones(placement) == {"a": 1, "b": 1, "c": 1}
    assert [one.reason for one in placement.unschedulable] == ["TopologyNotSatisfied"]
