"""In-memory Kubernetes API server on a virtual clock, with the rules that an autoscaler can violate.

Objects are plain dicts in their JSON form. They are never changed in place: every write stores a new dict, and callers
may keep the objects that they read, but must not change them. Known differences: no admission webhooks, no server-side
apply, no field management. Garbage collection of owned objects and emptying of namespaces are done by controllers in
other modules.
"""

from collections.abc import Iterable
from typing import Final

from shared.crds.definitions import Object, load_shipped_crds
from shared.errors import Conflict, EvictionRefused, Forbidden, Invalid
from sim.cluster.api_server.api_reader import ApiReader
from sim.cluster.api_server.api_resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    ApiResource,
)
from sim.cluster.api_server.metadata import (
    build_initial_metadata,
    build_invalid_error,
    build_uid,
    build_updated_metadata,
    check_metadata,
    check_name,
    check_patched,
    check_update_target,
    generate_name,
    with_type_and_namespace,
    without_resource_version,
)
from sim.cluster.api_server.object_store import get_object_key
from sim.cluster.api_server.rules import admission, deletion, eviction
from sim.cluster.api_server.rules.custom_resources import build_api_resource, with_established_conditions
from sim.cluster.api_server.rules.merge_patch import merge_patch, without_nulls
from sim.cluster.api_server.rules.pods import bind_pod
from sim.cluster.api_server.subresources import get_desired_state, is_deletion_completed, restrict_update
from sim.time.virtual_clock import Clock

