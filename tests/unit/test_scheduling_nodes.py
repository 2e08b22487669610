"""Nodes that are there, on their way, or going; and limits."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.labels import ARCH, DO_NOT_DISRUPT, HOSTNAME, INSTANCE_TYPE, NODEPOOL, NOMINATED_UNTIL, ZONE
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Owner, pairs
from shared.model.pods import HostPort, Pod, PodDisruptionBudget
from shared.model.requirements import requirement, requirements
from shared.model.resources import Resources, parse_resources, resources
from shared.model.selectors import EVERYTHING
from shared.model.taints import Taint
from shared.model.units import instant_text
from shared.scheduling.solve import claims, solve
from tests.unit.catalogues import (
    DAEMON_OWNER,
    NOW,
    SIZES,
    claimed,
    daemon,
    launched,
    needs,
    node,
    placed,
    pod,
    pool,
    sizes,
    world,
)

TAINT = Taint(key="mine", effect="NoSchedule")


def test_what_stands_is_used_before_anything_is_made() -> None:
    placement = solve(world(pod("one", "3"), pod("two", "3"), nodes=(node("here"),)))
    assert placed(placement) == {"one": "here", "two": "default"}
    assert [(fit.node, fit.pods) for fit in placement.existing] == [("here", ("shop/one",))]


def test_running_pods_take_their_room() -> None:
    running = pod("runs", "3", on="here")
    ended = replace(pod("ended", "3", on="here"), phase="Succeeded")
    assert placed(solve(world(pod("one", "2"), running, nodes=(node("here"),)))) == {"one": "default"}
    assert placed(solve(world(pod("one", "2"), ended, nodes=(node("here"),)))) == {"one": "here"}


def test_an_overdrawn_node_takes_nothing() -> None:
    running = pod("runs", "1", "99Gi", on="here")
    assert placed(solve(world(pod("one", memory="0"), running, nodes=(node("here"),)))) == {"one": "default"}


def test_initialized_nodes_come_first_then_names() -> None:
    young, young_claim = claimed(node("a"), initialized=False)
    old, old_claim = claimed(node("c"))
    cluster = world(pod("one"), nodes=(young, node("d"), old), node_claims=(young_claim, old_claim))
    assert placed(solve(cluster)) == {"one": "c"}


@pytest.mark.parametrize(
    ("selector", "where"),
    [({ZONE: "a"}, "here"), ({ZONE: "b"}, "default"), ({"mine": "x"}, "here"), ({HOSTNAME: "here"}, "InvalidPod")],
)
def test_a_standing_node_is_taken_by_its_labels(selector: dict[str, str], where: str) -> None:
    some = pod("one", node_selector=tuple(selector.items()))
    assert placed(solve(world(some, nodes=(node("here", labels={"mine": "x"}),)))) == {"one": where}


def test_a_standing_node_without_a_label_does_not_satisfy_even_a_well_known_key() -> None:
    some = node("here")
    bare = replace(some, meta=replace(some.meta, labels=()))
    assert placed(solve(world(pod("one", node_selector=((ARCH, "amd64"),)), nodes=(bare,)))) == {"one": "default"}


@pytest.mark.parametrize(
    ("taints", "startup", "initialized", "where"),
    [
        ((TAINT,), (), True, "default"),
        ((TAINT,), (TAINT,), False, "here"),
        ((TAINT,), (TAINT,), True, "default"),
        ((Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),), (), False, "here"),
        ((Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),), (), True, "default"),
    ],
)
def test_taints_that_go_by_themselves_count_once_a_node_is_initialized(
    taints: tuple[Taint, ...], startup: tuple[Taint, ...], *, initialized: bool, where: str
) -> None:
    own, claim = claimed(node("here", taints=taints), initialized=initialized, startup_taints=startup)
    placement = solve(world(pod("one"), nodes=(own,), node_claims=(claim,)))
    assert placed(placement) == {"one": where}


def test_a_cordoned_node_takes_nothing() -> None:
    assert placed(solve(world(pod("one"), nodes=(node("here", unschedulable=True),)))) == {"one": "default"}


def test_daemons_that_are_still_to_come_keep_their_room() -> None:
    agent = daemon("agent", "2")
    running = pod("agent-1", "2", on="here", owners=(DAEMON_OWNER,))
    cluster = world(pod("one", "2"), pod("two", "2"), nodes=(node("here"),), daemon_sets=(agent,))
    assert sorted(placed(solve(cluster)).values()) == ["default", "here"]
    cluster = replace(cluster, pods=(*cluster.pods, running))
    assert sorted(placed(solve(cluster)).values()) == ["default", "here"]


def test_daemons_that_do_not_belong_there_take_nothing() -> None:
    agent = daemon("agent", "2", node_selector=((ZONE, "b"),))
    some = world(pod("one", "4"), nodes=(node("here"),), daemon_sets=(agent,))
    assert placed(solve(some)) == {"one": "here"}


def test_host_ports_of_what_runs_and_of_daemons_are_taken() -> None:
    web = pod("web", host_ports=(HostPort(port=80),))
    runs = pod("runs", on="here", host_ports=(HostPort(port=80),))
    assert placed(solve(world(web, runs, nodes=(node("here"),)))) == {"web": "default"}
    agent = daemon("agent", host_ports=(HostPort(port=80),), node_selector=(("mine", "x"),))
    cluster = world(web, nodes=(node("here", labels={"mine": "x"}),), daemon_sets=(agent,))
    assert placed(solve(cluster)) == {"web": "default"}


def test_pods_of_nodes_that_go_are_placed_again() -> None:
    own, claim = claimed(node("old"))
    going = replace(claim, meta=replace(claim.meta, deleted_at=NOW))
    cluster = world(pod("moves", on="old"), nodes=(own,), node_claims=(going,))
    assert placed(solve(cluster)) == {"moves": "default"}


def test_pods_of_excluded_nodes_are_placed_again_elsewhere() -> None:
    cluster = world(pod("moves", on="old"), pod("waits"), nodes=(node("old"), node("other")))
    assert placed(solve(cluster)) == {"waits": "old"}
    assert placed(solve(cluster, excluded=frozenset(("old",)))) == {"moves": "other", "waits": "other"}


def _budget(**fields: object) -> PodDisruptionBudget:
    some = PodDisruptionBudget(meta=Meta(name="b", namespace="shop"), selector=EVERYTHING, disruptions_allowed=0)
    return replace(some, **fields)


UNREADY = (Condition(type="Ready", status="False"),)


@pytest.mark.parametrize(
    ("some", "budgets", "moves"),
    [
        (pod("p", on="old"), (_budget(),), True),
        (pod("p", on="old"), (_budget(max_unavailable="0"),), False),
        (pod("p", on="old"), (_budget(min_available="100%"),), False),
        (pod("p", on="old"), (_budget(), _budget()), False),
        (replace(pod("p", on="old"), conditions=UNREADY), (_budget(max_unavailable="0"),), False),
        (
            replace(pod("p", on="old"), conditions=UNREADY),
            (_budget(max_unavailable="0", always_allows_unhealthy=True),),
            True,
        ),
        (pod("p", on="old", owners=(DAEMON_OWNER,)), (), False),
        (replace(pod("p", on="old"), phase="Failed"), (), False),
        (replace(pod("p", on="old"), meta=replace(pod("p").meta, deleted_at=NOW)), (), False),
        (replace(pod("p", on="old"), meta=replace(pod("p").meta, annotations=((DO_NOT_DISRUPT, "true"),))), (), False),
    ],
)
def test_only_pods_that_may_and_must_move_are_placed_again(
    some: Pod, budgets: tuple[PodDisruptionBudget, ...], *, moves: bool
) -> None:
    cluster = world(some, nodes=(node("old"),), budgets=budgets)
    assert bool(placed(solve(cluster, excluded=frozenset(("old",))))) is moves


WAITING = tuple(pod(f"p{number}", f"{300 + 177 * (number * 7 % 11)}m") for number in range(30))


@pytest.mark.parametrize("is_launched", [False, True])
def test_nothing_is_launched_twice_for_the_same_pods(*, is_launched: bool) -> None:
    cluster = world(*WAITING, daemon_sets=(daemon("agent"),))
    placement = solve(cluster)
    made = claims(placement, cluster)
    if is_launched:
        types = {one.name: one for one in SIZES}
        pairs_ = zip(made, placement.new_nodes, strict=True)
        made = tuple(
            launched(claim, types[new.cheapest.instance_type], new.cheapest.zone, new.cheapest.capacity_type)
            for claim, new in pairs_
        )
    again = solve(replace(cluster, node_claims=made))
    assert not again.new_nodes
    assert {fit.node: fit.pods for fit in again.existing} == {new.name: new.pods for new in placement.new_nodes}


def test_a_node_in_use_is_free_for_all_even_if_it_is_nominated() -> None:
    cluster = world(pod("small", "1"), pod("big", "4"))
    (new,) = solve(world(pod("small", "1"))).new_nodes
    (made,) = claims(solve(world(pod("small", "1"))), cluster)
    own, claim = claimed(node("here"), meta=replace(made.meta, name=new.name))
    busy = replace(cluster, nodes=(own,), node_claims=(claim,))
    assert placed(solve(busy))["small"] == "default"
    until = pairs(dict(own.meta.annotations) | {NOMINATED_UNTIL: instant_text(NOW + timedelta(minutes=1))})
    nominated = replace(busy, nodes=(replace(own, meta=replace(own.meta, annotations=until)),))
    assert placed(solve(nominated))["small"] == "default"


def _claim(**fields: object) -> NodeClaim:
    some = NodeClaim(
        meta=Meta(name="coming", labels=((NODEPOOL, "default"),)),
        node_class=NodeClassRef(name="default"),
        requirements=needs((INSTANCE_TYPE, "In", ("m.04", "m.08"))),
        requests=parse_resources({"cpu": "2", "memory": "4Gi", "pods": "3"}),
    )
    return replace(some, **fields)


@pytest.mark.parametrize(
    ("some", "where"),
    [
        (pod("p", "2"), "coming"),
        (pod("p", "3"), "default"),
        (pod("p", node_selector=((ARCH, "amd64"),)), "coming"),
        (pod("p", node_selector=((INSTANCE_TYPE, "m.04"),)), "default"),
        (pod("p", node_selector=((ZONE, "a"),)), "default"),
        (pod("p", required_terms=(needs((ZONE, "NotIn", ("z",))),)), "coming"),
        (pod("p", required_terms=(needs(("mine", "DoesNotExist", ())),)), "coming"),
        (pod("p", required_terms=(needs(("mine", "Exists", ())),)), "default"),
    ],
)
def test_a_claim_without_instance_takes_pods_that_fit_whatever_it_becomes(some: Pod, where: str) -> None:
    pools = (pool(requirements=requirements((requirement("mine", "Exists"),))),)
    assert placed(solve(world(some, node_claims=(_claim(),), node_pools=pools))) == {"p": where}


@pytest.mark.parametrize(
    ("asked", "wanted", "where"),
    [
        (needs(("cpus", "Gt", ("4",))), needs(("cpus", "Gt", ("2",))), "coming"),
        (needs(("cpus", "Gt", ("2",))), needs(("cpus", "Gt", ("4",))), "default"),
        (needs(("cpus", "NotIn", ("a", "b"))), needs(("cpus", "NotIn", ("a",))), "coming"),
        (needs(("cpus", "DoesNotExist", ())), needs(("cpus", "NotIn", ("a",))), "coming"),
        (needs(("cpus", "In", ("a", "b"))), needs(("cpus", "In", ("a",))), "default"),
    ],
)
def test_a_claim_promises_what_its_requirements_imply(asked: object, wanted: object, where: str) -> None:
    some = pod("p", required_terms=(wanted,))
    coming = _claim(requirements=asked)
    pools = (pool(requirements=needs(("cpus", "Exists", ()))),)
    assert placed(solve(world(some, node_claims=(coming,), node_pools=pools))) == {"p": where}


def test_a_claim_keeps_the_room_of_its_daemons() -> None:
    cluster = world(pod("p", "2"), node_claims=(_claim(),), daemon_sets=(daemon("agent"),))
    assert placed(solve(cluster)) == {"p": "default"}
    assert placed(solve(replace(cluster, daemon_sets=(daemon("agent", "9"),)))) == {"p": "default"}


def test_a_claim_of_a_pool_that_is_gone_still_has_its_room() -> None:
    assert placed(solve(world(pod("p"), node_claims=(_claim(),), node_pools=()))) == {"p": "coming"}
    assert placed(solve(world(pod("p"), node_claims=(_claim(),), catalogue=None))) == {"p": "coming"}


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
def test_limits_are_held_against_the_largest_a_node_may_become(limits: dict[str, int] | None, count: int) -> None:
    some = pool(limits=None if limits is None else Resources(amounts=tuple(sorted(limits.items()))))
    placement = solve(world(*(pod(f"p{number}", "9") for number in range(4)), node_pools=(some,)))
    assert len(placement.new_nodes) == count
    assert {one.reason for one in placement.unschedulable} == (set() if count == 4 else {"LimitExceeded"})


def test_a_smaller_type_is_taken_where_the_limit_leaves_room_for_it() -> None:
    some = pool(limits=resources({"cpu": 20_000}))
    placement = solve(world(pod("big", "9"), pod("small", "4", node_selector=((ZONE, "a"),)), node_pools=(some,)))
    assert placed(placement) == {"big": "default", "small": "default"}
    placement = solve(world(pod("big", "16"), pod("small", "4"), node_pools=(some,)))
    assert sizes(placement) == [1, 1]


def test_nodes_that_are_there_or_coming_count_against_limits() -> None:
    own, claim = claimed(node("here", "4"))
    full = pod("full", "4", on="here")
    some = pool(limits=resources({"cpu": 8_000}))
    cluster = world(full, pod("p", "4"), nodes=(own,), node_claims=(claim,), node_pools=(some,))
    assert placed(solve(cluster)) == {"p": "default"}
    assert placed(solve(replace(cluster, node_claims=(claim, _claim())))) == {"p": "LimitExceeded"}
    going = replace(claim, meta=replace(claim.meta, deleted_at=NOW))
    assert "full" in placed(solve(replace(cluster, node_claims=(going,))))
    unknown = _claim(requirements=needs((INSTANCE_TYPE, "In", ("gone",))))
    assert placed(solve(replace(cluster, node_claims=(claim, unknown)))) == {"p": "LimitExceeded"}


def test_a_pod_of_a_stateful_set_that_is_going_comes_back() -> None:
    owner = Owner(api_version="apps/v1", kind="StatefulSet", name="db", uid="db")
    some = pod("db-0", on="old", owners=(owner,))
    some = replace(some, meta=replace(some.meta, deleted_at=NOW))
    assert placed(solve(world(some, nodes=(node("old"),)), excluded=frozenset(("old",)))) == {"db-0": "default"}


def test_a_pod_that_its_claim_does_not_hold_any_more_is_placed_elsewhere() -> None:
    cluster = world(pod("one"))
    made = claims(solve(cluster), cluster)
    grown = world(pod("one", "4"), node_claims=made)
    assert placed(solve(grown)) == {"one": "default"}


def test_many_nodes_are_tried_in_order() -> None:
    nodes = tuple(node(f"n-{number:02d}", "1" if number < 35 else "4") for number in range(70))
    pods = (*(pod(f"big-{number}", "2") for number in range(3)), pod("small"))
    assert placed(solve(world(*pods, nodes=nodes))) == {
        "big-0": "n-35",
        "big-1": "n-35",
        "big-2": "n-36",
        "small": "n-00",
    }


def test_a_claim_without_instance_is_a_node_to_limits() -> None:
    some = pool(limits=resources({"nodes": 2}))
    cluster = world(pod("big", "9"), node_claims=(_claim(),), node_pools=(some,))
    assert placed(solve(cluster)) == {"big": "default"}
    two = (_claim(), replace(_claim(), meta=replace(_claim().meta, name="too")))
    assert placed(solve(replace(cluster, node_claims=two))) == {"big": "LimitExceeded"}


def test_a_daemon_that_grew_gives_no_room_back() -> None:
    large = pod("agent-1", "2", on="here", owners=(DAEMON_OWNER,))
    cluster = world(pod("one", "3"), large, nodes=(node("here"),), daemon_sets=(daemon("agent", "1"),))
    assert placed(solve(cluster)) == {"one": "default"}
