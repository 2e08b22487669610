"""Volumes are attached to nodes: one VolumeAttachment per volume and node, as long as a pod there uses it."""

import hashlib
from datetime import timedelta
from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import is_terminal
from sim.cluster.controllers.informer import Informer, Obj, by_node
from sim.cluster.controllers.queue import Queue
from sim.cluster.scheduler_volumes import Volumes

RESOURCE: Final = "volumeattachments.storage.k8s.io"
ATTACHING: Final = timedelta(seconds=2)
DETACHING: Final = timedelta(seconds=6)


class VolumeAttacher:
    """The attach-detach controller: one VolumeAttachment per volume and node, gone some seconds after its last pod."""

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer, detaching: timedelta = DETACHING) -> None:
        """Follow *pods* of *api*; *detaching* is what it takes to detach."""
        self._api = api
        self._known = Volumes(api)
        self._here = Informer(api, "pods", by_node)
        self._attachments = Informer(api, RESOURCE)
        self._queue: Queue[str] = Queue(clock, self._attach, "attacher")
        self._marks: Queue[str] = Queue(clock, self._mark, "attached", ATTACHING)
        self.detaching = detaching
        """What it takes at present."""
        self._detach_queue: Queue[str] = Queue(clock, self._detach, "detacher")
        pods.on_change(self._on_pod)

    def _on_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        if not new["spec"].get("nodeName") or not new["spec"].get("volumes"):
            return
        node = new["spec"]["nodeName"]
        if event == "DELETED" or is_terminal(new):
            self._detach_queue.add_after(node, self.detaching)
        elif old is None or not old["spec"].get("nodeName"):
            self._queue.add(node)

    def _wanted(self, node: str) -> dict[str, Obj]:
        """Answer the attachments that the pods on *node* need, by name."""
        wanted = {}
        for pod in self._here.of(node):
            for claim_name in _claim_names(pod) if not is_terminal(pod) else ():
                claim = self._known.claims.get(claim_name, pod["metadata"]["namespace"]) or {"spec": {}}
                volume = self._known.volumes.get(claim["spec"].get("volumeName") or "")
                csi = None if volume is None else volume["spec"].get("csi")
                if volume is not None and csi:
                    text = f"{csi.get('volumeHandle', '')}{csi['driver']}{node}"
                    name = f"csi-{hashlib.sha256(text.encode()).hexdigest()}"
                    source = {"persistentVolumeName": volume["metadata"]["name"]}
                    wanted[name] = {"attacher": csi["driver"], "nodeName": node, "source": source}
        return wanted

    def _attach(self, node: str) -> None:
        for name, spec in sorted(self._wanted(node).items()):
            if self._attachments.get(name) is None:
                self._api.create(RESOURCE, {"metadata": {"name": name}, "spec": spec})
                self._marks.add(name)

    def _mark(self, name: str) -> None:
        if self._attachments.get(name) is not None:
            self._api.patch(RESOURCE, name, {"status": {"attached": True}}, "", "status")

    def _detach(self, node: str) -> None:
        wanted = self._wanted(node)
        for attachment in self._attachments.all():
            name = attachment["metadata"]["name"]
            if attachment["spec"]["nodeName"] == node and name not in wanted:
                self._api.delete(RESOURCE, name)


def _claim_names(pod: Obj) -> list[str]:
    names = []
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names
