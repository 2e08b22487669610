"""Nodes of a real API server without real instances; kwok simulates the kubelet after registration.

Three roles of an EKS cluster are simulated, each with its own delays: the kubelet registers the Node (`register_node`:
labels and taints of its user data, not ready, unknown to the cloud); the cloud's node controller initializes it
(`initialize_node`), and deletes it when its instance is gone (`delete_node`); between `start_kwok` and `stop_kwok`,
kwok makes the Node ready, renews its lease and runs its pods. The contents of a Node are those of the embedded cluster.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.errors import Conflict, Fault, NotFound
from shared.ports.kubernetes import Kube
from sim.cluster.controllers.nodes.cloud_node import (
    INITIALIZATION_DELAY,
    NODE_DELETION_DELAY,
    build_initialization_patch,
)
from sim.cluster.kubelet.node_boot_data import NodeBoot, build_csi_node, build_node
from sim.time.virtual_clock import Clock

KWOK_LABEL: Final = "kwok.x-k8s.io/node"
"""The label that selects the Nodes whose kubelet kwok simulates; its value is `fake`."""
RETRY_INTERVAL: Final = timedelta(seconds=1)
_NODES_PATH: Final = "/api/v1/nodes"
_CSI_NODES_PATH: Final = "/apis/storage.k8s.io/v1/csinodes"

Node = dict[str, Any]


def register_node(kube: Kube, boot: NodeBoot, now: datetime) -> None:
    """Create the Node of *boot* as its kubelet does: not ready, unknown to the cloud.

    Raises:
        Conflict: a Node of that name exists.
    """
    kube.create(_NODES_PATH, msgspec.json.encode({"apiVersion": "v1", "kind": "Node", **build_node(boot, now)}))


def initialize_node(kube: Kube, boot: NodeBoot) -> None:
    """Add the cloud's labels to the Node of *boot*, and remove the uninitialized taint.

    Raises:
        NotFound: the Node does not exist.
        Conflict: another client has changed it in the meantime.
    """
    _patch_node(kube, boot.node_name, build_initialization_patch(boot, read_node(kube, boot.node_name)))


def start_kwok(kube: Kube, name: str) -> None:
    """Let kwok simulate the kubelet of Node *name* from now on; works for every Node, at any time.

    Raises:
        NotFound: the Node does not exist.
    """
    _patch_node(kube, name, {"metadata": {"labels": {KWOK_LABEL: "fake"}}})


def stop_kwok(kube: Kube, name: str) -> None:
    """Stop the kubelet of Node *name*: no heartbeat, no progress of its pods; a missing Node is no error."""
    with contextlib.suppress(NotFound):
        _patch_node(kube, name, {"metadata": {"labels": {KWOK_LABEL: None}}})


def delete_node(kube: Kube, name: str, uid: str = "") -> None:
    """Delete Node *name*, if *uid* is set only with that uid; a missing Node is no error.

    Raises:
        Conflict: it has another uid.
    """
    body = msgspec.json.encode({"preconditions": {"uid": uid}}) if uid else b""
    with contextlib.suppress(NotFound):
        kube.delete(f"{_NODES_PATH}/{name}", body)


def read_node(kube: Kube, name: str) -> Node:
    """Return Node *name*.

    Raises:
        NotFound: the Node does not exist.
    """
    node: Node = msgspec.json.decode(kube.read(f"{_NODES_PATH}/{name}"))
    return node


def _patch_node(kube: Kube, name: str, body: Node, subresource: str = "") -> None:
    kube.patch(f"{_NODES_PATH}/{name}{subresource}", msgspec.json.encode(body))


class ExternalNodes:
    """Creates and deletes the nodes of simulated instances in the cluster of one API server."""

    def __init__(
        self, clock: Clock, kube: Kube, *, deletion_delay: timedelta = NODE_DELETION_DELAY, speed: float = 1.0
    ) -> None:
        """Write through *kube*, which needs permission to write Nodes.

        A Node is deleted *deletion_delay* after its instance; instances boot *speed* times as fast as real ones.
        """
        self.on_change: Callable[[str, str], None] = lambda _name, _change: None
        """Called with the name of a Node and a description of its change, for display."""
        self._clock, self._kube, self._deletion_delay, self._speed = clock, kube, deletion_delay, speed
        self._running_boots: dict[str, NodeBoot] = {}
        self._stopped_boots: dict[str, NodeBoot] = {}

    def start_node(self, boot: NodeBoot) -> None:
        """Boot an instance: its Node appears after `register_after`, and is ready `ready_after` later."""
        self._running_boots[boot.node_name] = boot
        self._schedule_step(boot.register_after / self._speed, boot, self._register)

    def stop_node(self, node_name: str, *, terminated: bool = True) -> None:
        """Stop the kubelet of a node.

        *terminated*: its instance is terminated, so its Node is deleted after a delay.
        """
        boot = self._running_boots.pop(node_name, None)
        if boot is not None:
            self._stopped_boots[node_name] = boot
            self._retry_until_done(partial(self._stop_kubelet, boot))
        if terminated and node_name in self._stopped_boots:
            delete = partial(self._delete, self._stopped_boots.pop(node_name))
            self._clock.call_after(self._deletion_delay, partial(self._retry_until_done, delete))

    def _schedule_step(self, delay: timedelta, boot: NodeBoot, step: Callable[[NodeBoot], None]) -> None:
        """Run *step* for *boot* after *delay*, if the instance still runs then."""
        attempt = partial(self._run_step_if_running, boot, step)
        self._clock.call_after(delay, partial(self._retry_until_done, attempt), boot.node_name)

    def _run_step_if_running(self, boot: NodeBoot, step: Callable[[NodeBoot], None]) -> None:
        if self._running_boots.get(boot.node_name) is boot:
            step(boot)

    def _retry_until_done(self, attempt: Callable[[], None]) -> None:
        """Call *attempt* until the API server accepts it; if the object is gone, stop."""
        try:
            attempt()
        except NotFound:
            return
        except Fault:
            self._clock.call_after(RETRY_INTERVAL, partial(self._retry_until_done, attempt))

    def _register(self, boot: NodeBoot) -> None:
        try:
            register_node(self._kube, boot, self._clock.get_time())
        except Conflict:
            if not self._owns_node(boot):
                raise
        self.on_change(boot.node_name, "joins the cluster")
        self._schedule_step(INITIALIZATION_DELAY, boot, partial(initialize_node, self._kube))
        self._schedule_step(boot.ready_after / self._speed, boot, self._report_ready)
        if boot.device_resources:
            self._schedule_step(boot.device_plugin_delay, boot, self._report_device_plugins)

    def _report_ready(self, boot: NodeBoot) -> None:
        start_kwok(self._kube, boot.node_name)
        if boot.volume_limit:
            csi_node = build_csi_node(boot, read_node(self._kube, boot.node_name)["metadata"]["uid"])
            with contextlib.suppress(Conflict):
                self._kube.create(_CSI_NODES_PATH, msgspec.json.encode(csi_node))

    def _report_device_plugins(self, boot: NodeBoot) -> None:
        device_resources = dict(boot.device_resources)
        status = {"capacity": device_resources, "allocatable": device_resources}
        _patch_node(self._kube, boot.node_name, {"status": status}, "/status")

    def _stop_kubelet(self, boot: NodeBoot) -> None:
        if self._owns_node(boot):
            stop_kwok(self._kube, boot.node_name)

    def _delete(self, boot: NodeBoot) -> None:
        """Delete the Node of *boot*.

        Unless a Node of the same name belongs to a newer instance with the same address.
        """
        node = read_node(self._kube, boot.node_name)
        if node["spec"].get("providerID") == boot.provider_id:
            delete_node(self._kube, boot.node_name, node["metadata"]["uid"])
            self.on_change(boot.node_name, "is deleted")

    def _owns_node(self, boot: NodeBoot) -> bool:
        try:
            return bool(read_node(self._kube, boot.node_name)["spec"].get("providerID") == boot.provider_id)
        except NotFound:
            return False
