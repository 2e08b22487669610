"""A Kubernetes API server in memory: the rules of the real one where an autoscaler could go wrong, on a virtual clock.

Objects are plain dicts as JSON has them. They are never changed in place: every write stores a new dict, and what is
read may be kept but not changed. Known differences: no admission webhooks, no server-side apply, no field management;
owners are collected and namespaces emptied by controllers, which are elsewhere.
"""

from collections.abc import Iterable
from typing import Final

from shared.errors import Conflict, EvictionRefused, Forbidden, Gone, Invalid
from sim.clock import Clock
from sim.cluster import api_admission, api_deletion, api_meta, eviction
from sim.cluster.api_definitions import defined_resource, established, shipped_definitions
from sim.cluster.api_kinds import (
    BUDGETS,
    BUILT_IN,
    DEFINITIONS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    Object,
    Objects,
    Resource,
)
from sim.cluster.api_merge import merge_patch, without_nulls
from sim.cluster.api_pages import Page, Pages, Wish
from sim.cluster.api_store import Callback, Store, key_of
from sim.cluster.api_watch import Event
from sim.cluster.api_writes import desired, ends, writable
from sim.cluster.selectors import select

_FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_FIRST_PRIORITIES: Final = (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
_NAME_ATTEMPTS: Final = 8


class ApiServer:
    """One cluster's objects. Resources are named ``pods`` or ``deployments.apps``.

    Every method raises Gone for a resource that is not served.
    """

    def __init__(self, clock: Clock, seed: int = 0, *, definitions: Iterable[Object] | None = None) -> None:
        """Begin with the namespaces and priority classes of a new cluster, and with *definitions* (None: our CRDs)."""
        self.clock = clock
        self._seed = seed
        self._identities = 0
        self._suffixes = 0
        self._store = Store()
        self._pages = Pages(self._store)
        self._resources = {resource.name: resource for resource in BUILT_IN}
        for name in _FIRST_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}})
        for name, value in _FIRST_PRIORITIES:
            self.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        for definition in shipped_definitions() if definitions is None else definitions:
            self.create(DEFINITIONS, definition)

    @property
    def revision(self) -> int:
        """Answer the resourceVersion of the newest write."""
        return self._store.revision

    def resource(self, name: str) -> Resource:
        """Answer what is served as *name*.

        Raises:
            Gone: nothing is.
        """
        found = self._resources.get(name)
        if found is None:
            raise Gone(f"the server could not find the requested resource {name}")
        return found

    def get(self, resource: str, name: str, namespace: str = "") -> Object:
        """Answer one object.

        Raises:
            Gone: it does not exist.
        """
        self.resource(resource)
        found = self._store.find(resource, (namespace, name))
        if found is None:
            raise Gone(f'{resource} "{name}" not found' + (f" in namespace {namespace}" if namespace else ""))
        return found

    def list(
        self, resource: str, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Objects:
        """Answer what the selectors match (in *namespace*), by namespace, then name.

        Raises:
            Invalid: a selector is malformed, or its field is none that *resource* can be selected by.
        """
        self.resource(resource)
        found = self._store.objects(resource, namespace)
        return select(resource, found, label_selector=label_selector, field_selector=field_selector)

    def page(self, resource: str, wish: Wish) -> Page:
        """Answer one page of a list.

        Raises:
            Expired: its token is too old.
            Invalid: its token or a selector is malformed.
        """
        return self._pages.page(self.resource(resource), wish, self.clock.now())

    def expire_tokens(self) -> None:
        """Make every continue token that was given out too old."""
        self._pages.expire()

    def changes(self, resource: str, wish: Wish, since: int) -> tuple[Event, ...]:
        """Answer what a watch that began at the revision *since* has shown by now, oldest first.

        Raises:
            Expired: the history does not reach back to *since*, or *since* is yet to come.
            Invalid: a selector is malformed.
        """
        name = self.resource(resource).name
        wish.among(name, [])

        def selects(obj: Object) -> bool:
            return bool(wish.among(name, [obj]))

        return self._store.history.events(name, selects, since=since, now=self.revision)

    def expire_history(self) -> None:
        """Forget all changes up to now: who wants to follow on from before must list again."""
        self._store.history.expire(self.revision)

    def pods_on(self, node: str) -> Objects:
        """Answer the pods bound to *node*, by namespace, then name."""
        return self._store.pods_on(node)

    def subscribe(self, resource: str, callback: Callback) -> None:
        """Call *callback* with ("ADDED" | "MODIFIED" | "DELETED", old, new) after each effective write.

        *old* is None for ADDED, *new* for DELETED. What a callback writes is stored at once and told after
        everybody has heard of the present change, so that events come in the order of resourceVersions.
        """
        self.resource(resource)
        self._store.subscribe(resource, callback)

    def create(self, resource: str, obj: Object, namespace: str = "") -> Object:
        """Store a new object; answer it as stored. An empty *namespace* is taken from *obj*.

        Raises:
            Conflict: the name is taken.
            Forbidden: the namespace is terminating, or an admission plug-in refuses.
            Gone: the namespace does not exist.
            Invalid: a rule or the schema refuses it.
        """
        served = self.resource(resource)
        if served.namespaced:
            namespace = namespace or obj.get("metadata", {}).get("namespace", "")
            self._check_namespace(served, namespace)
        new = self._named(served, api_meta.identified(served, obj, namespace), namespace)
        api_meta.check_name(served, new["metadata"]["name"])
        api_meta.check_metadata(served, new["metadata"])
        if served.has_status and not served.keeps_status:
            new.pop("status", None)
        new = self._completed(served, new, None)
        if self._store.find(resource, key_of(new)):
            raise Conflict(f'{resource} "{new["metadata"]["name"]}" already exists')
        self._identities += 1
        identity = api_meta.uid(self._seed, self._identities)
        metadata = api_meta.newborn(
            new["metadata"], identity=identity, now=self.clock.now(), counts_generations=served.counts_generations
        )
        return self._write(served, None, {**new, "metadata": metadata})

    def patch(self, resource: str, name: str, patch: Object, namespace: str = "", subresource: str = "") -> Object:
        """Merge *patch* (RFC 7386) into an object or its subresource; answer what is stored.

        A `metadata.resourceVersion` in *patch* is a precondition.

        Raises:
            Conflict: the precondition does not hold.
            Gone: it does not exist.
            Invalid: a rule or the schema refuses the result, or its UID is another one.
        """
        served, old = self.resource(resource), self.get(resource, name, namespace)
        new = merge_patch(old, patch)
        api_meta.check_patched(served, old["metadata"], new.get("metadata"))
        return self._replace(served, old, new, subresource)

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        """Put *obj* in place of what has its name; without a resourceVersion whatever that is by now.

        Raises:
            Conflict: the resourceVersion or UID of *obj* is not that of the stored one.
            Gone: it does not exist.
            Invalid: a rule or the schema refuses it.
        """
        namespace, name = key_of(obj)
        return self._replace(self.resource(resource), self.get(resource, name, namespace), obj, subresource)

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
    ) -> None:
        """Delete an object, or begin to: finalizers and a bound pod's grace (default: the pod's own) keep it.

        Raises:
            Conflict: *uid* or *resource_version* is not the object's.
            Gone: it does not exist.
        """
        served, old = self.resource(resource), self.get(resource, name, namespace)
        api_deletion.check_preconditions(served, old, uid, resource_version)
        now = self.clock.now()
        if resource == NAMESPACES:
            left: Object | None = api_deletion.terminating_namespace(old, now)
        else:
            left = api_deletion.doomed(served, old, now, grace_period_seconds, propagation)
        if left is None:
            self._remove(served, old)
        elif left is not old:
            self._write(served, old, left)

    def evict(self, namespace: str, name: str, *, uid: str = "", grace_period_seconds: int | None = None) -> None:
        """Delete a pod if its PodDisruptionBudget allows it now; running pods are counted, others are not guarded.

        Raises:
            Conflict: *uid* is not the pod's.
            EvictionRefused: the budget does not allow it, is not computed yet, or several select the pod.
            Gone: there is no such pod.
        """
        pod = self.get(PODS, name, namespace)
        api_deletion.check_preconditions(self.resource(PODS), pod, uid, "")
        if not eviction.is_unguarded(pod):
            self._spend_budget(pod)
            pod = self._replace(self.resource(PODS), pod, eviction.marked(pod, self.clock.now()), "status")
        self.delete(PODS, name, namespace, uid=uid, grace_period_seconds=grace_period_seconds)

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Bind *pod* to *node*, once and for all; whether the node exists is not asked.

        Raises:
            Conflict: it is bound already, gated, or being deleted.
            Gone: there is no such pod.
        """
        old = self.get(PODS, pod, namespace)
        self._write(self.resource(PODS), old, api_admission.bound(old, node, self.clock.now()))

    def _spend_budget(self, pod: Object) -> None:
        namespace, name = key_of(pod)
        budgets = eviction.budgets_of(pod, self.list(BUDGETS, namespace))
        if len(budgets) > 1:
            raise EvictionRefused(f"{namespace}/{name}: {eviction.SEVERAL_BUDGETS}")
        for budget in budgets:
            status = eviction.spent(pod, budget, self.clock.now())
            if status is not None:
                self._replace(self.resource(BUDGETS), budget, {**budget, "status": status}, "status")

    def _check_namespace(self, served: Resource, namespace: str) -> None:
        if not namespace:
            raise Invalid(f"an empty namespace may not be set during creation of {served.name}", "BadRequest")
        found = self.get(NAMESPACES, namespace)
        if "deletionTimestamp" in found["metadata"]:
            raise Forbidden(f"{served.name} is forbidden: namespace {namespace} is being terminated")

    def _named(self, served: Resource, obj: Object, namespace: str) -> Object:
        metadata = obj["metadata"]
        if metadata.get("name"):
            return obj
        base = metadata.get("generateName", "")
        if not base:
            raise api_meta.invalid(served, "", "metadata.name", "Required value: name or generateName is required")
        name = ""
        for _ in range(_NAME_ATTEMPTS):
            self._suffixes += 1
            name = api_meta.generated_name(base, self._seed, self._suffixes)
            if not self._store.find(served.name, (namespace, name)):
                break
        return {**obj, "metadata": {**metadata, "name": name}}

    def _completed(self, served: Resource, new: Object, old: Object | None) -> Object:
        """Answer *new* with defaults, checked against its kind's rules."""
        if served.schema:
            new = served.schema.completed(new)
            if problems := served.schema.problems(new, old):
                raise Invalid(
                    f'{served.qualified_kind} "{new["metadata"]["name"]}" is invalid: {"; ".join(problems)}', "Invalid"
                )
            return new
        new = without_nulls(new)
        if old is None:
            return api_admission.admit_new(served, new, self.clock.now(), self._lookup)
        new = api_admission.readmitted(served, new)
        api_admission.check_update(served, old, new)
        return new

    def _lookup(self, resource: str, name: str) -> Object | None:
        return self._store.find(resource, ("", name))

    def _replace(self, served: Resource, old: Object, new: Object, subresource: str) -> Object:
        new = {"metadata": old["metadata"]} | new
        version = new["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise Conflict(f'{served.name} "{old["metadata"]["name"]}": the object has been modified; read it again')
        if (
            new.get("kind", served.kind) != served.kind
            or new.get("apiVersion", served.api_version) != served.api_version
        ):
            raise Invalid(
                f'{served.name} "{old["metadata"]["name"]}": the kind of an object cannot be changed', "BadRequest"
            )
        new = {**new, "metadata": api_meta.revised(served, old["metadata"], new["metadata"])}
        new = writable(served, old, new, subresource)
        api_meta.check_metadata(served, new["metadata"])
        new = self._completed(served, new, old)
        if served.counts_generations and desired(served, old) != desired(served, new):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if ends(served, old, new):
            self._remove(served, old)
            return new
        if api_meta.content(old) == new:
            return old
        return self._write(served, old, new)

    def _write(self, served: Resource, old: Object | None, new: Object) -> Object:
        if served.name != DEFINITIONS:
            return self._store.write(served.name, old, new)
        if old is None:
            new = established(new, self.clock.now())
        defined = defined_resource(new)
        self._resources[defined.name] = defined
        return self._store.write(served.name, old, new)

    def _remove(self, served: Resource, old: Object) -> None:
        if served.name == DEFINITIONS:
            defined = old["metadata"]["name"]
            for each in self._store.objects(defined, None):
                self._store.remove(defined, each)
            del self._resources[defined]
        self._store.remove(served.name, old)
