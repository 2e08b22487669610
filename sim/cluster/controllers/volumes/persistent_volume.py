"""Binding of claims to volumes: the persistent volume controller, and a provisioner of zonal disks."""

import hashlib
from datetime import timedelta
from typing import Any, Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.kube_scheduler.node_cache import NodeInfo
from sim.cluster.kube_scheduler.volume_binding import SELECTED_NODE_ANNOTATION, VolumeFilter
from sim.cluster.matching import ZONE_LABEL
from sim.time.virtual_clock import Clock

PROVISION_DELAY: Final = timedelta(seconds=2)
_BIND_COMPLETED_ANNOTATION: Final = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class PersistentVolumeController:
    """The persistent volume controller together with a CSI provisioner."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, pods: Informer) -> None:
        """Watch *nodes* and *pods* of *api*."""
        self._api, self._nodes, self._pods = api, nodes, pods
        self._volumes = VolumeFilter(api)
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "volume binder")
        self._provision_queue: WorkQueue[NamespacedName] = WorkQueue(
            clock, self._provision_volume, "provisioner", PROVISION_DELAY
        )
        self._volumes.claims.add_event_handler(lambda event, _old, new: self._handle_claim(event, new))
        self._volumes.volumes.add_event_handler(lambda _event, _old, _new: self._enqueue_unbound_claims())
        self._volumes.storage_classes.add_event_handler(lambda _event, _old, _new: self._enqueue_unbound_claims())
        pods.add_event_handler(self._handle_pod)
        self._enqueue_unbound_claims()

    def _enqueue_unbound_claims(self) -> None:
        for claim in self._volumes.claims.list_all():
            if (claim.get("status") or {}).get("phase") != "Bound":
                self._queue.add(get_object_key(claim))

    def _handle_claim(self, event: str, new: Obj) -> None:
        if event == "DELETED":
            self._release_volume(new)
        else:
            self._queue.add(get_object_key(new))

    def _handle_pod(self, event: str, _old: Obj | None, new: Obj) -> None:
        """Create the claims of ephemeral volumes."""
        if event != "ADDED":
            return
        for volume in new["spec"].get("volumes") or []:
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = f"{new['metadata']['name']}-{volume['name']}"
            namespace = new["metadata"]["namespace"]
            if template and self._volumes.claims.get(name, namespace) is None:
                reference = {key: new["metadata"][key] for key in ("name", "uid")}
                owner = {"apiVersion": "v1", "kind": "Pod", **reference, "controller": True}
                metadata = {**(template.get("metadata") or {}), "name": name, "ownerReferences": [owner]}
                self._api.create("persistentvolumeclaims", {"metadata": metadata, "spec": template["spec"]}, namespace)

    def _sync(self, key: NamespacedName) -> None:
        claim = self._volumes.claims.get(key[1], key[0])
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return
        if claim["spec"].get("volumeName"):
            self._bind_claim(claim, claim["spec"]["volumeName"])
            return
        node = self._find_selected_node(claim)
        if node is None and self._volumes.is_wait_for_first_consumer(claim):
            return
        existing = self._volumes.find_available_volume(claim, node or NodeInfo(""))
        if existing is not None:
            self._bind_claim(claim, existing["metadata"]["name"])
        elif self._get_provisioner(claim) not in {"", _NO_PROVISIONER}:
            self._provision_queue.add(key)

    def _find_selected_node(self, claim: Obj) -> NodeInfo | None:
        """Return the node that the scheduler selected, None if there is none."""
        name = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE_ANNOTATION)
        node = self._nodes.get(name) if name else None
        if node is None:
            return None
        info = NodeInfo(str(name))
        info.read(node)
        return info

    def _get_provisioner(self, claim: Obj) -> str:
        storage_class = self._volumes.find_storage_class(claim)
        return "" if storage_class is None else str(storage_class.get("provisioner", ""))

    def _bind_claim(self, claim: Obj, name: str) -> None:
        volume = self._volumes.volumes.get(name)
        if volume is None:
            return
        namespace, claim_name = get_object_key(claim)
        uid = claim["metadata"]["uid"]
        bound_uid = (volume["spec"].get("claimRef") or {}).get("uid", uid)
        if bound_uid != uid:
            return
        self._api.patch("persistentvolumes", name, {"spec": {"claimRef": _build_claim_reference(claim)}})
        self._api.patch("persistentvolumes", name, {"status": {"phase": "Bound"}}, "", "status")
        claim_patch = {"spec": {"volumeName": name}, "metadata": {"annotations": {_BIND_COMPLETED_ANNOTATION: "yes"}}}
        self._api.patch("persistentvolumeclaims", claim_name, claim_patch, namespace)
        spec = volume["spec"]
        capacity = spec.get("capacity") or {}
        status = {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": capacity}
        self._api.patch("persistentvolumeclaims", claim_name, {"status": status}, namespace, "status")

    def _provision_volume(self, key: NamespacedName) -> None:
        claim = self._volumes.claims.get(key[1], key[0])
        if claim is None or claim["spec"].get("volumeName"):
            return
        if self._volumes.is_wait_for_first_consumer(claim) and self._find_selected_node(claim) is None:
            return
        name = f"pvc-{claim['metadata']['uid']}"
        if self._volumes.volumes.get(name) is None:
            storage_class = self._volumes.find_storage_class(claim) or {}
            zone = self._choose_zone(claim, storage_class)
            self._api.create("persistentvolumes", build_persistent_volume(name, claim, storage_class, zone))
        self._bind_claim(claim, name)

    def _choose_zone(self, claim: Obj, storage_class: Obj) -> str:
        """Return the zone of the selected node.

        Without a selected node, a hash of the uid selects one of the allowed zones, or of the zones of the existing
        nodes.
        """
        node = self._find_selected_node(claim)
        if node is not None:
            return node.labels.get(ZONE_LABEL, "")
        allowed_zones = [
            value
            for term in storage_class.get("allowedTopologies") or []
            for entry in term.get("matchLabelExpressions") or []
            for value in (entry["values"] if entry["key"] == ZONE_LABEL else ())
        ]
        zones = sorted(
            set(allowed_zones)
            or {(n["metadata"].get("labels") or {}).get(ZONE_LABEL, "") for n in self._nodes.list_all()} - {""}
        )
        digest = hashlib.blake2b(claim["metadata"]["uid"].encode(), digest_size=4).digest()
        return zones[int.from_bytes(digest) % len(zones)] if zones else ""

    def _release_volume(self, claim: Obj) -> None:
        """Delete the provisioned volume of a deleted claim, unless the reclaim policy retains it."""
        volume = self._volumes.volumes.get(claim["spec"].get("volumeName") or "")
        if volume is None:
            return
        name = volume["metadata"]["name"]
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._api.delete("persistentvolumes", name)
        else:
            self._api.patch("persistentvolumes", name, {"status": {"phase": "Released"}}, "", "status")


def build_persistent_volume(name: str, claim: Obj, storage_class: Obj, zone: str) -> Obj:
    """Return a disk for *claim* that can be used in *zone* only (anywhere if empty)."""
    driver = storage_class.get("provisioner", "")
    handle = "vol-" + hashlib.blake2b(name.encode(), digest_size=8).hexdigest() + "0"
    spec: dict[str, Any] = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": {"storage": ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
        "claimRef": _build_claim_reference(claim),
        "csi": {"driver": driver, "volumeHandle": handle},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": claim["spec"].get("storageClassName", ""),
    }
    if zone:
        term = {"matchExpressions": [{"key": ZONE_LABEL, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}}, "spec": spec}


def _build_claim_reference(claim: Obj) -> Obj:
    reference = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}
