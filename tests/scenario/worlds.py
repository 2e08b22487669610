"""A small embedded world to break: few instance types, manifests in one line, promises checked after every second."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from shared.errors import Fault, Unreachable
from shared.model.action import Action, DeletePod, EvictPod, TerminateInstances
from shared.model.ec2 import Instance
from shared.model.units import parse_quantity
from shared.report.journal import Entry
from sim.embedded import Embedded
from sim.faults import Call, Tap
from sim.measure import is_ours, is_running, vcpus_of

FEW: Final = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge")
WARM_UP: Final = timedelta(seconds=30)
ORPHANED_FOR: Final = timedelta(minutes=3)
"""The longest that an instance may be without a claim: three ticks."""
CLAIMS: Final = "nodeclaims.karpenter.sh"
POOLS: Final = "nodepools.karpenter.sh"
CLASSES: Final = "ec2nodeclasses.karpenter.k8s.aws"
DEADLINE: Final = "karpenter.sh/nodeclaim-termination-timestamp"
INTERRUPTIONS: Final = "demo-joiner-interruption"
Json = dict[str, Any]


class World(Embedded):
    """An embedded world that is judged as it goes."""

    def __init__(
        self, *manifests: Json, seed: int = 0, types: tuple[str, ...] = FEW, template: Json | None = None
    ) -> None:
        """Set it up with *manifests* and let the catalogue be made."""
        super().__init__(seed, template=template)
        self.cloud.types = {name: self.cloud.types[name] for name in types}
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in types)
        self.broken: list[str] = []
        """Promises that were not kept, oldest first."""
        self.entries: list[Entry] = []
        self.began = self.clock.now()
        self.launched: list[str] = []
        """Every instance that was ever started."""
        self.forfeit: set[str] = set()
        """Instances that may be ended whatever runs on them."""
        self._alone: dict[str, datetime] = {}
        self.cloud.subscribe_events(self._on_event)
        self.on_journal = self._journalled
        self.apply(manifests)
        self.pass_time(WARM_UP)

    def pass_time(self, duration: timedelta) -> None:
        """Let *duration* pass, judging every second of it.

        Raises:
            AssertionError: a promise was broken.
        """
        end = self.clock.now() + duration
        while self.clock.now() < end:
            self.clock.run_until(min(end, self.clock.now() + timedelta(seconds=1)))
            self._judge()

    def seconds(self, count: float) -> None:
        """Let so many seconds pass."""
        self.pass_time(timedelta(seconds=count))

    def forget(self) -> None:
        """Have Lambda begin anew with every container: what it remembered is no more than a cache."""
        self._memories.clear()

    def until(self, holds: Callable[[], object], within: float = 300) -> float:
        """Let time pass until *holds*; answer after how many seconds.

        Raises:
            AssertionError: it did not within so many seconds; the message has the last lines of the log.
        """
        began = self.clock.now()
        while not holds():
            passed = (self.clock.now() - began).total_seconds()
            assert passed < within, "\n".join([f"not within {within} s; {self.tableau()}", *self.lines[-12:]])
            self.seconds(1)
        return (self.clock.now() - began).total_seconds()

    def settled(self, running: int, within: float = 300) -> float:
        """Let time pass until *running* pods run and none waits."""
        return self.until(lambda: (len(self.running()), len(self.waiting())) == (running, 0), within)

    # What is there

    def running(self) -> list[Json]:
        """Answer the pods of the namespace default that run."""
        return [pod for pod in self.live.pods("default") if is_running(pod)]

    def waiting(self) -> list[Json]:
        """Answer those that are bound nowhere."""
        return [pod for pod in self.live.pods("default") if "nodeName" not in pod["spec"]]

    def nodes(self) -> list[Json]:
        """Answer the Nodes that are ours."""
        return [node for node in self.live.api.list("nodes") if is_ours(node)]

    def claims(self) -> list[Json]:
        """Answer the NodeClaims."""
        return self.live.api.list(CLAIMS)

    def done(self, kind: type[Action]) -> list[Any]:
        """Answer the actions of *kind* that were done, oldest first."""
        return [
            one.action
            for entry in self.entries
            for one in entry.done
            if one.result == "done" and isinstance(one.action, kind)
        ]

    def problems(self) -> set[str]:
        """Answer all that was named as wrong."""
        return {f"{one.kind} {one.name}: {one.message}" for entry in self.entries for one in entry.problems}

    def errors(self) -> list[str]:
        """Answer how functions failed."""
        return [one.error for one in self.runtime.records if one.outcome != "ok"]

    def condition(self, resource: str, name: str, type_: str) -> tuple[str, str, str]:
        """Answer status, reason and message of a condition, as `kubectl get` shows it."""
        return next(
            (
                (one["status"], one["reason"], one["message"])
                for one in self.live.api.get(resource, name).get("status", {}).get("conditions", [])
                if one["type"] == type_
            ),
            ("", "", ""),
        )

    def events(self, name: str = "", reason: str = "") -> list[str]:
        """Answer what `kubectl describe` says of *name* (or of everything)."""
        return [
            f"{one['reason']}: {one['message']}"
            for one in self.live.api.list("events")
            if name in ("", one["involvedObject"]["name"]) and reason in ("", one["reason"])
        ]

    def log(self) -> str:
        """Answer the whole log."""
        return "\n".join(self.lines)

    def tableau(self) -> str:
        """Answer what there is in one line."""
        return (
            f"{len(self.running())} running, {len(self.waiting())} waiting, {len(self.nodes())} nodes, "
            f"{len(self.claims())} claims, {len(self.living())} instances"
        )

    # What happens

    def scale(self, replicas: int, name: str = "web") -> None:
        """Scale a Deployment."""
        self.live.scale("Deployment", "default", name, replicas)

    def store(self, resource: str, name: str, patch: Json, namespace: str = "") -> None:
        """Change an object as another version of the definitions would have let it be: unchecked."""
        stored = self.live.api.get(resource, name, namespace)
        self.live.api._store.write(resource, stored, _merged(stored, patch))  # noqa: SLF001 - past every check

    def interrupt(self, body: str) -> None:
        """Put a message into the interruption queue."""
        self.runtime.send(INTERRUPTIONS, body)

    def instance_of(self, node: Json) -> Instance:
        """Answer the instance that *node* runs on."""
        return self.cloud.instance(node["spec"]["providerID"].rpartition("/")[2])

    @contextmanager
    def tapped(self, tap: Tap) -> Iterator[None]:
        """Let *tap* see every call for a block."""
        before, self.tap = self.tap, tap
        try:
            yield
        finally:
            self.tap = before

    @contextmanager
    def down(self, *ports: str, fault: Callable[[str], Fault] = Unreachable, who: str = "") -> Iterator[None]:
        """Let *ports* (``kube``, ``ec2.create_fleet``) answer nothing for a block; only to *who*, if given."""

        def tap(call: Call) -> None:
            hit = call.port in ports or f"{call.port}.{call.method}" in ports
            if call.when == "before" and hit and call.who.startswith(who):
                raise fault(f"{call.port}.{call.method}: outage")

        with self.tapped(tap):
            yield

    # What must never happen

    def _on_event(self, event: Json) -> None:
        if event["detail"].get("state") == "pending":
            self.launched.append(event["detail"]["instance-id"])

    def _journalled(self, entry: Entry) -> None:
        self.entries.append(entry)
        for one in entry.done:
            if one.result != "done":
                continue
            if isinstance(one.action, TerminateInstances):
                self._judge_termination(one.action)
            if isinstance(one.action, EvictPod):
                self._judge_eviction(one.action)
            if isinstance(one.action, DeletePod) and not self._has_deadline(one.action.node):
                self.broken.append(f"{one.action.name} was deleted, though its node has no deadline")

    def _judge_termination(self, action: TerminateInstances) -> None:
        by_instance = {
            node["spec"].get("providerID", "").rpartition("/")[2]: node["metadata"]["name"] for node in self.nodes()
        }
        for instance_id in action.instance_ids:
            node = by_instance.get(instance_id, "")
            left = [pod["metadata"]["name"] for pod in self.live.api.pods_on(node) if _is_ordinary(pod)]
            if left and instance_id not in self.forfeit and not self._has_deadline(node):
                self.broken.append(f"{instance_id} ({action.why}) was ended under {', '.join(left)}")

    def _judge_eviction(self, action: EvictPod) -> None:
        for pod in self.live.pods(action.namespace):
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
            for claim in self.claims()
        )

    def _judge(self) -> None:
        now = self.clock.now()
        claimed = [claim.get("status", {}).get("providerID", "") for claim in self.claims()]
        owned = {text.rpartition("/")[2] for text in claimed if text}
        if len(owned) != len([text for text in claimed if text]):
            self.broken.append(f"two claims have one instance: {claimed}")
        living = {one.instance_id for one in self.living()}
        self._alone = {one: self._alone.get(one, now) for one in living - owned}
        self.broken += [f"{one} is nobody's since {at}" for one, at in self._alone.items() if now - at > ORPHANED_FOR]
        for pool in self.live.api.list(POOLS):
            self._judge_limit(pool)
        assert not self.broken, "\n".join(self.broken)

    def _judge_limit(self, pool: Json) -> None:
        limit = (pool["spec"].get("limits") or {}).get("cpu")
        name = pool["metadata"]["name"]
        if limit is None or "lowered" in pool["metadata"].get("annotations", {}):
            return
        if str(limit).isalpha():
            return
        vcpus = sum(
            self.cloud.types[one.instance_type].vcpus
            for one in self.living()
            if one.tag("karpenter.sh/nodepool") == name
        )
        if vcpus * 1000 > parse_quantity(str(limit), per_unit=1000):
            self.broken.append(f"{vcpus} vCPUs of NodePool {name} are over its limit {limit}")


def node_class(name: str = "default", **spec: Any) -> Json:
    """Answer an EC2NodeClass."""
    selector = [{"tags": {"karpenter.sh/discovery": "*"}}]
    known = {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": known | spec,
    }


def pool(
    name: str = "default",
    *,
    of: str = "default",
    after: str = "30s",
    types: tuple[str, ...] = ("m5.xlarge",),
    capacity: tuple[str, ...] = ("on-demand",),
    template: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    disruption: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """Answer a NodePool that makes *types*; *template*, *labels* and *disruption* add to what it says."""
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity)},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": of}
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


def deployment(
    replicas: int,
    name: str = "web",
    *,
    cpu: str = "800m",
    annotations: Mapping[str, str] | None = None,
    kind: str = "Deployment",
    **spec: Any,
) -> Json:
    """Answer a Deployment (or DaemonSet) of small pods."""
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


def pod(name: str, **spec: Any) -> Json:
    """Answer a pod of nobody."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "100m"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]} | spec}


def budget(app: str = "web", **spec: Any) -> Json:
    """Answer a PodDisruptionBudget over the pods of *app*."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}} | spec,
    }


def notice(kind: str, instance_id: str, **detail: Any) -> str:
    """Answer a message of EC2, as the interruption queue has it."""
    body = {
        "version": "0",
        "source": "aws.ec2",
        "detail-type": kind,
        "time": "2030-01-01T00:00:00Z",
        "detail": {"instance-id": instance_id} | detail,
    }
    return json.dumps(body)


def vcpus(world: World) -> int:
    """Answer the vCPUs of our nodes."""
    return sum(vcpus_of(node) for node in world.nodes())


def _is_ordinary(pod: Json) -> bool:
    """Whether its node may not go before it: neither a daemon nor over, nor gone for itself."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
    over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return "DaemonSet" not in owners and not over and "deletionTimestamp" not in pod["metadata"]


def _merged(stored: Json, patch: Json) -> Json:
    return {
        **stored,
        **{
            key: _merged(stored.get(key, {}), value) if isinstance(value, dict) else value
            for key, value in patch.items()
        },
    }
