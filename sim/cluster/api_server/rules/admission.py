"""Defaults, validation and admission plug-ins of the API server for built-in kinds.

Known difference: only fields that a scheduler, a drain or an autoscaler reads are defaulted or checked.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from shared.crds.definitions import Object
from shared.errors import Forbidden
from sim.cluster.api_server.api_resources import (
    DEVICE_CLASSES,
    EVENTS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    ApiResource,
)
from sim.cluster.api_server.metadata import build_invalid_error, format_time
from sim.cluster.api_server.rules.devices import (
    check_claim,
    check_claim_template,
    check_claim_update,
    check_device_class,
    check_slice,
)
from sim.cluster.api_server.rules.pods import check_pod_update

NOT_READY_TAINT: Final[Object] = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
"""A new node has this taint until the node lifecycle controller finds the node ready."""

_DEFAULT_TOLERATION_SECONDS: Final = 300
_DEFAULT_GRACE_SECONDS: Final = 30
_MIN_GRACE_SECONDS: Final = 1
"""The grace period that replaces a negative one."""
_GATED_CONDITION: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_PERCENT_PATTERN: Final = re.compile(r"(100|\d{1,2})%")
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

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
_TOP_LEVEL_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "storageclasses.storage.k8s.io": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "priorityclasses.scheduling.k8s.io": {
        "value": 0,
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority",
    },
}
_INITIAL_PHASES: Final = {"persistentvolumes": "Pending", "persistentvolumeclaims": "Pending", NAMESPACES: "Active"}

Lookup = Callable[[str, str], Object | None]
"""A function that returns the cluster-scoped object for a resource and a name, or None."""


def apply_create_admission(resource: ApiResource, obj: Object, now: datetime, lookup_object: Lookup) -> Object:
    """Return *obj* as it is stored for the first time.

    Raises:
        Forbidden: an admission plug-in rejects the object.
        Invalid: a field is invalid.
    """
    name = resource.name
    if name in _TOP_LEVEL_DEFAULTS:
        return _TOP_LEVEL_DEFAULTS[name] | obj
    if name in _SPEC_DEFAULTS:
        obj = {**obj, "spec": _SPEC_DEFAULTS[name] | (obj.get("spec") or {})}
    if name in _INITIAL_PHASES:
        obj = {**obj, "status": {"phase": _INITIAL_PHASES[name]}}
    if check := _CHECKS_BY_RESOURCE.get(name):
        check(resource, obj)
    match name:
        case "pods":
            return _build_pod(resource, obj, now, lookup_object)
        case "nodes":
            return _build_node(obj)
        case "namespaces":
            return _build_namespace(obj)
        case _:
            return obj


def _build_namespace(obj: Object) -> Object:
    metadata = obj["metadata"]
    labels = (metadata.get("labels") or {}) | {"kubernetes.io/metadata.name": metadata["name"]}
    return {**obj, "metadata": {**metadata, "labels": labels}, "spec": {"finalizers": ["kubernetes"]}}


def _build_pod(resource: ApiResource, obj: Object, now: datetime, lookup_object: Lookup) -> Object:
    spec = _POD_DEFAULTS | (obj.get("spec") or {})
    if not spec.get("containers"):
        raise build_invalid_error(resource, obj["metadata"]["name"], "spec.containers", "Required value")
    spec |= _resolve_priority(obj["metadata"]["name"], spec, lookup_object)
    spec["tolerations"] = _with_default_tolerations(spec.get("tolerations") or [])
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = _MIN_GRACE_SECONDS
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [
                _build_container(container, on_host=bool(spec.get("hostNetwork"))) for container in spec[field]
            ]
    status: Object = {"phase": "Pending", "qosClass": _compute_qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [{**_GATED_CONDITION, "lastTransitionTime": format_time(now)}]
    return {**obj, "spec": spec, "status": status}


def _build_container(container: Object, *, on_host: bool) -> Object:
    """Return *container* with requests copied from its limits; *on_host*: its ports are host ports."""
    completed_container = container
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        completed_container = {
            **completed_container,
            "resources": {**resources, "requests": {**limits, **(resources.get("requests") or {})}},
        }
    if ports := container.get("ports"):
        completed_container = {**completed_container, "ports": [_build_port(port, on_host=on_host) for port in ports]}
    return completed_container


def _build_port(port: Object, *, on_host: bool) -> Object:
    host = {"hostPort": port["containerPort"]} if on_host else {}
    return {**host, "protocol": "TCP", **port}


def _resolve_priority(pod_name: str, spec: Object, lookup_object: Lookup) -> Object:
    name = spec.get("priorityClassName", "")
    if not name:
        return {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    priority_class = lookup_object(PRIORITY_CLASSES, name)
    if priority_class is None:
        raise Forbidden(f'pods "{pod_name}" is forbidden: no PriorityClass with name {name} was found')
    return {"priority": priority_class["value"], "preemptionPolicy": priority_class["preemptionPolicy"]}


def _with_default_tolerations(tolerations: list[Object]) -> list[Object]:
    """Add tolerations for not-ready and unreachable nodes for five minutes, unless the pod has its own."""
    added_tolerations = []
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_can_tolerate(toleration, key) for toleration in tolerations):
            default_toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            added_tolerations.append({**default_toleration, "tolerationSeconds": _DEFAULT_TOLERATION_SECONDS})
    return [*tolerations, *added_tolerations]


def _can_tolerate(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}


def _compute_qos_class(spec: Object) -> str:
    resources = [
        container.get("resources") or {} for container in [*spec.get("initContainers", ()), *spec["containers"]]
    ]
    requests = [
        {**(container_resources.get("limits") or {}), **(container_resources.get("requests") or {})}
        for container_resources in resources
    ]
    if not any(requests):
        return "BestEffort"
    is_guaranteed = all(
        {"cpu", "memory"} <= set(container_resources.get("limits") or ())
        and request == {**request, **container_resources["limits"]}
        for container_resources, request in zip(resources, requests, strict=True)
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _build_node(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    taints = spec.get("taints") or []
    if not any(
        taint["key"] == NOT_READY_TAINT["key"] and taint["effect"] == NOT_READY_TAINT["effect"] for taint in taints
    ):
        taints = [*taints, NOT_READY_TAINT]
    return {**obj, "spec": {**spec, "taints": taints}}


def _check_event(resource: ApiResource, obj: Object) -> None:
    metadata, involved_object = obj["metadata"], obj.get("involvedObject") or {}
    namespace = involved_object.get("namespace", "")
    if metadata["namespace"] != (namespace or "default"):
        reason = f'Invalid value: "{namespace}": does not match event.namespace'
        raise build_invalid_error(resource, metadata["name"], "involvedObject.namespace", reason)


def _check_taints(resource: ApiResource, obj: Object) -> None:
    name, seen_taints = obj["metadata"]["name"], set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or []):
        effect, field = taint.get("effect", ""), f"metadata.taints[{index}]"
        if effect not in _TAINT_EFFECTS:
            reason = f'Unsupported value: "{effect}"' if effect else "Required value"
            raise build_invalid_error(resource, name, f"{field}.effect", reason)
        if (taint.get("key"), effect) in seen_taints:
            raise build_invalid_error(
                resource, name, field, "Duplicate value: taints must be unique by key and effect pair"
            )
        seen_taints.add((taint.get("key"), effect))


def _check_budget(resource: ApiResource, obj: Object) -> None:
    name, spec = obj["metadata"]["name"], obj.get("spec") or {}
    set_fields = [field for field in ("minAvailable", "maxUnavailable") if field in spec]
    if len(set_fields) > 1:
        raise build_invalid_error(
            resource, name, "spec", "Invalid value: minAvailable and maxUnavailable cannot be both set"
        )
    for field in set_fields:
        value = spec[field]
        if not (_PERCENT_PATTERN.fullmatch(value) if isinstance(value, str) else value >= 0):
            raise build_invalid_error(
                resource, name, f"spec.{field}", f'Invalid value: "{value}": not a number or a percentage'
            )
    policy = spec.get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
    if policy not in {"IfHealthyBudget", "AlwaysAllow"}:
        raise build_invalid_error(resource, name, "spec.unhealthyPodEvictionPolicy", f'Unsupported value: "{policy}"')


_CHECKS_BY_RESOURCE: Final[dict[str, Callable[[ApiResource, Object], None]]] = {
    POD_DISRUPTION_BUDGETS: _check_budget,
    EVENTS: _check_event,
    NODES: _check_taints,
    RESOURCE_CLAIMS: check_claim,
    RESOURCE_CLAIM_TEMPLATES: check_claim_template,
    RESOURCE_SLICES: check_slice,
    DEVICE_CLASSES: check_device_class,
}
"""Validation of a kind's objects on every write."""


