"""A small world for scheduling tests: types by size, pools, pods and nodes, each with few parameters."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ARCH, CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, NODEPOOL, OS, REGISTERED, ZONE
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, build_pairs
from shared.model.core.requirements import Requirements, build_requirements, parse_requirement
from shared.model.core.resources import Resources, parse_resources
from shared.model.decisions.placement import Placement
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.workloads import DaemonSet

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ZONES = ("a", "b", "c")
UNSCHEDULABLE = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
BYTES_PER_GIB = 1024**3


def make_requirements(*items: tuple[str, str, Iterable[str]], minimum: Mapping[str, int] | None = None) -> Requirements:
    """Return requirements from (key, operator, values)."""
    minimums = minimum or {}
    return build_requirements(
        parse_requirement(key, operator, values, minimums.get(key)) for key, operator, values in items
    )


def make_instance_type(  # noqa: PLR0913 - a type has that many sides
    name: str,
    cpu: int,
    memory_gi: int = 0,
    *,
    zones: Iterable[str] = ZONES,
    capacity_types: Iterable[str] = ("on-demand",),
    price: float | None = None,
    pods: int = 110,
    arch: str = "amd64",
    labels: Mapping[str, Iterable[str]] | None = None,
    extra: Mapping[str, str] | None = None,
    overhead: Mapping[str, str] | None = None,
) -> InstanceType:
    """Return one type; spot costs 40 % of on-demand, memory is 4 GiB per CPU by default."""
    cost = cpu * 0.05 if price is None else price
    zone_names = tuple(zones)
    kinds = tuple(capacity_types)
    values_by_key = {
        INSTANCE_TYPE: (name,),
        ARCH: (arch,),
        OS: ("linux",),
        ZONE: zone_names,
        CAPACITY_TYPE: kinds,
    } | dict(labels or {})
    return InstanceType(
        name=name,
        requirements=make_requirements(
            *((key, "In" if tuple(v) else "DoesNotExist", v) for key, v in values_by_key.items())
        ),
        capacity=parse_resources(
            {"cpu": str(cpu), "memory": f"{memory_gi or cpu * 4}Gi", "pods": str(pods), "ephemeral-storage": "20Gi"}
            | dict(extra or {})
        ),
        overhead=parse_resources(overhead or {}),
        offerings=tuple(
            Offering(zone=zone, capacity_type=kind, price_usd_per_hour=cost * (0.4 if kind == "spot" else 1))
            for zone in zone_names
            for kind in sorted(kinds)
        ),
    )


SIZES = tuple(make_instance_type(f"m.{cpu:02d}", cpu) for cpu in (2, 4, 8, 16))


def make_node_pool(name: str = "default", **fields: object) -> NodePool:
    """Return a NodePool of the class `default`."""
    return replace(
        NodePool(meta=ObjectMeta(name=name, uid=f"uid-{name}"), node_class=NodeClassRef(name="default")), **fields
    )


def make_node_class(name: str = "default") -> EC2NodeClass:
    """Return a ready EC2NodeClass."""
    return EC2NodeClass(
        meta=ObjectMeta(name=name), spec_hash="4711", conditions=(Condition(type="Ready", status="True"),)
    )


def make_requests(cpu: str = "1", memory: str = "1Gi", **extra: str) -> Resources:
    """Return the requests of a pod."""
    return parse_resources({"cpu": cpu, "memory": memory, "pods": "1"} | extra)


def make_pod(
    name: str,
    cpu: str = "1",
    memory: str = "1Gi",
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "shop",
    on: str = "",
    owners: tuple[OwnerReference, ...] = (),
    age: int = 0,
    requests: Resources | None = None,
    **spec: object,
) -> Pod:
    """Return a pending pod, or one that runs on the node *on*."""
    return Pod(
        meta=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{namespace}-{name}",
            labels=build_pairs(labels or {}),
            owners=owners,
            created_at=NOW - timedelta(seconds=age),
        ),
        spec=replace(PodSpec(requests=make_requests(cpu, memory) if requests is None else requests), **spec),
        node_name=on,
        phase="Running" if on else "Pending",
        conditions=() if on else UNSCHEDULABLE,
    )


def make_daemon_set(name: str, cpu: str = "100m", memory: str = "128Mi", **spec: object) -> DaemonSet:
    """Return a DaemonSet."""
    return DaemonSet(
        meta=ObjectMeta(name=name, namespace="kube-system"),
        spec=replace(PodSpec(requests=make_requests(cpu, memory)), **spec),
    )


DAEMON_OWNER = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="uid-agent")


def make_node(
    name: str, cpu: str = "4", memory: str = "16Gi", labels: Mapping[str, str] | None = None, **fields: object
) -> Node:
    """Return a Node without claim in zone a."""
    room = parse_resources({"cpu": cpu, "memory": memory, "pods": "110"})
    node_labels = {ZONE: "a", ARCH: "amd64", OS: "linux", INSTANCE_TYPE: "m.04", CAPACITY_TYPE: "on-demand"} | dict(
        labels or {}
    )
    meta = ObjectMeta(name=name, uid=f"uid-{name}", labels=build_pairs(node_labels))
    return replace(Node(meta=meta, provider_id=f"aws:///a/{name}", capacity=room, allocatable=room), **fields)


def attach_claim(node: Node, *, initialized: bool = True, **claim_fields: object) -> tuple[Node, NodeClaim]:
    """Return a Node with its claim, of the pool `default`."""
    labels = dict(node.meta.labels) | {NODEPOOL: "default", REGISTERED: "true"}
    if initialized:
        labels[INITIALIZED] = "true"
    claim = NodeClaim(
        meta=ObjectMeta(name=f"claim-{node.name}", labels=build_pairs(labels)),
        node_class=NodeClassRef(name="default"),
        provider_id=node.provider_id,
        node_name=node.name,
        capacity=node.capacity,
        allocatable=node.allocatable,
    )
    return replace(node, meta=replace(node.meta, labels=build_pairs(labels))), replace(claim, **claim_fields)


def launch_claim(claim: NodeClaim, instance_type: InstanceType, zone: str, capacity_type: str) -> NodeClaim:
    """Return the claim after its instance has started and before the node has joined."""
    labels = {item.key: min(item.values) for item in instance_type.requirements if item.values}
    labels |= {ZONE: zone, CAPACITY_TYPE: capacity_type} | dict(claim.meta.labels)
    return replace(
        claim,
        meta=replace(claim.meta, labels=build_pairs(labels)),
        provider_id=f"aws:///{zone}/i-{claim.name}",
        capacity=instance_type.capacity,
        allocatable=instance_type.allocatable,
    )


def make_cluster_snapshot(*pods: Pod, types: Iterable[InstanceType] = SIZES, **fields: object) -> ClusterSnapshot:
    """Return a cluster with the pool `default`, unless pools are given."""
    cluster = ClusterSnapshot(
        taken_at=NOW,
        pods=pods,
        node_pools=(make_node_pool(),),
        node_classes=(make_node_class(),),
        catalog=Catalog(region="nowhere", instance_types=tuple(types)),
    )
    return replace(cluster, **fields)


def locate_pods(placement: Placement) -> dict[str, str]:
    """Return for each pod its node's name, the pool of its new node, or the reason why it is unschedulable."""
    locations = {name: node.node_pool for node in placement.new_nodes for name in node.pods}
    locations |= {name: fit.node for fit in placement.existing for name in fit.pods}
    locations |= {pod.pod: pod.reason for pod in placement.unschedulable}
    return {name.partition("/")[2]: location for name, location in locations.items()}


def count_pods_per_new_node(placement: Placement) -> list[int]:
    """Return the number of pods of each new node, fewest first."""
    return sorted(len(node.pods) for node in placement.new_nodes)
