"""EC2NodeClasses: where and how instances are started, and what that came to in the account."""

import msgspec

from shared.model.ec2 import (
    BlockDevice,
    CapacityReservation,
    ConnectionTracking,
    NetworkInterface,
    PlacementGroup,
    SecurityGroup,
    Selector,
    Subnet,
    Tags,
)
from shared.model.objects import Condition, Meta, Pairs, is_true
from shared.model.requirements import ANYTHING, Requirements


class ResolvedImage(msgspec.Struct, frozen=True, kw_only=True):
    """One of status.amis: the image, and which instance types it is for."""

    image_id: str
    name: str = ""
    requirements: Requirements = ANYTHING
    deprecated: bool = False


class Kubelet(msgspec.Struct, frozen=True, kw_only=True):
    """spec.kubelet, the keys that we read; quantities and thresholds as they are written."""

    cluster_dns: tuple[str, ...] = ()
    max_pods: int | None = None
    pods_per_core: int | None = None
    kube_reserved: Pairs = ()
    system_reserved: Pairs = ()
    eviction_hard: Pairs = ()
    eviction_soft: Pairs = ()
    eviction_soft_grace_period: Pairs = ()
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = None
    image_gc_low_threshold_percent: int | None = None
    cpu_cfs_quota: bool | None = None


class EC2NodeClass(msgspec.Struct, frozen=True, kw_only=True):
    """karpenter.k8s.aws/v1 EC2NodeClass."""

    meta: Meta
    ami_family: str = ""
    """Effective: spec.amiFamily, else the alias' family, else Custom."""
    image_selectors: tuple[Selector, ...] = ()
    written_family: str = ""
    """spec.amiFamily as it is written, "" if it is not."""
    subnet_selectors: tuple[Selector, ...] = ()
    security_group_selectors: tuple[Selector, ...] = ()
    capacity_reservation_selectors: tuple[Selector, ...] = ()
    placement_group_selector: Selector | None = None
    """By id or by name."""
    role: str = ""
    instance_profile: str = ""
    user_data: str = ""
    tags: Tags = ()
    kubelet: Kubelet = Kubelet()
    kubelet_text: str = ""
    """The whole of spec.kubelet as JSON, with the keys that we do not read; "" if it is not written."""
    block_devices: tuple[BlockDevice, ...] = ()
    root_devices: tuple[str, ...] = ()
    """Device names of the mappings that are marked rootVolume: one at most, or the class is refused."""
    instance_store_policy: str = ""
    detailed_monitoring: bool = False
    associate_public_ip_address: bool | None = None
    ip_prefix_count: int | None = None
    network_interfaces: tuple[NetworkInterface, ...] = ()
    connection_tracking: ConnectionTracking | None = None
    nested_virtualization: str = ""
    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = "disabled"
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"
    context: str = ""
    hashed: str = ""
    """Digest of the static fields of the spec (spec-aws §19), computed where the spec is read."""
    resolved_subnets: tuple[Subnet, ...] = ()
    resolved_security_groups: tuple[SecurityGroup, ...] = ()
    resolved_images: tuple[ResolvedImage, ...] = ()
    """In order of preference."""
    resolved_profile: str = ""
    resolved_capacity_reservations: tuple[CapacityReservation, ...] = ()
    """Sorted by id; their counts are not in the status, and 0 where they were read from there."""
    resolved_placement_group: PlacementGroup | None = None
    """Never in the status: filled by who asked the account."""
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.meta.name

    def is_ready(self) -> bool:
        """Whether it was resolved, for the spec as it is now."""
        return self.is_current() and is_true(self.conditions, "Ready")

    def is_current(self) -> bool:
        """Whether its Ready condition speaks of the spec as it is now."""
        return any(one.type == "Ready" and one.observed_generation >= self.meta.generation for one in self.conditions)
