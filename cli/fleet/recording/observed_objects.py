"""Nodes and pods as a fleet document describes them, from the objects of a cluster."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from shared.model.core.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import find_condition
from shared.model.core.resources import CPU, MEMORY, PODS
from shared.model.core.taints import DISRUPTED
from shared.model.core.units import BYTES_PER_MIB
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_workload import get_workload
from shared.state.node_prices import PriceList
from shared.state.state_node import StateNode


class ObservedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node at one time; an empty value is unknown and keeps the value of an earlier observation."""

    key: str
    """The NodeClaim's name, or the Node's name if it has no NodeClaim."""
    name: str
    claim: str = ""
    pool: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    arch: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    pod_capacity: int = 0
    price: float | None = None
    """USD per hour."""
    created_at: datetime | None = None
    state: str
    node_claim: NodeClaim | None = None


class ObservedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod at one time."""

    key: str
    """Its UID, or namespace and name if it has none."""
    namespace: str
    name: str
    workload: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    priority: int = 0
    created_at: datetime | None = None
    node_name: str = ""
    """The Node that it is bound to; "" while it is pending."""
    bound_since: datetime | None = None
    """When it was bound; None: unknown."""
    is_ended: bool = False
    running_since: datetime | None = None
    """When it became Ready."""
    was_unschedulable: bool = False
    """Whether kube-scheduler has tried to schedule it and failed."""


def build_observed_node(state: StateNode, price_list: PriceList, node_class: str) -> ObservedNode:
    """Return *state* as a node of a fleet document; *node_class* is that of its NodePool, for prices."""
    meta, allocatable = state.meta, state.compute_allocatable()
    owner = state.claim or state.node
    is_owned = state.claim is not None or bool(state.pool)
    node_class = state.claim.node_class.name if state.claim is not None else node_class
    return ObservedNode(
        key=owner.name if owner is not None else state.name,
        name=state.node.name if state.node is not None else state.name,
        claim=state.claim.name if state.claim is not None else "",
        pool=state.pool,
        instance_type=meta.get_label(INSTANCE_TYPE),
        zone=meta.get_label(ZONE),
        capacity_type=meta.get_label(CAPACITY_TYPE),
        arch=meta.get_label(ARCH),
        cpu_milli=allocatable[CPU],
        memory_mib=allocatable[MEMORY] // BYTES_PER_MIB,
        pod_capacity=allocatable[PODS],
        price=(price_list.get_price(meta, node_class) or None) if is_owned else None,
        created_at=owner.meta.created_at if owner is not None else None,
        state=derive_node_state(state),
        node_claim=state.claim,
    )


def derive_node_state(state: StateNode) -> str:
    """Return the state of a node, one of `NODE_STATES`."""
    if state.is_marked_for_deletion():
        return "draining"
    if state.node is None:
        return "launched" if state.claim is not None and state.claim.is_launched() else "requested"
    if not state.is_initialized():
        return "registered" if state.is_registered() else "launched"
    return _derive_initialized_state(state.node)


def _derive_initialized_state(node: Node) -> str:
    if node.unschedulable or any(taint.is_same(DISRUPTED) for taint in node.taints):
        return "cordoned"
    condition = find_condition(node.conditions, "Ready")
    if condition is None or condition.status == "True":
        return "ready"
    return "lost" if condition.status == "Unknown" else "registered"


def build_observed_pod(pod: Pod) -> ObservedPod:
    """Return *pod* as a pod of a fleet document."""
    requests = pod.spec.requests
    ready, scheduled = find_condition(pod.conditions, "Ready"), find_condition(pod.conditions, "PodScheduled")
    return ObservedPod(
        key=pod.meta.uid or pod.name,
        namespace=pod.meta.namespace,
        name=pod.meta.name,
        workload=get_workload(pod).partition("/")[2] if pod.meta.owners else "",
        cpu_milli=requests[CPU],
        memory_mib=-(-requests[MEMORY] // BYTES_PER_MIB),
        priority=pod.priority,
        created_at=pod.meta.created_at,
        node_name=pod.node_name,
        bound_since=scheduled.since if scheduled is not None and scheduled.status == "True" else None,
        is_ended=pod.is_terminal(),
        running_since=ready.since if ready is not None and ready.status == "True" else None,
        was_unschedulable=pod.is_unschedulable(),
    )


def build_observed_pods(pods: Iterable[Pod]) -> list[ObservedPod]:
    """Return *pods* as pods of a fleet document; virtual pods of CapacityBuffers are left out."""
    return [build_observed_pod(pod) for pod in pods if not pod.is_buffer_pod()]
