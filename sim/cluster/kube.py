"""The `Kube` port in front of an `ApiServer`: paths and bytes instead of resources and dicts."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from shared.errors import Gone, Invalid
from shared.ports import Changes
from sim.cluster.api import ApiServer
from sim.cluster.api_kinds import PODS, Object, Resource
from sim.cluster.api_pages import Page, Wish
from sim.cluster.api_paths import Place, parse_path

_SUCCESS: Final = msgspec.json.encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

_ACTIONS: Final = {"binding": ("Binding", ("v1",)), "eviction": ("Eviction", ("policy/v1", "policy/v1beta1"))}


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None  # noqa: N815 - as on the wire


class _Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What every object and every patch looks like at least."""

    metadata: _Metadata | None = None
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | str | None = None


class InMemoryKube:
    """One client of *api*; it keeps nothing of its own."""

    def __init__(self, api: ApiServer) -> None:
        """Speak to *api*."""
        self.api = api

    def expire_tokens(self) -> None:
        """Make every continue token that was given out too old."""
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
        """Answer one page of a collection, by namespace, then name; *limit* 0 is no limit."""
        place, served = self._served(path)
        wish = Wish(
            namespace=place.namespace or None,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            token=continue_token,
        )
        return _listed(served, self.api.page(served.name, wish))

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        """Answer what changed up to now, all of it, whenever it is asked for."""
        place, served = self._served(path)
        if not since.isdecimal():
            raise Invalid(f"{path}: invalid resource version {since!r}", "BadRequest")
        wish = Wish(namespace=place.namespace or None, field_selector=field_selector)
        events = self.api.changes(served.name, wish, int(since))
        changes = Changes(
            events=tuple(msgspec.json.encode(event) for event in events),
            version=str(self.api.revision),
            count=len(self.api.list(served.name, wish.namespace)),
        )
        return lambda: changes

    def read(self, path: str) -> bytes:
        """Answer one object; a collection's path is answered with all of it."""
        place, served = self._served(path)
        if not place.name:
            return self.list(path, limit=0)
        if place.subresource not in {"", "status"}:
            raise Gone(path)
        return msgspec.json.encode(self.api.get(served.name, place.name, place.namespace))

    def create(self, path: str, body: bytes) -> bytes:
        """Create an object, evict or bind a pod."""
        place, served = self._served(path)
        obj = _object(path, body)
        if not place.name:
            if served.schema and not obj.get("kind"):
                raise Invalid(f"the object provided is unrecognized (must be of type {served.kind})", "BadRequest")
            return msgspec.json.encode(self.api.create(served.name, obj, place.namespace))
        return self._act(place, obj)

    def patch(self, path: str, body: bytes) -> bytes:
        """Merge-patch an object, its status, or a namespace's finalizers."""
        place, served = self._named(path)
        stored = self.api.patch(served.name, place.name, _object(path, body), place.namespace, place.subresource)
        return msgspec.json.encode(stored)

    def delete(self, path: str, body: bytes = b"") -> None:
        """Delete one object."""
        place, served = self._named(path)
        options = _object(path, body) if body else {}
        preconditions = options.get("preconditions") or {}
        self.api.delete(
            served.name,
            place.name,
            place.namespace,
            grace_period_seconds=options.get("gracePeriodSeconds"),
            uid=preconditions.get("uid", ""),
            resource_version=preconditions.get("resourceVersion", ""),
            propagation=options.get("propagationPolicy", "Background"),
        )

    def _served(self, path: str) -> tuple[Place, Resource]:
        place = parse_path(path)
        served = self.api.resource(place.resource)
        whole = not served.namespaced or place.namespace or not place.name
        if served.version != place.version or not whole or (place.namespace and not served.namespaced):
            raise Gone(f"the server could not find the requested resource {path}")
        return place, served

    def _named(self, path: str) -> tuple[Place, Resource]:
        place, served = self._served(path)
        if not place.name:
            raise Invalid(
                f"{path}: the server does not allow this method on the requested resource", "MethodNotAllowed"
            )
        return place, served

    def _act(self, place: Place, obj: Object) -> bytes:
        if place.resource != PODS or place.subresource not in {"eviction", "binding"}:
            raise Gone(f"the server could not find the requested resource {place.resource}/{place.subresource}")
        _check_action(place, obj)
        if obj.get("metadata", {}).get("name") != place.name:
            raise Invalid(f"the name in the URL ({place.name}) does not match the name in the object", "BadRequest")
        if place.subresource == "binding":
            self.api.bind(place.namespace, place.name, obj["target"]["name"])
            return _SUCCESS
        options = obj.get("deleteOptions") or {}
        uid, grace = (options.get("preconditions") or {}).get("uid", ""), options.get("gracePeriodSeconds")
        self.api.evict(place.namespace, place.name, uid=uid, grace_period_seconds=grace)
        return _SUCCESS


def _check_action(place: Place, obj: Object) -> None:
    kind, versions = _ACTIONS[place.subresource]
    if obj.get("kind", kind) != kind or obj.get("apiVersion", versions[0]) not in versions:
        raise Invalid(f"{obj.get('apiVersion')} {obj.get('kind')} cannot be handled as a {kind}", "BadRequest")
    if obj.get("metadata", {}).get("namespace", place.namespace) != place.namespace:
        raise Invalid("the namespace of the object does not match the namespace on the request", "BadRequest")


def _object(path: str, body: bytes) -> Object:
    try:
        msgspec.json.decode(body, type=_Shape)
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Invalid(f"{path}: the body is no such object: {error}", "BadRequest") from error


def _listed(served: Resource, page: Page) -> bytes:
    """Encode a List document; as in the real one, items of built-in kinds do not repeat what they are."""
    metadata: dict[str, object] = {"resourceVersion": str(page.revision)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    items = page.objects if served.schema else [_unnamed(each) for each in page.objects]
    document = {"kind": f"{served.kind}List", "apiVersion": served.api_version, "metadata": metadata, "items": items}
    return msgspec.json.encode(document)


def _unnamed(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}
