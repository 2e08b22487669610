"""Machines that become Nodes of a real API server: they register there, and kwok plays what is left of a kubelet.

Two roles of an EKS cluster are played here, each in its own time: the kubelet registers the Node (labels and taints of
its user data, not ready, unknown to the cloud), and the cloud's node controller completes it, and deletes it when its
instance is gone. kwok makes the Node ready, keeps it alive and runs its pods.

Known difference: kwok takes charge only of Nodes that have its annotation when they are created, and at once. So a
machine registers when its network is up, `register_after` and `ready_after` together, and is ready a moment later.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.errors import Conflict, Fault, Gone
from shared.ports import Kube
from sim.clock import Clock
from sim.cluster.controllers.cloud_node import DELETING, INITIALIZING
from sim.cluster.kubelet_boot import UNINITIALIZED, Boot, node_of

KWOK: Final = "kwok.x-k8s.io/node"
"""The annotation by which kwok knows its nodes, in whose creation it must be; the value is `fake`."""
RETRY: Final = timedelta(seconds=1)
_NODES: Final = "/api/v1/nodes"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"

Step = Callable[[Boot], None]


class ApiNodes:
    """Switches machines on and off in the cluster behind one API server."""

    def __init__(self, clock: Clock, kube: Kube, *, deleting: timedelta = DELETING, haste: float = 1.0) -> None:
        """Write through *kube*, as somebody who may write Nodes.

        A Node goes *deleting* after its instance; machines boot *haste* times as fast as real ones.
        """
        self.on_change: Callable[[str, str], None] = lambda _name, _what: None
        """Hears a Node's name and what became of it, for people."""
        self._clock, self._kube, self._deleting, self._haste = clock, kube, deleting, haste
        self._on: dict[str, Boot] = {}
        self._off: dict[str, Boot] = {}

    def start_node(self, boot: Boot) -> None:
        """Switch a machine on: its Node appears after `register_after` and `ready_after`, and is ready then."""
        self._on[boot.node_name] = boot
        self._after((boot.register_after + boot.ready_after) / self._haste, boot, self._register)

    def stop_node(self, name: str, *, gone: bool = True) -> None:
        """Let a machine fall silent; *gone*: its instance is terminated, so its Node is deleted after a while."""
        boot = self._on.pop(name, None)
        if boot is not None:
            self._off[name] = boot
            self._again(partial(self._let_go, boot))
        if gone and name in self._off:
            self._clock.call_after(self._deleting, partial(self._again, partial(self._delete, self._off.pop(name))))

    def _after(self, delay: timedelta, boot: Boot, step: Step) -> None:
        """Take *step* of *boot* after *delay*, if the machine is still on by then."""
        self._clock.call_after(delay, partial(self._again, partial(self._if_on, boot, step)), boot.node_name)

    def _if_on(self, boot: Boot, step: Step) -> None:
        if self._on.get(boot.node_name) is boot:
            step(boot)

    def _again(self, attempt: Callable[[], None]) -> None:
        """Make *attempt* until the API server lets us; what is gone needs nothing more."""
        try:
            attempt()
        except Gone:
            return
        except Fault:
            self._clock.call_after(RETRY, partial(self._again, attempt))

    def _register(self, boot: Boot) -> None:
        try:
            self._kube.create(_NODES, msgspec.json.encode(_document(boot, self._clock)))
        except Conflict:
            if not self._is_of(boot):
                raise
        self.on_change(boot.node_name, "joins the cluster")
        self._after(INITIALIZING, boot, self._complete)
        if boot.volume_limit:
            self._after(INITIALIZING, boot, self._report_driver)
        if boot.late_resources:
            self._after(boot.late_after, boot, self._report_late)

    def _complete(self, boot: Boot) -> None:
        """Add what the cloud knows and take its taint away, in one write that nobody's other taint gets lost in."""
        node = self._read(boot)
        labels = {
            **boot.cloud_labels,
            "beta.kubernetes.io/instance-type": boot.instance_type,
            "node.kubernetes.io/instance-type": boot.instance_type,
            "topology.kubernetes.io/region": boot.region,
            "topology.kubernetes.io/zone": boot.zone,
        }
        if boot.zone_id:
            labels["topology.k8s.aws/zone-id"] = boot.zone_id
        taints = [taint for taint in node["spec"].get("taints") or [] if taint["key"] != UNINITIALIZED["key"]]
        metadata = {"labels": labels, "resourceVersion": node["metadata"]["resourceVersion"]}
        self._patch(boot.node_name, {"metadata": metadata, "spec": {"taints": taints}})

    def _report_driver(self, boot: Boot) -> None:
        """Say how many volumes can be attached, as the CSI driver does."""
        uid = self._read(boot)["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": boot.node_name, "uid": uid}
        driver = {"name": "ebs.csi.aws.com", "nodeID": boot.provider_id.rpartition("/")[2], "topologyKeys": []}
        document = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": boot.node_name, "ownerReferences": [owner]},
            "spec": {"drivers": [driver | {"allocatable": {"count": boot.volume_limit}}]},
        }
        try:
            self._kube.create(_CSI_NODES, msgspec.json.encode(document))
        except Conflict:
            return

    def _report_late(self, boot: Boot) -> None:
        late = dict(boot.late_resources)
        self._patch(boot.node_name, {"status": {"capacity": late, "allocatable": late}}, "/status")

    def _let_go(self, boot: Boot) -> None:
        if self._is_of(boot):
            self._patch(boot.node_name, {"metadata": {"annotations": {KWOK: None}}})

    def _delete(self, boot: Boot) -> None:
        """Delete the Node of *boot*; one of the same name belongs to another instance that has its address now."""
        node = self._read(boot)
        if node["spec"].get("providerID") == boot.provider_id:
            uid = node["metadata"]["uid"]
            self._kube.delete(f"{_NODES}/{boot.node_name}", msgspec.json.encode({"preconditions": {"uid": uid}}))
            self.on_change(boot.node_name, "is deleted")

    def _is_of(self, boot: Boot) -> bool:
        try:
            provider_id: str = self._read(boot)["spec"].get("providerID", "")
        except Gone:
            return False
        return provider_id == boot.provider_id

    def _read(self, boot: Boot) -> dict[str, Any]:
        node: dict[str, Any] = msgspec.json.decode(self._kube.read(f"{_NODES}/{boot.node_name}"))
        return node

    def _patch(self, name: str, body: dict[str, Any], subresource: str = "") -> None:
        self._kube.patch(f"{_NODES}/{name}{subresource}", msgspec.json.encode(body))


def _document(boot: Boot, clock: Clock) -> dict[str, Any]:
    node = node_of(boot, clock.now())
    metadata = node["metadata"] | {"annotations": {KWOK: "fake"}}
    return {"apiVersion": "v1", "kind": "Node", **node, "metadata": metadata}
