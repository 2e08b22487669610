"""The JSON of volumes, only the fields that are read."""

import msgspec

from shared.snapshot.wire_core import Meta, NodeSelector, Unread


class CsiSource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.csi of a PersistentVolume."""

    driver: str = ""


class VolumeAffinity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.nodeAffinity of a PersistentVolume."""

    required: NodeSelector = NodeSelector()


class PersistentVolumeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PersistentVolume."""

    csi: CsiSource | None = None
    aws_elastic_block_store: Unread | None = None
    local: Unread | None = None
    host_path: Unread | None = None
    node_affinity: VolumeAffinity = VolumeAffinity()


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 PersistentVolume."""

    metadata: Meta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class VolumeClaimSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a PersistentVolumeClaim."""

    volume_name: str = ""
    storage_class_name: str | None = None
    """"" says none, and nothing at all the default one."""


class VolumeClaimStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status of a PersistentVolumeClaim."""

    phase: str = "Pending"


class VolumeClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """v1 PersistentVolumeClaim."""

    metadata: Meta
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()


class TopologyLabel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One label of a topology."""

    key: str
    values: tuple[str, ...] = ()


class Topology(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of a StorageClass' allowedTopologies."""

    match_label_expressions: tuple[TopologyLabel, ...] = ()


class StorageClass(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """storage.k8s.io/v1 StorageClass."""

    metadata: Meta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[Topology, ...] = ()


class DriverRoom(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many volumes of a driver fit; absent says any number."""

    count: int | None = None


class CsiDriver(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One of a CSINode's drivers."""

    name: str
    allocatable: DriverRoom = DriverRoom()


class CsiNodeSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a CSINode."""

    drivers: tuple[CsiDriver, ...] | None = None
    """An API server writes none as null."""


class CsiNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """storage.k8s.io/v1 CSINode."""

    metadata: Meta
    spec: CsiNodeSpec = CsiNodeSpec()


class AttachmentSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.source of a VolumeAttachment."""

    persistent_volume_name: str = ""


class AttachmentSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a VolumeAttachment."""

    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata: Meta
    spec: AttachmentSpec = AttachmentSpec()
