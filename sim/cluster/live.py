"""A cluster that lives: the API server with everything that moves in it."""

from collections.abc import Iterable
from datetime import timedelta

from shared.errors import Gone, Invalid
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.api_kinds import BUILT_IN, DEFINITIONS
from sim.cluster.controllers.budget import Budgets
from sim.cluster.controllers.cloud_node import DELETING, CloudNodes
from sim.cluster.controllers.daemonset import DaemonSets
from sim.cluster.controllers.deployment import Deployments
from sim.cluster.controllers.garbage import GarbageCollector
from sim.cluster.controllers.heartbeats import Heartbeats
from sim.cluster.controllers.informer import Informer, Obj, by_controller
from sim.cluster.controllers.job import Jobs
from sim.cluster.controllers.namespace import Namespaces
from sim.cluster.controllers.node_lifecycle import NodeLifecycle
from sim.cluster.controllers.pod_gc import PodCollector
from sim.cluster.controllers.replicaset import ReplicaSets
from sim.cluster.controllers.statefulset import StatefulSets
from sim.cluster.controllers.taint_eviction import TaintEviction
from sim.cluster.controllers.volume_attacher import VolumeAttacher
from sim.cluster.controllers.volumes import VolumeBinder
from sim.cluster.kubelet import Boot, Kubelet
from sim.cluster.scheduler import Scheduler
from sim.cluster.stages import POD_STAGES, Stage


class LiveCluster:
    """An API server, a scheduler, the controllers and the kubelets, all on one clock."""

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        *,
        api: ApiServer | None = None,
        stages: tuple[Stage, ...] = POD_STAGES,
        node_deletion: timedelta = DELETING,
    ) -> None:
        """Begin with a server that serves what ours does; *node_deletion* is what a Node outlives its instance by."""
        self.clock = clock
        self.api = ApiServer(clock, seed) if api is None else api
        self._pods = Informer(self.api, "pods", by_controller)
        nodes = Informer(self.api, "nodes")
        self.heartbeats = Heartbeats()
        self.scheduler = Scheduler(clock, self.api)
        self.kubelet = Kubelet(clock, self.api, self.heartbeats, self._pods, seed=seed, stages=stages)
        self.cloud_nodes = CloudNodes(clock, self.api, nodes, deleting=node_deletion)
        self._start_controllers(nodes)

    def _start_controllers(self, nodes: Informer) -> None:
        clock, api, pods = self.clock, self.api, self._pods
        self.attacher = VolumeAttacher(clock, api, pods)
        replica_sets = ReplicaSets(clock, api, pods)
        self.controllers = (
            replica_sets,
            Deployments(clock, api, replica_sets.sets),
            StatefulSets(clock, api, pods),
            DaemonSets(clock, api, pods, nodes),
            Jobs(clock, api, pods),
            Budgets(clock, api),
            GarbageCollector(clock, api),
            Namespaces(clock, api),
            NodeLifecycle(clock, api, nodes, self.heartbeats),
            TaintEviction(clock, api, nodes, pods),
            PodCollector(clock, api, nodes, pods),
            VolumeBinder(clock, api, nodes, pods),
            self.attacher,
        )

    def resource_of(self, kind: str, api_version: str = "") -> str:
        """Answer the resource of *kind*; *api_version* tells groups apart.

        Raises:
            Invalid: nothing of that kind is served.
        """
        group = api_version.rpartition("/")[0] if api_version else None
        served = [(r.kind, r.group, r.name) for r in BUILT_IN]
        served += [
            (d["spec"]["names"]["kind"], d["spec"]["group"], d["metadata"]["name"]) for d in self.api.list(DEFINITIONS)
        ]
        for known, where, name in served:
            if known == kind and group in (None, where):
                return name
        raise Invalid(f"no matches for kind {kind!r} in version {api_version!r}")

    def apply(self, manifest: Obj) -> tuple[Obj, ...]:
        """Create what *manifest* (or each item of a List) describes, or merge it into what is there.

        Answers what is stored, in the order given.

        Raises:
            Invalid: a kind is not served, or a rule refuses the object.
        """
        if manifest["kind"] == "List":
            return tuple(stored for item in manifest["items"] for stored in self.apply(item))
        resource = self.resource_of(manifest["kind"], manifest.get("apiVersion", ""))
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "default") if self._is_namespaced(resource) else ""
        if "name" not in metadata or not self._exists(resource, metadata["name"], namespace):
            return (self.api.create(resource, manifest, namespace),)
        return (self.api.patch(resource, metadata["name"], manifest, namespace),)

    def _exists(self, resource: str, name: str, namespace: str) -> bool:
        try:
            self.api.get(resource, name, namespace)
        except Gone:
            return False
        return True

    def _is_namespaced(self, resource: str) -> bool:
        return self.api.resource(resource).namespaced

    def apply_all(self, manifests: Iterable[Obj]) -> None:
        """`apply` each of *manifests*, in order."""
        for manifest in manifests:
            self.apply(manifest)

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Set the replicas of a Deployment, ReplicaSet or StatefulSet.

        Raises:
            Gone: it does not exist.
        """
        self.api.patch(self.resource_of(kind), name, {"spec": {"replicas": replicas}}, namespace)

    def pods(self, namespace: str | None = None) -> list[Obj]:
        """Answer the pods (of *namespace*), by namespace, then name."""
        return self.api.list("pods", namespace)

    def start_node(self, boot: Boot) -> None:
        """Switch a machine on: its kubelet registers in time, the cloud controller knows its instance."""
        self.cloud_nodes.instance_started(boot)
        self.kubelet.start(boot)

    def stop_node(self, name: str, *, gone: bool = True) -> None:
        """The machine falls silent; if *gone*, its instance is terminated and the cloud controller deletes the Node."""
        self.kubelet.stop(name)
        if gone:
            self.cloud_nodes.instance_gone(name)

    def run(self, duration: timedelta) -> None:
        """Let *duration* pass."""
        self.clock.advance(duration)
