"""Rules for writes to an existing pod: which fields of its spec may change, and its binding to a node."""

from datetime import datetime
from typing import Final

from shared.crds.definitions import Object
from shared.errors import Conflict
from sim.cluster.api_server.api_resources import ApiResource
from sim.cluster.api_server.metadata import build_invalid_error, format_time
from sim.cluster.api_server.rules.eviction import with_condition

_MUTABLE_POD_FIELDS: Final = frozenset({"activeDeadlineSeconds", "tolerations", "schedulingGates"})


def bind_pod(pod: Object, node_name: str, now: datetime) -> Object:
    """Return *pod* as pods/binding stores it: bound to *node*, without a nominated node name.

    Raises:
        Conflict: the pod is already bound, gated, or being deleted.
    """
    name, current_node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
    if "deletionTimestamp" in pod["metadata"]:
        raise Conflict(f"pod {name} is being deleted, cannot be assigned to a host")
    if current_node:
        raise Conflict(f'pod {name} is already assigned to node "{current_node}"')
    if pod["spec"].get("schedulingGates"):
        raise Conflict(f"pod {name} has non-empty .spec.schedulingGates")
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(now)}
    conditions = with_condition(pod["status"].get("conditions"), condition)
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    return {**pod, "spec": {**pod["spec"], "nodeName": node_name}, "status": status | {"conditions": conditions}}


def check_pod_update(resource: ApiResource, old: Object, new: Object) -> None:
    """Reject changes of the spec of a pod that Kubernetes does not allow.

    Raises:
        Invalid: the message names the field.
    """
    name, before, after = old["metadata"]["name"], old["spec"], new.get("spec") or {}
    gated = bool(before.get("schedulingGates"))
    if _select_immutable_fields(before, gated=gated) != _select_immutable_fields(after, gated=gated):
        reason = "Forbidden: pod updates may not change fields other than images, tolerations (additions) and deadlines"
        raise build_invalid_error(resource, name, "spec", reason)
    new_tolerations = after.get("tolerations") or []
    if any(toleration not in new_tolerations for toleration in before.get("tolerations") or []):
        reason = "Forbidden: existing tolerations may not be removed"
        raise build_invalid_error(resource, name, "spec.tolerations", reason)
    gates = before.get("schedulingGates") or []
    if any(gate not in gates for gate in after.get("schedulingGates") or []):
        raise build_invalid_error(resource, name, "spec.schedulingGates", "Forbidden: only deletion is allowed")


def _select_immutable_fields(spec: Object, *, gated: bool) -> Object:
    mutable_fields = _MUTABLE_POD_FIELDS | {"nodeSelector", "affinity"} if gated else _MUTABLE_POD_FIELDS
    immutable_fields = {key: value for key, value in spec.items() if key not in mutable_fields}
    for field in ("containers", "initContainers"):
        if field in immutable_fields:
            immutable_fields[field] = [
                {key: value for key, value in container.items() if key != "image"}
                for container in immutable_fields[field]
            ]
    return immutable_fields
