"""The JSON of Karpenter's v1 kinds, only the fields that are read. The defaults are those of the definitions."""

from typing import Any

import msgspec
from msgspec import field

from shared.snapshot.wire_core import Condition, Expression, Instant, Meta, Quantities, Taint, TemplateMeta


class ClassRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """nodeClassRef."""

    group: str = ""
    kind: str = ""
    name: str = ""


class Requests(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.resources of a NodeClaim."""

    requests: Quantities = {}


class NodeClaimSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a NodeClaim, and of a NodePool's template, which has no requests."""

    node_class_ref: ClassRef = ClassRef()
    requirements: tuple[Expression, ...] = ()
    resources: Requests = Requests()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class NodeClaimStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a NodeClaim."""

    node_name: str = ""
    provider_id: str = field(name="providerID", default="")
    image_id: str = field(name="imageID", default="")
    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: tuple[Condition, ...] = ()
    last_pod_event_time: Instant | None = None


class NodeClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.sh/v1 NodeClaim."""

    metadata: Meta
    spec: NodeClaimSpec
    status: NodeClaimStatus = NodeClaimStatus()


class NodeTemplate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.template of a NodePool."""

    metadata: TemplateMeta = TemplateMeta()
    spec: NodeClaimSpec


class PoolBudget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One of a NodePool's disruption budgets."""

    nodes: str = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str = ""
    duration: str | None = None


class Disruption(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.disruption of a NodePool."""

    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after: str = "0s"
    budgets: tuple[PoolBudget, ...] = (PoolBudget(),)


class NodePoolSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a NodePool."""

    template: NodeTemplate
    disruption: Disruption = Disruption()
    limits: Quantities | None = None
    weight: int | None = None
    replicas: int | None = None


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status of a NodePool."""

    resources: Quantities = {}
    conditions: tuple[Condition, ...] = ()


class NodePool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.sh/v1 NodePool."""

    metadata: Meta
    spec: NodePoolSpec
    status: PoolStatus = PoolStatus()


class Term(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One selector term of a node class."""

    id: str = ""
    name: str = ""
    owner: str = ""
    alias: str = ""
    ssm_parameter: str = ""
    owner_id: str = field(name="ownerID", default="")
    instance_match_criteria: str = ""
    tags: dict[str, str] = {}


class Kubelet(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.kubelet, the keys that are read; *maxPods* may be an expression."""

    cluster_dns: tuple[str, ...] = field(name="clusterDNS", default=())
    max_pods: int | str | None = None
    pods_per_core: int | None = None
    kube_reserved: Quantities = {}
    system_reserved: Quantities = {}
    eviction_hard: Quantities = {}
    eviction_soft: Quantities = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = field(name="imageGCHighThresholdPercent", default=None)
    image_gc_low_threshold_percent: int | None = field(name="imageGCLowThresholdPercent", default=None)
    cpu_cfs_quota: bool | None = field(name="cpuCFSQuota", default=None)


class Ebs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """ebs of a block device mapping."""

    volume_size: str | int | None = None
    volume_type: str = "gp3"
    encrypted: bool = True
    delete_on_termination: bool | None = None
    iops: int | None = None
    throughput: int | None = None
    kms_key_id: str = field(name="kmsKeyID", default="")
    snapshot_id: str = field(name="snapshotID", default="")
    volume_initialization_rate: int | None = None


class BlockDeviceMapping(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of spec.blockDeviceMappings."""

    device_name: str = ""
    root_volume: bool = False
    ebs: Ebs = Ebs()


class MetadataOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.metadataOptions."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = field(name="httpProtocolIPv6", default="disabled")
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"


class ConnectionTracking(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.connectionTracking."""

    tcp_established_timeout: int | None = None
    udp_stream_timeout: int | None = None
    udp_timeout: int | None = None


class NetworkInterface(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of spec.networkInterfaces."""

    network_card_index: int = 0
    device_index: int = 0
    interface_type: str = "interface"


class CpuOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.cpuOptions."""

    nested_virtualization: str = ""


class NodeClassSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of an EC2NodeClass."""

    ami_family: str = ""
    ami_selector_terms: tuple[Term, ...] = ()
    subnet_selector_terms: tuple[Term, ...] = ()
    security_group_selector_terms: tuple[Term, ...] = ()
    capacity_reservation_selector_terms: tuple[Term, ...] = ()
    placement_group_selector: Term | None = None
    role: str = ""
    instance_profile: str = ""
    user_data: str = ""
    tags: dict[str, str] = {}
    kubelet: Kubelet = Kubelet()
    block_device_mappings: tuple[BlockDeviceMapping, ...] = ()
    instance_store_policy: str = ""
    detailed_monitoring: bool = False
    associate_public_ip_address: bool | None = field(name="associatePublicIPAddress", default=None)
    ip_prefix_count: int | None = None
    network_interfaces: tuple[NetworkInterface, ...] = ()
    connection_tracking: ConnectionTracking | None = None
    cpu_options: CpuOptions = CpuOptions()
    metadata_options: MetadataOptions = MetadataOptions()
    context: str = ""


class StatusSubnet(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One of status.subnets."""

    id: str
    zone: str = ""
    zone_id: str = field(name="zoneID", default="")


class StatusGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One of status.securityGroups."""

    id: str
    name: str = ""


class StatusImage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One of status.amis."""

    id: str
    name: str = ""
    deprecated: bool = False
    requirements: tuple[Expression, ...] = ()


class StatusReservation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of status.capacityReservations."""

    id: str
    availability_zone: str = ""
    instance_type: str = ""
    instance_match_criteria: str = "targeted"
    owner_id: str = field(name="ownerID", default="")
    reservation_type: str = "default"
    interruptible: bool = False
    end_time: Instant | None = None
    state: str = ""


class NodeClassStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of an EC2NodeClass."""

    subnets: tuple[StatusSubnet, ...] = ()
    security_groups: tuple[StatusGroup, ...] = ()
    amis: tuple[StatusImage, ...] = ()
    instance_profile: str = ""
    capacity_reservations: tuple[StatusReservation, ...] = ()
    conditions: tuple[Condition, ...] = ()


class NodeClass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.k8s.aws/v1 EC2NodeClass; the spec stays as it is written, because all of it is hashed."""

    metadata: Meta
    spec: dict[str, Any] = {}
    status: NodeClassStatus = NodeClassStatus()
