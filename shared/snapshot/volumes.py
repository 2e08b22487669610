"""Volumes: wire -> model."""

from typing import Final

from shared.model.labels import HOSTNAME
from shared.model.requirements import Requirement, Requirements, requirement, requirements
from shared.model.volumes import CSINode, PersistentVolume, StorageClass, VolumeAttachment, VolumeClaim
from shared.snapshot import wire_volumes as wire
from shared.snapshot.core import meta_from_wire, requirements_from_wire
from shared.snapshot.fields import EXPRESSION, at

EBS: Final = "ebs.csi.aws.com"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_IN_TREE: Final = {
    "kubernetes.io/aws-ebs": EBS,
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


def driver_name(name: str) -> str:
    """Answer the CSI driver that does today what the in-tree plug-in *name* did; others are themselves.

    >>> driver_name("kubernetes.io/aws-ebs"), driver_name("efs.csi.aws.com")
    ('ebs.csi.aws.com', 'efs.csi.aws.com')
    """
    return _IN_TREE.get(name, name)


def persistent_volume_from_wire(volume: wire.PersistentVolume) -> PersistentVolume:
    """Read a PersistentVolume; the terms of one that is local to a host do not name the host.

    Raises:
        ValueError: a term of its node affinity cannot be read.
    """
    spec = volume.spec
    is_local = spec.local is not None or spec.host_path is not None
    path = "spec.nodeAffinity.required.nodeSelectorTerms"
    terms = tuple(
        requirements_from_wire(f"{path}[{number}]", term.match_expressions)
        for number, term in enumerate(spec.node_affinity.required.node_selector_terms)
    )
    return PersistentVolume(
        meta=meta_from_wire(volume.metadata),
        terms=tuple(term.without((HOSTNAME,)) for term in terms) if is_local else terms,
        driver=_driver(spec),
        is_local=is_local,
    )


def volume_claim_from_wire(claim: wire.VolumeClaim) -> VolumeClaim:
    """Read a PersistentVolumeClaim."""
    return VolumeClaim(
        meta=meta_from_wire(claim.metadata),
        volume_name=claim.spec.volume_name,
        storage_class=claim.spec.storage_class_name or claim.metadata.annotations.get(_CLASS_ANNOTATION, ""),
        phase=claim.status.phase or "Pending",
    )


def storage_class_from_wire(storage_class: wire.StorageClass) -> StorageClass:
    """Read a StorageClass.

    Raises:
        ValueError: a topology has no values.
    """
    annotations = storage_class.metadata.annotations
    return StorageClass(
        meta=meta_from_wire(storage_class.metadata),
        provisioner=driver_name(storage_class.provisioner),
        binding_mode=storage_class.volume_binding_mode or "Immediate",
        allowed_topologies=tuple(
            _topology(number, topology) for number, topology in enumerate(storage_class.allowed_topologies)
        ),
        is_default=any(annotations.get(key) == "true" for key in _DEFAULT_CLASS),
    )


def csi_node_from_wire(node: wire.CsiNode) -> CSINode:
    """Read a CSINode; a driver without a count takes any number and is not named."""
    limits = {driver_name(driver.name): driver.allocatable.count for driver in node.spec.drivers or ()}
    return CSINode(
        meta=meta_from_wire(node.metadata),
        limits=tuple(sorted((name, count) for name, count in limits.items() if count is not None)),
    )


def volume_attachment_from_wire(attachment: wire.VolumeAttachment) -> VolumeAttachment:
    """Read a VolumeAttachment."""
    return VolumeAttachment(
        meta=meta_from_wire(attachment.metadata),
        node_name=attachment.spec.node_name,
        volume_name=attachment.spec.source.persistent_volume_name,
    )


def _driver(spec: wire.PersistentVolumeSpec) -> str:
    if spec.csi is not None:
        return driver_name(spec.csi.driver)
    return EBS if spec.aws_elastic_block_store is not None else ""


def _topology(number: int, topology: wire.Topology) -> Requirements:
    with at(f"allowedTopologies[{number}]", EXPRESSION):
        return requirements(_one_of(label) for label in topology.match_label_expressions)


def _one_of(label: wire.TopologyLabel) -> Requirement:
    return requirement(label.key, "In", label.values)
