"""Nodes, pods and workloads for tests of the in-memory cluster, as short as a test can say them."""

from datetime import timedelta
from typing import Any

from shared.errors import Unreachable
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kubelet import Boot
from sim.cluster.live import LiveCluster
from sim.cluster.scheduler import Scheduler

Obj = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


class Bench:
    """A scheduler alone with its API server."""

    def __init__(self) -> None:
        """Begin with an empty cluster."""
        self.clock = Clock()
        self.api = ApiServer(self.clock, definitions=())
        self.scheduler = Scheduler(self.clock, self.api)

    def node(self, name: str, **given: Any) -> None:
        spec = {"taints": given.pop("taints", []), "unschedulable": given.pop("cordoned", False)}
        made = self.api.create("nodes", node(name, **given))
        self.api.patch("nodes", made["metadata"]["name"], {"spec": spec})

    def pod(self, name: str, *, on: str = "", **given: Any) -> None:
        obj = pod(name, **given)
        if on:
            obj["spec"]["nodeName"] = on
        self.api.create("pods", obj)

    def settle(self, seconds: float = 30) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    def node_of(self, name: str) -> str:
        return str(self.api.get("pods", name, "default")["spec"].get("nodeName", ""))

    def message(self, name: str) -> str:
        conditions = self.api.get("pods", name, "default")["status"].get("conditions") or []
        return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")

    def refusal(self, name: str) -> str:
        """Answer what the nodes said, without what preemption adds."""
        return self.message(name).partition(" preemption:")[0]


def node(name: str, *, zone: str = "a", labels: Obj | None = None, ready: bool = True, **resources: str) -> Obj:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"} | {k.replace("__", "/"): v for k, v in resources.items()}
    return {
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, **(labels or {})}},
        "spec": {},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(name: str, *, cpu: str = "100m", labels: Obj | None = None, spec: Obj | None = None, **metadata: Any) -> Obj:
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}, **metadata},
        "spec": {"containers": containers, **(spec or {})},
    }


def workload(kind: str, name: str, replicas: int | None = None, *, pod_spec: Obj | None = None, **spec: Any) -> Obj:
    annotations = spec.pop("annotations", {})
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": pod(name, **spec.pop("pod", {}))["spec"] | (pod_spec or {}),
    }
    count = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**count, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def boot(name: str, *, zone: str = "a", **given: Any) -> Boot:
    quantities = given.pop("quantities", {"cpu": "4", "memory": "8Gi", "pods": "58"})
    return Boot(
        node_name=name,
        provider_id=f"aws:///{zone}/i-{name}",
        instance_type="m6i.xlarge",
        zone=zone,
        region="us-east-1",
        capacity=quantities,
        allocatable=quantities,
        **given,
    )


def live(*nodes: Boot) -> LiveCluster:
    """Answer a cluster whose *nodes* have been up for two minutes."""
    cluster = LiveCluster(Clock())
    for each in nodes:
        cluster.start_node(each)
    cluster.run(timedelta(minutes=2))
    return cluster


def run(cluster: LiveCluster, seconds: float = 60) -> None:
    cluster.run(timedelta(seconds=seconds))


def names(objects: list[Obj]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


class Flaky(ApiServer):
    """An API server that does not answer the calls named in *failing*."""

    def __init__(self, clock: Clock) -> None:
        """Begin answering."""
        self.failing: set[str] = set()
        super().__init__(clock, definitions=())

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        self._perhaps("create", resource)
        return super().create(resource, obj, namespace)

    def patch(self, resource: str, name: str, patch: Obj, namespace: str = "", subresource: str = "") -> Obj:
        self._perhaps("patch", resource)
        return super().patch(resource, name, patch, namespace, subresource)

    def delete(self, resource: str, name: str, namespace: str = "", **options: Any) -> None:
        self._perhaps("delete", resource)
        super().delete(resource, name, namespace, **options)

    def bind(self, namespace: str, pod: str, node: str) -> None:
        self._perhaps("bind", "pods")
        super().bind(namespace, pod, node)

    def _perhaps(self, verb: str, resource: str) -> None:
        if f"{verb} {resource}" in self.failing:
            raise Unreachable(f"{verb} {resource}")


def flaky(*nodes: Boot) -> tuple[LiveCluster, Flaky]:
    """Answer a cluster whose *nodes* have been up for two minutes, and its API server."""
    clock = Clock()
    api = Flaky(clock)
    cluster = LiveCluster(clock, api=api)
    for each in nodes:
        cluster.start_node(each)
    run(cluster, 120)
    return cluster, api
