"""Claims get volumes: the binder, and a provisioner of zonal disks."""

import hashlib
from datetime import timedelta
from typing import Any, Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.informer import Informer, Key, Obj, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.scheduler_match import ZONE
from sim.cluster.scheduler_nodes import NodeInfo
from sim.cluster.scheduler_volumes import SELECTED_NODE, Volumes

PROVISIONING: Final = timedelta(seconds=2)
_BOUND: Final = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class VolumeBinder:
    """The persistent volume controller together with a CSI provisioner."""

    def __init__(self, clock: Clock, api: ApiServer, nodes: Informer, pods: Informer) -> None:
        """Follow *nodes* and *pods* of *api*."""
        self._api, self._nodes, self._pods = api, nodes, pods
        self._known = Volumes(api)
        self._queue: Queue[Key] = Queue(clock, self._sync, "volume binder")
        self._slow: Queue[Key] = Queue(clock, self._provision, "provisioner", PROVISIONING)
        self._known.claims.on_change(lambda event, _old, new: self._on_claim(event, new))
        self._known.volumes.on_change(lambda _event, _old, _new: self._look_at_all())
        self._known.classes.on_change(lambda _event, _old, _new: self._look_at_all())
        pods.on_change(self._on_pod)
        self._look_at_all()

    def _look_at_all(self) -> None:
        for claim in self._known.claims.all():
            if (claim.get("status") or {}).get("phase") != "Bound":
                self._queue.add(key_of(claim))

    def _on_claim(self, event: str, new: Obj) -> None:
        if event == "DELETED":
            self._release(new)
        else:
            self._queue.add(key_of(new))

    def _on_pod(self, event: str, _old: Obj | None, new: Obj) -> None:
        """Make the claims of ephemeral volumes."""
        if event != "ADDED":
            return
        for volume in new["spec"].get("volumes") or []:
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = f"{new['metadata']['name']}-{volume['name']}"
            namespace = new["metadata"]["namespace"]
            if template and self._known.claims.get(name, namespace) is None:
                uid = new["metadata"]["uid"]
                owner = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": new["metadata"]["name"],
                    "uid": uid,
                    "controller": True,
                }
                metadata = {**(template.get("metadata") or {}), "name": name, "ownerReferences": [owner]}
                self._api.create("persistentvolumeclaims", {"metadata": metadata, "spec": template["spec"]}, namespace)

    def _sync(self, key: Key) -> None:
        claim = self._known.claims.get(key[1], key[0])
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return
        if claim["spec"].get("volumeName"):
            self._bind(claim, claim["spec"]["volumeName"])
            return
        node = self._consumer(claim)
        if node is None and self._known.waits_for_consumer(claim):
            return
        existing = self._known.existing_volume(claim, node or NodeInfo(""))
        if existing is not None:
            self._bind(claim, existing["metadata"]["name"])
        elif self._provisioner(claim) not in {"", _NO_PROVISIONER}:
            self._slow.add(key)

    def _consumer(self, claim: Obj) -> NodeInfo | None:
        """Answer the node that the scheduler selected."""
        name = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        node = self._nodes.get(name) if name else None
        if node is None:
            return None
        info = NodeInfo(str(name))
        info.read(node)
        return info

    def _provisioner(self, claim: Obj) -> str:
        found = self._known.storage_class(claim)
        return "" if found is None else str(found.get("provisioner", ""))

    def _bind(self, claim: Obj, name: str) -> None:
        volume = self._known.volumes.get(name)
        if volume is None:
            return
        namespace, claim_name = key_of(claim)
        uid = claim["metadata"]["uid"]
        held = (volume["spec"].get("claimRef") or {}).get("uid", uid)
        if held != uid:
            return
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": claim_name,
            "uid": uid,
        }
        self._api.patch("persistentvolumes", name, {"spec": {"claimRef": reference}})
        self._api.patch("persistentvolumes", name, {"status": {"phase": "Bound"}}, "", "status")
        wanted = {"spec": {"volumeName": name}, "metadata": {"annotations": {_BOUND: "yes"}}}
        self._api.patch("persistentvolumeclaims", claim_name, wanted, namespace)
        spec = volume["spec"]
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or [],
            "capacity": spec.get("capacity") or {},
        }
        self._api.patch("persistentvolumeclaims", claim_name, {"status": status}, namespace, "status")

    def _provision(self, key: Key) -> None:
        claim = self._known.claims.get(key[1], key[0])
        if claim is None or claim["spec"].get("volumeName"):
            return
        if self._known.waits_for_consumer(claim) and self._consumer(claim) is None:
            return
        name = f"pvc-{claim['metadata']['uid']}"
        if self._known.volumes.get(name) is None:
            storage_class = self._known.storage_class(claim) or {}
            self._api.create(
                "persistentvolumes", new_volume(name, claim, storage_class, self._zone(claim, storage_class))
            )
        self._bind(claim, name)

    def _zone(self, claim: Obj, storage_class: Obj) -> str:
        """Answer the zone of the selected node; without one, the allowed (or known) zone that the uid falls on."""
        node = self._consumer(claim)
        if node is not None:
            return node.labels.get(ZONE, "")
        allowed = [
            value
            for term in storage_class.get("allowedTopologies") or []
            for entry in term.get("matchLabelExpressions") or []
            for value in (entry["values"] if entry["key"] == ZONE else ())
        ]
        zones = sorted(
            set(allowed) or {(n["metadata"].get("labels") or {}).get(ZONE, "") for n in self._nodes.all()} - {""}
        )
        digest = hashlib.blake2b(claim["metadata"]["uid"].encode(), digest_size=4).digest()
        return zones[int.from_bytes(digest) % len(zones)] if zones else ""

    def _release(self, claim: Obj) -> None:
        """Its claim is gone: a provisioned volume goes too, unless it is to be retained."""
        volume = self._known.volumes.get(claim["spec"].get("volumeName") or "")
        if volume is None:
            return
        name = volume["metadata"]["name"]
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._api.delete("persistentvolumes", name)
        else:
            self._api.patch("persistentvolumes", name, {"status": {"phase": "Released"}}, "", "status")


def new_volume(name: str, claim: Obj, storage_class: Obj, zone: str) -> Obj:
    """Answer a disk for *claim* that can be used in *zone* only (anywhere if empty)."""
    namespace, claim_name = key_of(claim)
    driver = storage_class.get("provisioner", "")
    handle = "vol-" + hashlib.blake2b(name.encode(), digest_size=8).hexdigest() + "0"
    spec: dict[str, Any] = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": {"storage": ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": claim_name,
            "uid": claim["metadata"]["uid"],
        },
        "csi": {"driver": driver, "volumeHandle": handle},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": claim["spec"].get("storageClassName", ""),
    }
    if zone:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}}, "spec": spec}
