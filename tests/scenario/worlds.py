"""A small embedded world: few instance types, short manifests, and invariants checked every simulated second."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from shared.errors import Fault, Unreachable
from shared.model.core.units import parse_quantity
from shared.model.decisions.action import Action, DeletePod, EvictPod, TerminateInstances
from shared.model.ec2.instance import Instance
from shared.report.journal.journal import JournalEntry
from sim.fault_tap import PortCall, Tap
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import get_vcpus, is_joiner_node, is_running

DEFAULT_INSTANCE_TYPES: Final = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge")
WARM_UP_TIME: Final = timedelta(seconds=30)
MAX_ORPHAN_AGE: Final = timedelta(minutes=3)
"""The longest time that an instance may be without a claim: three ticks."""
CLAIMS: Final = "nodeclaims.karpenter.sh"
POOLS: Final = "nodepools.karpenter.sh"
CLASSES: Final = "ec2nodeclasses.karpenter.k8s.aws"
DEADLINE: Final = "karpenter.sh/nodeclaim-termination-timestamp"
INTERRUPTIONS: Final = "demo-joiner-interruption"
Json = dict[str, Any]


class World(EmbeddedWorld):
    """An embedded world that checks invariants while it runs."""

    def __init__(
        self,
        *manifests: Json,
        seed: int = 0,
        types: tuple[str, ...] = DEFAULT_INSTANCE_TYPES,
        template: Json | None = None,
    ) -> None:
        """Apply *manifests* and wait until the catalog is built."""
        super().__init__(seed, template=template)
        self.cloud.types = {name: self.cloud.types[name] for name in types}
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in types)
        self.broken: list[str] = []
        """Violated invariants, oldest first."""
        self.entries: list[JournalEntry] = []
        self.began = self.clock.get_time()
        self.launched: list[str] = []
        """IDs of all instances that were ever started."""
        self.forfeit: set[str] = set()
        """IDs of instances that may be terminated with pods on them."""
        self._alone: dict[str, datetime] = {}
        self.request_checks.log.on_rejection = lambda rejected: self.broken.append(rejected.describe())
        self.cloud.events.subscribe(self._record_launch)
        self.on_journal_entry = self._check_entry
        self.apply(manifests)
        self.advance_time(WARM_UP_TIME)

    def advance_time(self, duration: timedelta) -> None:
        """Advance the clock by *duration* and check the invariants every second.

        Raises:
            AssertionError: An invariant was violated.
        """
        end = self.clock.get_time() + duration
        while self.clock.get_time() < end:
            self.clock.run_until(min(end, self.clock.get_time() + timedelta(seconds=1)))
            self._check_invariants()

    def advance_seconds(self, count: float) -> None:
        """Advance the clock by *count* seconds."""
        self.advance_time(timedelta(seconds=count))

    def clear_container_caches(self) -> None:
        """Make every container of Lambda start with an empty cache."""
        self._cache_by_function.clear()

    def wait_until(self, holds: Callable[[], object], timeout: float = 300) -> float:
        """Advance the clock until *holds* returns true; return the elapsed seconds.

        Raises:
            AssertionError: *holds* was not true within *timeout* seconds; the message has the last lines of the log.
        """
        began = self.clock.get_time()
        while not holds():
            passed = (self.clock.get_time() - began).total_seconds()
            assert passed < timeout, "\n".join(
                [f"not within {timeout} s; {self.describe_state()}", *self.log_lines[-12:]]
            )
            self.advance_seconds(1)
        return (self.clock.get_time() - began).total_seconds()

    def wait_until_settled(self, running: int, timeout: float = 300) -> float:
        """Advance the clock until *running* pods run and no pod is unbound."""
        return self.wait_until(
            lambda: (len(self.list_running_pods()), len(self.list_unbound_pods())) == (running, 0), timeout
        )

    # What is there

    def list_running_pods(self) -> list[Json]:
        """Return the running pods of the namespace default."""
        return [pod for pod in self.cluster.list_pods("default") if is_running(pod)]

    def list_unbound_pods(self) -> list[Json]:
        """Return the pods of the namespace default that are not bound to a node."""
        return [pod for pod in self.cluster.list_pods("default") if "nodeName" not in pod["spec"]]

    def list_nodes(self) -> list[Json]:
        """Return the Nodes that Joiner manages."""
        return [node for node in self.cluster.api.list("nodes") if is_joiner_node(node)]

    def list_claims(self) -> list[Json]:
        """Return the NodeClaims."""
        return self.cluster.api.list(CLAIMS)

    def list_done_actions(self, kind: type[Action]) -> list[Any]:
        """Return the completed actions of *kind*, oldest first."""
        return [
            result.action
            for entry in self.entries
            for result in entry.results
            if result.result == "done" and isinstance(result.action, kind)
        ]

    def list_problems(self) -> set[str]:
        """Return all problems that the journal reports."""
        return {
            f"{problem.kind} {problem.name}: {problem.message}" for entry in self.entries for problem in entry.problems
        }

    def list_errors(self) -> list[str]:
        """Return the errors of failed invocations."""
        return [invocation.error for invocation in self.runtime.invocations if invocation.outcome != "ok"]

    def get_condition(self, resource: str, name: str, type_: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition, as `kubectl get` shows it."""
        return next(
            (
                (condition["status"], condition["reason"], condition["message"])
                for condition in self.cluster.api.get(resource, name).get("status", {}).get("conditions", [])
                if condition["type"] == type_
            ),
            ("", "", ""),
        )

    def list_events(self, name: str = "", reason: str = "") -> list[str]:
        """Return the events about *name* (or about all objects), as `kubectl describe` shows them."""
        return [
            f"{event['reason']}: {event['message']}"
            for event in self.cluster.api.list("events")
            if name in ("", event["involvedObject"]["name"]) and reason in ("", event["reason"])
        ]

    def log(self) -> str:
        """Return all log lines as one text."""
        return "\n".join(self.log_lines)

    def describe_state(self) -> str:
        """Describe the state of the world in one line."""
        return (
            f"{len(self.list_running_pods())} running, {len(self.list_unbound_pods())} waiting, "
            f"{len(self.list_nodes())} nodes, {len(self.list_claims())} claims, "
            f"{len(self.list_active_instances())} instances"
        )

    # What happens

    def scale(self, replicas: int, name: str = "web") -> None:
        """Scale a Deployment."""
        self.cluster.scale("Deployment", "default", name, replicas)

    def store(self, resource: str, name: str, patch: Json, namespace: str = "") -> None:
        """Change an object without validation, as another version of the CRDs would have allowed it."""
        stored = self.cluster.api.get(resource, name, namespace)
        self.cluster.api._store.write(resource, stored, _merge(stored, patch))  # noqa: SLF001 - past every check

    def interrupt(self, body: str) -> None:
        """Put a message into the interruption queue."""
        self.runtime.add(INTERRUPTIONS, body)

    def find_instance(self, node: Json) -> Instance:
        """Return the instance that *node* runs on."""
        return self.cloud.instances.describe(node["spec"]["providerID"].rpartition("/")[2])

    @contextmanager
    def use_tap(self, tap: Tap) -> Iterator[None]:
        """Pass every call to *tap* inside the block."""
        before, self.tap = self.tap, tap
        try:
            yield
        finally:
            self.tap = before

    @contextmanager
    def fail_ports(
        self, *ports: str, fault: Callable[[str], Fault] = Unreachable, world_prefix: str = ""
    ) -> Iterator[None]:
        """Make *ports*.

        (``kube``, ``ec2.create_fleet``) fail inside the block, only for worlds named *world_prefix*….
        """

        def fail_matching_call(call: PortCall) -> None:
            hit = call.port in ports or f"{call.port}.{call.method}" in ports
            if call.phase == "before" and hit and call.world_name.startswith(world_prefix):
                raise fault(f"{call.port}.{call.method}: outage")

        with self.use_tap(fail_matching_call):
            yield

    # What must never happen

    def _record_launch(self, event: Json) -> None:
        if event["detail"].get("state") == "pending":
            self.launched.append(event["detail"]["instance-id"])

    def _check_entry(self, entry: JournalEntry) -> None:
        self.entries.append(entry)
        for result in entry.results:
            if result.result != "done":
                continue
            if isinstance(result.action, TerminateInstances):
                self._check_termination(result.action)
            if isinstance(result.action, EvictPod):
                self._check_eviction(result.action)
            if isinstance(result.action, DeletePod) and not self._has_deadline(result.action.node):
                self.broken.append(f"{result.action.name} was deleted, though its node has no deadline")

    def _check_termination(self, action: TerminateInstances) -> None:
        by_instance = {
            node["spec"].get("providerID", "").rpartition("/")[2]: node["metadata"]["name"]
            for node in self.list_nodes()
        }
        for instance_id in action.instance_ids:
            node = by_instance.get(instance_id, "")
            remaining_pods = [
                pod["metadata"]["name"] for pod in self.cluster.api.list_pods_on_node(node) if _is_ordinary(pod)
            ]
            if remaining_pods and instance_id not in self.forfeit and not self._has_deadline(node):
                self.broken.append(f"{instance_id} ({action.message}) was ended under {', '.join(remaining_pods)}")

    def _check_eviction(self, action: EvictPod) -> None:
        for pod in self.cluster.list_pods(action.namespace):
            metadata = pod["metadata"]
            if (
                metadata["uid"] == action.uid
                and metadata.get("annotations", {}).get("karpenter.sh/do-not-disrupt") == "true"
            ):
                self.broken.append(f"{action.name} was evicted past do-not-disrupt")

    def _has_deadline(self, node: str) -> bool:
        return any(
            claim["status"].get("nodeName") == node
            and ("terminationGracePeriod" in claim["spec"] or DEADLINE in claim["metadata"].get("annotations", {}))
            for claim in self.list_claims()
        )

    def _check_invariants(self) -> None:
        now = self.clock.get_time()
        claimed = [claim.get("status", {}).get("providerID", "") for claim in self.list_claims()]
        owned = {text.rpartition("/")[2] for text in claimed if text}
        if len(owned) != len([text for text in claimed if text]):
            self.broken.append(f"two claims have one instance: {claimed}")
        living = {instance.instance_id for instance in self.list_active_instances()}
        self._alone = {instance_id: self._alone.get(instance_id, now) for instance_id in living - owned}
        self.broken += [
            f"{instance_id} is nobody's since {at}"
            for instance_id, at in self._alone.items()
            if now - at > MAX_ORPHAN_AGE
        ]
        for pool in self.cluster.api.list(POOLS):
            self._check_limit(pool)
        assert not self.broken, "\n".join(self.broken)

    def _check_limit(self, pool: Json) -> None:
        limit = (pool["spec"].get("limits") or {}).get("cpu")
        name = pool["metadata"]["name"]
        if limit is None or "lowered" in pool["metadata"].get("annotations", {}):
            return
        if str(limit).isalpha():
            return
        vcpus = sum(
            self.cloud.types[instance.instance_type].vcpus
            for instance in self.list_active_instances()
            if instance.get_tag("karpenter.sh/nodepool") == name
        )
        if vcpus * 1000 > parse_quantity(str(limit), per_unit=1000):
            self.broken.append(f"{vcpus} vCPUs of NodePool {name} are over its limit {limit}")


