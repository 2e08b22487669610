"""Topology spread, pod affinity and pod anti-affinity."""

from collections import Counter

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.core.metadata import build_pairs
from shared.model.core.selectors import EVERYTHING, LabelSelector, build_label_selector
from shared.model.core.taints import Taint
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from shared.model.kubernetes.workloads import Namespace
from tests.support.catalogues import (
    SIZES,
    attach_claim,
    count_pods_per_new_node,
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

WEB = build_label_selector({"app": "web"})


def make_spread(key: str = ZONE, skew: int = 1, **fields: object) -> SpreadConstraint:
    return replace(SpreadConstraint(topology_key=key, max_skew=skew, selector=WEB), **fields)


def make_affinity_term(key: str = HOSTNAME, selector: LabelSelector | None = WEB, **fields: object) -> AffinityTerm:
    return replace(AffinityTerm(topology_key=key, selector=selector), **fields)


def make_web_pod(number: int | str, **fields: object) -> Pod:
    return replace(make_pod(f"web-{number}", labels={"app": "web"}), spec=replace(make_pod("x").spec, **fields))


def count_pods_by_zone(placement: Placement) -> dict[str, int]:
    """Return the number of pods on the new nodes of each zone, by zone name."""
    pod_counts: Counter[str] = Counter()
    for new_node in placement.new_nodes:
        pod_counts["".join(sorted(new_node.requirements[ZONE].values))] += len(new_node.pods)
    return dict(pod_counts)


def test_pods_spread_over_the_zones_that_node_pools_can_provide() -> None:
    assert count_pods_by_zone(
        solve(make_cluster_snapshot(*(make_web_pod(n, spread=(make_spread(),)) for n in range(7))))
    ) == {"a": 3, "b": 2, "c": 2}


@pytest.mark.parametrize(("skew", "count"), [(1, 6), (2, 3)])
def test_pods_spread_over_hosts_up_to_max_skew(skew: int, count: int) -> None:
    placement = solve(
        make_cluster_snapshot(*(make_web_pod(n, spread=(make_spread(HOSTNAME, skew),)) for n in range(6)))
    )
    assert count_pods_per_new_node(placement) == [skew] * count


def test_running_pods_count_in_a_topology_spread() -> None:
    running = [replace(make_web_pod(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    placement = solve(
        make_cluster_snapshot(
            *running, *(make_web_pod(n, spread=(make_spread(),)) for n in range(4)), nodes=(make_node("here", "0"),)
        )
    )
    assert count_pods_by_zone(placement) == {"b": 2, "c": 2}


def test_pods_on_nodes_that_do_not_match_the_node_selector_do_not_count() -> None:
    running = [replace(make_web_pod(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    pod = make_web_pod(1, spread=(make_spread(),), node_selector=(("kubernetes.io/arch", "amd64"),))
    far = make_node("here", "0", labels={"kubernetes.io/arch": "arm64"})
    assert count_pods_by_zone(solve(make_cluster_snapshot(*running, pod, nodes=(far,)))) == {"a": 1}


def test_topology_spread_counts_nodes_with_a_does_not_exist_requirement() -> None:
    unlike = make_requirements(("karpenter.k8s.aws/instance-gpu-name", "DoesNotExist", ()))
    pod_fields = {"required_terms": (unlike,), "spread": (make_spread(HOSTNAME),)}
    assert count_pods_per_new_node(
        solve(make_cluster_snapshot(*(make_web_pod(n, **pod_fields) for n in range(3))))
    ) == [1, 1, 1]


def test_completed_and_terminating_pods_do_not_count_in_a_topology_spread() -> None:
    ends = [
        replace(make_web_pod("r0"), node_name="here", phase="Succeeded"),
        replace(make_web_pod("r1"), node_name="here"),
    ]
    ends[1] = replace(ends[1], meta=replace(ends[1].meta, deleted_at=ends[1].meta.created_at))
    placement = solve(
        make_cluster_snapshot(
            *ends, *(make_web_pod(n, spread=(make_spread(),)) for n in range(3)), nodes=(make_node("here", "0"),)
        )
    )
    assert count_pods_by_zone(placement) == {"a": 1, "b": 1, "c": 1}


def test_node_that_does_not_match_the_node_selector_is_no_domain() -> None:
    far = make_node("far", "0", labels={ZONE: "z", "kubernetes.io/arch": "arm64"})
    pods = [
        make_web_pod(n, spread=(make_spread(),), node_selector=(("kubernetes.io/arch", "amd64"),)) for n in range(4)
    ]
    assert count_pods_by_zone(solve(make_cluster_snapshot(*pods, nodes=(far,)))) == {"a": 2, "b": 1, "c": 1}


def test_prefer_no_schedule_taint_does_not_exclude_a_node_from_a_spread_that_honors_taints() -> None:
    running = [replace(make_web_pod(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    soft = make_node("here", "0", taints=(Taint(key="soft", effect="PreferNoSchedule"),))
    honor = make_spread(node_taints_policy="Honor")
    assert count_pods_by_zone(
        solve(make_cluster_snapshot(*running, *(make_web_pod(n, spread=(honor,)) for n in range(2)), nodes=(soft,)))
    ) == {
        "b": 1,
        "c": 1,
    }


def test_pods_that_do_not_match_the_selector_do_not_count_in_a_topology_spread() -> None:
    running = [replace(make_pod(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    placement = solve(
        make_cluster_snapshot(*running, make_web_pod(1, spread=(make_spread(),)), nodes=(make_node("here", "0"),))
    )
    assert count_pods_by_zone(placement) == {"a": 1}


def test_topology_spread_uses_only_zones_that_node_affinity_allows() -> None:
    pod_fields = {
        "spread": (make_spread(),),
        "required_terms": (make_requirements((ZONE, "In", ("a",))), make_requirements((ZONE, "In", ("b",)))),
    }
    assert count_pods_by_zone(solve(make_cluster_snapshot(*(make_web_pod(n, **pod_fields) for n in range(4))))) == {
        "a": 2,
        "b": 2,
    }
    pod_fields["required_terms"] = (make_requirements((ZONE, "In", ("b",))),)
    assert count_pods_by_zone(solve(make_cluster_snapshot(*(make_web_pod(n, **pod_fields) for n in range(4))))) == {
        "b": 4
    }


def test_topology_spread_that_ignores_node_affinity_counts_excluded_zones() -> None:
    pod_fields = {
        "spread": (make_spread(node_affinity_policy="Ignore"),),
        "required_terms": (make_requirements((ZONE, "In", ("b",))),),
    }
    placement = solve(make_cluster_snapshot(*(make_web_pod(n, **pod_fields) for n in range(3))))
    assert count_pods_by_zone(placement) == {"b": 1}
    assert {failure.reason for failure in placement.unschedulable} == {"TopologyNotSatisfied"}
    assert "topology spread over topology.kubernetes.io/zone" in placement.unschedulable[0].message


def test_topology_spread_that_honors_taints_leaves_out_tainted_zones() -> None:
    taint = (Taint(key="mine", effect="NoSchedule"),)
    pools = (
        make_node_pool("a", requirements=make_requirements((ZONE, "In", ("a",)))),
        make_node_pool("b", taints=taint),
    )
    honors = [make_web_pod(n, spread=(make_spread(node_taints_policy="Honor"),)) for n in range(4)]
    assert count_pods_by_zone(solve(make_cluster_snapshot(*honors, node_pools=pools))) == {"a": 4}
    ignores = [make_web_pod(n, spread=(make_spread(),)) for n in range(4)]
    assert count_pods_by_zone(solve(make_cluster_snapshot(*ignores, node_pools=pools))) == {"a": 1}


def test_pods_stay_unscheduled_when_domains_are_fewer_than_min_domains() -> None:
    two_zone_pool = make_node_pool(requirements=make_requirements((ZONE, "In", ("a", "b"))))
    pods = [make_web_pod(n, spread=(make_spread(min_domains=3),)) for n in range(5)]
    assert count_pods_by_zone(solve(make_cluster_snapshot(*pods, node_pools=(two_zone_pool,)))) == {"a": 1, "b": 1}
    assert count_pods_by_zone(solve(make_cluster_snapshot(*pods))) == {"a": 2, "b": 2, "c": 1}


def test_schedule_anyway_spread_is_relaxed() -> None:
    only = make_node_pool(requirements=make_requirements((ZONE, "In", ("a",))))
    soft = make_spread(min_domains=2, when_unsatisfiable="ScheduleAnyway")
    assert (
        len(
            locate_pods(
                solve(
                    make_cluster_snapshot(
                        make_web_pod(1, spread=(soft,)),
                        make_web_pod(2, spread=(soft, make_spread(HOSTNAME))),
                        node_pools=(only,),
                    )
                )
            )
        )
        == 2
    )
    assert not solve(
        make_cluster_snapshot(*(make_web_pod(n, spread=(soft,)) for n in range(3)), node_pools=(only,))
    ).unschedulable
    ignored = solve(
        make_cluster_snapshot(make_web_pod(1, spread=(soft,))), options=SchedulingOptions(preference_policy="Ignore")
    )
    assert ZONE not in ignored.new_nodes[0].requirements


def test_match_label_keys_make_each_revision_spread_separately() -> None:
    spread = make_spread(match_label_keys=("rev", "none"))
    old = [replace(make_web_pod(f"r{n}"), node_name="here", conditions=()) for n in range(2)]
    new = make_web_pod(1, spread=(spread,))
    new = replace(new, meta=replace(new.meta, labels=build_pairs({"app": "web", "rev": "2"})))
    assert count_pods_by_zone(solve(make_cluster_snapshot(*old, new, nodes=(make_node("here", "0"),)))) == {"a": 1}


def test_unknown_topology_key_is_not_satisfied() -> None:
    for pod_fields in (
        {"spread": (make_spread("rack"),)},
        {"pod_affinity": (make_affinity_term("rack"),)},
        {"pod_anti_affinity": (make_affinity_term("rack"),)},
    ):
        assert locate_pods(solve(make_cluster_snapshot(make_web_pod(1, **pod_fields)))) == {
            "web-1": "TopologyNotSatisfied"
        }


def test_custom_label_of_a_node_pool_is_a_topology_key() -> None:
    rack_pool = make_node_pool(requirements=make_requirements(("rack", "In", ("r1", "r2"))))
    placement = solve(
        make_cluster_snapshot(
            *(make_web_pod(n, spread=(make_spread("rack"),)) for n in range(4)), node_pools=(rack_pool,)
        )
    )
    assert sorted(min(new_node.requirements["rack"].values) for new_node in placement.new_nodes) == ["r1", "r2"]


def test_capacity_type_is_a_topology_key() -> None:
    types = (make_instance_type("m", 8, capacity_types=("spot", "on-demand")),)
    placement = solve(
        make_cluster_snapshot(*(make_web_pod(n, spread=(make_spread(CAPACITY_TYPE),)) for n in range(4)), types=types)
    )
    assert sorted(new_node.cheapest.capacity_type for new_node in placement.new_nodes) == ["on-demand", "spot"]


def test_two_spread_constraints_on_one_key_agree_on_a_domain() -> None:
    spreads = (make_spread(), make_spread(selector=build_label_selector({"app": "db"})))
    running = (replace(make_pod("db", labels={"app": "db"}), node_name="here", conditions=()),)
    cluster = make_cluster_snapshot(
        *running, *(make_web_pod(n, spread=spreads) for n in range(3)), nodes=(make_node("here", "0"),)
    )
    assert count_pods_by_zone(solve(cluster)) == {"a": 1, "b": 1, "c": 1}


def test_pods_with_host_anti_affinity_get_a_node_each() -> None:
    assert count_pods_per_new_node(
        solve(make_cluster_snapshot(*(make_web_pod(n, pod_anti_affinity=(make_affinity_term(),)) for n in range(4))))
    ) == [1, 1, 1, 1]


def test_pods_with_host_anti_affinity_avoid_nodes_with_matching_pods() -> None:
    running = replace(make_web_pod("r"), node_name="here", conditions=())
    placement = solve(
        make_cluster_snapshot(
            running,
            make_web_pod(1, pod_anti_affinity=(make_affinity_term(),)),
            nodes=(make_node("here"), make_node("there")),
        )
    )
    assert locate_pods(placement) == {"web-1": "there"}


def test_anti_affinity_of_a_running_pod_excludes_matching_pods() -> None:
    guard = replace(make_pod("guard", pod_anti_affinity=(make_affinity_term(),)), node_name="here", conditions=())
    placement = solve(
        make_cluster_snapshot(guard, make_web_pod(1), make_pod("other"), nodes=(make_node("here"), make_node("there")))
    )
    assert locate_pods(placement) == {"web-1": "there", "other": "here"}


def test_anti_affinity_of_a_pending_pod_excludes_matching_pods() -> None:
    placement = solve(
        make_cluster_snapshot(make_pod("guard", "2", pod_anti_affinity=(make_affinity_term(),)), make_web_pod(1))
    )
    assert len(placement.new_nodes) == 2


def test_node_without_the_topology_label_is_not_restricted_by_anti_affinity() -> None:
    guard = replace(make_pod("guard", pod_anti_affinity=(make_affinity_term("rack"),)), node_name="here", conditions=())
    nodes = (make_node("here", labels={"rack": "r1"}), make_node("plain"))
    assert locate_pods(solve(make_cluster_snapshot(guard, make_web_pod(1), nodes=nodes))) == {"web-1": "plain"}
    assert locate_pods(solve(make_cluster_snapshot(guard, make_web_pod(1), nodes=nodes[:1]))) == {"web-1": "default"}


def test_zonal_anti_affinity_blocks_every_zone_the_new_node_may_be_in() -> None:
    placement = solve(
        make_cluster_snapshot(*(make_web_pod(n, pod_anti_affinity=(make_affinity_term(ZONE),)) for n in range(2)))
    )
    assert sorted(locate_pods(placement).values()) == ["TopologyNotSatisfied", "default"]
    fixed = [make_web_pod(z, pod_anti_affinity=(make_affinity_term(ZONE),), node_selector=((ZONE, z),)) for z in "ab"]
    assert count_pods_by_zone(solve(make_cluster_snapshot(*fixed))) == {"a": 1, "b": 1}


def test_pods_with_zonal_affinity_follow_the_first_pod() -> None:
    placement = solve(
        make_cluster_snapshot(*(make_web_pod(n, pod_affinity=(make_affinity_term(ZONE),)) for n in range(40)))
    )
    assert count_pods_by_zone(placement) == {"a": 40}


def test_self_affine_pods_do_not_start_in_a_second_zone() -> None:
    names_and_zones = (("web-1", "a"), ("web-2", "b"))
    pods = [
        make_web_pod(name[-1], pod_affinity=(make_affinity_term(ZONE),), node_selector=((ZONE, zone),))
        for name, zone in names_and_zones
    ]
    assert sorted(locate_pods(solve(make_cluster_snapshot(*pods))).values()) == ["TopologyNotSatisfied", "default"]
    running = replace(make_web_pod("r"), node_name="here", conditions=())
    assert locate_pods(solve(make_cluster_snapshot(running, pods[1], nodes=(make_node("here", "0"),)))) == {
        "web-2": "TopologyNotSatisfied"
    }


def test_excluded_instance_types_are_domains_of_their_labels_but_not_of_zones() -> None:
    family, category = "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-category"
    types = [
        make_instance_type(name, 4, labels={family: [name], category: [name[0]]}, zones=zones_)
        for name, zones_ in (("m1", "ab"), ("m2", "ab"), ("g1", "abz"))
    ]
    node_pool = make_node_pool(requirements=make_requirements((category, "In", ("m",))))
    by_family = [make_web_pod(number, spread=(make_spread(family),)) for number in range(3)]
    assert sorted(
        locate_pods(solve(make_cluster_snapshot(*by_family, types=types, node_pools=(node_pool,)))).values()
    ) == [
        "TopologyNotSatisfied",
        "default",
        "default",
    ]
    by_zone = [make_web_pod(number, spread=(make_spread(),)) for number in range(4)]
    assert count_pods_by_zone(solve(make_cluster_snapshot(*by_zone, types=types, node_pools=(node_pool,)))) == {
        "a": 2,
        "b": 2,
    }


def test_pods_with_affinity_follow_running_pods() -> None:
    running = replace(make_web_pod("r"), node_name="here", conditions=())
    nodes = (make_node("here", "0", labels={ZONE: "b"}),)
    assert count_pods_by_zone(
        solve(make_cluster_snapshot(running, make_web_pod(1, pod_affinity=(make_affinity_term(ZONE),)), nodes=nodes))
    ) == {"b": 1}
    same_host = solve(
        make_cluster_snapshot(
            running, make_web_pod(1, pod_affinity=(make_affinity_term(),)), nodes=(make_node("here"), make_node("a"))
        )
    )
    assert locate_pods(same_host) == {"web-1": "here"}


def test_pod_with_affinity_waits_until_its_target_is_scheduled() -> None:
    follower = make_pod("big", "3", pod_affinity=(make_affinity_term(),))
    placement = solve(make_cluster_snapshot(follower, make_web_pod(1)))
    assert count_pods_per_new_node(placement) == [2]
    assert locate_pods(solve(make_cluster_snapshot(follower))) == {"big": "TopologyNotSatisfied"}


def test_preferred_pod_affinity_and_anti_affinity_are_relaxed() -> None:
    preferred = make_affinity_term(weight=5)
    assert locate_pods(solve(make_cluster_snapshot(make_pod("p", preferred_pod_affinity=(preferred,))))) == {
        "p": "default"
    }
    apart = [make_web_pod(n, preferred_pod_anti_affinity=(preferred,)) for n in range(3)]
    assert count_pods_per_new_node(solve(make_cluster_snapshot(*apart))) == [1, 1, 1]
    assert not solve(make_cluster_snapshot(*apart, node_pools=(), nodes=(make_node("here"),))).unschedulable


@pytest.mark.parametrize(
    ("fields", "apart"),
    [
        ({}, False),
        ({"namespaces": ("bank",)}, True),
        ({"namespace_selector": EVERYTHING}, True),
        ({"namespace_selector": build_label_selector({"tier": "x"})}, True),
        ({"namespace_selector": build_label_selector({"tier": "y"})}, False),
        ({"namespaces": ("bank",), "namespace_selector": build_label_selector({"tier": "y"})}, True),
        ({"selector": None}, False),
        ({"namespaces": ("bank",), "mismatch_label_keys": ("app",)}, False),
    ],
)
def test_affinity_term_applies_to_its_namespaces_and_namespace_selector(
    fields: dict[str, object], *, apart: bool
) -> None:
    other_pod = replace(make_web_pod("r"), node_name="here", conditions=())
    other_pod = replace(other_pod, meta=replace(other_pod.meta, namespace="bank"))
    spaces = (Namespace(name="bank", labels=(("tier", "x"),)), Namespace(name="shop"))
    affinity_term = replace(make_affinity_term(), **fields)
    cluster = make_cluster_snapshot(
        other_pod, make_web_pod(1, pod_anti_affinity=(affinity_term,)), nodes=(make_node("here"),), namespaces=spaces
    )
    assert locate_pods(solve(cluster)) == {"web-1": "default" if apart else "here"}


@pytest.mark.parametrize(("revision", "location"), [("1", "default"), ("2", "here")])
def test_match_label_keys_of_an_affinity_term_limit_it_to_the_same_revision(revision: str, location: str) -> None:
    running = make_pod("r", labels={"app": "web", "rev": "1"}, on="here")
    apart = (make_affinity_term(match_label_keys=("rev",)),)
    pod = make_pod("x", labels={"app": "web", "rev": revision}, pod_anti_affinity=apart)
    assert locate_pods(solve(make_cluster_snapshot(running, pod, nodes=(make_node("here"),)))) == {"x": location}


def test_pod_is_counted_in_a_spread_once_the_zone_of_its_node_is_known() -> None:
    plain = [replace(make_web_pod("plain"), spec=replace(make_pod("x", "2").spec))]
    placement = solve(
        make_cluster_snapshot(
            *plain, make_web_pod(1, spread=(make_spread(),)), make_web_pod(2, spread=(make_spread(),)), types=SIZES[:2]
        )
    )
    assert count_pods_by_zone(placement) == {"a": 2, "b": 1}
    assert not placement.approximations


def test_pod_in_an_undetermined_zone_is_reported_as_an_approximation() -> None:
    full = replace(make_web_pod("full"), spec=replace(make_pod("x", "4").spec))
    placement = solve(make_cluster_snapshot(full, make_web_pod(1, spread=(make_spread(),)), types=SIZES[:2]))
    assert [(approximation.pod, approximation.constraint) for approximation in placement.approximations] == [
        ("shop/web-full", "topology spread over topology.kubernetes.io/zone: not known until launch")
    ]


def test_pods_planned_for_in_flight_nodes_count() -> None:
    cluster = make_cluster_snapshot(
        *(make_web_pod(n, spread=(make_spread(),), pod_anti_affinity=(make_affinity_term(),)) for n in range(4))
    )
    next_cluster = replace(cluster, node_claims=build_node_claims(solve(cluster), cluster))
    assert not solve(next_cluster).new_nodes
    larger_cluster = replace(next_cluster, pods=(*next_cluster.pods, make_web_pod(9, spread=(make_spread(),))))
    assert not {"a"} & set(count_pods_by_zone(solve(larger_cluster)))


def test_zones_of_managed_nodes_are_topology_domains() -> None:
    node, claim = attach_claim(make_node("far", "0", labels={ZONE: "z"}))
    cluster = make_cluster_snapshot(
        *(make_web_pod(n, spread=(make_spread(),)) for n in range(4)), nodes=(node,), node_claims=(claim,)
    )
    placement = solve(cluster)
    assert count_pods_by_zone(placement) == {"a": 1, "b": 1, "c": 1}
    assert [failure.reason for failure in placement.unschedulable] == ["TopologyNotSatisfied"]
