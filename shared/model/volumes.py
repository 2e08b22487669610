"""Volumes, as far as they bind pods to places."""

import msgspec

from shared.model.objects import Meta
from shared.model.requirements import Requirements


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True):
    """v1 PersistentVolume."""

    meta: Meta
    terms: tuple[Requirements, ...] = ()
    """Required node affinity: any one of these."""
    driver: str = ""
    """CSI driver, in-tree names translated; "" for kinds that have no limit."""
    is_local: bool = False


class VolumeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """v1 PersistentVolumeClaim."""

    meta: Meta
    volume_name: str = ""
    storage_class: str = ""
    phase: str = "Pending"


class StorageClass(msgspec.Struct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 StorageClass."""

    meta: Meta
    provisioner: str
    binding_mode: str = "Immediate"
    allowed_topologies: tuple[Requirements, ...] = ()
    is_default: bool = False


class CSINode(msgspec.Struct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 CSINode: how many volumes of each driver its node takes."""

    meta: Meta
    limits: tuple[tuple[str, int], ...] = ()


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    meta: Meta
    node_name: str
    volume_name: str = ""
