"""EC2NodeClasses: where and how instances are launched, and the resolved AWS resources."""

from typing import Final

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, Pairs, is_condition_true
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.ec2.account import CapacityReservation, PlacementGroup, SecurityGroup, SelectorTerm, Subnet
from shared.model.ec2.launch_template import BlockDevice, ConnectionTracking, NetworkInterface
from shared.model.ec2.types import Tags

NODE_CLASS_CRD: Final = "ec2nodeclasses.karpenter.k8s.aws"
FAMILY_BY_ALIAS: Final = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
"""Family name by the word before the ``@`` of an alias."""


class ResolvedImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image of status.amis, and the instance types it is for."""

    image_id: str
    name: str = ""
    requirements: Requirements = ANYTHING
    deprecated: bool = False


class KubeletConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of spec.kubelet that Joiner reads; quantities and thresholds are kept as text."""

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

    meta: ObjectMeta
    ami_family: str = ""
    """Effective AMI family: spec.amiFamily, else the family of the alias, else Custom."""
    image_selectors: tuple[SelectorTerm, ...] = ()
    spec_ami_family: str = msgspec.field(default="", name="written_family")
    """spec.amiFamily, "" if it is not set."""
    subnet_selectors: tuple[SelectorTerm, ...] = ()
    security_group_selectors: tuple[SelectorTerm, ...] = ()
    capacity_reservation_selectors: tuple[SelectorTerm, ...] = ()
    placement_group_selector: SelectorTerm | None = None
    """By id or by name."""
    role: str = ""
    instance_profile: str = ""
    user_data: str = ""
    tags: Tags = ()
    kubelet: KubeletConfiguration = KubeletConfiguration()
    kubelet_text: str = ""
    """The complete spec.kubelet as JSON, including fields that Joiner does not read; "" if it is not set."""
    block_devices: tuple[BlockDevice, ...] = ()
    root_devices: tuple[str, ...] = ()
    """Device names of the mappings with rootVolume: at most one, or the node class is invalid."""
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
    spec_hash: str = msgspec.field(default="", name="hashed")
    """Hash of the static fields of the spec (spec-aws §19), computed where the spec is decoded."""
    resolved_subnets: tuple[Subnet, ...] = ()
    resolved_security_groups: tuple[SecurityGroup, ...] = ()
    resolved_images: tuple[ResolvedImage, ...] = ()
    """In order of preference."""
    resolved_profile: str = ""
    resolved_capacity_reservations: tuple[CapacityReservation, ...] = ()
    """Sorted by id; the status has no counts, so they are 0 if read from there."""
    scheduled_blocks: tuple[CapacityReservation, ...] | None = None
    """Capacity Blocks that start later, sorted by id. Never in the status; set when the account was queried."""
    resolved_placement_group: PlacementGroup | None = None
    """Never in the status; set when the account was queried."""
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """The node class's name."""
        return self.meta.name

    def is_ready(self) -> bool:
        """Return whether the node class is resolved for its current spec."""
        return self.is_current() and is_condition_true(self.conditions, "Ready")

    def is_current(self) -> bool:
        """Return whether the Ready condition is about the current spec."""
        return any(
            item.type == "Ready" and item.observed_generation >= self.meta.generation for item in self.conditions
        )
