"""Attaching volumes to nodes: one VolumeAttachment per volume and node, while a pod on the node uses the volume."""

import hashlib
from datetime import timedelta
from typing import Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, Obj, index_by_node
from sim.cluster.controller_runtime.object_conditions import is_terminal
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.kube_scheduler.volume_binding import VolumeFilter
from sim.time.virtual_clock import Clock

RESOURCE: Final = "volumeattachments.storage.k8s.io"
ATTACH_DELAY: Final = timedelta(seconds=2)
DETACH_DELAY: Final = timedelta(seconds=6)


class AttachDetachController:
    """The attach-detach controller.

    Creates one VolumeAttachment per volume and node, and deletes it some seconds after its last pod is gone.
    """

    def __init__(self, clock: Clock, api: ApiServer, pods: Informer, detach_delay: timedelta = DETACH_DELAY) -> None:
        """Watch *pods* of *api*; detaching a volume takes *detach_delay*."""
        self._api = api
        self._volumes = VolumeFilter(api)
        self._pods_by_node = Informer(api, "pods", index_by_node)
        self._attachments = Informer(api, RESOURCE)
        self._attach_queue: WorkQueue[str] = WorkQueue(clock, self._attach_volumes, "attacher")
        self._attached_queue: WorkQueue[str] = WorkQueue(clock, self._mark_attached, "attached", ATTACH_DELAY)
        self.detach_delay = detach_delay
        """The current duration of detaching a volume."""
        self._detach_queue: WorkQueue[str] = WorkQueue(clock, self._detach_volumes, "detacher")
        pods.add_event_handler(self._handle_pod)

    def _handle_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        if not new["spec"].get("nodeName") or not new["spec"].get("volumes"):
            return
        node = new["spec"]["nodeName"]
        if event == "DELETED" or is_terminal(new):
            self._detach_queue.add_after(node, self.detach_delay)
        elif old is None or not old["spec"].get("nodeName"):
            self._attach_queue.add(node)

    def _build_desired_attachments(self, node: str) -> dict[str, Obj]:
        """Return the attachments that the pods on *node* need, by name."""
        attachments = {}
        for pod in self._pods_by_node.list_by_index(node):
            for claim_name in _list_claim_names(pod) if not is_terminal(pod) else ():
                claim = self._volumes.claims.get(claim_name, pod["metadata"]["namespace"]) or {"spec": {}}
                volume = self._volumes.volumes.get(claim["spec"].get("volumeName") or "")
                csi = None if volume is None else volume["spec"].get("csi")
                if volume is not None and csi:
                    attachment_key = f"{csi.get('volumeHandle', '')}{csi['driver']}{node}"
                    name = f"csi-{hashlib.sha256(attachment_key.encode()).hexdigest()}"
                    source = {"persistentVolumeName": volume["metadata"]["name"]}
                    attachments[name] = {"attacher": csi["driver"], "nodeName": node, "source": source}
        return attachments

    def _attach_volumes(self, node: str) -> None:
        for name, spec in sorted(self._build_desired_attachments(node).items()):
            if self._attachments.get(name) is None:
                self._api.create(RESOURCE, {"metadata": {"name": name}, "spec": spec})
                self._attached_queue.add(name)

    def _mark_attached(self, name: str) -> None:
        if self._attachments.get(name) is not None:
            self._api.patch(RESOURCE, name, {"status": {"attached": True}}, "", "status")

    def _detach_volumes(self, node: str) -> None:
        desired_attachments = self._build_desired_attachments(node)
        for attachment in self._attachments.list_all():
            name = attachment["metadata"]["name"]
            if attachment["spec"]["nodeName"] == node and name not in desired_attachments:
                self._api.delete(RESOURCE, name)


def _list_claim_names(pod: Obj) -> list[str]:
    names = []
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names
