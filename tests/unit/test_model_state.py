"""State nodes: who speaks for a machine, and what it has."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.model.cluster import Cluster
from shared.model.labels import DO_NOT_DISRUPT, HOSTNAME, INITIALIZED, NODEPOOL, NOMINATED_UNTIL, REGISTERED
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Owner, Pairs, pairs
from shared.model.pods import Pod, PodSpec
from shared.model.resources import NONE, Resources, resources
from shared.model.state import StateNode, pod_digest, pods_by_node, pool_usage, state_nodes
from shared.model.taints import Taint
from shared.model.units import instant_text

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
YOUNG, GROWN = {REGISTERED: "true"}, {REGISTERED: "true", INITIALIZED: "true"}
OWN, STARTUP = Taint(key="own", effect="NoSchedule"), Taint(key="cni", effect="NoSchedule", value="x")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


def node(name: str = "ip-1", labels: dict[str, str] | None = None, **parts: object) -> Node:
    whole = Node(meta=Meta(name=name, labels=pairs({NODEPOOL: "p"} | (labels or {}))), provider_id=f"aws:///a/{name}")
    return msgspec.structs.replace(whole, **parts)


def claim(name: str = "claim", **parts: object) -> NodeClaim:
    meta = Meta(name=name, labels=((NODEPOOL, "p"),), annotations=parts.pop("annotations", ()))  # type: ignore[arg-type] # pairs
    whole = NodeClaim(meta=meta, node_class=NodeClassRef(name="d"), provider_id="aws:///a/ip-1")
    return msgspec.structs.replace(whole, **parts)


def pod(name: str, cpu_milli: int = 100, **parts: object) -> Pod:
    whole = Pod(
        meta=Meta(name=name, namespace="shop", uid=name),
        spec=PodSpec(requests=resources({"cpu": cpu_milli, "pods": 1})),
        node_name="ip-1",
    )
    return msgspec.structs.replace(whole, **parts)


@pytest.mark.parametrize(
    ("state", "name", "is_registered", "is_initialized"),
    [
        (StateNode(node=node()), "ip-1", True, True),
        (StateNode(claim=claim()), "claim", False, False),
        (StateNode(node=node(), claim=claim()), "claim", False, False),
        (StateNode(node=node(labels=YOUNG), claim=claim()), "ip-1", True, False),
        (StateNode(node=node(labels=GROWN), claim=claim()), "ip-1", True, True),
    ],
)
def test_until_the_node_is_registered_the_claim_speaks(
    state: StateNode, name: str, *, is_registered: bool, is_initialized: bool
) -> None:
    assert (state.name, state.meta.name, state.labels()[HOSTNAME]) == (name, name, name)
    assert (state.is_registered(), state.is_initialized()) == (is_registered, is_initialized)
    assert state.pool == "p"


def test_a_machine_of_which_nothing_is_known_has_no_name() -> None:
    state = StateNode()
    assert (state.name, state.meta.name, state.provider_id, state.pool) == ("", "", "", "")
    assert (state.taints(), state.capacity(), state.is_marked()) == ((), NONE, False)


@pytest.mark.parametrize(
    ("labels", "obstacles"),
    [({}, (OWN,)), (YOUNG, (OWN,)), (GROWN, (NOT_READY, OWN, STARTUP))],
)
def test_young_taints_are_no_obstacle(labels: dict[str, str], obstacles: tuple[Taint, ...]) -> None:
    other = msgspec.structs.replace(STARTUP, value="y")
    made = claim(taints=(NOT_READY, OWN, other), startup_taints=(other,))
    state = StateNode(node=node(labels=labels, taints=(NOT_READY, OWN, STARTUP)), claim=made)
    assert state.taints() == obstacles


def test_a_node_that_is_not_ours_has_all_its_taints() -> None:
    assert StateNode(node=node(taints=(NOT_READY, STARTUP))).taints() == (NOT_READY, STARTUP)


@pytest.mark.parametrize(
    ("labels", "allocatable"),
    [(YOUNG, {"cpu": 1900, "nvidia.com/gpu": 1}), (GROWN, {"cpu": 1900})],
)
def test_what_a_kubelet_has_not_reported_yet_is_taken_from_the_claim(
    labels: dict[str, str], allocatable: dict[str, int]
) -> None:
    expected = resources({"cpu": 1000, "nvidia.com/gpu": 1})
    state = StateNode(
        node=node(labels=labels, allocatable=resources({"cpu": 1900}), capacity=resources({"cpu": 1900})),
        claim=claim(allocatable=expected, capacity=expected),
    )
    assert state.allocatable() == state.capacity() == resources(allocatable)


def test_a_claim_before_launch_has_what_it_was_asked_for() -> None:
    wanted = resources({"cpu": 500})
    assert StateNode(claim=claim(requests=wanted)).allocatable() == wanted
    known = resources({"cpu": 900})
    assert StateNode(claim=claim(requests=wanted, allocatable=known)).allocatable() == known


def test_pods_that_ended_use_nothing_and_those_that_end_still_do() -> None:
    ending = msgspec.structs.replace(pod("c"), meta=Meta(name="c", deleted_at=NOW))
    state = StateNode(
        node=node(allocatable=resources({"cpu": 1000, "pods": 9})), pods=(pod("a"), pod("b", phase="Failed"), ending)
    )
    assert state.used() == resources({"cpu": 200, "pods": 2})
    assert state.available() == resources({"cpu": 800, "pods": 7})


@pytest.mark.parametrize(
    ("state", "is_marked"),
    [
        (StateNode(node=node()), False),
        (StateNode(node=node(meta=Meta(name="n", deleted_at=NOW))), True),
        (StateNode(node=node(meta=Meta(name="n", deleted_at=NOW)), claim=claim()), False),
        (StateNode(claim=claim(meta=Meta(name="c", deleted_at=NOW))), True),
        (StateNode(claim=claim(conditions=(Condition(type="InstanceTerminating", status="True"),))), True),
    ],
)
def test_what_is_going(state: StateNode, *, is_marked: bool) -> None:
    assert state.is_marked() is is_marked


def until(instant: datetime) -> Pairs:
    return ((NOMINATED_UNTIL, instant_text(instant)),)


LATER, BEFORE = until(NOW + timedelta(seconds=1)), until(NOW)


@pytest.mark.parametrize(
    ("of_node", "of_claim", "is_nominated"),
    [
        ((), (), False),
        (LATER, (), True),
        ((), LATER, True),
        (BEFORE, BEFORE, False),
        (((NOMINATED_UNTIL, "soon"),), LATER, True),
        (((NOMINATED_UNTIL, "soon"),), (), False),
    ],
)
def test_pods_are_expected_until_the_later_word(of_node: Pairs, of_claim: Pairs, *, is_nominated: bool) -> None:
    state = StateNode(node=node(meta=Meta(name="n", annotations=of_node)), claim=claim(annotations=of_claim))
    assert state.is_nominated(NOW) is is_nominated


def test_only_true_protects_a_node_and_only_from_who_speaks_for_it() -> None:
    protected = ((DO_NOT_DISRUPT, "true"),)
    assert StateNode(claim=claim(annotations=protected)).is_protected()
    assert not StateNode(claim=claim(annotations=((DO_NOT_DISRUPT, "1h"),))).is_protected()
    assert not StateNode(node=node(labels=YOUNG), claim=claim(annotations=protected)).is_protected()


def test_nodes_and_claims_are_joined_and_sorted() -> None:
    nodes = (
        node("ip-3", labels=GROWN),
        node("ip-1"),
        node("ip-2", provider_id=""),
    )
    claims = (
        claim("z", provider_id=""),
        claim("b", provider_id="aws:///a/ip-3"),
        claim("c", provider_id="", node_name="ip-2"),
    )
    states = state_nodes(Cluster(taken_at=NOW, nodes=nodes, node_claims=claims, pods=(pod("a"), pod("b"))))
    assert [(state.name, state.node and state.node.name, state.claim and state.claim.name) for state in states] == [
        ("c", "ip-2", "c"),
        ("ip-1", "ip-1", None),
        ("ip-3", "ip-3", "b"),
        ("z", None, "z"),
    ]
    assert [one.meta.name for one in states[1].pods] == ["a", "b"]
    assert [state.provider_id for state in states] == ["", "aws:///a/ip-1", "aws:///a/ip-3", ""]
    assert [state.is_managed() for state in states] == [True, False, True, True]


def test_only_bound_pods_are_on_a_node() -> None:
    assert pods_by_node((pod("a"), pod("b", node_name=""))) == {"ip-1": (pod("a"),)}


def test_a_digest_of_pods_changes_when_one_comes_goes_or_ends() -> None:
    some = (pod("a"), pod("b"))
    digest = pod_digest(some)
    assert pod_digest(reversed(some)) == digest
    daemon = Meta(name="d", uid="d", owners=(Owner(api_version="apps/v1", kind="DaemonSet", name="d", uid="u"),))
    assert pod_digest((*some, pod("d", meta=daemon))) == digest
    going = pod("b", meta=Meta(name="b", namespace="shop", uid="b", deleted_at=NOW))
    changed = [some[:1], (*some, pod("c")), (some[0], pod("b", phase="Failed")), (some[0], going)]
    assert len({digest, *map(pod_digest, changed)}) == 5


def test_a_pool_uses_what_its_machines_have_and_are_asked_for() -> None:
    two: Resources = resources({"cpu": 2000})
    states = (
        StateNode(node=node(capacity=two)),
        StateNode(claim=claim("b", requests=resources({"cpu": 500, "pods": 3}))),
        StateNode(claim=claim("c", meta=Meta(name="c", labels=((NODEPOOL, "p"),), deleted_at=NOW), capacity=two)),
        StateNode(node=node("other", labels={NODEPOOL: "q"}, capacity=two)),
    )
    assert pool_usage(states, "p") == resources({"cpu": 2500, "nodes": 2})
    assert pool_usage(states, "nobody") == NONE
