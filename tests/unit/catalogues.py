"""A small world for scheduling tests: types by size, pools, pods, nodes, each with the fewest words."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.labels import ARCH, CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, NODEPOOL, OS, REGISTERED, ZONE
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Owner, pairs
from shared.model.pods import DaemonSet, Pod, PodSpec
from shared.model.requirements import Requirements, requirement, requirements
from shared.model.resources import Resources, parse_resources
from shared.scheduling.placement import Placement

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ZONES = ("a", "b", "c")
UNSCHEDULABLE = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
GI = 1024**3


def needs(*items: tuple[str, str, Iterable[str]], minimum: Mapping[str, int] | None = None) -> Requirements:
    """Requirements from (key, operator, values)."""
    asked = minimum or {}
    return requirements(requirement(key, operator, values, asked.get(key)) for key, operator, values in items)


def instance_type(  # noqa: PLR0913 - a type has that many sides
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
    """One type; spot costs 40 % of on-demand, memory is four times the cpu unless given."""
    cost = cpu * 0.05 if price is None else price
    some = tuple(zones)
    kinds = tuple(capacity_types)
    own = {INSTANCE_TYPE: (name,), ARCH: (arch,), OS: ("linux",), ZONE: some, CAPACITY_TYPE: kinds} | dict(labels or {})
    return InstanceType(
        name=name,
        requirements=needs(*((key, "In" if tuple(v) else "DoesNotExist", v) for key, v in own.items())),
        capacity=parse_resources(
            {"cpu": str(cpu), "memory": f"{memory_gi or cpu * 4}Gi", "pods": str(pods), "ephemeral-storage": "20Gi"}
            | dict(extra or {})
        ),
        overhead=parse_resources(overhead or {}),
        offerings=tuple(
            Offering(zone=zone, capacity_type=kind, price_usd_per_hour=cost * (0.4 if kind == "spot" else 1))
            for zone in some
            for kind in sorted(kinds)
        ),
    )


SIZES = tuple(instance_type(f"m.{cpu:02d}", cpu) for cpu in (2, 4, 8, 16))


def pool(name: str = "default", **fields: object) -> NodePool:
    """A NodePool of the class `default`."""
    return replace(NodePool(meta=Meta(name=name, uid=f"uid-{name}"), node_class=NodeClassRef(name="default")), **fields)


def node_class(name: str = "default") -> EC2NodeClass:
    """A ready EC2NodeClass."""
    return EC2NodeClass(meta=Meta(name=name), hashed="4711", conditions=(Condition(type="Ready", status="True"),))


def asks(cpu: str = "1", memory: str = "1Gi", **extra: str) -> Resources:
    """Requests of a pod."""
    return parse_resources({"cpu": cpu, "memory": memory, "pods": "1"} | extra)


def pod(
    name: str,
    cpu: str = "1",
    memory: str = "1Gi",
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "shop",
    on: str = "",
    owners: tuple[Owner, ...] = (),
    age: int = 0,
    requests: Resources | None = None,
    **spec: object,
) -> Pod:
    """A pending pod, or one that runs *on* a node."""
    return Pod(
        meta=Meta(
            name=name,
            namespace=namespace,
            uid=f"uid-{namespace}-{name}",
            labels=pairs(labels or {}),
            owners=owners,
            created_at=NOW - timedelta(seconds=age),
        ),
        spec=replace(PodSpec(requests=asks(cpu, memory) if requests is None else requests), **spec),
        node_name=on,
        phase="Running" if on else "Pending",
        conditions=() if on else UNSCHEDULABLE,
    )


def daemon(name: str, cpu: str = "100m", memory: str = "128Mi", **spec: object) -> DaemonSet:
    """A DaemonSet."""
    return DaemonSet(
        meta=Meta(name=name, namespace="kube-system"), spec=replace(PodSpec(requests=asks(cpu, memory)), **spec)
    )


DAEMON_OWNER = Owner(api_version="apps/v1", kind="DaemonSet", name="agent", uid="uid-agent")


def node(
    name: str, cpu: str = "4", memory: str = "16Gi", labels: Mapping[str, str] | None = None, **more: object
) -> Node:
    """A Node without claim in zone a."""
    room = parse_resources({"cpu": cpu, "memory": memory, "pods": "110"})
    own = {ZONE: "a", ARCH: "amd64", OS: "linux", INSTANCE_TYPE: "m.04", CAPACITY_TYPE: "on-demand"} | dict(
        labels or {}
    )
    meta = Meta(name=name, uid=f"uid-{name}", labels=pairs(own))
    return replace(Node(meta=meta, provider_id=f"aws:///a/{name}", capacity=room, allocatable=room), **more)


def claimed(some: Node, *, initialized: bool = True, **more: object) -> tuple[Node, NodeClaim]:
    """Give a Node its claim, of the pool `default`."""
    labels = dict(some.meta.labels) | {NODEPOOL: "default", REGISTERED: "true"}
    if initialized:
        labels[INITIALIZED] = "true"
    claim = NodeClaim(
        meta=Meta(name=f"claim-{some.name}", labels=pairs(labels)),
        node_class=NodeClassRef(name="default"),
        provider_id=some.provider_id,
        node_name=some.name,
        capacity=some.capacity,
        allocatable=some.allocatable,
    )
    return replace(some, meta=replace(some.meta, labels=pairs(labels))), replace(claim, **more)


def launched(claim: NodeClaim, some: InstanceType, zone: str, capacity_type: str) -> NodeClaim:
    """The claim when its instance has started and the node has not joined."""
    labels = {item.key: min(item.values) for item in some.requirements if item.values}
    labels |= {ZONE: zone, CAPACITY_TYPE: capacity_type} | dict(claim.meta.labels)
    return replace(
        claim,
        meta=replace(claim.meta, labels=pairs(labels)),
        provider_id=f"aws:///{zone}/i-{claim.name}",
        capacity=some.capacity,
        allocatable=some.allocatable,
    )


def world(*pods: Pod, types: Iterable[InstanceType] = SIZES, **more: object) -> Cluster:
    """A cluster with the pool `default`, unless pools are given."""
    cluster = Cluster(
        taken_at=NOW,
        pods=pods,
        node_pools=(pool(),),
        node_classes=(node_class(),),
        catalogue=Catalogue(region="nowhere", instance_types=tuple(types)),
    )
    return replace(cluster, **more)


def placed(placement: Placement) -> dict[str, str]:
    """Where each pod is: the node's name, or the pool's for a new node, or the reason."""
    found = {name: node.node_pool for node in placement.new_nodes for name in node.pods}
    found |= {name: fit.node for fit in placement.existing for name in fit.pods}
    found |= {one.pod: one.reason for one in placement.unschedulable}
    return {name.partition("/")[2]: where for name, where in found.items()}


def sizes(placement: Placement) -> list[int]:
    """How many pods the new nodes have, fewest first."""
    return sorted(len(node.pods) for node in placement.new_nodes)
