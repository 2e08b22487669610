"""Volume topology: where volumes allow a pod to run, and how many volumes a node can attach."""

from collections.abc import Iterable
from itertools import product
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.volumes import PersistentVolume, StorageClass, VolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_IN_TREE: Final = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}


class VolumeTopology(msgspec.Struct, frozen=True, kw_only=True):
    """The storage objects of the cluster, by name."""

    claims: dict[str, VolumeClaim]
    volumes: dict[str, PersistentVolume]
    classes: dict[str, StorageClass]
    limits: dict[str, dict[str, int]]
    """Attach limits by node, then by CSI driver."""

    def find_error(self, pod: Pod) -> str:
        """Return why a volume of *pod* cannot be used, with the fix; "" if all can be used."""
        return next((fault for name in pod.spec.volume_claims if (fault := self._find_claim_error(pod, name))), "")

    def find_alternatives(self, pod: Pod) -> tuple[Requirements, ...]:
        """Return the alternative requirements of all volumes of the pod.

        Any one is enough, () if the volumes conflict.
        """
        choices = [
            self._list_alternatives(self.claims[key]) for key in self._list_claim_keys(pod) if key in self.claims
        ]
        intersections = (_intersect_requirements(combination) for combination in product(*choices))
        return tuple(dict.fromkeys(intersection for intersection in intersections if intersection is not None))

    def group_claims_by_driver(self, pods: Iterable[Pod]) -> dict[str, set[str]]:
        """Return the distinct claims that *pods* use, by CSI driver."""
        claims_by_driver: dict[str, set[str]] = {}
        for pod in pods:
            for key in self._list_claim_keys(pod):
                driver = self._find_driver(key)
                if driver:
                    claims_by_driver.setdefault(driver, set()).add(key)
        return claims_by_driver

    def _list_claim_keys(self, pod: Pod) -> list[str]:
        return [f"{pod.meta.namespace}/{name}" for name in pod.spec.volume_claims]

    def _find_claim_error(self, pod: Pod, name: str) -> str:
        claim = self.claims.get(f"{pod.meta.namespace}/{name}")
        if claim is None:
            return f"PersistentVolumeClaim {name} does not exist: create it"
        if claim.meta.deleted_at is not None:
            return f"PersistentVolumeClaim {name} is being deleted"
        if claim.phase == "Lost":
            return f"PersistentVolumeClaim {name} has lost its PersistentVolume"
        return self._find_bound_error(claim) if claim.volume_name else self._find_unbound_error(claim)

    def _find_bound_error(self, claim: VolumeClaim) -> str:
        volume = self.volumes.get(claim.volume_name)
        if volume is None:
            return f"PersistentVolume {claim.volume_name} of claim {claim.meta.name} does not exist"
        if volume.meta.deleted_at is not None:
            return f"PersistentVolume {claim.volume_name} of claim {claim.meta.name} is being deleted"
        if BIND_COMPLETED not in dict(claim.meta.annotations):
            return f"PersistentVolumeClaim {claim.meta.name} is not bound yet: wait for {BIND_COMPLETED}"
        return ""

    def _find_unbound_error(self, claim: VolumeClaim) -> str:
        name = claim.meta.name
        if not claim.storage_class:
            return f"PersistentVolumeClaim {name} is not bound and has no storageClassName: set one"
        storage_class = self.classes.get(claim.storage_class)
        if storage_class is None:
            return f"StorageClass {claim.storage_class} of PersistentVolumeClaim {name} does not exist: create it"
        if storage_class.binding_mode == "Immediate":
            return f"PersistentVolumeClaim {name} binds immediately and is not bound yet: wait for its volume"
        return ""

    def _list_alternatives(self, claim: VolumeClaim) -> tuple[Requirements, ...]:
        if claim.volume_name:
            volume = self.volumes.get(claim.volume_name)
            if volume is None or not volume.terms:
                return (ANYTHING,)
            return tuple(term.without((HOSTNAME,)) if volume.is_local else term for term in volume.terms)
        storage_class = self.classes.get(claim.storage_class)
        return (
            storage_class.allowed_topologies
            if storage_class is not None and storage_class.allowed_topologies
            else (ANYTHING,)
        )

    def _find_driver(self, key: str) -> str:
        claim = self.claims.get(key)
        if claim is None:
            return ""
        if claim.volume_name:
            volume = self.volumes.get(claim.volume_name)
            return volume.driver if volume is not None else ""
        storage_class = self.classes.get(claim.storage_class)
        return _IN_TREE.get(storage_class.provisioner, storage_class.provisioner) if storage_class is not None else ""


def build_volume_topology(cluster: ClusterSnapshot) -> VolumeTopology:
    """Index the storage objects of *cluster*."""
    return VolumeTopology(
        claims={f"{claim.meta.namespace}/{claim.meta.name}": claim for claim in cluster.volume_claims},
        volumes={volume.meta.name: volume for volume in cluster.volumes},
        classes={storage_class.meta.name: storage_class for storage_class in cluster.storage_classes},
        limits={node.meta.name: dict(node.limits) for node in cluster.csi_nodes},
    )


def _intersect_requirements(combination: tuple[Requirements, ...]) -> Requirements | None:
    intersection = ANYTHING
    for requirements in combination:
        if intersection.find_conflict(requirements):
            return None
        intersection &= requirements
    return intersection
