"""Machines in all their stages, for the tests of lifecycle and disruption."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

import msgspec

from shared.model import labels
from shared.model.action import Action, PatchStatus
from shared.model.cluster import Cluster
from shared.model.ec2 import Instance, InstanceState
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Owner, pairs
from shared.model.pods import Pod, PodDisruptionBudget, PodSpec
from shared.model.resources import parse_resources
from shared.model.selectors import selector
from shared.model.taints import DISRUPTED

Case: TypeAlias = Any
"""A field of a case, a parameter of a table: of whatever type the rule in question needs."""

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLASS = NodeClassRef(name="default")
ROOM = parse_resources({"cpu": 4, "memory": "8Gi", "pods": 30})
ASKED = parse_resources({"cpu": 1, "pods": 1})
LABELS = {
    labels.NODEPOOL: "default",
    labels.NODECLASS: "default",
    labels.INSTANCE_TYPE: "m7i.large",
    labels.ZONE: "us-east-1a",
    labels.CAPACITY_TYPE: "spot",
}
BIRTH = NOW - timedelta(hours=1)
STAGES = ("Launched", "Registered", "Initialized")
HEALTH = (labels.REGISTRATION_HEALTH, '{"of":"1/1","since":"2026-11-21T11:00:00Z","failed":{}}')
POOL = NodePool(meta=Meta(name="default", uid="p", generation=1, annotations=(HEALTH,)), node_class=CLASS)
NODE_CLASS = EC2NodeClass(
    meta=Meta(name="default", generation=1, finalizers=(labels.NODECLASS_FINALIZER,)),
    conditions=(Condition(type="Ready", status="True", reason="Ready", observed_generation=1),),
)
A = TypeVar("A")


def either(given: dict[str, Case], **usual: Case) -> dict[str, Case]:
    """Answer what is given, and what is usual of the rest."""
    return usual | given


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def true(*types: str, since: datetime = BIRTH) -> tuple[Condition, ...]:
    return tuple(Condition(type=one, status="True", reason=one, since=since, observed_generation=1) for one in types)


def unknown(type_: str, reason: str, since: datetime) -> Condition:
    return Condition(type=type_, status="Unknown", reason=reason, since=since, observed_generation=1)


def provider_id(name: str) -> str:
    return f"aws:///us-east-1a/i-{name}" if name else ""


def claim(
    name: str = "a",
    *,
    conditions: tuple[Condition, ...] = true(*STAGES),
    launched: bool = True,
    created: datetime = BIRTH,
    deleted: datetime | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (labels.TERMINATION_FINALIZER,),
    extra: dict[str, str] | None = None,
    **fields: Case,
) -> NodeClaim:
    return NodeClaim(
        meta=Meta(
            name=name,
            uid=f"uid-{name}",
            resource_version="7",
            generation=1,
            created_at=created,
            deleted_at=deleted,
            labels=pairs(LABELS | (extra or {})),
            annotations=pairs(annotations or {}),
            finalizers=finalizers,
        ),
        node_class=CLASS,
        requests=ASKED,
        provider_id=provider_id(name) if launched else "",
        capacity=ROOM,
        allocatable=ROOM,
        conditions=conditions,
        **either(fields, node_name=f"node-{name}" if any(one.type == "Registered" for one in conditions) else ""),
    )


def node(
    name: str = "a",
    *,
    ready: bool = True,
    fit: bool = True,
    deleted: datetime | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (labels.TERMINATION_FINALIZER,),
    going: bool = False,
    extra: dict[str, str] | None = None,
    **fields: Case,
) -> Node:
    own = {labels.REGISTERED: "true", labels.INITIALIZED: "true"} if fit else {}
    balancers = {labels.EXCLUDE_BALANCERS: "karpenter"} if going else {}
    return Node(
        meta=Meta(
            name=f"node-{name}",
            uid=f"node-uid-{name}",
            resource_version="8",
            created_at=BIRTH,
            deleted_at=deleted,
            labels=pairs(LABELS | own | balancers | (extra or {})),
            annotations=pairs(annotations or {}),
            finalizers=finalizers,
        ),
        **either(
            fields,
            provider_id=provider_id(name),
            capacity=ROOM,
            allocatable=ROOM,
            conditions=(Condition(type="Ready", status="True" if ready else "Unknown"),),
            taints=(DISRUPTED,) if going else (),
        ),
    )


def instance(name: str = "a", *, state: InstanceState = "running", at: datetime = BIRTH, **tags: str) -> Instance:
    return Instance(
        instance_id=f"i-{name}",
        instance_type="m7i.large",
        zone="us-east-1a",
        subnet_id="subnet-a",
        image_id="ami-1",
        state=state,
        launched_at=at,
        capacity_type="spot",
        tags=pairs(tags),
    )


def pod(
    name: str = "cart",
    on: str = "a",
    *,
    annotations: dict[str, str] | None = None,
    daemon: bool = False,
    deleted: datetime | None = None,
    phase: str = "Running",
    spec: PodSpec | None = None,
    **fields: Case,
) -> Pod:
    owner = Owner(api_version="apps/v1", kind="DaemonSet" if daemon else "ReplicaSet", name="o", uid="o")
    return Pod(
        meta=Meta(
            name=name,
            namespace="shop",
            uid=f"uid-{name}",
            labels=(("app", name),),
            annotations=pairs(annotations or {}),
            deleted_at=deleted,
            owners=(owner,),
        ),
        spec=spec or PodSpec(requests=parse_resources({"cpu": "1", "pods": 1})),
        node_name=f"node-{on}" if on else "",
        phase=phase,
        **fields,
    )


def guard(app: str, name: str = "guard", *, allowed: int = 1, **fields: Case) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        meta=Meta(name=name, namespace="shop"),
        selector=selector({"app": app}),
        disruptions_allowed=allowed,
        **fields,
    )


def cluster(**fields: Case) -> Cluster:
    return Cluster(**either(fields, taken_at=NOW, node_pools=(POOL,), node_classes=(NODE_CLASS,)))


def of(kind: type[A], actions: tuple[Action, ...]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def statuses(actions: tuple[Action, ...], kind: str = "NodeClaim") -> dict[str, Any]:
    """Answer what the only status patch of that kind says, conditions by type."""
    found = [json.loads(one.status) for one in of(PatchStatus, actions) if one.kind == kind]
    if not found:
        return {}
    (status,) = found
    by_type = {one["type"]: one for one in status.get("conditions", ())}
    return {**status, "conditions": by_type}


def changed(value: A, **fields: Case) -> A:
    return msgspec.structs.replace(value, **fields)  # type: ignore[type-var]  # A is always a Struct here
