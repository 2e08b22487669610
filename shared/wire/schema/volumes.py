"""The JSON shapes of volumes, with only the fields that are read."""

import msgspec

from shared.wire.schema.core import NodeSelectorJson, ObjectMetaJson, PresenceJson


class CsiSourceJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.csi of a PersistentVolume."""

    driver: str = ""


class VolumeNodeAffinityJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.nodeAffinity of a PersistentVolume."""

    required: NodeSelectorJson = NodeSelectorJson()


class PersistentVolumeSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PersistentVolume."""

    csi: CsiSourceJson | None = None
    aws_elastic_block_store: PresenceJson | None = None
    local: PresenceJson | None = None
    host_path: PresenceJson | None = None
    node_affinity: VolumeNodeAffinityJson = VolumeNodeAffinityJson()


class PersistentVolumeJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 PersistentVolume."""

    metadata: ObjectMetaJson
    spec: PersistentVolumeSpecJson = PersistentVolumeSpecJson()


class VolumeClaimSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PersistentVolumeClaim."""

    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    """An empty string means no StorageClass, a missing field the default StorageClass."""


class VolumeClaimStatusJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status of a PersistentVolumeClaim."""

    phase: str = "Pending"


class VolumeClaimJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 PersistentVolumeClaim."""

    metadata: ObjectMetaJson
    spec: VolumeClaimSpecJson = VolumeClaimSpecJson()
    status: VolumeClaimStatusJson = VolumeClaimStatusJson()


class TopologyLabelJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of matchLabelExpressions of a topology."""

    key: str
    values: tuple[str, ...] = ()


class TopologyJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of allowedTopologies of a StorageClass."""

    match_label_expressions: tuple[TopologyLabelJson, ...] = ()


class StorageClassJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """storage.k8s.io/v1 StorageClass."""

    metadata: ObjectMetaJson
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyJson, ...] = ()


class DriverAllocatableJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The number of volumes that a driver can attach; a missing count means no limit."""

    count: int | None = None


class CsiDriverJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of spec.drivers of a CSINode."""

    name: str
    allocatable: DriverAllocatableJson = DriverAllocatableJson()


class CsiNodeSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a CSINode."""

    drivers: tuple[CsiDriverJson, ...] | None = None
    """The API server writes null if there are no drivers."""


class CsiNodeJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """storage.k8s.io/v1 CSINode."""

    metadata: ObjectMetaJson
    spec: CsiNodeSpecJson = CsiNodeSpecJson()


class VolumeAttachmentSourceJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.source of a VolumeAttachment."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a VolumeAttachment."""

    node_name: str = ""
    source: VolumeAttachmentSourceJson = VolumeAttachmentSourceJson()


class VolumeAttachmentJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata: ObjectMetaJson
    spec: VolumeAttachmentSpecJson = VolumeAttachmentSpecJson()
