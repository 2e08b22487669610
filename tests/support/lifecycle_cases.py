"""Claims, nodes and instances in all their stages, for the tests of lifecycle and disruption."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.action import Action, PatchStatus
from shared.model.ec2.instance import Instance
from shared.model.ec2.types import InstanceState
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget

Case: TypeAlias = Any
"""A field of a test case or a parameter of a table, of any type that the tested rule needs."""

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLASS = NodeClassRef(name="default")
ROOM = parse_resources({"cpu": 4, "memory": "8Gi", "pods": 30})
CLAIM_REQUESTS = parse_resources({"cpu": 1, "pods": 1})
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
POOL = NodePool(meta=ObjectMeta(name="default", uid="p", generation=1, annotations=(HEALTH,)), node_class=CLASS)
NODE_CLASS = EC2NodeClass(
    meta=ObjectMeta(name="default", generation=1, finalizers=(labels.NODECLASS_FINALIZER,)),
    conditions=(Condition(type="Ready", status="True", reason="Ready", observed_generation=1),),
)
A = TypeVar("A")


def merge_fields(overrides: dict[str, Case], **usual: Case) -> dict[str, Case]:
    """Return *overrides*, and *usual* for the fields that *overrides* lacks."""
    return usual | overrides


def get_time_before(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def make_true_conditions(*types: str, since: datetime = BIRTH) -> tuple[Condition, ...]:
    return tuple(
        Condition(type=condition_type, status="True", reason=condition_type, since=since, observed_generation=1)
        for condition_type in types
    )


def make_unknown_condition(type_: str, reason: str, since: datetime) -> Condition:
    return Condition(type=type_, status="Unknown", reason=reason, since=since, observed_generation=1)


def make_provider_id(name: str) -> str:
    return f"aws:///us-east-1a/i-{name}" if name else ""


def make_claim(
    name: str = "a",
    *,
    conditions: tuple[Condition, ...] = make_true_conditions(*STAGES),
    launched: bool = True,
    created: datetime = BIRTH,
    deleted: datetime | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (labels.TERMINATION_FINALIZER,),
    extra: dict[str, str] | None = None,
    **fields: Case,
) -> NodeClaim:
    return NodeClaim(
        meta=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="7",
            generation=1,
            created_at=created,
            deleted_at=deleted,
            labels=build_pairs(LABELS | (extra or {})),
            annotations=build_pairs(annotations or {}),
            finalizers=finalizers,
        ),
        node_class=CLASS,
        requests=CLAIM_REQUESTS,
        provider_id=make_provider_id(name) if launched else "",
        capacity=ROOM,
        allocatable=ROOM,
        conditions=conditions,
        **merge_fields(
            fields, node_name=f"node-{name}" if any(condition.type == "Registered" for condition in conditions) else ""
        ),
    )


def make_node(
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
    status_labels = {labels.REGISTERED: "true", labels.INITIALIZED: "true"} if fit else {}
    balancers = {labels.EXCLUDE_BALANCERS: "karpenter"} if going else {}
    return Node(
        meta=ObjectMeta(
            name=f"node-{name}",
            uid=f"node-uid-{name}",
            resource_version="8",
            created_at=BIRTH,
            deleted_at=deleted,
            labels=build_pairs(LABELS | status_labels | balancers | (extra or {})),
            annotations=build_pairs(annotations or {}),
            finalizers=finalizers,
        ),
        **merge_fields(
            fields,
            provider_id=make_provider_id(name),
            capacity=ROOM,
            allocatable=ROOM,
            conditions=(Condition(type="Ready", status="True" if ready else "Unknown"),),
            taints=(DISRUPTED,) if going else (),
        ),
    )


def make_instance(name: str = "a", *, state: InstanceState = "running", at: datetime = BIRTH, **tags: str) -> Instance:
    return Instance(
        instance_id=f"i-{name}",
        instance_type="m7i.large",
        zone="us-east-1a",
        subnet_id="subnet-a",
        image_id="ami-1",
        state=state,
        launched_at=at,
        capacity_type="spot",
        tags=build_pairs(tags),
    )


def make_pod(
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
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet" if daemon else "ReplicaSet", name="o", uid="o")
    return Pod(
        meta=ObjectMeta(
            name=name,
            namespace="shop",
            uid=f"uid-{name}",
            labels=(("app", name),),
            annotations=build_pairs(annotations or {}),
            deleted_at=deleted,
            owners=(owner,),
        ),
        spec=spec or PodSpec(requests=parse_resources({"cpu": "1", "pods": 1})),
        node_name=f"node-{on}" if on else "",
        phase=phase,
        **fields,
    )


def make_pod_disruption_budget(
    app: str, name: str = "guard", *, allowed: int = 1, **fields: Case
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        meta=ObjectMeta(name=name, namespace="shop"),
        selector=build_label_selector({"app": app}),
        disruptions_allowed=allowed,
        **fields,
    )


def make_cluster(**fields: Case) -> ClusterSnapshot:
    return ClusterSnapshot(**merge_fields(fields, taken_at=NOW, node_pools=(POOL,), node_classes=(NODE_CLASS,)))


def filter_actions(kind: type[A], actions: tuple[Action, ...]) -> list[A]:
    return [action for action in actions if isinstance(action, kind)]


def get_status_patch(actions: tuple[Action, ...], kind: str = "NodeClaim") -> dict[str, Any]:
    """Return the only status patch of *kind*, with its conditions by type."""
    patches = [json.loads(action.status) for action in filter_actions(PatchStatus, actions) if action.kind == kind]
    if not patches:
        return {}
    (status,) = patches
    by_type = {condition["type"]: condition for condition in status.get("conditions", ())}
    return {**status, "conditions": by_type}


def replace_fields(value: A, **fields: Case) -> A:
    return msgspec.structs.replace(value, **fields)  # type: ignore[type-var]  # A is always a Struct here
