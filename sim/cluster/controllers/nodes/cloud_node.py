"""The node controller of the cloud provider: initializes new nodes and deletes the nodes of terminated instances."""

from datetime import timedelta
from typing import Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, Obj
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.kubelet.node_boot_data import UNINITIALIZED_TAINT, NodeBoot
from sim.time.virtual_clock import Clock

INITIALIZATION_DELAY: Final = timedelta(seconds=1)
NODE_DELETION_DELAY: Final = timedelta(seconds=45)
"""A silent node becomes Unknown after 40 s; the controller checks every 5 s."""


class CloudNodeController:
    """The cloud-controller-manager of one cluster."""

    def __init__(
        self, clock: Clock, api: ApiServer, nodes: Informer, *, deletion_delay: timedelta = NODE_DELETION_DELAY
    ) -> None:
        """Watch *nodes* of *api*; a Node is deleted *deletion_delay* after its instance is terminated."""
        self._api, self._nodes, self._deletion_delay = api, nodes, deletion_delay
        self._instances: dict[str, NodeBoot] = {}
        self._queue: WorkQueue[str] = WorkQueue(clock, self._initialize_node, "cloud node", INITIALIZATION_DELAY)
        self._deletion_queue: WorkQueue[str] = WorkQueue(clock, self._delete_node, "cloud node")
        nodes.add_event_handler(self._handle_node)

    def register_instance(self, boot: NodeBoot) -> None:
        """Register the instance of the node of *boot*."""
        self._instances[boot.node_name] = boot
        self._deletion_queue.discard(boot.node_name)

    def deregister_instance(self, node_name: str, *, delay: timedelta | None = None) -> None:
        """Delete the Node of a terminated instance after *delay* (default: the controller's deletion delay)."""
        self._instances.pop(node_name, None)
        self._deletion_queue.add_after(node_name, self._deletion_delay if delay is None else delay)

    def _handle_node(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event == "ADDED":
            self._queue.add(new["metadata"]["name"])

    def _initialize_node(self, name: str) -> None:
        node, boot = self._nodes.get(name), self._instances.get(name)
        if node is None or boot is None:
            return
        self._api.patch("nodes", name, build_initialization_patch(boot, node))

    def _delete_node(self, name: str) -> None:
        if self._nodes.get(name) is not None:
            self._api.delete("nodes", name)


def build_initialization_patch(boot: NodeBoot, node: Obj) -> Obj:
    """Return the patch that initializes *node*: labels from *boot*, without the uninitialized taint.

    It contains the resourceVersion it was computed from, so that a taint added by another writer is not lost.
    """
    labels = {
        **boot.cloud_labels,
        "beta.kubernetes.io/instance-type": boot.instance_type,
        "failure-domain.beta.kubernetes.io/region": boot.region,
        "failure-domain.beta.kubernetes.io/zone": boot.zone,
        "node.kubernetes.io/instance-type": boot.instance_type,
        "topology.kubernetes.io/region": boot.region,
        "topology.kubernetes.io/zone": boot.zone,
    }
    if boot.zone_id:
        labels["topology.k8s.aws/zone-id"] = boot.zone_id
    taints = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != UNINITIALIZED_TAINT["key"]]
    version = node["metadata"]["resourceVersion"]
    return {"metadata": {"labels": labels, "resourceVersion": version}, "spec": {"taints": taints}}
