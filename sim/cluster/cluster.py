"""A complete simulated cluster: the API server with scheduler, controllers and kubelets."""

from collections.abc import Iterable
from datetime import timedelta

from shared.errors import Invalid, NotFound
from sim.cluster.api_server.api_resources import BUILT_IN_RESOURCES, CUSTOM_RESOURCE_DEFINITIONS
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.heartbeats import Heartbeats
from sim.cluster.controller_runtime.informer import Informer, Obj, index_by_controller
from sim.cluster.controllers.devices.device_driver import DeviceDriver
from sim.cluster.controllers.devices.resource_claim import ResourceClaimController
from sim.cluster.controllers.nodes.cloud_node import NODE_DELETION_DELAY, CloudNodeController
from sim.cluster.controllers.nodes.node_lifecycle import NodeLifecycleController
from sim.cluster.controllers.nodes.pod_gc import PodGarbageCollector
from sim.cluster.controllers.nodes.taint_eviction import TaintEvictionController
from sim.cluster.controllers.objects.garbage_collector import GarbageCollector
from sim.cluster.controllers.objects.namespace import NamespaceController
from sim.cluster.controllers.volumes.persistent_volume import PersistentVolumeController
from sim.cluster.controllers.volumes.volume_attacher import AttachDetachController
from sim.cluster.controllers.workloads.daemonset import DaemonSetController
from sim.cluster.controllers.workloads.deployment import DeploymentController
from sim.cluster.controllers.workloads.job import JobController
from sim.cluster.controllers.workloads.pod_disruption_budget import PodDisruptionBudgetController
from sim.cluster.controllers.workloads.replicaset import ReplicaSetController
from sim.cluster.controllers.workloads.statefulset import StatefulSetController
from sim.cluster.kube_scheduler.scheduler import Scheduler
from sim.cluster.kubelet.kubelet import Kubelet
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.cluster.kubelet.pod_stages import POD_STAGES, PodStage
from sim.time.virtual_clock import Clock


class SimulatedCluster:
    """An API server, a scheduler, the controllers and the kubelets, all on one clock."""

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        *,
        api: ApiServer | None = None,
        stages: tuple[PodStage, ...] = POD_STAGES,
        node_deletion: timedelta = NODE_DELETION_DELAY,
    ) -> None:
        """Create the cluster around *api* (default: a new server with the CRDs we ship).

        *node_deletion* is the time between the termination of an instance and the deletion of its Node.
        """
        self.clock = clock
        self.api = ApiServer(clock, seed) if api is None else api
        self._pods = Informer(self.api, "pods", index_by_controller)
        nodes = Informer(self.api, "nodes")
        self.heartbeats = Heartbeats()
        self.scheduler = Scheduler(clock, self.api)
        self.kubelet = Kubelet(clock, self.api, self.heartbeats, self._pods, seed=seed, stages=stages)
        self.cloud_nodes = CloudNodeController(clock, self.api, nodes, deletion_delay=node_deletion)
        self._start_controllers(nodes)

    def _start_controllers(self, nodes: Informer) -> None:
        clock, api, pods = self.clock, self.api, self._pods
        self.device_driver = DeviceDriver(clock, api, nodes)
        self.volume_attacher = AttachDetachController(clock, api, pods)
        replica_sets = ReplicaSetController(clock, api, pods)
        self.controllers = (
            replica_sets,
            DeploymentController(clock, api, replica_sets.replica_sets),
            StatefulSetController(clock, api, pods),
            DaemonSetController(clock, api, pods, nodes),
            JobController(clock, api, pods),
            PodDisruptionBudgetController(clock, api),
            GarbageCollector(clock, api),
            NamespaceController(clock, api),
            NodeLifecycleController(clock, api, nodes, self.heartbeats),
            TaintEvictionController(clock, api, nodes, pods),
            PodGarbageCollector(clock, api, nodes, pods),
            PersistentVolumeController(clock, api, nodes, pods),
            ResourceClaimController(clock, api, pods),
            self.volume_attacher,
        )

    def get_resource_name(self, kind: str, api_version: str = "") -> str:
        """Return the resource name of *kind*; *api_version* selects the group.

        Raises:
            Invalid: no resource of this kind is served.
        """
        group = api_version.rpartition("/")[0] if api_version else None
        served_resources = [(resource.kind, resource.group, resource.name) for resource in BUILT_IN_RESOURCES]
        served_resources += [
            (crd["spec"]["names"]["kind"], crd["spec"]["group"], crd["metadata"]["name"])
            for crd in self.api.list(CUSTOM_RESOURCE_DEFINITIONS)
        ]
        for served_kind, served_group, name in served_resources:
            if served_kind == kind and group in (None, served_group):
                return name
        raise Invalid(f"no matches for kind {kind!r} in version {api_version!r}")

    def apply(self, manifest: Obj) -> tuple[Obj, ...]:
        """Create the object of *manifest* (or each item of a List), or merge it into the existing object.

        Return the stored objects in the order of the manifest.

        Raises:
            Invalid: a kind is not served, or a rule rejects the object.
        """
        if manifest["kind"] == "List":
            return tuple(stored for item in manifest["items"] for stored in self.apply(item))
        resource = self.get_resource_name(manifest["kind"], manifest.get("apiVersion", ""))
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "default") if self._is_namespaced(resource) else ""
        if "name" not in metadata or not self._has_object(resource, metadata["name"], namespace):
            return (self.api.create(resource, manifest, namespace),)
        return (self.api.patch(resource, metadata["name"], manifest, namespace),)

    def _has_object(self, resource: str, name: str, namespace: str) -> bool:
        try:
            self.api.get(resource, name, namespace)
        except NotFound:
            return False
        return True

    def _is_namespaced(self, resource: str) -> bool:
        return self.api.get_resource(resource).namespaced

    def apply_all(self, manifests: Iterable[Obj]) -> None:
        """Apply each of *manifests*, in order."""
        for manifest in manifests:
            self.apply(manifest)

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Set the replicas of a Deployment, ReplicaSet or StatefulSet.

        Raises:
            NotFound: the object does not exist.
        """
        self.api.patch(self.get_resource_name(kind), name, {"spec": {"replicas": replicas}}, namespace)

    def list_pods(self, namespace: str | None = None) -> list[Obj]:
        """Return the pods (of *namespace*), sorted by namespace, then name."""
        return self.api.list("pods", namespace)

    def start_node(self, boot: NodeBoot) -> None:
        """Boot an instance: its kubelet registers after its delay, and the cloud controller knows the instance."""
        self.cloud_nodes.register_instance(boot)
        self.kubelet.start(boot)

    def add_running_node(self, boot: NodeBoot) -> None:
        """Run the kubelet of a Node that exists already and is ready."""
        self.cloud_nodes.register_instance(boot)
        self.kubelet.add_running(boot)

    def stop_node(self, node_name: str, *, terminated: bool = True) -> None:
        """Stop the kubelet of the node.

        If *terminated*, its instance is terminated and the cloud controller deletes the Node.
        """
        self.kubelet.stop(node_name)
        if terminated:
            self.cloud_nodes.deregister_instance(node_name)

    def run(self, duration: timedelta) -> None:
        """Advance the clock by *duration*."""
        self.clock.advance(duration)
