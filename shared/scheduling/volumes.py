"""Volumes: where they allow a pod to be, and how many of them a node takes."""

from collections.abc import Iterable
from itertools import product
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import HOSTNAME
from shared.model.pods import Pod
from shared.model.requirements import ANYTHING, Requirements
from shared.model.volumes import PersistentVolume, StorageClass, VolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_IN_TREE: Final = {"kubernetes.io/aws-ebs": "ebs.csi.aws.com"}


class Volumes(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's storage objects by name."""

    claims: dict[str, VolumeClaim]
    volumes: dict[str, PersistentVolume]
    classes: dict[str, StorageClass]
    limits: dict[str, dict[str, int]]
    """By node, then driver."""

    def fault(self, pod: Pod) -> str:
        """Answer why a volume of *pod* cannot be used, "" if all can; with the remedy."""
        return next((fault for name in pod.spec.volume_claims if (fault := self._fault(pod, name))), "")

    def alternatives(self, pod: Pod) -> tuple[Requirements, ...]:
        """Answer where the pod's volumes can be together: any one of these; none if they exclude each other."""
        choices = [self._places(self.claims[key]) for key in self._keys(pod) if key in self.claims]
        joined = (_joined(some) for some in product(*choices))
        return tuple(dict.fromkeys(wanted for wanted in joined if wanted is not None))

    def attached(self, pods: Iterable[Pod]) -> dict[str, set[str]]:
        """Answer the distinct claims that *pods* use, by CSI driver."""
        found: dict[str, set[str]] = {}
        for pod in pods:
            for key in self._keys(pod):
                driver = self._driver(key)
                if driver:
                    found.setdefault(driver, set()).add(key)
        return found

    def _keys(self, pod: Pod) -> list[str]:
        return [f"{pod.meta.namespace}/{name}" for name in pod.spec.volume_claims]

    def _fault(self, pod: Pod, name: str) -> str:
        claim = self.claims.get(f"{pod.meta.namespace}/{name}")
        if claim is None:
            return f"PersistentVolumeClaim {name} does not exist: create it"
        if claim.meta.deleted_at is not None:
            return f"PersistentVolumeClaim {name} is being deleted"
        if claim.phase == "Lost":
            return f"PersistentVolumeClaim {name} has lost its volume"
        return self._bound_fault(claim) if claim.volume_name else self._unbound_fault(claim)

    def _bound_fault(self, claim: VolumeClaim) -> str:
        volume = self.volumes.get(claim.volume_name)
        if volume is None:
            return f"PersistentVolume {claim.volume_name} of claim {claim.meta.name} does not exist"
        if volume.meta.deleted_at is not None:
            return f"PersistentVolume {claim.volume_name} of claim {claim.meta.name} is being deleted"
        if BIND_COMPLETED not in dict(claim.meta.annotations):
            return f"PersistentVolumeClaim {claim.meta.name} is not bound yet: wait for {BIND_COMPLETED}"
        return ""

    def _unbound_fault(self, claim: VolumeClaim) -> str:
        name = claim.meta.name
        if not claim.storage_class:
            return f"PersistentVolumeClaim {name} is not bound and has no storageClassName: set one"
        found = self.classes.get(claim.storage_class)
        if found is None:
            return f"StorageClass {claim.storage_class} of PersistentVolumeClaim {name} does not exist: create it"
        if found.binding_mode == "Immediate":
            return f"PersistentVolumeClaim {name} binds immediately and is not bound yet: wait for its volume"
        return ""

    def _places(self, claim: VolumeClaim) -> tuple[Requirements, ...]:
        if claim.volume_name:
            volume = self.volumes.get(claim.volume_name)
            if volume is None or not volume.terms:
                return (ANYTHING,)
            return tuple(term.without((HOSTNAME,)) if volume.is_local else term for term in volume.terms)
        found = self.classes.get(claim.storage_class)
        return found.allowed_topologies if found is not None and found.allowed_topologies else (ANYTHING,)

    def _driver(self, key: str) -> str:
        claim = self.claims.get(key)
        if claim is None:
            return ""
        if claim.volume_name:
            volume = self.volumes.get(claim.volume_name)
            return volume.driver if volume is not None else ""
        found = self.classes.get(claim.storage_class)
        return _IN_TREE.get(found.provisioner, found.provisioner) if found is not None else ""


def volumes_of(cluster: Cluster) -> Volumes:
    """Index the storage objects of *cluster*."""
    return Volumes(
        claims={f"{claim.meta.namespace}/{claim.meta.name}": claim for claim in cluster.volume_claims},
        volumes={volume.meta.name: volume for volume in cluster.volumes},
        classes={one.meta.name: one for one in cluster.storage_classes},
        limits={node.meta.name: dict(node.limits) for node in cluster.csi_nodes},
    )


def _joined(some: tuple[Requirements, ...]) -> Requirements | None:
    wanted = ANYTHING
    for one in some:
        if wanted.conflict(one):
            return None
        wanted &= one
    return wanted
