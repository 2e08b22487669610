"""A Cluster from files: what `kubectl get -o json` printed, or manifests that no API server has seen.

The converters are those of a live cluster. Before them a manifest gets what an API server and its controllers would
have given it: a namespace, the default StorageClass, an unschedulable pod's condition, readiness.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from shared.model.cluster import Cluster
from shared.model.labels import NODECLASS, NODEPOOL
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition, Problem
from shared.snapshot.kinds import LISTINGS, order
from shared.snapshot.pages import without_nulls

_NAMESPACED: Final = frozenset(("Pod", "DaemonSet", "PersistentVolumeClaim", "PodDisruptionBudget"))
_OLDER: Final = frozenset(("Provisioner", "AWSNodeTemplate", "Machine", "NodePool", "NodeClaim", "EC2NodeClass"))
_TERMINAL: Final = ("Succeeded", "Failed")
_READY: Final = {"type": "Ready", "status": "True", "reason": "Assumed"}
_UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def cluster_from_documents(
    objects: Iterable[Mapping[str, Any]], now: datetime, *, assume_unschedulable: bool = True
) -> Cluster:
    """Read *objects*, Lists among them, in any order; of an object that is there twice the last counts.

    Kinds that decisions do not read are passed over. With *assume_unschedulable* a pod without node and without
    `PodScheduled` condition counts as one that kube-scheduler gave up on.
    """
    some = {_identity(one): one for one in _flat(objects)}
    by_kind: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (api, kind, _, _), one in some.items():
        by_kind.setdefault((api, kind), []).append(one)
    problems = [problem for one in some.values() for problem in _older(one)]
    parts: dict[str, Any] = {}
    complete = _completions(some.values(), assume_unschedulable=assume_unschedulable)
    for listing in LISTINGS:
        mine = [one for one in by_kind.get((listing.api, listing.kind), ()) if not _is_terminal(one)]
        found, bad = listing.objects([complete.get(listing.kind, _same)(one) for one in mine])
        parts[listing.field] = tuple(sorted(found, key=order))
        problems += bad
    parts["node_claims"] = _with_owned(parts["nodes"], parts["node_claims"])
    return Cluster(taken_at=now, problems=tuple(sorted(problems)), **parts)


def _flat(objects: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in objects:
        if isinstance(one.get("items"), list):
            yield from _flat(one["items"])
        else:
            yield _placed(without_nulls(dict(one)))


def _placed(one: dict[str, Any]) -> dict[str, Any]:
    meta = one.get("metadata")
    if one.get("kind") in _NAMESPACED and isinstance(meta, dict):
        return one | {"metadata": {"namespace": "default"} | meta}
    return one


def _identity(one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    meta = _meta(one)
    parts = (one.get("apiVersion"), one.get("kind"), meta.get("namespace"), meta.get("name"))
    api, kind, namespace, name = (part if isinstance(part, str) else "" for part in parts)
    return api, kind, namespace, name


def _meta(one: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = one.get("metadata")
    return meta if isinstance(meta, Mapping) else {}


def _says(one: object, key: str, text: str) -> bool:
    return isinstance(one, Mapping) and one.get(key) == text


def _older(one: Mapping[str, Any]) -> Iterator[Problem]:
    api, kind, _, name = _identity(one)
    version = api.partition("/")[2]
    if "karpenter" in api.partition("/")[0] and kind in _OLDER and version != "v1":
        message = f"apiVersion: {api} is not read any more; convert it to v1 with `joiner convert`"
        yield Problem(kind=kind, name=name or "without a name", message=message)


def _is_terminal(one: Mapping[str, Any]) -> bool:
    return one.get("kind") == "Pod" and any(_says(one.get("status"), "phase", phase) for phase in _TERMINAL)


def _completions(
    objects: Iterable[Mapping[str, Any]], *, assume_unschedulable: bool
) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    default = _default_class(objects)

    def claim(one: dict[str, Any]) -> dict[str, Any]:
        spec = one.get("spec")
        return one | {"spec": {"storageClassName": default} | spec} if isinstance(spec, dict) else one

    complete = {"NodePool": _ready, "EC2NodeClass": _ready, "PersistentVolumeClaim": claim}
    return complete | ({"Pod": _unschedulable} if assume_unschedulable else {})


def _default_class(objects: Iterable[Mapping[str, Any]]) -> str:
    names = [
        _identity(one)[3]
        for one in objects
        if one.get("kind") == "StorageClass" and _says(_meta(one).get("annotations"), _DEFAULT_CLASS, "true")
    ]
    return min(names, default="")


def _same(one: dict[str, Any]) -> dict[str, Any]:
    return one


def _ready(one: dict[str, Any]) -> dict[str, Any]:
    status = one.get("status", {})
    if not isinstance(status, dict) or status.get("conditions"):
        return one
    generation = _meta(one).get("generation", 0)
    return one | {"status": status | {"conditions": [_READY | {"observedGeneration": generation}]}}


def _unschedulable(one: dict[str, Any]) -> dict[str, Any]:
    spec, status = one.get("spec"), one.get("status", {})
    if not isinstance(spec, dict) or not isinstance(status, dict) or spec.get("nodeName"):
        return one
    conditions = status.get("conditions", [])
    if not isinstance(conditions, list) or any(_says(one, "type", "PodScheduled") for one in conditions):
        return one
    return one | {"status": status | {"conditions": [*conditions, _UNSCHEDULABLE]}}


def _with_owned(nodes: Iterable[Node], claims: tuple[NodeClaim, ...]) -> tuple[NodeClaim, ...]:
    known = {claim.provider_id for claim in claims} | {claim.node_name for claim in claims}
    owned = [
        _claim_of(node)
        for node in nodes
        if node.meta.label(NODEPOOL) and node.name not in known and not (node.provider_id and node.provider_id in known)
    ]
    return tuple(sorted((*claims, *owned), key=order))


def _claim_of(node: Node) -> NodeClaim:
    states = ("Consolidatable", "Initialized", "Launched", "Ready", "Registered")
    return NodeClaim(
        meta=node.meta,
        node_class=NodeClassRef(name=node.meta.label(NODECLASS)),
        node_name=node.name,
        provider_id=node.provider_id,
        capacity=node.capacity,
        allocatable=node.allocatable,
        conditions=tuple(Condition(type=one, status="True", reason="Assumed") for one in states),
    )
