"""What the API server's defaults, validation and admission plug-ins do to built-in kinds.

Known difference: only fields that a scheduler, a drain or an autoscaler reads are defaulted or checked.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from shared.errors import Conflict, Forbidden
from sim.cluster.api_kinds import EVENTS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Object, Resource
from sim.cluster.api_meta import instant, invalid
from sim.cluster.eviction import with_condition

NOT_READY: Final[Object] = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
"""A new node has this taint until the node lifecycle controller finds it ready."""

_TOLERATED_SECONDS: Final = 300
_DEFAULT_GRACE_SECONDS: Final = 30

_POD_DEFAULTS: Final = {
    "schedulerName": "default-scheduler",
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "terminationGracePeriodSeconds": _DEFAULT_GRACE_SECONDS,
}
_SPEC_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "deployments.apps": {"replicas": 1, "revisionHistoryLimit": 10},
    "replicasets.apps": {"replicas": 1},
    "statefulsets.apps": {"replicas": 1, "podManagementPolicy": "OrderedReady"},
    "jobs.batch": {"parallelism": 1, "completions": 1, "backoffLimit": 6},
    "persistentvolumes": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "persistentvolumeclaims": {"volumeMode": "Filesystem"},
}
_TOP_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "storageclasses.storage.k8s.io": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "priorityclasses.scheduling.k8s.io": {
        "value": 0,
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority",
    },
}
_PHASES: Final = {"persistentvolumes": "Pending", "persistentvolumeclaims": "Pending", NAMESPACES: "Active"}

Lookup = Callable[[str, str], Object | None]
"""A cluster-scoped object by resource and name, or None."""


def admit_new(resource: Resource, obj: Object, now: datetime, lookup: Lookup) -> Object:
    """Answer *obj* as it will be stored for the first time.

    Raises:
        Forbidden: an admission plug-in refuses it.
        Invalid: a field is wrong.
    """
    name = resource.name
    if name in _TOP_DEFAULTS:
        return _TOP_DEFAULTS[name] | obj
    if name in _SPEC_DEFAULTS:
        obj = {**obj, "spec": _SPEC_DEFAULTS[name] | (obj.get("spec") or {})}
    if name in _PHASES:
        obj = {**obj, "status": {"phase": _PHASES[name]}}
    match name:
        case "pods":
            return _new_pod(resource, obj, lookup)
        case "nodes":
            return _new_node(obj)
        case "namespaces":
            return {**obj, "spec": {"finalizers": ["kubernetes"]}}
        case "events":
            _check_event(resource, obj)
            return {"firstTimestamp": instant(now), "lastTimestamp": instant(now), "count": 1} | obj
        case _:
            return obj


def _new_pod(resource: Resource, obj: Object, lookup: Lookup) -> Object:
    spec = _POD_DEFAULTS | (obj.get("spec") or {})
    if not spec.get("containers"):
        raise invalid(resource, obj["metadata"]["name"], "spec.containers", "Required value")
    spec |= _priority(obj["metadata"]["name"], spec, lookup)
    spec["tolerations"] = _with_default_tolerations(spec.get("tolerations") or [])
    return {**obj, "spec": spec, "status": {"phase": "Pending", "qosClass": _qos_class(spec)}}


def _priority(pod: str, spec: Object, lookup: Lookup) -> Object:
    name = spec.get("priorityClassName", "")
    if not name:
        return {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    found = lookup(PRIORITY_CLASSES, name)
    if found is None:
        raise Forbidden(f'pods "{pod}" is forbidden: no PriorityClass with name {name} was found')
    return {"priority": found["value"], "preemptionPolicy": found["preemptionPolicy"]}


def _with_default_tolerations(tolerations: list[Object]) -> list[Object]:
    """Tolerate a node's being not ready or unreachable for five minutes, unless the pod says otherwise."""
    added = []
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_covers(toleration, key) for toleration in tolerations):
            wanted = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            added.append({**wanted, "tolerationSeconds": _TOLERATED_SECONDS})
    return [*tolerations, *added]


