"""The cloud's node controller: it completes new nodes and deletes those whose instance is gone."""

from datetime import timedelta
from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.informer import Informer, Obj
from sim.cluster.controllers.queue import Queue
from sim.cluster.kubelet_boot import UNINITIALIZED, Boot

INITIALIZING: Final = timedelta(seconds=1)
DELETING: Final = timedelta(seconds=45)
"""A silent node is Unknown after 40 s; the controller looks every five."""


class CloudNodes:
    """The cloud controller manager of one cluster."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, *, deleting: timedelta = DELETING) -> None:
        """Follow *nodes* of *api*; a Node goes *deleting* after its instance."""
        self._api, self._nodes, self._after = api, nodes, deleting
        self._instances: dict[str, Boot] = {}
        self._queue: Queue[str] = Queue(clock, self._initialize, "cloud node", INITIALIZING)
        self._doomed: Queue[str] = Queue(clock, self._delete, "cloud node")
        nodes.on_change(self._on_node)

    def instance_started(self, boot: Boot) -> None:
        """There is an instance for the node of *boot*."""
        self._instances[boot.node_name] = boot
        self._doomed.forget(boot.node_name)

    def instance_gone(self, node_name: str, *, after: timedelta | None = None) -> None:
        """The instance of *node_name* is terminated: its Node goes *after* that (default: as is set here)."""
        self._instances.pop(node_name, None)
        self._doomed.add_after(node_name, self._after if after is None else after)

    def _on_node(self, event: str, _old: Obj | None, new: Obj) -> None:
        if event == "ADDED":
            self._queue.add(new["metadata"]["name"])

    def _initialize(self, name: str) -> None:
        node, boot = self._nodes.get(name), self._instances.get(name)
        if node is None or boot is None:
            return
        self._api.patch("nodes", name, completion(boot, node))

    def _delete(self, name: str) -> None:
        if self._nodes.get(name) is not None:
            self._api.delete("nodes", name)


def completion(boot: Boot, node: Obj) -> Obj:
    """Answer the change that completes *node*: what the cloud knows of *boot*, and no taint that says it does not.

    It names the version it was made from, so that nobody's other taint gets lost in it.
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
    taints = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != UNINITIALIZED["key"]]
    version = node["metadata"]["resourceVersion"]
    return {"metadata": {"labels": labels, "resourceVersion": version}, "spec": {"taints": taints}}
