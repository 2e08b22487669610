"""Fill a world with running nodes and pods: copies of a few nodes that Joiner launched itself."""

from datetime import timedelta
from itertools import product
from typing import Any, Final, Literal

import msgspec

from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.world import manifests
from tests.benchmarks import population
from tests.benchmarks.scale.scale_world import EVENT, ScaleWorld

Object = dict[str, Any]
Fill = Literal["full", "half"]
"""How full nodes are: 96 % of their CPU requested; or every second node has twice the CPU, so 48 %."""

PODS_PER_NODE: Final = 30
PODS_PER_DEPLOYMENT: Final = 100
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
CAPACITY_TYPES: Final = ("spot", "on-demand")
NODE_TYPES: Final[dict[Fill, tuple[str, ...]]] = {"full": ("m5.4xlarge",), "half": ("m5.4xlarge", "m5.8xlarge")}
POD_SIZES: Final = (("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"), ("700m", "4Gi"))
"""Thirty pods of these sizes request 15.3 of the 15.89 CPU of an m5.4xlarge."""
SETTLE_TIME: Final = timedelta(minutes=12)
MAX_SETTLING_INVOCATIONS: Final = 8
BUDGET_SYNC_TIME: Final = timedelta(seconds=5)
"""Until PodDisruptionBudgets count the seeded pods; before, they allow no disruption."""
NODE_AGE: Final = timedelta(hours=2)
REPLICA_SETS: Final = "replicasets.apps"
CLAIMS: Final = "nodeclaims.karpenter.sh"
CSI_NODES: Final = "csinodes.storage.k8s.io"


class Prototype(msgspec.Struct, frozen=True, kw_only=True):
    """A node that Joiner launched, with everything that belongs to it."""

    node: Object
    claim: Object
    csi_node: Object
    boot: NodeBoot
    instance_id: str


def build_filled_world(
    node_count: int, fill: Fill = "full", latency: timedelta = timedelta(milliseconds=5), consolidate_after: str = "0s"
) -> ScaleWorld:
    """Return a world with *node_count* more nodes than its prototypes, each with `PODS_PER_NODE` running pods."""
    world = ScaleWorld(latency)
    prototypes = _launch_prototypes(world, NODE_TYPES[fill], consolidate_after)
    # A multiple of the number of sizes: so each node has as many pods of each size.
    deployment_count = max(node_count * PODS_PER_NODE // PODS_PER_DEPLOYMENT // len(POD_SIZES), 1) * len(POD_SIZES)
    replica_sets = _create_deployments(world, deployment_count)
    seeder = _Seeder(world, replica_sets)
    for number in range(node_count):
        seeder.add_node(number, prototypes[number % len(prototypes)])
    for replica_set in replica_sets:
        seeder.set_replicas(replica_set)
    world.run(BUDGET_SYNC_TIME)
    _settle(world)
    return world


def _settle(world: ScaleWorld) -> None:
    """Let lifecycle update the copies: annotations and conditions that differ from node to node."""
    world.takes_time = False
    for _ in range(MAX_SETTLING_INVOCATIONS):
        revision = world.cluster.api.revision
        world.runtime.invoke("lifecycle", EVENT)
        if world.cluster.api.revision == revision:
            break
    world.takes_time = True


def _launch_prototypes(world: ScaleWorld, types: tuple[str, ...], consolidate_after: str) -> list[Prototype]:
    """Have Joiner launch a node of each type, capacity type and zone; return them in this order, zone first."""
    requirements = {
        "kubernetes.io/arch": ["amd64"],
        "karpenter.sh/capacity-type": list(CAPACITY_TYPES),
        "karpenter.k8s.aws/instance-category": ["c", "m", "r"],
    }
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": consolidate_after,
        "budgets": [{"nodes": "10%"}],
    }
    world.apply([manifests.build_node_class()])
    world.run(timedelta(minutes=1))
    template = manifests.build_node_template(requirements, expireAfter="Never")
    world.apply([manifests.build_node_pool("default", template, disruption=disruption)])
    names: list[str] = []
    for node_type, capacity_type, zone in product(types, CAPACITY_TYPES, ZONES):
        names.append(f"prototype-{len(names)}")
        selector = {
            "node.kubernetes.io/instance-type": node_type,
            "karpenter.sh/capacity-type": capacity_type,
            "topology.kubernetes.io/zone": zone,
        }
        pod_spec = {
            "nodeSelector": selector,
            "containers": [manifests.build_container("15" if "4x" in node_type else "30")],
        }
        world.apply([manifests.build_workload("Deployment", names[-1], pod_spec, replicas=1)])
    world.run(SETTLE_TIME)
    pods = {pod["metadata"]["labels"]["app"]: pod for pod in world.cluster.list_pods("default")}
    return [_read_prototype(world, pods[name]["spec"]["nodeName"]) for name in names]


def _read_prototype(world: ScaleWorld, node_name: str) -> Prototype:
    api = world.cluster.api
    claim = next(claim for claim in api.list(CLAIMS) if claim["status"].get("nodeName") == node_name)
    node = api.get("nodes", node_name)
    return Prototype(
        node=node,
        claim=claim,
        csi_node=api.get(CSI_NODES, node_name),
        boot=world.cluster.kubelet.get_boot(node_name),
        instance_id=node["spec"]["providerID"].rpartition("/")[2],
    )


def _create_deployments(world: ScaleWorld, count: int) -> list[Object]:
    """Create *count* Deployments without pods, every tenth with a PodDisruptionBudget; return their ReplicaSets."""
    for number in range(count):
        template = population.make_pod(number * population.PODS_PER_DEPLOYMENT, 1)
        pod_spec = {key: value for key, value in template["spec"].items() if key != "nodeName"}
        cpu, memory = POD_SIZES[number % len(POD_SIZES)]
        container = pod_spec["containers"][0]
        container["resources"] = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
        world.apply([manifests.build_workload("Deployment", f"app-{number}", pod_spec, replicas=0)])
        if number % 10 == 0:
            world.apply([manifests.build_pod_budget(f"app-{number}", maxUnavailable="25%")])
    world.run(timedelta(seconds=5))
    return list_replica_sets(world)