_INITIAL_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_INITIAL_PRIORITY_CLASSES: Final = (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
_MAX_NAME_ATTEMPTS: Final = 8


class ApiServer(ApiReader):
    """The objects of one cluster. Resources are named ``pods`` or ``deployments.apps``.

    Every method raises NotFound for a resource that is not served.
    """

    def __init__(self, clock: Clock, seed: int = 0, *, definitions: Iterable[Object] | None = None) -> None:
        """Create the namespaces and priority classes of a new cluster, and *definitions* (None: the CRDs we ship)."""
        super().__init__(clock)
        self._seed = seed
        self._uid_count = self._name_suffix_count = 0
        for name in _INITIAL_NAMESPACES:
            self.create(NAMESPACES, {"metadata": {"name": name}})
        for name, value in _INITIAL_PRIORITY_CLASSES:
            self.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        for definition in load_shipped_crds() if definitions is None else definitions:
            self.create(CUSTOM_RESOURCE_DEFINITIONS, definition)

    def create(self, resource: str, obj: Object, namespace: str = "") -> Object:
        """Store a new object; return it as stored. If *namespace* is empty, it is taken from *obj*.

        Raises:
            Conflict: the name already exists.
            Forbidden: the namespace is terminating, or an admission plug-in rejects the object.
            NotFound: the namespace does not exist.
            Invalid: a rule or the schema rejects the object.
        """
        api_resource = self.get_resource(resource)
        if api_resource.namespaced:
            namespace = namespace or obj.get("metadata", {}).get("namespace", "")
            self._check_namespace(api_resource, namespace)
        new = self._with_name(api_resource, with_type_and_namespace(api_resource, obj, namespace), namespace)
        check_name(api_resource, new["metadata"]["name"])
        check_metadata(api_resource, new["metadata"])
        if api_resource.has_status and not api_resource.keeps_status:
            new.pop("status", None)
        new = self._apply_defaults_and_check(api_resource, new, None)
        if self._store.find(resource, get_object_key(new)):
            raise Conflict(f'{resource} "{new["metadata"]["name"]}" already exists')
        self._uid_count += 1
        uid = build_uid(self._seed, self._uid_count)
        metadata = build_initial_metadata(
            new["metadata"], uid=uid, now=self.clock.get_time(), counts_generations=api_resource.counts_generations
        )
        return self._write(api_resource, None, {**new, "metadata": metadata})

    def restore(self, resource: str, obj: Object) -> Object:
        """Store *obj* as it is, like an object from a backup of etcd: without defaults, rules and a new UID.

        Parts of *obj* may be shared with other objects, so that a cluster with many pods needs less memory.
        """
        return self._store.write(resource, self._store.find(resource, get_object_key(obj)), obj)

    def patch(self, resource: str, name: str, patch: Object, namespace: str = "", subresource: str = "") -> Object:
        """Merge *patch* (RFC 7386) into an object or its subresource; return the stored object.

        A `metadata.resourceVersion` in *patch* is a precondition.

        Raises:
            Conflict: the precondition does not hold.
            NotFound: the object does not exist.
            Invalid: a rule or the schema rejects the result, or its UID differs.
        """
        api_resource, old = self.get_resource(resource), self.get(resource, name, namespace)
        new = merge_patch(old, patch)
        check_patched(api_resource, old["metadata"], new.get("metadata"))
        return self._replace(api_resource, old, new, subresource)

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        """Replace the stored object of the same name with *obj*; without a resourceVersion, unconditionally.

        Raises:
            Conflict: the resourceVersion or UID of *obj* differs from that of the stored object.
            NotFound: the object does not exist.
            Invalid: a rule or the schema rejects the object.
        """
        namespace, name = get_object_key(obj)
        return self._replace(self.get_resource(resource), self.get(resource, name, namespace), obj, subresource)

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
        """Delete an object, or begin its deletion if finalizers or the grace period of a bound pod keep it.

        The default grace period is the pod's own.

        Raises:
            Conflict: *uid* or *resource_version* differs from the object's.
            NotFound: the object does not exist.
        """
        api_resource, old = self.get_resource(resource), self.get(resource, name, namespace)
        deletion.check_preconditions(api_resource, old, uid, resource_version)
        now = self.clock.get_time()
        if resource == NAMESPACES:
            new: Object | None = deletion.begin_namespace_deletion(old, now)
        else:
            new = deletion.begin_deletion(api_resource, old, now, grace_period_seconds, propagation)
        if new is None:
            self._remove(api_resource, old)
        elif new is not old:
            self._write(api_resource, old, new)

    def evict(self, namespace: str, name: str, *, uid: str = "", grace_period_seconds: int | None = None) -> None:
        """Delete a pod if its PodDisruptionBudget allows it now.

        Only running pods are counted and protected by budgets.

        Raises:
            Conflict: *uid* differs from the pod's.
            EvictionRefused: the budget does not allow it or is not computed yet, or several budgets select the pod.
            NotFound: the pod does not exist.
        """
        pod = self.get(PODS, name, namespace)
        deletion.check_preconditions(self.get_resource(PODS), pod, uid, "")
        if not eviction.is_exempt_from_budgets(pod):
            self._consume_budget(pod)
            disrupted_pod = eviction.with_disruption_target(pod, self.clock.get_time())
            self._replace(self.get_resource(PODS), pod, disrupted_pod, "status")
        self.delete(PODS, name, namespace, uid=uid, grace_period_seconds=grace_period_seconds)

    def bind(self, namespace: str, pod_name: str, node_name: str) -> None:
        """Bind a pod to a node permanently; whether the node exists is not checked.

        Raises:
            Conflict: the pod is already bound, gated, or being deleted.
            NotFound: the pod does not exist.
        """
        old = self.get(PODS, pod_name, namespace)
        self._write(self.get_resource(PODS), old, bind_pod(old, node_name, self.clock.get_time()))

    def _consume_budget(self, pod: Object) -> None:
        namespace, name = get_object_key(pod)
        budgets = eviction.find_matching_budgets(pod, self.list(POD_DISRUPTION_BUDGETS, namespace))
        if len(budgets) > 1:
            raise EvictionRefused(f"{namespace}/{name}: {eviction.MULTIPLE_BUDGETS_MESSAGE}")
        for budget in budgets:
            status = eviction.consume_disruption(pod, budget, self.clock.get_time())
            if status is not None:
                self._replace(self.get_resource(POD_DISRUPTION_BUDGETS), budget, {**budget, "status": status}, "status")

    def _check_namespace(self, api_resource: ApiResource, namespace: str) -> None:
        if not namespace:
            raise Invalid(f"an empty namespace may not be set during creation of {api_resource.name}", "BadRequest")
        namespace_object = self.get(NAMESPACES, namespace)
        if "deletionTimestamp" in namespace_object["metadata"]:
            raise Forbidden(f"{api_resource.name} is forbidden: namespace {namespace} is being terminated")

    def _with_name(self, api_resource: ApiResource, obj: Object, namespace: str) -> Object:
        metadata = obj["metadata"]
        if metadata.get("name"):
            return obj
        name_prefix = metadata.get("generateName", "")
        if not name_prefix:
            reason = "Required value: name or generateName is required"
            raise build_invalid_error(api_resource, "", "metadata.name", reason)
        name = ""
        for _ in range(_MAX_NAME_ATTEMPTS):
            self._name_suffix_count += 1
            name = generate_name(name_prefix, self._seed, self._name_suffix_count)
            if not self._store.find(api_resource.name, (namespace, name)):
                break
        return {**obj, "metadata": {**metadata, "name": name}}

    def _apply_defaults_and_check(self, api_resource: ApiResource, new: Object, old: Object | None) -> Object:
        """Return *new* with defaults, checked against the rules of its kind."""
        if api_resource.schema:
            new = api_resource.schema.prune_and_default(new)
            if problems := api_resource.schema.validate(new, old):
                name = f'{api_resource.qualified_kind} "{new["metadata"]["name"]}"'
                raise Invalid(f"{name} is invalid: {'; '.join(problems)}", "Invalid")
            return new
        new = without_nulls(new)
        if old is None:
            return admission.apply_create_admission(api_resource, new, self.clock.get_time(), self._find_cluster_object)
        new = admission.apply_update_admission(api_resource, new)
        admission.check_update(api_resource, old, new)
        return new

    def _find_cluster_object(self, resource: str, name: str) -> Object | None:
        return self._store.find(resource, ("", name))

    def _replace(self, api_resource: ApiResource, old: Object, new: Object, subresource: str) -> Object:
        new = {"metadata": old["metadata"]} | new
        check_update_target(api_resource, old, new)
        new = {**new, "metadata": build_updated_metadata(api_resource, old["metadata"], new["metadata"])}
        new = restrict_update(api_resource, old, new, subresource)
        check_metadata(api_resource, new["metadata"])
        new = self._apply_defaults_and_check(api_resource, new, old)
        is_changed = get_desired_state(api_resource, old) != get_desired_state(api_resource, new)
        if api_resource.counts_generations and is_changed:
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if is_deletion_completed(api_resource, old, new):
            self._remove(api_resource, old)
            return new
        if without_resource_version(old) == new:
            return old
        return self._write(api_resource, old, new)

    def _write(self, api_resource: ApiResource, old: Object | None, new: Object) -> Object:
        if api_resource.name != CUSTOM_RESOURCE_DEFINITIONS:
            return self._store.write(api_resource.name, old, new)
        if old is None:
            new = with_established_conditions(new, self.clock.get_time())
        custom_resource = build_api_resource(new)
        self._resources_by_name[custom_resource.name] = custom_resource
        return self._store.write(api_resource.name, old, new)

    def _remove(self, api_resource: ApiResource, old: Object) -> None:
        if api_resource.name == CUSTOM_RESOURCE_DEFINITIONS:
            resource_name = old["metadata"]["name"]
            for obj in self._store.list_objects(resource_name, None):
                self._store.remove(resource_name, obj)
            del self._resources_by_name[resource_name]
        self._store.remove(api_resource.name, old)
