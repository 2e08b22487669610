"""Machines that become Nodes of a real API server, and what is left of a kubelet there: kwok's part.

Three roles of an EKS cluster are played, each in its own time: the kubelet registers the Node (`register`: labels and
taints of its user data, not ready, unknown to the cloud); the cloud's node controller completes it (`complete`), and
deletes it when its instance is gone (`remove`); from `wake` to `silence` kwok makes the Node ready, renews its lease
and runs its pods. What a Node looks like is said where the embedded cluster says it.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.errors import Conflict, Fault, Gone
from shared.ports import Kube
from sim.clock import Clock
from sim.cluster.controllers.cloud_node import DELETING, INITIALIZING, completion
from sim.cluster.kubelet_boot import Boot, csi_node_of, node_of

KWOK: Final = "kwok.x-k8s.io/node"
"""The label by which kwok knows the Nodes whose kubelet it plays; the value is `fake`."""
RETRY: Final = timedelta(seconds=1)
_NODES: Final = "/api/v1/nodes"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"

Node = dict[str, Any]


def register(kube: Kube, boot: Boot, now: datetime) -> None:
    """Create the Node of *boot*, as its kubelet does: not ready, unknown to the cloud.

    Raises:
        Conflict: there is one of that name.
    """
    kube.create(_NODES, msgspec.json.encode({"apiVersion": "v1", "kind": "Node", **node_of(boot, now)}))


def complete(kube: Kube, boot: Boot) -> None:
    """Add to the Node of *boot* what the cloud knows of it, and take the cloud's taint away.

    Raises:
        Gone: there is none.
        Conflict: somebody else changed it meanwhile.
    """
    _patch(kube, boot.node_name, completion(boot, read(kube, boot.node_name)))


def wake(kube: Kube, name: str) -> None:
    """Let kwok play the kubelet of Node *name* from now on; of any Node, at any time.

    Raises:
        Gone: there is none.
    """
    _patch(kube, name, {"metadata": {"labels": {KWOK: "fake"}}})


def silence(kube: Kube, name: str) -> None:
    """Let the kubelet of Node *name* fall silent: no heartbeat, no progress of its pods; no Node is no error."""
    with contextlib.suppress(Gone):
        _patch(kube, name, {"metadata": {"labels": {KWOK: None}}})


def remove(kube: Kube, name: str, uid: str = "") -> None:
    """Delete Node *name*, and only the one with *uid* if that is given; no such Node is no error.

    Raises:
        Conflict: it has another uid.
    """
    body = msgspec.json.encode({"preconditions": {"uid": uid}}) if uid else b""
    with contextlib.suppress(Gone):
        kube.delete(f"{_NODES}/{name}", body)


def read(kube: Kube, name: str) -> Node:
    """Answer Node *name*.

    Raises:
        Gone: there is none.
    """
    node: Node = msgspec.json.decode(kube.read(f"{_NODES}/{name}"))
    return node


def _patch(kube: Kube, name: str, body: Node, subresource: str = "") -> None:
    kube.patch(f"{_NODES}/{name}{subresource}", msgspec.json.encode(body))


class ApiNodes:
    """Switches machines on and off in the cluster behind one API server, in their own time."""

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
        """Switch a machine on: its Node appears after `register_after`, and is ready `ready_after` later."""
        self._on[boot.node_name] = boot
        self._after(boot.register_after / self._haste, boot, self._register)

    def stop_node(self, name: str, *, gone: bool = True) -> None:
        """Let a machine fall silent; *gone*: its instance is terminated, so its Node is deleted after a while."""
        boot = self._on.pop(name, None)
        if boot is not None:
            self._off[name] = boot
            self._again(partial(self._let_go, boot))
        if gone and name in self._off:
            self._clock.call_after(self._deleting, partial(self._again, partial(self._delete, self._off.pop(name))))

    def _after(self, delay: timedelta, boot: Boot, step: Callable[[Boot], None]) -> None:
        """Take *step* of *boot* after *delay*, if the machine is still on by then."""
        self._clock.call_after(delay, partial(self._again, partial(self._if_on, boot, step)), boot.node_name)

    def _if_on(self, boot: Boot, step: Callable[[Boot], None]) -> None:
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
            register(self._kube, boot, self._clock.now())
        except Conflict:
            if not self._is_of(boot):
                raise
        self.on_change(boot.node_name, "joins the cluster")
        self._after(INITIALIZING, boot, partial(complete, self._kube))
        self._after(boot.ready_after / self._haste, boot, self._become_ready)
        if boot.late_resources:
            self._after(boot.late_after, boot, self._report_late)

    def _become_ready(self, boot: Boot) -> None:
        wake(self._kube, boot.node_name)
        if boot.volume_limit:
            document = csi_node_of(boot, read(self._kube, boot.node_name)["metadata"]["uid"])
            with contextlib.suppress(Conflict):
                self._kube.create(_CSI_NODES, msgspec.json.encode(document))

    def _report_late(self, boot: Boot) -> None:
        late = dict(boot.late_resources)
        _patch(self._kube, boot.node_name, {"status": {"capacity": late, "allocatable": late}}, "/status")

    def _let_go(self, boot: Boot) -> None:
        if self._is_of(boot):
            silence(self._kube, boot.node_name)

    def _delete(self, boot: Boot) -> None:
        """Delete the Node of *boot*; one of the same name belongs to another instance that has its address now."""
        node = read(self._kube, boot.node_name)
        if node["spec"].get("providerID") == boot.provider_id:
            remove(self._kube, boot.node_name, node["metadata"]["uid"])
            self.on_change(boot.node_name, "is deleted")

    def _is_of(self, boot: Boot) -> bool:
        try:
            return bool(read(self._kube, boot.node_name)["spec"].get("providerID") == boot.provider_id)
        except Gone:
            return False
