"""What the API server's defaults, validation and admission plug-ins do to built-in kinds.

Known difference: only fields that a scheduler, a drain or an autoscaler reads are defaulted or checked.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from shared.errors import Conflict, Forbidden
from sim.cluster.api_kinds import BUDGETS, EVENTS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Object, Resource
from sim.cluster.api_meta import instant, invalid
from sim.cluster.eviction import with_condition

NOT_READY: Final[Object] = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
"""A new node has this taint until the node lifecycle controller finds it ready."""

_TOLERATED_SECONDS: Final = 300
_DEFAULT_GRACE_SECONDS: Final = 30
_NO_GRACE_SECONDS: Final = 1
"""What a negative grace means."""
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_PERCENT: Final = re.compile(r"(100|\d{1,2})%")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

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
    if check := _CHECKS.get(name):
        check(resource, obj)
    match name:
        case "pods":
            return _new_pod(resource, obj, now, lookup)
        case "nodes":
            return _new_node(obj)
        case "namespaces":
            return _new_namespace(obj)
        case _:
            return obj


def _new_namespace(obj: Object) -> Object:
    metadata = obj["metadata"]
    labels = (metadata.get("labels") or {}) | {"kubernetes.io/metadata.name": metadata["name"]}
    return {**obj, "metadata": {**metadata, "labels": labels}, "spec": {"finalizers": ["kubernetes"]}}


def _new_pod(resource: Resource, obj: Object, now: datetime, lookup: Lookup) -> Object:
    spec = _POD_DEFAULTS | (obj.get("spec") or {})
    if not spec.get("containers"):
        raise invalid(resource, obj["metadata"]["name"], "spec.containers", "Required value")
    spec |= _priority(obj["metadata"]["name"], spec, lookup)
    spec["tolerations"] = _with_default_tolerations(spec.get("tolerations") or [])
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = _NO_GRACE_SECONDS
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [_new_container(each, on_host=bool(spec.get("hostNetwork"))) for each in spec[field]]
    status: Object = {"phase": "Pending", "qosClass": _qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [{**_GATED, "lastTransitionTime": instant(now)}]
    return {**obj, "spec": spec, "status": status}


def _new_container(container: Object, *, on_host: bool) -> Object:
    """Answer *container* with requests where it has limits only; *on_host* its ports are the node's."""
    filled = container
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        filled = {**filled, "resources": {**resources, "requests": {**limits, **(resources.get("requests") or {})}}}
    if ports := container.get("ports"):
        filled = {**filled, "ports": [_new_port(port, on_host=on_host) for port in ports]}
    return filled


def _new_port(port: Object, *, on_host: bool) -> Object:
    host = {"hostPort": port["containerPort"]} if on_host else {}
    return {**host, "protocol": "TCP", **port}


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
    if metadata["namespace"] != (namespace or "default"):
        reason = f'Invalid value: "{namespace}": does not match event.namespace'
        raise invalid(resource, metadata["name"], "involvedObject.namespace", reason)


def _check_taints(resource: Resource, obj: Object) -> None:
    name, seen = obj["metadata"]["name"], set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or []):
        effect, field = taint.get("effect", ""), f"metadata.taints[{index}]"
        if effect not in _EFFECTS:
            reason = f'Unsupported value: "{effect}"' if effect else "Required value"
            raise invalid(resource, name, f"{field}.effect", reason)
        if (taint.get("key"), effect) in seen:
            raise invalid(resource, name, field, "Duplicate value: taints must be unique by key and effect pair")
        seen.add((taint.get("key"), effect))


def _check_budget(resource: Resource, obj: Object) -> None:
    name, spec = obj["metadata"]["name"], obj.get("spec") or {}
    given = [field for field in ("minAvailable", "maxUnavailable") if field in spec]
    if len(given) > 1:
        raise invalid(resource, name, "spec", "Invalid value: minAvailable and maxUnavailable cannot be both set")
    for field in given:
        value = spec[field]
        if not (_PERCENT.fullmatch(value) if isinstance(value, str) else value >= 0):
            raise invalid(resource, name, f"spec.{field}", f'Invalid value: "{value}": not a number or a percentage')
    policy = spec.get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
    if policy not in {"IfHealthyBudget", "AlwaysAllow"}:
        raise invalid(resource, name, "spec.unhealthyPodEvictionPolicy", f'Unsupported value: "{policy}"')


_CHECKS: Final[dict[str, Callable[[Resource, Object], None]]] = {
    BUDGETS: _check_budget,
    EVENTS: _check_event,
    NODES: _check_taints,
}
"""What is asked of a kind's objects whenever they are written."""

_MUTABLE: Final = frozenset({"activeDeadlineSeconds", "tolerations", "schedulingGates"})


def readmitted(resource: Resource, obj: Object) -> Object:
    """Answer what admission makes of an update to *obj*: the default tolerations of a pod cannot be got rid of."""
    if resource.name != PODS or "spec" not in obj:
        return obj
    spec = obj["spec"]
    kept = spec.get("tolerations") or []
    tolerations = _with_default_tolerations(kept)
    return obj if tolerations == kept else {**obj, "spec": {**spec, "tolerations": tolerations}}


def check_update(resource: Resource, old: Object, new: Object) -> None:
    """Refuse changes of a built-in object that its kind does not allow.

    Raises:
        Invalid: the message names the field.
    """
    if check := _CHECKS.get(resource.name):
        check(resource, new)
    if resource.name == PODS and old["spec"] != new.get("spec"):
        _check_pod_update(resource, old, new)
    elif resource.name == NODES:
        before = (old.get("spec") or {}).get("providerID", "")
        if before and before != (new.get("spec") or {}).get("providerID", ""):
            reason = "Forbidden: node updates may not change the providerID once it is set"
            raise invalid(resource, old["metadata"]["name"], "spec.providerID", reason)


def bound(pod: Object, node: str, now: datetime) -> Object:
    """Answer *pod* as pods/binding leaves it: a nomination has served its purpose.

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
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status | {"conditions": conditions}}


def _check_pod_update(resource: Resource, old: Object, new: Object) -> None:
    name, before, after = old["metadata"]["name"], old["spec"], new.get("spec") or {}
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
