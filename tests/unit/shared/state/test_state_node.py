"""State nodes: a node and its NodeClaim as one, and the labels, taints and resources that count."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT, HOSTNAME, INITIALIZED, NODEPOOL, NOMINATED_UNTIL, REGISTERED
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, Pairs, build_pairs
from shared.model.core.resources import NONE, Resources, build_resources
from shared.model.core.taints import Taint
from shared.model.core.units import format_instant
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.kubernetes.do_not_disrupt import is_node_protected
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, compute_pod_digest, compute_pool_usage, group_pods_by_node

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
YOUNG, GROWN = {REGISTERED: "true"}, {REGISTERED: "true", INITIALIZED: "true"}
OWN, STARTUP = Taint(key="own", effect="NoSchedule"), Taint(key="cni", effect="NoSchedule", value="x")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")


def make_node(name: str = "ip-1", labels: dict[str, str] | None = None, **parts: object) -> Node:
    default_node = Node(
        meta=ObjectMeta(name=name, labels=build_pairs({NODEPOOL: "p"} | (labels or {}))), provider_id=f"aws:///a/{name}"
    )
    return msgspec.structs.replace(default_node, **parts)


def make_claim(name: str = "claim", **parts: object) -> NodeClaim:
    meta = ObjectMeta(name=name, labels=((NODEPOOL, "p"),), annotations=parts.pop("annotations", ()))  # type: ignore[arg-type] # pairs
    default_claim = NodeClaim(meta=meta, node_class=NodeClassRef(name="d"), provider_id="aws:///a/ip-1")
    return msgspec.structs.replace(default_claim, **parts)


def make_pod(name: str, cpu_milli: int = 100, **parts: object) -> Pod:
    default_pod = Pod(
        meta=ObjectMeta(name=name, namespace="shop", uid=name),
        spec=PodSpec(requests=build_resources({"cpu": cpu_milli, "pods": 1})),
        node_name="ip-1",
    )
    return msgspec.structs.replace(default_pod, **parts)


@pytest.mark.parametrize(
    ("state", "name", "is_registered", "is_initialized"),
    [
        (StateNode(node=make_node()), "ip-1", True, True),
        (StateNode(claim=make_claim()), "claim", False, False),
        (StateNode(node=make_node(), claim=make_claim()), "claim", False, False),
        (StateNode(node=make_node(labels=YOUNG), claim=make_claim()), "ip-1", True, False),
        (StateNode(node=make_node(labels=GROWN), claim=make_claim()), "ip-1", True, True),
    ],
)
def test_nodeclaim_defines_name_and_state_until_the_node_is_registered(
    state: StateNode, name: str, *, is_registered: bool, is_initialized: bool
) -> None:
    assert (state.name, state.meta.name, state.build_labels()[HOSTNAME]) == (name, name, name)
    assert (state.is_registered(), state.is_initialized()) == (is_registered, is_initialized)
    assert state.pool == "p"


def test_state_node_without_node_and_nodeclaim_is_empty() -> None:
    state = StateNode()
    assert (state.name, state.meta.name, state.provider_id, state.pool) == ("", "", "", "")
    assert (state.list_taints(), state.compute_capacity(), state.is_marked_for_deletion()) == ((), NONE, False)


@pytest.mark.parametrize(
    ("labels", "obstacles"),
    [({}, (OWN,)), (YOUNG, (OWN,)), (GROWN, (NOT_READY, OWN, STARTUP))],
)
def test_startup_and_ephemeral_taints_are_ignored_until_initialization(
    labels: dict[str, str], obstacles: tuple[Taint, ...]
) -> None:
    startup_taint = msgspec.structs.replace(STARTUP, value="y")
    node_claim = make_claim(taints=(NOT_READY, OWN, startup_taint), startup_taints=(startup_taint,))
    state = StateNode(node=make_node(labels=labels, taints=(NOT_READY, OWN, STARTUP)), claim=node_claim)
    assert state.list_taints() == obstacles


def test_unmanaged_node_keeps_all_its_taints() -> None:
    assert StateNode(node=make_node(taints=(NOT_READY, STARTUP))).list_taints() == (NOT_READY, STARTUP)


@pytest.mark.parametrize(
    ("labels", "allocatable"),
    [(YOUNG, {"cpu": 1900, "nvidia.com/gpu": 1}), (GROWN, {"cpu": 1900})],
)
def test_resources_not_reported_by_the_kubelet_come_from_the_nodeclaim(
    labels: dict[str, str], allocatable: dict[str, int]
) -> None:
    expected = build_resources({"cpu": 1000, "nvidia.com/gpu": 1})
    state = StateNode(
        node=make_node(
            labels=labels, allocatable=build_resources({"cpu": 1900}), capacity=build_resources({"cpu": 1900})
        ),
        claim=make_claim(allocatable=expected, capacity=expected),
    )
    assert state.compute_allocatable() == state.compute_capacity() == build_resources(allocatable)


def test_nodeclaim_before_launch_has_its_requests_as_allocatable() -> None:
    requests = build_resources({"cpu": 500})
    assert StateNode(claim=make_claim(requests=requests)).compute_allocatable() == requests
    allocatable = build_resources({"cpu": 900})
    assert StateNode(claim=make_claim(requests=requests, allocatable=allocatable)).compute_allocatable() == allocatable


def test_ended_pods_use_no_resources_and_deleting_pods_do() -> None:
    ending = msgspec.structs.replace(make_pod("c"), meta=ObjectMeta(name="c", deleted_at=NOW))
    state = StateNode(
        node=make_node(allocatable=build_resources({"cpu": 1000, "pods": 9})),
        pods=(make_pod("a"), make_pod("b", phase="Failed"), ending),
    )
    assert state.sum_pod_requests() == build_resources({"cpu": 200, "pods": 2})
    assert state.compute_available() == build_resources({"cpu": 800, "pods": 7})


@pytest.mark.parametrize(
    ("state", "is_marked"),
    [
        (StateNode(node=make_node()), False),
        (StateNode(node=make_node(meta=ObjectMeta(name="n", deleted_at=NOW))), True),
        (StateNode(node=make_node(meta=ObjectMeta(name="n", deleted_at=NOW)), claim=make_claim()), False),
        (StateNode(claim=make_claim(meta=ObjectMeta(name="c", deleted_at=NOW))), True),
        (StateNode(claim=make_claim(conditions=(Condition(type="InstanceTerminating", status="True"),))), True),
    ],
)
def test_deleting_nodes_and_nodeclaims_are_marked_for_deletion(state: StateNode, *, is_marked: bool) -> None:
    assert state.is_marked_for_deletion() is is_marked


def make_nomination(instant: datetime) -> Pairs:
    return ((NOMINATED_UNTIL, format_instant(instant)),)


LATER, BEFORE = make_nomination(NOW + timedelta(seconds=1)), make_nomination(NOW)


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
def test_nomination_lasts_until_the_later_of_node_and_nodeclaim_annotations(
    of_node: Pairs, of_claim: Pairs, *, is_nominated: bool
) -> None:
    state = StateNode(
        node=make_node(meta=ObjectMeta(name="n", annotations=of_node)), claim=make_claim(annotations=of_claim)
    )
    assert state.is_nominated(NOW) is is_nominated


def test_only_do_not_disrupt_true_protects_a_node() -> None:
    protected = ((DO_NOT_DISRUPT, "true"),)
    assert is_node_protected(StateNode(claim=make_claim(annotations=protected)).meta)
    assert not is_node_protected(StateNode(claim=make_claim(annotations=((DO_NOT_DISRUPT, "1h"),))).meta)
    assert not is_node_protected(StateNode(node=make_node(labels=YOUNG), claim=make_claim(annotations=protected)).meta)


def test_nodes_and_nodeclaims_are_joined_and_sorted() -> None:
    nodes = (
        make_node("ip-3", labels=GROWN),
        make_node("ip-1"),
        make_node("ip-2", provider_id=""),
    )
    claims = (
        make_claim("z", provider_id=""),
        make_claim("b", provider_id="aws:///a/ip-3"),
        make_claim("c", provider_id="", node_name="ip-2"),
    )
    states = ClusterState(
        ClusterSnapshot(taken_at=NOW, nodes=nodes, node_claims=claims, pods=(make_pod("a"), make_pod("b")))
    ).nodes
    assert [(state.name, state.node and state.node.name, state.claim and state.claim.name) for state in states] == [
        ("c", "ip-2", "c"),
        ("ip-1", "ip-1", None),
        ("ip-3", "ip-3", "b"),
        ("z", None, "z"),
    ]
    assert [pod.meta.name for pod in states[1].pods] == ["a", "b"]
    assert [state.provider_id for state in states] == ["", "aws:///a/ip-1", "aws:///a/ip-3", ""]
    assert [state.claim is not None for state in states] == [True, False, True, True]


def test_only_bound_pods_are_grouped_by_node() -> None:
    assert group_pods_by_node((make_pod("a"), make_pod("b", node_name=""))) == {"ip-1": (make_pod("a"),)}


def test_pod_digest_changes_when_a_pod_is_added_removed_or_ends() -> None:
    pods = (make_pod("a"), make_pod("b"))
    digest = compute_pod_digest(pods)
    assert compute_pod_digest(reversed(pods)) == digest
    daemon = ObjectMeta(
        name="d", uid="d", owners=(OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="u"),)
    )
    assert compute_pod_digest((*pods, make_pod("d", meta=daemon))) == digest
    going = make_pod("b", meta=ObjectMeta(name="b", namespace="shop", uid="b", deleted_at=NOW))
    changed = [pods[:1], (*pods, make_pod("c")), (pods[0], make_pod("b", phase="Failed")), (pods[0], going)]
    assert len({digest, *map(compute_pod_digest, changed)}) == 5


def test_nodepool_usage_sums_capacity_or_requests_of_its_nodes() -> None:
    two: Resources = build_resources({"cpu": 2000})
    states = (
        StateNode(node=make_node(capacity=two)),
        StateNode(claim=make_claim("b", requests=build_resources({"cpu": 500, "pods": 3}))),
        StateNode(
            claim=make_claim("c", meta=ObjectMeta(name="c", labels=((NODEPOOL, "p"),), deleted_at=NOW), capacity=two)
        ),
        StateNode(node=make_node("other", labels={NODEPOOL: "q"}, capacity=two)),
    )
    assert compute_pool_usage(states, "p") == build_resources({"cpu": 2500, "nodes": 2})
    assert compute_pool_usage(states, "nobody") == NONE
