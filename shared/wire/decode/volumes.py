"""Volumes: wire JSON -> model."""

from typing import Final

from shared.model.core.labels import HOSTNAME
from shared.model.core.requirements import Requirement, Requirements, build_requirements, parse_requirement
from shared.model.kubernetes.volumes import CSINode, PersistentVolume, StorageClass, VolumeAttachment, VolumeClaim
from shared.wire.decode.core import parse_object_meta, parse_requirements
from shared.wire.decode.field_errors import EXPRESSION_FIX, add_field_path
from shared.wire.schema import volumes as wire

EBS_DRIVER: Final = "ebs.csi.aws.com"
_STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CSI_DRIVER_BY_IN_TREE_PLUGIN: Final = {
    "kubernetes.io/aws-ebs": EBS_DRIVER,
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


def get_csi_driver_name(name: str) -> str:
    """Return the CSI driver that replaces the in-tree plug-in *name*; other names stay unchanged.

    >>> get_csi_driver_name("kubernetes.io/aws-ebs"), get_csi_driver_name("efs.csi.aws.com")
    ('ebs.csi.aws.com', 'efs.csi.aws.com')
    """
    return _CSI_DRIVER_BY_IN_TREE_PLUGIN.get(name, name)


def parse_persistent_volume(volume: wire.PersistentVolumeJson) -> PersistentVolume:
    """Parse a PersistentVolume; the terms of a volume that is local to a host do not name the host.

    Raises:
        ValueError: a term of its node affinity cannot be parsed.
    """
    spec = volume.spec
    is_local = spec.local is not None or spec.host_path is not None
    path = "spec.nodeAffinity.required.nodeSelectorTerms"
    terms = tuple(
        parse_requirements(f"{path}[{number}]", term.match_expressions)
        for number, term in enumerate(spec.node_affinity.required.node_selector_terms)
    )
    return PersistentVolume(
        meta=parse_object_meta(volume.metadata),
        terms=tuple(term.without((HOSTNAME,)) for term in terms) if is_local else terms,
        driver=_get_driver(spec),
        is_local=is_local,
    )


def parse_volume_claim(claim: wire.VolumeClaimJson) -> VolumeClaim:
    """Parse a PersistentVolumeClaim."""
    return VolumeClaim(
        meta=parse_object_meta(claim.metadata),
        volume_name=claim.spec.volume_name,
        storage_class=claim.spec.storage_class_name or claim.metadata.annotations.get(_STORAGE_CLASS_ANNOTATION, ""),
        phase=claim.status.phase or "Pending",
        access_modes=tuple(sorted(claim.spec.access_modes)),
    )


def parse_storage_class(storage_class: wire.StorageClassJson) -> StorageClass:
    """Parse a StorageClass.

    Raises:
        ValueError: a topology has no values.
    """
    annotations = storage_class.metadata.annotations
    return StorageClass(
        meta=parse_object_meta(storage_class.metadata),
        provisioner=get_csi_driver_name(storage_class.provisioner),
        binding_mode=storage_class.volume_binding_mode or "Immediate",
        allowed_topologies=tuple(
            _parse_topology(number, topology) for number, topology in enumerate(storage_class.allowed_topologies)
        ),
        is_default=any(annotations.get(key) == "true" for key in _DEFAULT_CLASS_ANNOTATIONS),
    )


def parse_csi_node(node: wire.CsiNodeJson) -> CSINode:
    """Parse a CSINode; a driver without a count has no limit and is left out."""
    limits = {get_csi_driver_name(driver.name): driver.allocatable.count for driver in node.spec.drivers or ()}
    return CSINode(
        meta=parse_object_meta(node.metadata),
        limits=tuple(sorted((name, count) for name, count in limits.items() if count is not None)),
    )


def parse_volume_attachment(attachment: wire.VolumeAttachmentJson) -> VolumeAttachment:
    """Parse a VolumeAttachment."""
    return VolumeAttachment(
        meta=parse_object_meta(attachment.metadata),
        node_name=attachment.spec.node_name,
        volume_name=attachment.spec.source.persistent_volume_name,
    )


def _get_driver(spec: wire.PersistentVolumeSpecJson) -> str:
    if spec.csi is not None:
        return get_csi_driver_name(spec.csi.driver)
    return EBS_DRIVER if spec.aws_elastic_block_store is not None else ""


def _parse_topology(number: int, topology: wire.TopologyJson) -> Requirements:
    with add_field_path(f"allowedTopologies[{number}]", EXPRESSION_FIX):
        return build_requirements(_build_in_requirement(label) for label in topology.match_label_expressions)


def _build_in_requirement(label: wire.TopologyLabelJson) -> Requirement:
    return parse_requirement(label.key, "In", label.values)
