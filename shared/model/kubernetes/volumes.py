"""Volumes and storage objects that restrict where pods can be scheduled."""

import msgspec

from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import Requirements


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True):
    """v1 PersistentVolume."""

    meta: ObjectMeta
    terms: tuple[Requirements, ...] = ()
    """Required node affinity: any of these terms."""
    driver: str = ""
    """The CSI driver, in-tree names translated; "" for kinds without an attachment limit."""
    is_local: bool = False


class VolumeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """v1 PersistentVolumeClaim."""

    meta: ObjectMeta
    volume_name: str = ""
    storage_class: str = ""
    phase: str = "Pending"
    access_modes: tuple[str, ...] = ()
    """Sorted, for example ``("ReadWriteOnce",)``."""


class StorageClass(msgspec.Struct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 StorageClass."""

    meta: ObjectMeta
    provisioner: str
    binding_mode: str = "Immediate"
    allowed_topologies: tuple[Requirements, ...] = ()
    is_default: bool = False


class CSINode(msgspec.Struct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSINode: how many volumes of each driver its node can attach."""

    meta: ObjectMeta
    limits: tuple[tuple[str, int], ...] = ()


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    meta: ObjectMeta
    node_name: str
    volume_name: str = ""
