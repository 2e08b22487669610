"""VolumeBinding and NodeVolumeLimits filters: which nodes a pod's claims allow, and which claims must be bound."""

from typing import Final

import msgspec

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer
from sim.cluster.kube_scheduler.node_cache import NodeInfo
from sim.cluster.kube_scheduler.node_filters import FilterRejection, build_rejection
from sim.cluster.kube_scheduler.pod_shape import SchedulingShape, parse_amount
from sim.cluster.matching import Obj, compile_node_selector

SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"
_VOLUME_AFFINITY_REJECTION: Final = build_rejection(
    "node(s) didn't match PersistentVolume's node affinity", unresolvable=True
)
_NO_VOLUME_REJECTION: Final = build_rejection(
    "node(s) didn't find available persistent volumes to bind", unresolvable=True
)
_VOLUME_LIMIT_REJECTION: Final = build_rejection("node(s) exceed max volume count")


class PodVolumeClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of one pod: bound volumes, claims that wait for their first consumer, or a problem."""

    problem: str = ""
    bound_volumes: tuple[Obj, ...] = ()
    unbound_claims: tuple[Obj, ...] = ()


def list_claim_names(pod: Obj, shape: SchedulingShape) -> tuple[str, ...]:
    """Return the names of all claims of *pod*, including those of its ephemeral volumes."""
    return (*shape.claim_names, *(f"{pod['metadata']['name']}-{volume}" for volume in shape.ephemeral_volume_names))


def is_volume_usable(volume: Obj, node: NodeInfo) -> bool:
    """Return whether the node affinity of PersistentVolume *volume* allows its use on *node*."""
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    return required is None or compile_node_selector(required)(node.name, node.labels)


class VolumeFilter:
    """The PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes of the cluster."""

    def __init__(self, api: ApiServer) -> None:
        """Subscribe to the changes of *api*."""
        self.claims = Informer(api, "persistentvolumeclaims")
        self.volumes = Informer(api, "persistentvolumes")
        self.storage_classes = Informer(api, "storageclasses.storage.k8s.io")
        self.csi_nodes = Informer(api, "csinodes.storage.k8s.io")

    def resolve_claims(self, pod: Obj, shape: SchedulingShape) -> PodVolumeClaims:
        """Return the volumes and unbound claims of *pod*, or the problem that makes it unschedulable."""
        bound_volumes, unbound_claims = [], []
        for name in list_claim_names(pod, shape):
            claim = self.claims.get(name, shape.namespace)
            if claim is None:
                return PodVolumeClaims(problem=f'persistentvolumeclaim "{name}" not found')
            if claim["metadata"].get("deletionTimestamp"):
                return PodVolumeClaims(problem=f'persistentvolumeclaim "{name}" is being deleted')
            volume_name = claim["spec"].get("volumeName")
            if volume_name:
                volume = self.volumes.get(volume_name)
                if volume is None:
                    return PodVolumeClaims(problem=f'persistentvolume "{volume_name}" not found')
                bound_volumes.append(volume)
            elif self.is_wait_for_first_consumer(claim):
                unbound_claims.append(claim)
            else:
                return PodVolumeClaims(problem="pod has unbound immediate PersistentVolumeClaims")
        return PodVolumeClaims(bound_volumes=tuple(bound_volumes), unbound_claims=tuple(unbound_claims))

    def find_storage_class(self, claim: Obj) -> Obj | None:
        """Return the StorageClass of *claim*, or None if it has none or the class does not exist."""
        return self.storage_classes.get(claim["spec"].get("storageClassName") or "")

    def is_wait_for_first_consumer(self, claim: Obj) -> bool:
        """Return whether *claim* is bound only after a pod that uses it has a node."""
        storage_class = self.find_storage_class(claim)
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def find_rejection(self, volume_claims: PodVolumeClaims, node: NodeInfo) -> FilterRejection | None:
        """Return why *node* cannot have the volumes of *volume_claims*; None if it can."""
        if self._has_too_many_volumes(volume_claims, node):
            return _VOLUME_LIMIT_REJECTION
        if not all(is_volume_usable(volume, node) for volume in volume_claims.bound_volumes):
            return _VOLUME_AFFINITY_REJECTION
        return (
            None if all(self._can_bind(claim, node) for claim in volume_claims.unbound_claims) else _NO_VOLUME_REJECTION
        )

    def _can_bind(self, claim: Obj, node: NodeInfo) -> bool:
        selected_node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE_ANNOTATION)
        if selected_node:
            return bool(selected_node == node.name)
        if self.find_available_volume(claim, node) is not None:
            return True
        storage_class = self.find_storage_class(claim)
        if storage_class is None or storage_class.get("provisioner") == "kubernetes.io/no-provisioner":
            return False
        allowed = storage_class.get("allowedTopologies")
        return not allowed or any(_is_topology_allowed(term, node) for term in allowed)

    def find_available_volume(self, claim: Obj, node: NodeInfo) -> Obj | None:
        """Return the smallest available volume that satisfies *claim* on *node*, the first by name on ties."""
        usable_volumes = [
            volume
            for volume in self.volumes.list_all()
            if _can_satisfy(volume, claim) and is_volume_usable(volume, node)
        ]
        return min(
            usable_volumes,
            key=lambda volume: (_parse_size(volume["spec"]["capacity"]), volume["metadata"]["name"]),
            default=None,
        )

    def _has_too_many_volumes(self, volume_claims: PodVolumeClaims, node: NodeInfo) -> bool:
        csi_node = self.csi_nodes.get(node.name)
        if csi_node is None:
            return False
        driver_by_name = {entry["name"]: entry for entry in csi_node["spec"].get("drivers") or []}
        new_drivers = [
            self._get_driver_name(volume, None)
            for volume in volume_claims.bound_volumes
            if not self._is_volume_on_node(volume, node)
        ]
        new_drivers += [self._get_driver_name(None, claim) for claim in volume_claims.unbound_claims]
        return any(
            self._is_limit_exceeded(driver_by_name[name], new_drivers.count(name), node)
            for name in set(new_drivers) & driver_by_name.keys()
        )

    def _is_limit_exceeded(self, driver: Obj, new_count: int, node: NodeInfo) -> bool:
        limit = (driver.get("allocatable") or {}).get("count")
        if limit is None:
            return False
        claims = (self.claims.get(*reversed(key.split("/", 1))) for key, count in node.claims.items() if count)
        used_count = sum(1 for claim in claims if claim is not None and self._get_claim_driver(claim) == driver["name"])
        return used_count + new_count > int(limit)

    def _is_volume_on_node(self, volume: Obj, node: NodeInfo) -> bool:
        claim = volume["spec"].get("claimRef") or {}
        return bool(node.claims.get(f"{claim.get('namespace')}/{claim.get('name')}"))

    def _get_claim_driver(self, claim: Obj) -> str:
        return self._get_driver_name(self.volumes.get(claim["spec"].get("volumeName") or ""), claim)

    def _get_driver_name(self, volume: Obj | None, claim: Obj | None) -> str:
        if volume is not None:
            return str((volume["spec"].get("csi") or {}).get("driver", ""))
        storage_class = None if claim is None else self.find_storage_class(claim)
        return "" if storage_class is None else str(storage_class.get("provisioner", ""))


def _is_topology_allowed(term: Obj, node: NodeInfo) -> bool:
    return all(node.labels.get(entry["key"]) in entry["values"] for entry in term.get("matchLabelExpressions") or [])


def _can_satisfy(volume: Obj, claim: Obj) -> bool:
    volume_spec, claim_spec = volume["spec"], claim["spec"]
    claim_ref = volume_spec.get("claimRef")
    is_reserved_for_claim = claim_ref is not None and (claim_ref.get("namespace"), claim_ref.get("name")) == (
        claim["metadata"].get("namespace"),
        claim["metadata"]["name"],
    )
    return (
        (claim_ref is None or is_reserved_for_claim)
        and (volume_spec.get("storageClassName") or "") == (claim_spec.get("storageClassName") or "")
        and set(claim_spec.get("accessModes") or ()) <= set(volume_spec.get("accessModes") or ())
        and _parse_size(volume_spec.get("capacity")) >= _parse_size((claim_spec.get("resources") or {}).get("requests"))
    )


def _parse_size(quantities: Obj | None) -> int:
    return parse_amount("storage", (quantities or {}).get("storage", "0"))
