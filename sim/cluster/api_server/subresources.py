"""Which parts of an object a write may change, and which changes count as a new generation."""

from typing import Final

from shared.crds.definitions import Object
from shared.errors import NotFound
from sim.cluster.api_server.api_resources import NAMESPACES, ApiResource
from sim.cluster.api_server.rules.deletion import is_last_finalizer_removed

_SCALABLE_RESOURCES: Final = frozenset({"deployments.apps", "replicasets.apps", "statefulsets.apps"})
_NON_SPEC_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_METADATA_KEPT_BY_STATUS_UPDATE: Final[dict[str, tuple[str, ...]]] = {
    "pods": ("ownerReferences",),
    "deployments.apps": ("labels",),
}

_SERVER_OWNED_STATUS_FIELDS: Final = frozenset({"qosClass"})


def restrict_update(resource: ApiResource, old: Object, new: Object, subresource: str) -> Object:
    """Return *new* with only the changes that *subresource* allows (empty: the resource itself).

    Raises:
        NotFound: the subresource does not exist.
    """
    new = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"]}
    if not subresource:
        return _copy_field(new, old, "status") if resource.has_status else new
    if subresource == "scale" and resource.name in _SCALABLE_RESOURCES:
        spec = old["spec"] | {"replicas": new["spec"]["replicas"]}
        return {**old, "metadata": _without_resource_version(old["metadata"]), "spec": spec}
    if subresource == "finalize" and resource.name == NAMESPACES:
        return _copy_field(new, old, "status")
    if subresource != "status" or not resource.has_status:
        raise NotFound(f"the server could not find the requested resource {resource.name}/{subresource}")
    if resource.schema:
        return _copy_field({**old, "metadata": _without_resource_version(old["metadata"])}, new, "status")
    metadata = new["metadata"]
    for field in _METADATA_KEPT_BY_STATUS_UPDATE.get(resource.name, ()):
        metadata = _copy_field(metadata, old["metadata"], field)
    server_owned_status = {
        key: (old.get("status") or {})[key] for key in _SERVER_OWNED_STATUS_FIELDS & set(old.get("status") or {})
    }
    return {**old, "metadata": metadata, "status": (new.get("status") or {}) | server_owned_status}


def get_desired_state(resource: ApiResource, obj: Object) -> Object:
    """Return the part of *obj* that `metadata.generation` tracks.

    This is the spec; in custom resources, everything except metadata and status.
    """
    if resource.schema:
        return {key: value for key, value in obj.items() if key not in _NON_SPEC_FIELDS}
    return {"spec": obj.get("spec")}


def is_deletion_completed(resource: ApiResource, old: Object, new: Object) -> bool:
    """Return whether the update from *old* to *new* completes the deletion of the object."""
    if resource.name == NAMESPACES and (new.get("spec") or {}).get("finalizers"):
        return False
    return is_last_finalizer_removed(old, new)


def _copy_field(target: Object, source: Object, field: str) -> Object:
    other_fields = {key: value for key, value in target.items() if key != field}
    return other_fields | {field: source[field]} if field in source else other_fields


def _without_resource_version(metadata: Object) -> Object:
    return {key: value for key, value in metadata.items() if key != "resourceVersion"}
