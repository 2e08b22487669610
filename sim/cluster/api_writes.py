"""Which parts of an object a write may touch, and which changes count."""

from typing import Final

from shared.errors import Gone
from sim.cluster.api_deletion import ends_with_update
from sim.cluster.api_kinds import NAMESPACES, Object, Resource

_NOT_DESIRED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_STATUS_KEEPS: Final[dict[str, tuple[str, ...]]] = {"pods": ("ownerReferences",), "deployments.apps": ("labels",)}

_STATUS_OF_SERVER: Final = frozenset({"qosClass"})


def writable(resource: Resource, old: Object, new: Object, subresource: str) -> Object:
    """Answer *new* without what *subresource* (empty: the resource itself) does not let it change.

    Raises:
        Gone: there is no such subresource.
    """
    new = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"]}
    if not subresource:
        return _taken(new, old, "status") if resource.has_status else new
    if subresource == "finalize" and resource.name == NAMESPACES:
        return _taken(new, old, "status")
    if subresource != "status" or not resource.has_status:
        raise Gone(f"the server could not find the requested resource {resource.name}/{subresource}")
    if resource.schema:
        return _taken({**old, "metadata": _unversioned(old["metadata"])}, new, "status")
    metadata = new["metadata"]
    for field in _STATUS_KEEPS.get(resource.name, ()):
        metadata = _taken(metadata, old["metadata"], field)
    kept = {key: (old.get("status") or {})[key] for key in _STATUS_OF_SERVER & set(old.get("status") or {})}
    return {**old, "metadata": metadata, "status": (new.get("status") or {}) | kept}


def desired(resource: Resource, obj: Object) -> Object:
    """Answer what a generation counts changes of: the spec, in custom resources everything but metadata and status."""
    if resource.schema:
        return {key: value for key, value in obj.items() if key not in _NOT_DESIRED}
    return {"spec": obj.get("spec")}


def ends(resource: Resource, old: Object, new: Object) -> bool:
    """Answer whether the update from *old* to *new* is the end of the object."""
    if resource.name == NAMESPACES and (new.get("spec") or {}).get("finalizers"):
        return False
    return ends_with_update(old, new)


def _taken(into: Object, source: Object, field: str) -> Object:
    rest = {key: value for key, value in into.items() if key != field}
    return rest | {field: source[field]} if field in source else rest


def _unversioned(metadata: Object) -> Object:
    return {key: value for key, value in metadata.items() if key != "resourceVersion"}