def make_node_class(name: str = "default", **spec: Any) -> Json:
    """Return an EC2NodeClass."""
    selector = [{"tags": {"karpenter.sh/discovery": "*"}}]
    defaults = {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": defaults | spec,
    }


def make_node_pool(
    name: str = "default",
    *,
    class_name: str = "default",
    after: str = "30s",
    types: tuple[str, ...] = ("m5.xlarge",),
    capacity: tuple[str, ...] = ("on-demand",),
    template: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    disruption: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """Return a NodePool for *types*; *template*, *labels* and *disruption* extend its spec."""
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity)},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class_name}
    inner = {"nodeClassRef": reference, "requirements": requirements} | dict(template or {})
    budgets = [{"nodes": "100%"}]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": after, "budgets": budgets}
            | dict(disruption or {}),
            "template": {"metadata": {"labels": dict(labels or {})}, "spec": inner},
        }
        | spec,
    }


def make_deployment(
    replicas: int,
    name: str = "web",
    *,
    cpu: str = "800m",
    annotations: Mapping[str, str] | None = None,
    kind: str = "Deployment",
    **spec: Any,
) -> Json:
    """Return a Deployment (or DaemonSet) of small pods."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": ({"replicas": replicas} if kind == "Deployment" else {})
        | {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": dict(annotations or {})},
                "spec": {"containers": [container]} | spec,
            },
        },
    }


def make_pod(name: str, **spec: Any) -> Json:
    """Return a pod without owner."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "100m"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]} | spec}


def make_pod_disruption_budget(app: str = "web", **spec: Any) -> Json:
    """Return a PodDisruptionBudget for the pods of *app*."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}} | spec,
    }


def make_ec2_message(kind: str, instance_id: str, **detail: Any) -> str:
    """Return an EC2 event as a message of the interruption queue."""
    body = {
        "version": "0",
        "source": "aws.ec2",
        "detail-type": kind,
        "time": "2030-01-01T00:00:00Z",
        "detail": {"instance-id": instance_id} | detail,
    }
    return json.dumps(body)


def count_vcpus(world: World) -> int:
    """Return the number of vCPUs of Joiner's nodes."""
    return sum(get_vcpus(node) for node in world.list_nodes())


def _is_ordinary(pod: Json) -> bool:
    """Whether the pod must leave before its node: it is no daemon, not finished and not being deleted."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
    over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return "DaemonSet" not in owners and not over and "deletionTimestamp" not in pod["metadata"]


def _merge(stored: Json, patch: Json) -> Json:
    return {
        **stored,
        **{
            key: _merge(stored.get(key, {}), value) if isinstance(value, dict) else value
            for key, value in patch.items()
        },
    }