def list_replica_sets(world: ScaleWorld) -> list[Object]:
    """Return the ReplicaSets of the seeded Deployments, in the order of their numbers."""
    apps = {
        item["spec"]["template"]["metadata"]["labels"]["app"]: item for item in world.cluster.api.list(REPLICA_SETS)
    }
    return [apps[f"app-{number}"] for number in range(len(apps)) if f"app-{number}" in apps]


class _Seeder:
    """Writes copies of prototypes, and pods on them."""

    def __init__(self, world: ScaleWorld, replica_sets: list[Object]) -> None:
        self._world, self._api, self._replica_sets = world, world.cluster.api, replica_sets
        self._pod_count_by_replica_set: dict[str, int] = {}
        self._pod_count = 0
        status = population.make_node_status(0)
        self._images = status["images"]

    def add_node(self, number: int, prototype: Prototype) -> None:
        world, registry = self._world, self._world.cloud.instances
        original = registry.find(prototype.instance_id)
        pool = world.cloud.pools.get_pool(
            original.launch_spec.instance_type, original.subnet.zone, original.launch_spec.capacity_type
        )
        claim_name = f"default-{number:05d}"
        tags = tuple(
            (key, claim_name if value == prototype.claim["metadata"]["name"] else value)
            for key, value in original.tags.items()
        )
        launch_spec = msgspec.structs.replace(original.launch_spec, tags=tags)
        instance = registry.add_running(launch_spec, original.subnet, pool, NODE_AGE)
        names = {
            prototype.node["metadata"]["name"]: instance.private_dns_name,
            prototype.claim["metadata"]["name"]: claim_name,
            prototype.node["spec"]["providerID"]: instance.provider_id,
            prototype.instance_id: instance.instance_id,
            prototype.node["metadata"]["uid"]: f"node-uid-{number}",
            prototype.claim["metadata"]["uid"]: f"claim-uid-{number}",
        }
        node = _replace_strings(prototype.node, names)
        node["status"]["images"] = self._images
        boot = msgspec.structs.replace(
            prototype.boot,
            node_name=instance.private_dns_name,
            provider_id=instance.provider_id,
            internal_ip=instance.private_dns_name.partition(".")[0].removeprefix("ip-").replace("-", "."),
        )
        world.cluster.add_running_node(boot)
        self._api.restore(CLAIMS, _replace_strings(prototype.claim, names))
        self._api.restore("nodes", node)
        self._api.restore(CSI_NODES, _replace_strings(prototype.csi_node, names))
        for _ in range(PODS_PER_NODE):
            self._add_pod(instance.private_dns_name)

    def _add_pod(self, node_name: str) -> None:
        replica_set = self._replica_sets[self._pod_count % len(self._replica_sets)]
        self._api.restore("pods", build_pod(replica_set, self._pod_count, node_name))
        self._pod_count += 1
        name = replica_set["metadata"]["name"]
        self._pod_count_by_replica_set[name] = self._pod_count_by_replica_set.get(name, 0) + 1

    def set_replicas(self, replica_set: Object) -> None:
        count = self._pod_count_by_replica_set.get(replica_set["metadata"]["name"], 0)
        deployment = self._api.get("deployments.apps", replica_set["metadata"]["ownerReferences"][0]["name"], "default")
        for resource, item in (("replicasets.apps", replica_set), ("deployments.apps", deployment)):
            self._api.patch(resource, item["metadata"]["name"], {"spec": {"replicas": count}}, "default")


def build_pod(replica_set: Object, number: int, node_name: str = "") -> Object:
    """Return pod *number*, of *replica_set*: running on *node_name*, or else unschedulable.

    It shares everything with the other pods of *replica_set* that does not differ.
    """
    template, name = replica_set["spec"]["template"], f"{replica_set['metadata']['name']}-{number:06d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True, "blockOwnerDeletion": True}
    owner |= {key: replica_set["metadata"][key] for key in ("name", "uid")}
    token, spec = f"kube-api-access-{number:06d}", template["spec"]
    mount = {**spec["containers"][0]["volumeMounts"][0], "name": token}
    pod_spec = {
        **spec,
        "containers": [{**spec["containers"][0], "volumeMounts": [mount]}],
        "volumes": [{**spec["volumes"][0], "name": token}],
        "priority": 0,
        "schedulerName": "default-scheduler",
    }
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"pod-uid-{number}",
        "creationTimestamp": replica_set["metadata"]["creationTimestamp"],
        "labels": template["metadata"]["labels"],
        "annotations": {"checksum/config": f"{number % 97:064x}", "prometheus.io/scrape": "true"},
        "ownerReferences": [owner],
    }
    status = population.make_pod_status(number) if node_name else _UNSCHEDULABLE_STATUS
    if node_name:
        pod_spec["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec, "status": status}


_UNSCHEDULABLE_CONDITION: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/5000 nodes are available: 5000 Insufficient cpu.",
    "lastTransitionTime": "2026-11-21T08:00:00Z",
}
_UNSCHEDULABLE_STATUS: Final = {"phase": "Pending", "conditions": [_UNSCHEDULABLE_CONDITION]}


def _replace_strings(value: Any, names: dict[str, str]) -> Any:
    """Return a copy of *value* in which the strings that are keys of *names* are replaced."""
    if isinstance(value, dict):
        return {key: _replace_strings(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_strings(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value
