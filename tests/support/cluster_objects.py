"""Nodes, pods and workloads for tests of the in-memory cluster, with few parameters."""

from datetime import timedelta
from typing import Any

from shared.errors import Unreachable
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.kube_scheduler.scheduler import Scheduler
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.time.virtual_clock import Clock

Obj = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


class Bench:
    """A scheduler with its API server and no other component."""

    def __init__(self) -> None:
        """Start with an empty cluster."""
        self.clock = Clock()
        self.api = ApiServer(self.clock, definitions=())
        self.scheduler = Scheduler(self.clock, self.api)

    def create_node(self, name: str, **fields: Any) -> None:
        spec = {"taints": fields.pop("taints", []), "unschedulable": fields.pop("cordoned", False)}
        created_node = self.api.create("nodes", make_node(name, **fields))
        self.api.patch("nodes", created_node["metadata"]["name"], {"spec": spec})

    def create_pod(self, name: str, *, on: str = "", **fields: Any) -> None:
        obj = make_pod(name, **fields)
        if on:
            obj["spec"]["nodeName"] = on
        self.api.create("pods", obj)

    def advance_seconds(self, seconds: float = 30) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    def get_node_name(self, name: str) -> str:
        return str(self.api.get("pods", name, "default")["spec"].get("nodeName", ""))

    def get_scheduling_message(self, name: str) -> str:
        conditions = self.api.get("pods", name, "default")["status"].get("conditions") or []
        return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")

    def get_filter_message(self, name: str) -> str:
        """Return the nodes' part of the scheduling message, without the part about preemption."""
        return self.get_scheduling_message(name).partition(" preemption:")[0]


def make_node(name: str, *, zone: str = "a", labels: Obj | None = None, ready: bool = True, **resources: str) -> Obj:
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


def make_pod(
    name: str, *, cpu: str = "100m", labels: Obj | None = None, spec: Obj | None = None, **metadata: Any
) -> Obj:
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}, **metadata},
        "spec": {"containers": containers, **(spec or {})},
    }


def make_workload(
    kind: str, name: str, replicas: int | None = None, *, pod_spec: Obj | None = None, **spec: Any
) -> Obj:
    annotations = spec.pop("annotations", {})
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": make_pod(name, **spec.pop("pod", {}))["spec"] | (pod_spec or {}),
    }
    count = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**count, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def make_node_boot(name: str, *, zone: str = "a", **fields: Any) -> NodeBoot:
    quantities = fields.pop("quantities", {"cpu": "4", "memory": "8Gi", "pods": "58"})
    return NodeBoot(
        node_name=name,
        provider_id=f"aws:///{zone}/i-{name}",
        instance_type="m6i.xlarge",
        zone=zone,
        region="us-east-1",
        capacity=quantities,
        allocatable=quantities,
        **fields,
    )


def start_cluster(*nodes: NodeBoot) -> SimulatedCluster:
    """Return a cluster whose *nodes* have been up for two minutes."""
    cluster = SimulatedCluster(Clock())
    for node_boot in nodes:
        cluster.start_node(node_boot)
    cluster.run(timedelta(minutes=2))
    return cluster


def run(cluster: SimulatedCluster, seconds: float = 60) -> None:
    cluster.run(timedelta(seconds=seconds))


def list_names(objects: list[Obj]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


class Flaky(ApiServer):
    """An API server that is unreachable for the calls named in *failing*."""

    def __init__(self, clock: Clock) -> None:
        """Start with no failing calls."""
        self.failing: set[str] = set()
        super().__init__(clock, definitions=())

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        self._fail_if_configured("create", resource)
        return super().create(resource, obj, namespace)

    def patch(self, resource: str, name: str, patch: Obj, namespace: str = "", subresource: str = "") -> Obj:
        self._fail_if_configured("patch", resource)
        return super().patch(resource, name, patch, namespace, subresource)

    def delete(self, resource: str, name: str, namespace: str = "", **options: Any) -> None:
        self._fail_if_configured("delete", resource)
        super().delete(resource, name, namespace, **options)

    def bind(self, namespace: str, pod_name: str, node_name: str) -> None:
        self._fail_if_configured("bind", "pods")
        super().bind(namespace, pod_name, node_name)

    def _fail_if_configured(self, verb: str, resource: str) -> None:
        if f"{verb} {resource}" in self.failing:
            raise Unreachable(f"{verb} {resource}")


def start_flaky_cluster(*nodes: NodeBoot) -> tuple[SimulatedCluster, Flaky]:
    """Return a cluster whose *nodes* have been up for two minutes, and its API server."""
    clock = Clock()
    api = Flaky(clock)
    cluster = SimulatedCluster(clock, api=api)
    for node_boot in nodes:
        cluster.start_node(node_boot)
    run(cluster, 120)
    return cluster, api