def _covers(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}


def _qos_class(spec: Object) -> str:
    resources = [
        container.get("resources") or {} for container in [*spec.get("initContainers", ()), *spec["containers"]]
    ]
    requests = [{**(each.get("limits") or {}), **(each.get("requests") or {})} for each in resources]
    if not any(requests):
        return "BestEffort"
    guaranteed = all(
        {"cpu", "memory"} <= set(each.get("limits") or ()) and want == {**want, **each["limits"]}
        for each, want in zip(resources, requests, strict=True)
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _new_node(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    taints = spec.get("taints") or []
    if not any(taint["key"] == NOT_READY["key"] and taint["effect"] == NOT_READY["effect"] for taint in taints):
        taints = [*taints, NOT_READY]
    return {**obj, "spec": {**spec, "taints": taints}}


def _check_event(resource: Resource, obj: Object) -> None:
    metadata, involved = obj["metadata"], obj.get("involvedObject") or {}
    namespace = involved.get("namespace", "")
    allowed = {namespace} if namespace else {"default", "kube-system"}
    if metadata["namespace"] not in allowed:
        reason = f'Invalid value: "{namespace}": does not match event.namespace'
        raise invalid(resource, metadata["name"], "involvedObject.namespace", reason)


_MUTABLE: Final = frozenset(
    {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}
)


def check_update(resource: Resource, old: Object, new: Object) -> None:
    """Refuse changes of a built-in object that its kind does not allow.

    Raises:
        Invalid: the message names the field.
    """
    if resource.name == PODS and old["spec"] != new["spec"]:
        _check_pod_update(resource, old, new)
    elif resource.name == NODES:
        before = (old.get("spec") or {}).get("providerID", "")
        if before and before != (new.get("spec") or {}).get("providerID", ""):
            reason = "Forbidden: node updates may not change the providerID once it is set"
            raise invalid(resource, old["metadata"]["name"], "spec.providerID", reason)
    elif resource.name == EVENTS:
        _check_event(resource, new)


def bound(pod: Object, node: str, now: datetime) -> Object:
    """Answer *pod* as pods/binding leaves it.

    Raises:
        Conflict: it is bound already, gated, or being deleted.
    """
    name, there = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
    if "deletionTimestamp" in pod["metadata"]:
        raise Conflict(f"pod {name} is being deleted, cannot be assigned to a host")
    if there:
        raise Conflict(f'pod {name} is already assigned to node "{there}"')
    if pod["spec"].get("schedulingGates"):
        raise Conflict(f"pod {name} has non-empty .spec.schedulingGates")
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": instant(now)}
    conditions = with_condition(pod["status"].get("conditions"), condition)
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {**pod["status"], "conditions": conditions}}


def _check_pod_update(resource: Resource, old: Object, new: Object) -> None:
    name, before, after = old["metadata"]["name"], old["spec"], new["spec"]
    gated = bool(before.get("schedulingGates"))
    if _fixed(before, gated=gated) != _fixed(after, gated=gated):
        reason = "Forbidden: pod updates may not change fields other than images, tolerations (additions) and deadlines"
        raise invalid(resource, name, "spec", reason)
    kept = after.get("tolerations") or []
    if any(toleration not in kept for toleration in before.get("tolerations") or []):
        raise invalid(resource, name, "spec.tolerations", "Forbidden: existing tolerations may not be removed")
    gates = before.get("schedulingGates") or []
    if any(gate not in gates for gate in after.get("schedulingGates") or []):
        raise invalid(resource, name, "spec.schedulingGates", "Forbidden: only deletion is allowed")


def _fixed(spec: Object, *, gated: bool) -> Object:
    mutable = _MUTABLE | {"nodeSelector", "affinity"} if gated else _MUTABLE
    fixed = {key: value for key, value in spec.items() if key not in mutable}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [
                {key: value for key, value in container.items() if key != "image"} for container in fixed[field]
            ]
    return fixed
