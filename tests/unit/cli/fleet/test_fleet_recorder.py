"""Recording of nodes and pods: only changes are added, and what was not seen is not gone."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from cli.fleet.document.pod_columns import NO_NODE, NO_NODE_ENDED
from cli.fleet.recording.fleet_recorder import FleetRecorder
from cli.fleet.recording.observed_objects import ObservedNode, ObservedPod, build_observed_pod, derive_node_state
from shared.model.core.labels import INITIALIZED, REGISTERED
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference
from shared.model.core.taints import DISRUPTED
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.state.state_node import StateNode

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
NODE = ObservedNode(key="default-a", name="default-a", claim="default-a", pool="default", state="requested")
READY = replace(NODE, name="node-a", state="ready", cpu_milli=2000)
POD = ObservedPod(key="uid-1", namespace="shop", name="cart", created_at=START)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_repeated_observations_add_nothing() -> None:
    recorder = FleetRecorder()
    for seconds in range(5):
        recorder.observe_all(after(seconds), [READY], [replace(POD, node_name="node-a")])
    assert recorder.nodes[0].states == [(START, "ready")]
    assert recorder.pods[0].places == [(START, NO_NODE), (START, 0)]


def test_node_keeps_its_identity_from_claim_to_node_and_back() -> None:
    recorder = FleetRecorder()
    recorder.observe_node(START, NODE)
    recorder.observe_node(after(40), READY)
    recorder.observe_node(after(90), replace(NODE, state="draining"))
    recorder.remove_node(after(100), "default-a")
    [node] = recorder.nodes
    assert (node.node.name, node.node.cpu_milli, node.ended_at) == ("node-a", 2000, after(100))
    assert [state for _, state in node.states] == ["requested", "ready", "draining", "gone"]


def test_recreated_claim_is_a_new_node() -> None:
    recorder = FleetRecorder()
    recorder.observe_node(START, READY)
    recorder.remove_node(after(10), "default-a")
    recorder.observe_node(after(20), NODE)
    assert [node.ended_at for node in recorder.nodes] == [after(10), None]


def test_late_list_does_not_take_a_node_back_to_its_launch() -> None:
    recorder = FleetRecorder()
    recorder.observe_node(START, READY)
    recorder.observe_node(after(5), NODE)
    assert recorder.nodes[0].states == [(START, "ready")]


def test_absent_objects_are_gone_but_fresh_nodes_survive_an_older_list() -> None:
    recorder = FleetRecorder()
    recorder.observe_all(START, [READY], [replace(POD, node_name="node-a")])
    recorder.observe_all(after(30), [], [], min_unseen_time=timedelta(minutes=1))
    assert recorder.nodes[0].ended_at is None
    assert recorder.pods[0].ended_at == after(30)
    recorder.observe_all(after(60), [], [], min_unseen_time=timedelta(minutes=1))
    assert recorder.nodes[0].ended_at == after(60)


def test_pod_is_bound_when_kube_scheduler_bound_it() -> None:
    recorder = FleetRecorder()
    recorder.observe_node(START, READY)
    recorder.observe_pod(after(60), replace(POD, node_name="node-a", bound_since=after(20)))
    assert recorder.pods[0].places == [(START, NO_NODE), (after(20), 0)]


def test_pod_on_an_unseen_node_keeps_its_place_when_the_node_is_seen() -> None:
    recorder = FleetRecorder()
    recorder.observe_pod(START, replace(POD, node_name="node-a"))
    recorder.observe_node(after(5), READY)
    assert [(node.node.name, node.node.claim) for node in recorder.nodes] == [("node-a", "default-a")]
    assert recorder.pods[0].places[-1] == (START, 0)


def test_completed_and_evicted_pods_end_once() -> None:
    recorder = FleetRecorder()
    recorder.observe_pod(START, POD)
    recorder.observe_pod(after(5), replace(POD, is_ended=True))
    recorder.observe_pod(after(9), replace(POD, is_ended=True))
    recorder.observe_pod(after(10), replace(POD, key="uid-2", created_at=after(10)))
    recorder.remove_pod_by_name(after(20), "shop/cart")
    recorder.remove_pod_by_name(after(21), "shop/other")
    assert [pod.ended_at for pod in recorder.pods] == [after(5), after(20)]
    assert recorder.pods[0].places[-1] == (after(5), NO_NODE_ENDED)


def build_state(
    *, labels: tuple[tuple[str, str], ...] = (), node: Node | None = None, provider_id: str = ""
) -> StateNode:
    claim = NodeClaim(
        meta=ObjectMeta(name="default-a", labels=labels),
        node_class=NodeClassRef(name="default"),
        provider_id=provider_id,
    )
    return StateNode(node=node, claim=claim)


def build_node(*labels: str, status: str = "True", **fields: object) -> Node:
    meta = ObjectMeta(name="node-a", labels=tuple((label, "true") for label in sorted(labels)))
    return replace(Node(meta=meta, conditions=(Condition(type="Ready", status=status),)), **fields)


def test_states_follow_the_life_of_a_node() -> None:
    initialized_labels = (INITIALIZED, REGISTERED)
    deleted_claim = NodeClaim(
        meta=ObjectMeta(name="default-a", deleted_at=START), node_class=NodeClassRef(name="default")
    )
    assert [
        derive_node_state(state)
        for state in (
            build_state(),
            build_state(provider_id="aws:///us-east-1a/i-1"),
            build_state(node=build_node()),
            build_state(node=build_node(REGISTERED)),
            build_state(node=build_node(*initialized_labels)),
            build_state(node=build_node(*initialized_labels, taints=(DISRUPTED,))),
            build_state(node=build_node(*initialized_labels, unschedulable=True)),
            build_state(node=build_node(*initialized_labels, status="Unknown")),
            build_state(node=build_node(*initialized_labels, status="False")),
            StateNode(claim=deleted_claim, node=build_node(*initialized_labels)),
        )
    ] == [
        *("requested", "launched", "launched", "registered", "ready"),
        *("cordoned", "cordoned", "lost", "registered", "draining"),
    ]


def test_workload_is_the_deployment_of_a_replica_set() -> None:
    def get_workload(*owners: OwnerReference, labels: tuple[tuple[str, str], ...] = ()) -> str:
        return build_observed_pod(
            Pod(meta=ObjectMeta(name="x", namespace="y", owners=owners, labels=labels), spec=PodSpec())
        ).workload

    def make_owner(kind: str, name: str) -> OwnerReference:
        return OwnerReference(api_version="apps/v1", kind=kind, name=name, uid="1", controller=True)

    template_hash = (("pod-template-hash", "bpdk9jb9hh"),)
    assert get_workload(make_owner("ReplicaSet", "web-bpdk9jb9hh"), labels=template_hash) == "Deployment/web"
    assert get_workload(make_owner("ReplicaSet", "web")) == "ReplicaSet/web"
    assert get_workload(make_owner("StatefulSet", "db-5")) == "StatefulSet/db-5"
    assert get_workload() == ""