def apply_update_admission(resource: ApiResource, obj: Object) -> Object:
    """Return the updated *obj* after admission: a pod's default tolerations are added again if removed."""
    if resource.name != PODS or "spec" not in obj:
        return obj
    spec = obj["spec"]
    tolerations_before = spec.get("tolerations") or []
    tolerations = _with_default_tolerations(tolerations_before)
    return obj if tolerations == tolerations_before else {**obj, "spec": {**spec, "tolerations": tolerations}}


def check_update(resource: ApiResource, old: Object, new: Object) -> None:
    """Reject changes of a built-in object that its kind does not allow.

    Raises:
        Invalid: the message names the field.
    """
    if check := _CHECKS_BY_RESOURCE.get(resource.name):
        check(resource, new)
    if resource.name == RESOURCE_CLAIMS:
        check_claim_update(resource, old, new)
    if resource.name == PODS and old["spec"] != new.get("spec"):
        check_pod_update(resource, old, new)
    elif resource.name == NODES:
        before = (old.get("spec") or {}).get("providerID", "")
        if before and before != (new.get("spec") or {}).get("providerID", ""):
            reason = "Forbidden: node updates may not change the providerID once it is set"
            raise build_invalid_error(resource, old["metadata"]["name"], "spec.providerID", reason)
