"""The JSON shapes of Karpenter's v1 kinds, with only the fields that are read. The defaults are those of the CRDs."""

from typing import Any

import msgspec
from msgspec import field

from shared.wire.schema.core import (
    ConditionJson,
    ObjectMetaJson,
    Quantities,
    SelectorExpressionJson,
    TaintJson,
    TemplateMetaJson,
    Timestamp,
)


class NodeClassRefJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """nodeClassRef."""

    group: str = ""
    kind: str = ""
    name: str = ""


class ResourceRequestsJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.resources of a NodeClaim."""

    requests: Quantities = {}


class NodeClaimSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of a NodeClaim, and of the template of a NodePool, which has no requests."""

    node_class_ref: NodeClassRefJson = NodeClassRefJson()
    requirements: tuple[SelectorExpressionJson, ...] = ()
    resources: ResourceRequestsJson = ResourceRequestsJson()
    taints: tuple[TaintJson, ...] = ()
    startup_taints: tuple[TaintJson, ...] = ()
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class NodeClaimStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of a NodeClaim."""

    node_name: str = ""
    provider_id: str = field(name="providerID", default="")
    image_id: str = field(name="imageID", default="")
    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: tuple[ConditionJson, ...] = ()
    last_pod_event_time: Timestamp | None = None


class NodeClaimJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.sh/v1 NodeClaim."""

    metadata: ObjectMetaJson
    spec: NodeClaimSpecJson
    status: NodeClaimStatusJson = NodeClaimStatusJson()


class NodeClaimTemplateJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec.template of a NodePool."""

    metadata: TemplateMetaJson = TemplateMetaJson()
    spec: NodeClaimSpecJson


class DisruptionBudgetJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of spec.disruption.budgets of a NodePool."""

    nodes: str = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str = ""
    duration: str | None = None


class DisruptionJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.disruption of a NodePool."""

    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after: str = "0s"
    budgets: tuple[DisruptionBudgetJson, ...] = (DisruptionBudgetJson(),)


class NodePoolSpecJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """spec of a NodePool."""

    template: NodeClaimTemplateJson
    disruption: DisruptionJson = DisruptionJson()
    limits: Quantities | None = None
    weight: int | None = None
    replicas: int | None = None


class NodePoolStatusJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """status of a NodePool."""

    resources: Quantities = {}
    conditions: tuple[ConditionJson, ...] = ()


class NodePoolJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.sh/v1 NodePool."""

    metadata: ObjectMetaJson
    spec: NodePoolSpecJson
    status: NodePoolStatusJson = NodePoolStatusJson()


class SelectorTermJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A selector term of an EC2NodeClass."""

    id: str = ""
    name: str = ""
    owner: str = ""
    alias: str = ""
    ssm_parameter: str = ""
    owner_id: str = field(name="ownerID", default="")
    instance_match_criteria: str = ""
    tags: dict[str, str] = {}


class KubeletConfigurationJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.kubelet, with only the keys that are read; *maxPods* can be an expression."""

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


class EbsJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """ebs of a block device mapping."""

    volume_size: str | int | None = None
    volume_type: str = ""
    encrypted: bool | None = None
    delete_on_termination: bool | None = None
    iops: int | None = None
    throughput: int | None = None
    kms_key_id: str = field(name="kmsKeyID", default="")
    snapshot_id: str = field(name="snapshotID", default="")
    volume_initialization_rate: int | None = None


class BlockDeviceMappingJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of spec.blockDeviceMappings."""

    device_name: str = ""
    root_volume: bool = False
    ebs: EbsJson = EbsJson()


class MetadataOptionsJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.metadataOptions."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = field(name="httpProtocolIPv6", default="disabled")
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"


class ConnectionTrackingJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.connectionTracking."""

    tcp_established_timeout: int | None = None
    udp_stream_timeout: int | None = None
    udp_timeout: int | None = None


class NetworkInterfaceJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of spec.networkInterfaces."""

    network_card_index: int = 0
    device_index: int = 0
    interface_type: str = "interface"


class CpuOptionsJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec.cpuOptions."""

    nested_virtualization: str = ""


class NodeClassSpecJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """spec of an EC2NodeClass."""

    ami_family: str = ""
    ami_selector_terms: tuple[SelectorTermJson, ...] = ()
    subnet_selector_terms: tuple[SelectorTermJson, ...] = ()
    security_group_selector_terms: tuple[SelectorTermJson, ...] = ()
    capacity_reservation_selector_terms: tuple[SelectorTermJson, ...] = ()
    placement_group_selector: SelectorTermJson | None = None
    role: str = ""
    instance_profile: str = ""
    user_data: str = ""
    tags: dict[str, str] = {}
    kubelet: KubeletConfigurationJson = KubeletConfigurationJson()
    block_device_mappings: tuple[BlockDeviceMappingJson, ...] = ()
    instance_store_policy: str = ""
    detailed_monitoring: bool = False
    associate_public_ip_address: bool | None = field(name="associatePublicIPAddress", default=None)
    ip_prefix_count: int | None = None
    network_interfaces: tuple[NetworkInterfaceJson, ...] = ()
    connection_tracking: ConnectionTrackingJson | None = None
    cpu_options: CpuOptionsJson = CpuOptionsJson()
    metadata_options: MetadataOptionsJson = MetadataOptionsJson()
    context: str = ""


class StatusSubnetJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of status.subnets."""

    id: str
    zone: str = ""
    zone_id: str = field(name="zoneID", default="")


class StatusSecurityGroupJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of status.securityGroups."""

    id: str
    name: str = ""


class StatusImageJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An element of status.amis."""

    id: str
    name: str = ""
    deprecated: bool = False
    requirements: tuple[SelectorExpressionJson, ...] = ()


class StatusReservationJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An element of status.capacityReservations."""

    id: str
    availability_zone: str = ""
    instance_type: str = ""
    instance_match_criteria: str = "targeted"
    owner_id: str = field(name="ownerID", default="")
    reservation_type: str = "default"
    interruptible: bool = False
    end_time: Timestamp | None = None
    state: str = ""


class NodeClassStatusJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """status of an EC2NodeClass."""

    subnets: tuple[StatusSubnetJson, ...] = ()
    security_groups: tuple[StatusSecurityGroupJson, ...] = ()
    amis: tuple[StatusImageJson, ...] = ()
    instance_profile: str = ""
    capacity_reservations: tuple[StatusReservationJson, ...] = ()
    conditions: tuple[ConditionJson, ...] = ()


class NodeClassJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """karpenter.k8s.aws/v1 EC2NodeClass; the spec stays undecoded, because all of it is hashed."""

    metadata: ObjectMetaJson
    spec: dict[str, Any] = {}
    status: NodeClassStatusJson = NodeClassStatusJson()
