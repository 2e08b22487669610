"""Existing, in-flight and deleting nodes, and the limits of NodePools."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.core.labels import ARCH, DO_NOT_DISRUPT, HOSTNAME, INSTANCE_TYPE, NODEPOOL, NOMINATED_UNTIL, ZONE
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, build_pairs
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.core.resources import Resources, build_resources, parse_resources
from shared.model.core.selectors import EVERYTHING
from shared.model.core.taints import Taint
from shared.model.core.units import format_instant
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from tests.support.catalogues import (
    DAEMON_OWNER,
    NOW,
    SIZES,
    attach_claim,
    count_pods_per_new_node,
    launch_claim,
    locate_pods,
    make_cluster_snapshot,
    make_daemon_set,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

TAINT = Taint(key="mine", effect="NoSchedule")


def test_existing_nodes_are_used_before_new_nodes_are_planned() -> None:
    placement = solve(make_cluster_snapshot(make_pod("one", "3"), make_pod("two", "3"), nodes=(make_node("here"),)))
    assert locate_pods(placement) == {"one": "here", "two": "default"}
    assert [(fit.node, fit.pods) for fit in placement.existing] == [("here", ("shop/one",))]


def test_running_pods_occupy_their_resources_on_an_existing_node() -> None:
    running = make_pod("runs", "3", on="here")
    ended = replace(make_pod("ended", "3", on="here"), phase="Succeeded")
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", "2"), running, nodes=(make_node("here"),)))) == {
        "one": "default"
    }
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", "2"), ended, nodes=(make_node("here"),)))) == {
        "one": "here"
    }


def test_overcommitted_node_accepts_no_pod() -> None:
    running = make_pod("runs", "1", "99Gi", on="here")
    assert locate_pods(
        solve(make_cluster_snapshot(make_pod("one", memory="0"), running, nodes=(make_node("here"),)))
    ) == {"one": "default"}


def test_initialized_nodes_are_tried_first_then_nodes_by_name() -> None:
    young, young_claim = attach_claim(make_node("a"), initialized=False)
    old, old_claim = attach_claim(make_node("c"))
    cluster = make_cluster_snapshot(
        make_pod("one"), nodes=(young, make_node("d"), old), node_claims=(young_claim, old_claim)
    )
    assert locate_pods(solve(cluster)) == {"one": "c"}


@pytest.mark.parametrize(
    ("selector", "location"),
    [({ZONE: "a"}, "here"), ({ZONE: "b"}, "default"), ({"mine": "x"}, "here"), ({HOSTNAME: "here"}, "InvalidPod")],
)
def test_existing_node_is_matched_by_its_labels(selector: dict[str, str], location: str) -> None:
    pod = make_pod("one", node_selector=tuple(selector.items()))
    assert locate_pods(solve(make_cluster_snapshot(pod, nodes=(make_node("here", labels={"mine": "x"}),)))) == {
        "one": location
    }


def test_existing_node_without_a_well_known_label_does_not_match_a_selector_for_it() -> None:
    labelled_node = make_node("here")
    bare = replace(labelled_node, meta=replace(labelled_node.meta, labels=()))
    assert locate_pods(
        solve(make_cluster_snapshot(make_pod("one", node_selector=((ARCH, "amd64"),)), nodes=(bare,)))
    ) == {"one": "default"}


@pytest.mark.parametrize(
    ("taints", "startup", "initialized", "location"),
    [
        ((TAINT,), (), True, "default"),
        ((TAINT,), (TAINT,), False, "here"),
        ((TAINT,), (TAINT,), True, "default"),
        ((Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),), (), False, "here"),
        ((Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),), (), True, "default"),
    ],
)
def test_ephemeral_and_startup_taints_count_only_after_initialization(
    taints: tuple[Taint, ...], startup: tuple[Taint, ...], *, initialized: bool, location: str
) -> None:
    node, claim = attach_claim(make_node("here", taints=taints), initialized=initialized, startup_taints=startup)
    placement = solve(make_cluster_snapshot(make_pod("one"), nodes=(node,), node_claims=(claim,)))
    assert locate_pods(placement) == {"one": location}


def test_cordoned_node_accepts_no_pod() -> None:
    assert locate_pods(
        solve(make_cluster_snapshot(make_pod("one"), nodes=(make_node("here", unschedulable=True),)))
    ) == {"one": "default"}


def test_expected_daemon_set_pods_reserve_their_resources() -> None:
    agent = make_daemon_set("agent", "2")
    running = make_pod("agent-1", "2", on="here", owners=(DAEMON_OWNER,))
    cluster = make_cluster_snapshot(
        make_pod("one", "2"), make_pod("two", "2"), nodes=(make_node("here"),), daemon_sets=(agent,)
    )
    assert sorted(locate_pods(solve(cluster)).values()) == ["default", "here"]
    cluster = replace(cluster, pods=(*cluster.pods, running))
    assert sorted(locate_pods(solve(cluster)).values()) == ["default", "here"]


def test_daemon_set_that_does_not_match_the_node_reserves_no_resources() -> None:
    agent = make_daemon_set("agent", "2", node_selector=((ZONE, "b"),))
    cluster = make_cluster_snapshot(make_pod("one", "4"), nodes=(make_node("here"),), daemon_sets=(agent,))
    assert locate_pods(solve(cluster)) == {"one": "here"}


def test_host_ports_of_running_pods_and_daemon_sets_are_occupied() -> None:
    web = make_pod("web", host_ports=(HostPort(port=80),))
    runs = make_pod("runs", on="here", host_ports=(HostPort(port=80),))
    assert locate_pods(solve(make_cluster_snapshot(web, runs, nodes=(make_node("here"),)))) == {"web": "default"}
    agent = make_daemon_set("agent", host_ports=(HostPort(port=80),), node_selector=(("mine", "x"),))
    cluster = make_cluster_snapshot(web, nodes=(make_node("here", labels={"mine": "x"}),), daemon_sets=(agent,))
    assert locate_pods(solve(cluster)) == {"web": "default"}


def test_pods_of_deleting_nodes_are_scheduled_again() -> None:
    node, claim = attach_claim(make_node("old"))
    going = replace(claim, meta=replace(claim.meta, deleted_at=NOW))
    cluster = make_cluster_snapshot(make_pod("moves", on="old"), nodes=(node,), node_claims=(going,))
    assert locate_pods(solve(cluster)) == {"moves": "default"}


def test_pods_of_excluded_nodes_are_scheduled_on_other_nodes() -> None:
    cluster = make_cluster_snapshot(
        make_pod("moves", on="old"), make_pod("waits"), nodes=(make_node("old"), make_node("other"))
    )
    assert locate_pods(solve(cluster)) == {"waits": "old"}
    assert locate_pods(solve(cluster, excluded=frozenset(("old",)))) == {"moves": "other", "waits": "other"}


def _make_budget(**fields: object) -> PodDisruptionBudget:
    budget = PodDisruptionBudget(
        meta=ObjectMeta(name="b", namespace="shop"), selector=EVERYTHING, disruptions_allowed=0
    )
    return replace(budget, **fields)


UNREADY = (Condition(type="Ready", status="False"),)


@pytest.mark.parametrize(
    ("pod", "budgets", "moves"),
    [
        (make_pod("p", on="old"), (_make_budget(),), True),
        (make_pod("p", on="old"), (_make_budget(max_unavailable="0"),), False),
        (make_pod("p", on="old"), (_make_budget(min_available="100%"),), False),
        (make_pod("p", on="old"), (_make_budget(), _make_budget()), False),
        (replace(make_pod("p", on="old"), conditions=UNREADY), (_make_budget(max_unavailable="0"),), False),
        (
            replace(make_pod("p", on="old"), conditions=UNREADY),
            (_make_budget(max_unavailable="0", always_allows_unhealthy=True),),
            True,
        ),
        (make_pod("p", on="old", owners=(DAEMON_OWNER,)), (), False),
        (replace(make_pod("p", on="old"), phase="Failed"), (), False),
        (replace(make_pod("p", on="old"), meta=replace(make_pod("p").meta, deleted_at=NOW)), (), False),
        (
            replace(make_pod("p", on="old"), meta=replace(make_pod("p").meta, annotations=((DO_NOT_DISRUPT, "true"),))),
            (),
            False,
        ),
    ],
)
def test_only_reschedulable_pods_of_an_excluded_node_are_scheduled_again(
    pod: Pod, budgets: tuple[PodDisruptionBudget, ...], *, moves: bool
) -> None:
    cluster = make_cluster_snapshot(pod, nodes=(make_node("old"),), budgets=budgets)
    assert bool(locate_pods(solve(cluster, excluded=frozenset(("old",))))) is moves


WAITING = tuple(make_pod(f"p{number}", f"{300 + 177 * (number * 7 % 11)}m") for number in range(30))


@pytest.mark.parametrize("is_launched", [False, True])
def test_pending_pods_fit_the_node_claims_planned_for_them_in_the_next_run(*, is_launched: bool) -> None:
    cluster = make_cluster_snapshot(*WAITING, daemon_sets=(make_daemon_set("agent"),))
    placement = solve(cluster)
    node_claims = build_node_claims(placement, cluster)
    if is_launched:
        types = {instance_type.name: instance_type for instance_type in SIZES}
        pairs_ = zip(node_claims, placement.new_nodes, strict=True)
        node_claims = tuple(
            launch_claim(claim, types[new.cheapest.instance_type], new.cheapest.zone, new.cheapest.capacity_type)
            for claim, new in pairs_
        )
    second_placement = solve(replace(cluster, node_claims=node_claims))
    assert not second_placement.new_nodes
    assert {fit.node: fit.pods for fit in second_placement.existing} == {
        new.name: new.pods for new in placement.new_nodes
    }


def test_initialized_node_accepts_any_pod_even_when_nominated_for_others() -> None:
    cluster = make_cluster_snapshot(make_pod("small", "1"), make_pod("big", "4"))
    (new,) = solve(make_cluster_snapshot(make_pod("small", "1"))).new_nodes
    (new_claim,) = build_node_claims(solve(make_cluster_snapshot(make_pod("small", "1"))), cluster)
    node, claim = attach_claim(make_node("here"), meta=replace(new_claim.meta, name=new.name))
    busy = replace(cluster, nodes=(node,), node_claims=(claim,))
    assert locate_pods(solve(busy))["small"] == "default"
    until = build_pairs(dict(node.meta.annotations) | {NOMINATED_UNTIL: format_instant(NOW + timedelta(minutes=1))})
    nominated = replace(busy, nodes=(replace(node, meta=replace(node.meta, annotations=until)),))
    assert locate_pods(solve(nominated))["small"] == "default"


def _make_claim(**fields: object) -> NodeClaim:
    node_claim = NodeClaim(
        meta=ObjectMeta(name="coming", labels=((NODEPOOL, "default"),)),
        node_class=NodeClassRef(name="default"),
        requirements=make_requirements((INSTANCE_TYPE, "In", ("m.04", "m.08"))),
        requests=parse_resources({"cpu": "2", "memory": "4Gi", "pods": "3"}),
    )
    return replace(node_claim, **fields)


@pytest.mark.parametrize(
    ("pod", "location"),
    [
        (make_pod("p", "2"), "coming"),
        (make_pod("p", "3"), "default"),
        (make_pod("p", node_selector=((ARCH, "amd64"),)), "coming"),
        (make_pod("p", node_selector=((INSTANCE_TYPE, "m.04"),)), "default"),
        (make_pod("p", node_selector=((ZONE, "a"),)), "default"),
        (make_pod("p", required_terms=(make_requirements((ZONE, "NotIn", ("z",))),)), "coming"),
        (make_pod("p", required_terms=(make_requirements(("mine", "DoesNotExist", ())),)), "coming"),
        (make_pod("p", required_terms=(make_requirements(("mine", "Exists", ())),)), "default"),
    ],
)
def test_unlaunched_node_claim_accepts_pods_that_fit_every_possible_instance_type(pod: Pod, location: str) -> None:
    pools = (make_node_pool(requirements=build_requirements((parse_requirement("mine", "Exists"),))),)
    assert locate_pods(solve(make_cluster_snapshot(pod, node_claims=(_make_claim(),), node_pools=pools))) == {
        "p": location
    }


@pytest.mark.parametrize(
    ("claim_requirements", "pod_requirements", "location"),
    [
        (make_requirements(("cpus", "Gt", ("4",))), make_requirements(("cpus", "Gt", ("2",))), "coming"),
        (make_requirements(("cpus", "Gt", ("2",))), make_requirements(("cpus", "Gt", ("4",))), "default"),
        (make_requirements(("cpus", "NotIn", ("a", "b"))), make_requirements(("cpus", "NotIn", ("a",))), "coming"),
        (make_requirements(("cpus", "DoesNotExist", ())), make_requirements(("cpus", "NotIn", ("a",))), "coming"),
        (make_requirements(("cpus", "In", ("a", "b"))), make_requirements(("cpus", "In", ("a",))), "default"),
    ],
)
def test_node_claim_accepts_only_pods_whose_requirements_its_own_imply(
    claim_requirements: object, pod_requirements: object, location: str
) -> None:
    pod = make_pod("p", required_terms=(pod_requirements,))
    coming = _make_claim(requirements=claim_requirements)
    pools = (make_node_pool(requirements=make_requirements(("cpus", "Exists", ()))),)
    assert locate_pods(solve(make_cluster_snapshot(pod, node_claims=(coming,), node_pools=pools))) == {"p": location}


def test_unlaunched_node_claim_reserves_resources_for_daemon_sets() -> None:
    cluster = make_cluster_snapshot(
        make_pod("p", "2"), node_claims=(_make_claim(),), daemon_sets=(make_daemon_set("agent"),)
    )
    assert locate_pods(solve(cluster)) == {"p": "default"}
    assert locate_pods(solve(replace(cluster, daemon_sets=(make_daemon_set("agent", "9"),)))) == {"p": "default"}


def test_node_claim_of_a_deleted_node_pool_still_accepts_pods() -> None:
    assert locate_pods(solve(make_cluster_snapshot(make_pod("p"), node_claims=(_make_claim(),), node_pools=()))) == {
        "p": "coming"
    }
    assert locate_pods(solve(make_cluster_snapshot(make_pod("p"), node_claims=(_make_claim(),), catalog=None))) == {
        "p": "coming"
    }


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (None, 4),
        ({"cpu": 64_000}, 4),
        ({"cpu": 40_000}, 2),
        ({"cpu": 15_999}, 0),
        ({"cpu": 64_000, "memory": 64 * 2**30}, 1),
        ({"nodes": 3}, 3),
        ({"nodes": 0}, 0),
    ],
)
def test_node_pool_limits_count_the_largest_instance_type_a_new_node_may_become(
    limits: dict[str, int] | None, count: int
) -> None:
    node_pool = make_node_pool(limits=None if limits is None else Resources(amounts=tuple(sorted(limits.items()))))
    placement = solve(
        make_cluster_snapshot(*(make_pod(f"p{number}", "9") for number in range(4)), node_pools=(node_pool,))
    )
    assert len(placement.new_nodes) == count
    assert {failure.reason for failure in placement.unschedulable} == (set() if count == 4 else {"LimitExceeded"})


def test_smaller_instance_type_is_used_within_the_remaining_limit() -> None:
    node_pool = make_node_pool(limits=build_resources({"cpu": 20_000}))
    placement = solve(
        make_cluster_snapshot(
            make_pod("big", "9"), make_pod("small", "4", node_selector=((ZONE, "a"),)), node_pools=(node_pool,)
        )
    )
    assert locate_pods(placement) == {"big": "default", "small": "default"}
    placement = solve(make_cluster_snapshot(make_pod("big", "16"), make_pod("small", "4"), node_pools=(node_pool,)))
    assert count_pods_per_new_node(placement) == [1, 1]


def test_existing_and_in_flight_nodes_count_against_node_pool_limits() -> None:
    node, claim = attach_claim(make_node("here", "4"))
    full = make_pod("full", "4", on="here")
    node_pool = make_node_pool(limits=build_resources({"cpu": 8_000}))
    cluster = make_cluster_snapshot(
        full, make_pod("p", "4"), nodes=(node,), node_claims=(claim,), node_pools=(node_pool,)
    )
    assert locate_pods(solve(cluster)) == {"p": "default"}
    assert locate_pods(solve(replace(cluster, node_claims=(claim, _make_claim())))) == {"p": "LimitExceeded"}
    going = replace(claim, meta=replace(claim.meta, deleted_at=NOW))
    assert "full" in locate_pods(solve(replace(cluster, node_claims=(going,))))
    unknown = _make_claim(requirements=make_requirements((INSTANCE_TYPE, "In", ("gone",))))
    assert locate_pods(solve(replace(cluster, node_claims=(claim, unknown)))) == {"p": "LimitExceeded"}


def test_terminating_pod_of_a_stateful_set_is_scheduled_again() -> None:
    owner = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="db", uid="db")
    pod = make_pod("db-0", on="old", owners=(owner,))
    pod = replace(pod, meta=replace(pod.meta, deleted_at=NOW))
    assert locate_pods(solve(make_cluster_snapshot(pod, nodes=(make_node("old"),)), excluded=frozenset(("old",)))) == {
        "db-0": "default"
    }


def test_pod_that_outgrew_its_node_claim_is_scheduled_elsewhere() -> None:
    cluster = make_cluster_snapshot(make_pod("one"))
    node_claims = build_node_claims(solve(cluster), cluster)
    grown = make_cluster_snapshot(make_pod("one", "4"), node_claims=node_claims)
    assert locate_pods(solve(grown)) == {"one": "default"}


def test_existing_nodes_are_tried_in_name_order() -> None:
    nodes = tuple(make_node(f"n-{number:02d}", "1" if number < 35 else "4") for number in range(70))
    pods = (*(make_pod(f"big-{number}", "2") for number in range(3)), make_pod("small"))
    assert locate_pods(solve(make_cluster_snapshot(*pods, nodes=nodes))) == {
        "big-0": "n-35",
        "big-1": "n-35",
        "big-2": "n-36",
        "small": "n-00",
    }


def test_unlaunched_node_claim_counts_as_a_node_against_limits() -> None:
    node_pool = make_node_pool(limits=build_resources({"nodes": 2}))
    cluster = make_cluster_snapshot(make_pod("big", "9"), node_claims=(_make_claim(),), node_pools=(node_pool,))
    assert locate_pods(solve(cluster)) == {"big": "default"}
    two = (_make_claim(), replace(_make_claim(), meta=replace(_make_claim().meta, name="too")))
    assert locate_pods(solve(replace(cluster, node_claims=two))) == {"big": "LimitExceeded"}


def test_daemon_set_pod_larger_than_its_template_frees_no_resources() -> None:
    large = make_pod("agent-1", "2", on="here", owners=(DAEMON_OWNER,))
    cluster = make_cluster_snapshot(
        make_pod("one", "3"), large, nodes=(make_node("here"),), daemon_sets=(make_daemon_set("agent", "1"),)
    )
    assert locate_pods(solve(cluster)) == {"one": "default"}
