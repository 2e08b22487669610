"""A node is opened with its places taken: who is given a hint, when, and which nodes stay closed meanwhile."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, FollowUp, PatchMetadata
from shared.model.cluster import Cluster
from shared.model.labels import NOMINATED_PODS, NOMINATED_UNTIL, REGISTERED
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, pairs
from shared.model.pods import Pod, SpreadConstraint
from shared.model.state import state_nodes
from shared.model.taints import UNREGISTERED, Taint
from shared.scheduling.decide import decide
from shared.scheduling.homes import hints_of, homes_of, marks_of, pod_mark
from shared.scheduling.nominations import reservations
from shared.scheduling.placement import Fit, Placement
from shared.scheduling.solve import solve
from tests.unit.catalogues import NOW, claimed, node, pod, world

READY = Condition(type="Ready", status="True")
SPREAD = SpreadConstraint(topology_key="topology.kubernetes.io/zone", max_skew=1)
LARGE, LARGER, SMALL = pod("large", "3"), pod("larger", "3500m"), pod("small", "500m")


def joined(name: str, *pods: str, age: int = 5, ready: bool = True, registered: bool = False) -> tuple[Node, NodeClaim]:
    """A node of 4 cpu that joined *age* seconds ago, made for *pods*."""
    some, claim = claimed(node(name), initialized=False)
    labels = pairs(dict(some.meta.labels) | {REGISTERED: "true" if registered else "false"})
    created = NOW - timedelta(seconds=age)
    marks = ",".join(sorted(pod_mark(f"shop/{pod}") for pod in pods))
    conditions = (READY,) if ready else ()
    some = replace(some, meta=replace(some.meta, labels=labels, created_at=created), conditions=conditions)
    return some, replace(claim, meta=replace(claim.meta, annotations=((NOMINATED_PODS, marks),), created_at=created))


def cluster(*pods: Pod, machines: tuple[tuple[Node, NodeClaim], ...]) -> Cluster:
    return world(*pods, nodes=tuple(one for one, _ in machines), node_claims=tuple(one for _, one in machines))


def hinted(one: Pod, name: str) -> Pod:
    return replace(one, nominated_node_name=name)


def told(some: Cluster, most: int = 600) -> list[tuple[str, str]]:
    """Answer who is told of which node, by node; those of open nodes first."""
    found = reservations(some, most)
    places = [hint for _, hints in sorted(found.places.items()) for hint in hints]
    return [(hint.name, hint.node) for hint in (*found.hints, *places)]


TWO = (joined("n1", "large"), joined("n2", "small"))


def test_pods_that_differ_are_told_of_their_homes_the_smallest_first() -> None:
    some = cluster(LARGE, SMALL, machines=TWO)
    assert told(some) == [("large", "n1"), ("small", "n2")]
    found = reservations(some)
    assert [(hint.namespace, hint.uid) for hint in found.places["n1"]] == [("shop", "uid-shop-large")]
    assert not found.closed
    assert not found.hints
    both = cluster(SMALL, LARGE, pod("other"), machines=(joined("n1", "large", "small"),))
    assert told(both) == [("small", "n1"), ("large", "n1")]


@pytest.mark.parametrize(
    ("why", "some"),
    [
        ("one home", cluster(LARGE, SMALL, machines=(joined("n1", "large", "small"),))),
        ("all alike", cluster(LARGE, pod("twin", "3"), machines=(joined("n1", "large"), joined("n2", "twin")))),
        ("bound", cluster(pod("large", "3", on="n1"), SMALL, machines=TWO)),
        ("not tried", cluster(LARGE, replace(SMALL, conditions=()), machines=TWO)),
        ("nobody waits", cluster(machines=TWO)),
    ],
)
def test_no_hint_is_given_where_none_matters(why: str, some: Cluster) -> None:
    assert why
    assert told(some) == []


def test_equal_pods_that_keep_away_from_each_other_are_told() -> None:
    apart = [pod(name, spread=(SPREAD,)) for name in ("a", "b")]
    assert told(cluster(*apart, machines=(joined("n1", "a"), joined("n2", "b")))) == [("a", "n1"), ("b", "n2")]


def test_pods_without_a_home_are_a_danger_to_those_that_have_one() -> None:
    assert told(cluster(LARGE, SMALL, machines=(joined("n1", "large"),))) == [("large", "n1")]


@pytest.mark.parametrize(
    ("node_name", "again"),
    [("n1", True), ("gone", True), ("n2", False)],
    ids=["it has the hint", "its hint is to a node that is gone", "kube-scheduler makes room for it elsewhere"],
)
def test_a_hint_is_never_given_against_preemption(node_name: str, *, again: bool) -> None:
    some = cluster(hinted(LARGE, node_name), SMALL, pod("other", "2"), machines=TWO)
    assert (("large", "n1") in told(some)) is again


def test_a_hint_of_ours_is_renewed_when_the_home_has_changed() -> None:
    machines = (joined("n1", "large", age=40), joined("n3", "large", age=3), joined("n2", "small"))
    assert told(cluster(hinted(LARGE, "n1"), hinted(SMALL, "n2"), machines=machines)) == [
        ("small", "n2"),
        ("large", "n3"),
    ]


def test_a_node_that_is_not_ready_stays_closed_and_its_pods_are_told_later() -> None:
    some = cluster(LARGE, SMALL, machines=(joined("n1", "large", ready=False), TWO[1]))
    assert reservations(some).closed == {"n1"}
    assert told(some) == [("small", "n2")]


UNINITIALIZED = Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule", value="true")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
TEAM = Taint(key="team", effect="NoSchedule")


@pytest.mark.parametrize(("taint", "is_closed"), [(UNINITIALIZED, True), (NOT_READY, True), (TEAM, False)])
def test_our_taint_is_the_last_that_goes_by_itself(taint: Taint, *, is_closed: bool) -> None:
    some, claim = joined("n1", "large")
    machine = (replace(some, taints=(UNREGISTERED, taint)), claim)
    assert ("n1" in reservations(cluster(LARGE, SMALL, machines=(machine, TWO[1]))).closed) is is_closed


def test_a_node_with_startup_taints_is_opened_at_once_and_its_pods_are_told_when_they_are_gone() -> None:
    for registered in (False, True):
        some, claim = joined("n1", "large", ready=False, registered=registered)
        claim = replace(claim, startup_taints=(TEAM,))
        waiting = cluster(LARGE, SMALL, machines=((replace(some, taints=(TEAM,)), claim), TWO[1]))
        assert not reservations(waiting).closed
        assert told(waiting) == [("small", "n2")]
    some, claim = joined("n1", "large", registered=True)
    usable = cluster(LARGE, SMALL, machines=((some, replace(claim, startup_taints=(TEAM,))), TWO[1]))
    assert told(usable) == [("large", "n1"), ("small", "n2")]


def test_no_node_is_kept_closed_for_long() -> None:
    assert not reservations(cluster(LARGE, SMALL, machines=(joined("n1", "large", ready=False, age=45), TWO[1]))).closed
    machines = (joined("n1", "large", "larger", age=120), joined("n2", "small", age=120))
    assert not reservations(cluster(LARGE, LARGER, SMALL, machines=machines), 1).closed


def test_nodes_are_opened_a_few_pods_at_a_time_and_one_at_least() -> None:
    machines = (joined("n1", "large", "larger"), TWO[1])
    some = cluster(LARGE, LARGER, SMALL, machines=machines)
    assert (told(some, 2), reservations(some, 2).closed) == ([("large", "n1"), ("larger", "n1")], frozenset({"n2"}))
    assert (told(some, 1), reservations(some, 1).closed) == ([("large", "n1"), ("larger", "n1")], frozenset({"n2"}))
    assert reservations(some, 3).closed == frozenset()


def test_an_open_node_promises_no_more_than_it_has() -> None:
    machines = (joined("n1", "large", "larger", "tiny", registered=True), TWO[1])
    some = cluster(LARGE, LARGER, pod("tiny", "100m"), SMALL, machines=machines)
    assert told(some) == [("tiny", "n1"), ("larger", "n1"), ("small", "n2")]
    some = cluster(hinted(LARGE, "n1"), LARGER, pod("tiny", "100m"), SMALL, machines=machines)
    assert told(some) == [("tiny", "n1"), ("small", "n2")]


def test_a_node_that_is_being_deleted_expects_nobody() -> None:
    some, claim = joined("n1", "large")
    some = replace(some, meta=replace(some.meta, deleted_at=NOW))
    assert told(cluster(LARGE, SMALL, machines=((some, claim), TWO[1]))) == [("small", "n2")]


# What hints mean to planning


def test_a_pod_with_a_hint_of_ours_is_planned_for_at_home() -> None:
    some = cluster(hinted(LARGE, "n1"), SMALL, machines=TWO)
    assert solve(some).existing == (
        Fit(node="claim-n1", pods=("shop/large",)),
        Fit(node="claim-n2", pods=("shop/small",)),
    )


def test_a_pod_whose_hint_is_to_a_node_that_is_gone_or_going_is_planned_for() -> None:
    assert solve(cluster(hinted(LARGE, "gone"), machines=())).new_nodes[0].pods == ("shop/large",)
    some, claim = joined("n1", "large", registered=True)
    going = replace(claim, meta=replace(claim.meta, deleted_at=NOW))
    assert solve(cluster(hinted(LARGE, "n1"), machines=((some, going),))).new_nodes[0].pods == ("shop/large",)


def test_a_pod_that_preempts_is_not_planned_for() -> None:
    assert solve(cluster(hinted(pod("other", "2"), "n1"), machines=TWO)) == Placement()
    hints = hints_of(cluster(hinted(pod("other"), "n1"), hinted(LARGE, "n1"), hinted(SMALL, "x"), machines=TWO))
    assert hints.ours == {"shop/large": "n1"}
    assert hints.stale == {"shop/small"}


def test_the_claim_that_was_made_last_is_the_home() -> None:
    machines = (joined("n1", "large", age=3), joined("n2", "large", age=9))
    some = cluster(LARGE, machines=machines)
    [home] = homes_of(state_nodes(some), NOW).values()
    assert home.name == "claim-n1"


# What is decided about a plan


def registered_since(seconds: int, *pods: str) -> tuple[Node, NodeClaim]:
    some, claim = joined("n1", *pods, registered=True)
    since = Condition(type="Registered", status="True", since=NOW - timedelta(seconds=seconds))
    return some, replace(claim, conditions=(since,))


def annotations(some: Cluster, name: str) -> dict[str, str]:
    """Answer what is written to the object *name*."""
    found: dict[str, str] = {}
    for action in decide(some, solve(some)):
        if isinstance(action, PatchMetadata) and action.name == name:
            found |= dict(action.annotations)
    return found


@pytest.mark.parametrize(
    ("seconds", "others", "count"),
    [(0, (), 0), (19, (), 0), (20, (), 1), (20, (joined("n2", "larger"),), 0), (60, (joined("n2", "larger"),), 1)],
)
def test_whose_home_was_opened_just_now_is_not_planned_for_again(
    seconds: int, others: tuple[tuple[Node, NodeClaim], ...], count: int
) -> None:
    machines = (registered_since(seconds, "large"), *others)
    some = cluster(LARGE, LARGER, pod("foreign", "2", on="n1"), machines=machines)
    some = some if others else replace(some, pods=some.pods[::2])
    actions = decide(some, solve(some))
    assert sum(isinstance(action, CreateNodeClaim) for action in actions) == count
    assert any(isinstance(action, FollowUp) and action.function == "provision" for action in actions)


def test_who_comes_to_a_new_node_is_planned_for_with_those_that_are_settling() -> None:
    some = cluster(LARGE, SMALL, pod("foreign", "3800m", on="n1"), machines=(registered_since(1, "large"),))
    [made] = [action for action in decide(some, solve(some)) if isinstance(action, CreateNodeClaim)]
    assert made.pods == ("shop/large", "shop/small")


def test_a_claim_learns_of_pods_that_are_planned_for_it_later() -> None:
    some = cluster(LARGE, SMALL, machines=(joined("n1", "large"),))
    written = annotations(some, "claim-n1")
    assert set(written[NOMINATED_PODS].split(",")) == {pod_mark("shop/large"), pod_mark("shop/small")}
    assert NOMINATED_UNTIL in written
    assert NOMINATED_PODS not in annotations(cluster(LARGE, machines=(joined("n1", "large"),)), "claim-n1")


def test_a_registered_node_is_protected_itself_and_its_claim_learns() -> None:
    some = cluster(LARGE, SMALL, machines=(registered_since(1, "large"),))
    assert set(annotations(some, "n1")) == {NOMINATED_UNTIL}
    assert set(annotations(some, "claim-n1")) == {NOMINATED_PODS}


def test_a_pod_has_one_home() -> None:
    machines = (registered_since(1, "large", "other"), joined("n2", "small"))
    some = cluster(LARGE, SMALL, pod("foreign", "2", on="n1"), machines=machines)
    assert annotations(some, "claim-n1")[NOMINATED_PODS] == pod_mark("shop/other")
    assert pod_mark("shop/large") in annotations(some, "claim-n2")[NOMINATED_PODS]


def test_a_node_in_use_is_nobodys_home_anew() -> None:
    some, claim = claimed(node("n1"))
    assert set(annotations(cluster(LARGE, machines=((some, claim),)), "n1")) == {NOMINATED_UNTIL}
    assert not annotations(cluster(LARGE, machines=((some, claim),)), "claim-n1")
    assert marks_of(claim) == frozenset()
