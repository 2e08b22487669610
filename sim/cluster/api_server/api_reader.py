"""Reads of the in-memory API server: objects, lists, pages and watches."""

from shared.crds.definitions import Object
from shared.errors import NotFound
from sim.cluster.api_server.api_resources import BUILT_IN_RESOURCES, ApiResource, Objects
from sim.cluster.api_server.object_store import Callback, ObjectStore
from sim.cluster.api_server.pages import ListOptions, ObjectPage, Paginator
from sim.cluster.api_server.rules.label_and_field_selectors import select_objects
from sim.cluster.api_server.watch import ApiWatchEvent
from sim.time.virtual_clock import Clock


class ApiReader:
    """The stored objects of one cluster, as clients read them."""

    def __init__(self, clock: Clock) -> None:
        """Serve the built-in resources, without objects."""
        self.clock = clock
        self._store = ObjectStore()
        self._pages = Paginator(self._store)
        self._resources_by_name = {resource.name: resource for resource in BUILT_IN_RESOURCES}

    @property
    def revision(self) -> int:
        """The resourceVersion of the newest write."""
        return self._store.revision

    def get_resource(self, name: str) -> ApiResource:
        """Return the served resource with *name*.

        Raises:
            NotFound: the resource is not served.
        """
        api_resource = self._resources_by_name.get(name)
        if api_resource is None:
            raise NotFound(f"the server could not find the requested resource {name}")
        return api_resource

    def get(self, resource: str, name: str, namespace: str = "") -> Object:
        """Return one object.

        Raises:
            NotFound: the object does not exist.
        """
        self.get_resource(resource)
        obj = self._store.find(resource, (namespace, name))
        if obj is None:
            raise NotFound(f'{resource} "{name}" not found' + (f" in namespace {namespace}" if namespace else ""))
        return obj

    def list(
        self, resource: str, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Objects:
        """Return the objects that match the selectors (in *namespace*), sorted by namespace, then name.

        Raises:
            Invalid: a selector is malformed, or *resource* does not support its field.
        """
        self.get_resource(resource)
        objects = self._store.list_objects(resource, namespace)
        return select_objects(resource, objects, label_selector=label_selector, field_selector=field_selector)

    def list_page(self, resource: str, options: ListOptions) -> ObjectPage:
        """Return one page of a list.

        Raises:
            Expired: the continue token is too old.
            Invalid: the continue token or a selector is malformed.
        """
        return self._pages.list_page(self.get_resource(resource), options, self.clock.get_time())

    def expire_tokens(self) -> None:
        """Expire every continue token that was issued so far."""
        self._pages.expire()

    def list_watch_events(self, resource: str, options: ListOptions, since: int) -> tuple[ApiWatchEvent, ...]:
        """Return the events that a watch from revision *since* has received by now, oldest first.

        Raises:
            Expired: the history does not reach back to *since*, or *since* is in the future.
            Invalid: a selector is malformed.
        """
        resource_name = self.get_resource(resource).name
        options.filter_objects(resource_name, [])

        def is_selected(obj: Object) -> bool:
            return bool(options.filter_objects(resource_name, [obj]))

        return self._store.history.list_events(resource_name, is_selected, since=since, current_revision=self.revision)

    def expire_history(self) -> None:
        """Discard the history of changes up to now: a watch from an earlier revision must list again."""
        self._store.history.expire(self.revision)

    def set_history_size(self, max_writes_per_resource: int) -> None:
        """Keep so many writes of each resource for watches; kube-apiserver keeps up to 102,400."""
        self._store.history.max_writes_per_resource = max_writes_per_resource

    def list_pods_on_node(self, node_name: str) -> Objects:
        """Return the pods that are bound to the node, sorted by namespace, then name."""
        return self._store.list_pods_on_node(node_name)

    def subscribe(self, resource: str, callback: Callback) -> None:
        """Call *callback* with ("ADDED" | "MODIFIED" | "DELETED", old, new) after each effective write.

        *old* is None for ADDED, *new* for DELETED. A write by a callback is stored immediately, but its notification
        follows after all callbacks have received the current change, so that events are ordered by resourceVersion.
        """
        self.get_resource(resource)
        self._store.subscribe(resource, callback)
