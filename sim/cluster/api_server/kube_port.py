"""The `Kube` port for an in-memory `ApiServer`: paths and bytes instead of resources and dicts."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from shared.crds.definitions import Object
from shared.errors import Invalid, NotFound
from shared.ports.kubernetes import WatchEvents
from sim.cluster.api_server.api_resources import PODS, ApiResource
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.pages import ListOptions, ObjectPage
from sim.cluster.api_server.paths import RequestInfo, parse_path

_SUCCESS_STATUS: Final = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
)

_POD_SUBRESOURCES: Final = {"binding": ("Binding", ("v1",)), "eviction": ("Eviction", ("policy/v1", "policy/v1beta1"))}


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None  # noqa: N815 - as on the wire


class _MinimalObject(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that are checked in every object and every patch."""

    metadata: _Metadata | None = None
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | str | None = None


class InMemoryKube:
    """A client of *api* without state of its own."""

    def __init__(self, api: ApiServer) -> None:
        """Create a client of *api*."""
        self.api = api

    def expire_tokens(self) -> None:
        """Expire every continue token that was issued so far."""
        self.api.expire_tokens()

    def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        """Return one page of a collection, sorted by namespace, then name; *limit* 0 means no limit."""
        options = ListOptions(
            label_selector=label_selector, field_selector=field_selector, limit=limit, continue_token=continue_token
        )
        return self.list_with(path, options)

    def list_with(self, path: str, options: ListOptions) -> bytes:
        """Return one page of a collection, in the namespace of *path*."""
        request, api_resource = self._resolve_path(path)
        options = msgspec.structs.replace(options, namespace=request.namespace or None)
        return _encode_list(api_resource, self.api.list_page(api_resource.name, options))

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        """Return a function that returns all changes up to the time of this call."""
        request, api_resource = self._resolve_path(path)
        if not since.isdecimal():
            raise Invalid(f"{path}: invalid resource version {since!r}", "BadRequest")
        options = ListOptions(namespace=request.namespace or None, field_selector=field_selector)
        events = self.api.list_watch_events(api_resource.name, options, int(since))
        changes = WatchEvents(
            events=tuple(msgspec.json.encode(event) for event in events),
            version=str(self.api.revision),
            count=len(self.api.list(api_resource.name, options.namespace)),
        )
        return lambda: changes

    def read(self, path: str) -> bytes:
        """Return one object; for a collection's path, return the whole collection."""
        request, api_resource = self._resolve_path(path)
        if not request.name:
            return self.list(path, limit=0)
        if request.subresource not in {"", "status"}:
            raise NotFound(path)
        return msgspec.json.encode(self.api.get(api_resource.name, request.name, request.namespace))

    def create(self, path: str, body: bytes) -> bytes:
        """Create an object, or evict or bind a pod."""
        request, api_resource = self._resolve_path(path)
        obj = _decode_object(path, body)
        if not request.name:
            if api_resource.schema and not obj.get("kind"):
                raise Invalid(
                    f"the object provided is unrecognized (must be of type {api_resource.kind})", "BadRequest"
                )
            return msgspec.json.encode(self.api.create(api_resource.name, obj, request.namespace))
        return self._post_pod_subresource(request, obj)

    def patch(self, path: str, body: bytes) -> bytes:
        """Merge-patch an object, its status, or a namespace's finalizers."""
        request, api_resource = self._resolve_object_path(path)
        stored = self.api.patch(
            api_resource.name, request.name, _decode_object(path, body), request.namespace, request.subresource
        )
        return msgspec.json.encode(stored)

    def delete(self, path: str, body: bytes = b"") -> None:
        """Delete one object."""
        request, api_resource = self._resolve_object_path(path)
        options = _decode_object(path, body) if body else {}
        preconditions = options.get("preconditions") or {}
        self.api.delete(
            api_resource.name,
            request.name,
            request.namespace,
            grace_period_seconds=options.get("gracePeriodSeconds"),
            uid=preconditions.get("uid", ""),
            resource_version=preconditions.get("resourceVersion", ""),
            propagation=options.get("propagationPolicy", "Background"),
        )

    def _resolve_path(self, path: str) -> tuple[RequestInfo, ApiResource]:
        request = parse_path(path)
        api_resource = self.api.get_resource(request.resource)
        is_complete = not api_resource.namespaced or request.namespace or not request.name
        if (
            api_resource.version != request.version
            or not is_complete
            or (request.namespace and not api_resource.namespaced)
        ):
            raise NotFound(f"the server could not find the requested resource {path}")
        return request, api_resource

    def _resolve_object_path(self, path: str) -> tuple[RequestInfo, ApiResource]:
        request, api_resource = self._resolve_path(path)
        if not request.name:
            raise Invalid(
                f"{path}: the server does not allow this method on the requested resource", "MethodNotAllowed"
            )
        return request, api_resource

    def _post_pod_subresource(self, request: RequestInfo, obj: Object) -> bytes:
        if request.resource != PODS or request.subresource not in {"eviction", "binding"}:
            raise NotFound(f"the server could not find the requested resource {request.resource}/{request.subresource}")
        _check_pod_subresource(request, obj)
        if obj.get("metadata", {}).get("name") != request.name:
            raise Invalid(f"the name in the URL ({request.name}) does not match the name in the object", "BadRequest")
        if request.subresource == "binding":
            self.api.bind(request.namespace, request.name, obj["target"]["name"])
            return _SUCCESS_STATUS
        options = obj.get("deleteOptions") or {}
        uid, grace = (options.get("preconditions") or {}).get("uid", ""), options.get("gracePeriodSeconds")
        self.api.evict(request.namespace, request.name, uid=uid, grace_period_seconds=grace)
        return _SUCCESS_STATUS


def _check_pod_subresource(request: RequestInfo, obj: Object) -> None:
    kind, versions = _POD_SUBRESOURCES[request.subresource]
    if obj.get("kind", kind) != kind or obj.get("apiVersion", versions[0]) not in versions:
        raise Invalid(f"{obj.get('apiVersion')} {obj.get('kind')} cannot be handled as a {kind}", "BadRequest")
    if obj.get("metadata", {}).get("namespace", request.namespace) != request.namespace:
        raise Invalid("the namespace of the object does not match the namespace on the request", "BadRequest")


def _decode_object(path: str, body: bytes) -> Object:
    try:
        msgspec.json.decode(body, type=_MinimalObject)
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Invalid(f"{path}: the body is no such object: {error}", "BadRequest") from error


def _encode_list(api_resource: ApiResource, page: ObjectPage) -> bytes:
    """Encode a List document; as in kube-apiserver, items of built-in kinds have no kind and apiVersion."""
    metadata: dict[str, object] = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining_item_count is not None:
        metadata["remainingItemCount"] = page.remaining_item_count
    items = page.objects if api_resource.schema else [_without_type(obj) for obj in page.objects]
    document = {
        "kind": f"{api_resource.kind}List",
        "apiVersion": api_resource.api_version,
        "metadata": metadata,
        "items": items,
    }
    return msgspec.json.encode(document)


def _without_type(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}
