"""What is said to EC2 and what EC2 says: values that cross the `Ec2` port.

Names are EC2's own, in snake_case. Money is USD per hour. Memory is MiB here, as EC2 has it.
"""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

CapacityType: TypeAlias = Literal["spot", "on-demand", "reserved"]
InstanceState: TypeAlias = Literal["pending", "running", "shutting-down", "terminated", "stopping", "stopped"]
AllocationStrategy: TypeAlias = Literal[
    "lowest-price", "price-capacity-optimized", "capacity-optimized-prioritized", "prioritized"
]
Tenancy: TypeAlias = Literal["default", "dedicated"]
Tags: TypeAlias = tuple[tuple[str, str], ...]
"""Sorted by key."""
ReservationType: TypeAlias = Literal["", "default", "capacity-block", "interruptible"]
"""What kind of reservation a launch draws from; "" where it draws from none."""


class Override(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One offering that CreateFleet may choose."""

    instance_type: str
    zone: str
    subnet_id: str
    image_id: str = ""
    priority: float | None = None


class LaunchTemplateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A launch template (its `$Latest` version) and the offerings it may be used with."""

    launch_template_name: str
    overrides: tuple[Override, ...]


class FleetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """CreateFleet, type `instant`. The same *client_token* with the same content is the same call."""

    client_token: str
    capacity: int
    capacity_type: CapacityType
    allocation_strategy: AllocationStrategy
    configs: tuple[LaunchTemplateConfig, ...]
    tags: Tags = ()
    context: str = ""
    reservation_type: ReservationType = ""


class FleetInstance(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One instance that a fleet started."""

    instance_id: str
    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    capacity_type: CapacityType


class FleetError(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What EC2 says of one offering it tried in vain, in EC2's codes."""

    code: str
    message: str
    instance_type: str = ""
    zone: str = ""
    subnet_id: str = ""


class FleetResult(msgspec.Struct, frozen=True, kw_only=True):
    """Instances sorted by id; errors even where instances were started."""

    fleet_id: str
    instances: tuple[FleetInstance, ...] = ()
    errors: tuple[FleetError, ...] = ()


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """DescribeInstances."""

    instance_id: str
    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    state: InstanceState
    launched_at: datetime
    capacity_type: CapacityType
    private_dns_name: str = ""
    security_group_ids: tuple[str, ...] = ()
    tags: Tags = ()

    @property
    def provider_id(self) -> str:
        """As the Node has it: ``aws:///us-east-1a/i-0abc``."""
        return f"aws:///{self.zone}/{self.instance_id}"

    def tag(self, key: str) -> str:
        """Answer the tag's value, "" if there is none."""
        return dict(self.tags).get(key, "")


class FailedCheck(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A status check of EC2 that an instance does not pass: its own, or that of the host below it."""

    of: Literal["instance", "system"]
    since: datetime


class ScheduledEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """What EC2 is going to do to an instance."""

    event_id: str
    code: str
    """``instance-retirement``, ``system-reboot`` …"""
    begins_at: datetime | None = None


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """DescribeInstanceStatus: what EC2 says is wrong with one instance, or will be; both sorted."""

    instance_id: str
    failed: tuple[FailedCheck, ...] = ()
    events: tuple[ScheduledEvent, ...] = ()


class BlockDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One block device mapping of a launch template."""

    device_name: str
    volume_size_gib: int | None = None
    volume_type: str = "gp3"
    encrypted: bool = True
    delete_on_termination: bool | None = None
    iops: int | None = None
    throughput: int | None = None
    kms_key_id: str = ""
    snapshot_id: str = ""
    volume_initialization_rate: int | None = None


class NetworkInterface(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One network interface that a node class asks for."""

    network_card_index: int = 0
    device_index: int = 0
    interface_type: str = "interface"
    """`interface`, or `efa-only`: such a one has no addresses."""


class ConnectionTracking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How long security groups remember idle connections, in seconds; None: EC2's default."""

    tcp_established_timeout: int | None = None
    udp_stream_timeout: int | None = None
    udp_timeout: int | None = None


class LaunchTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """What CreateLaunchTemplate is given; *name* is derived from the content, so equal content is the same template."""

    name: str
    image_id: str
    user_data: str
    """Base64, as EC2 wants it."""
    instance_profile: str = ""
    security_group_ids: tuple[str, ...] = ()
    block_devices: tuple[BlockDevice, ...] = ()
    detailed_monitoring: bool = False
    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = "disabled"
    http_put_response_hop_limit: int = 1
    http_tokens: str = "required"
    associate_public_ip_address: bool | None = None
    ip_prefix_count: int | None = None
    is_ipv6: bool = False
    """The cluster's services have IPv6 addresses: interfaces get one too, and prefixes are of that family."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    """Empty: the primary one only."""
    connection_tracking: ConnectionTracking | None = None
    nested_virtualization: str = ""
    efa_interfaces: int = 0
    """One fast interface on each of so many network cards; 0: none. Where *network_interfaces* are said, they count."""
    enclaves: bool = False
    """Nitro Enclaves may be run."""
    placement_group_id: str = ""
    partition_number: int | None = None
    """Of the placement group; None: EC2 chooses."""
    tenancy: Tenancy = "default"
    capacity_type: CapacityType = "on-demand"
    """`spot`: spot requests are tagged, which EC2 refuses where there are none. `reserved`: it starts nowhere else."""
    reservation_id: str = ""
    """Of a reserved one: the reservation that it starts from."""
    reservation_type: ReservationType = ""
    uses_open_reservations: bool = True
    """Whether an instance that is not reserved may fall into a matching open reservation."""
    tags: Tags = ()
    """On the template itself, and on what it starts where CreateFleet cannot tag: network interfaces, spot requests."""
    created_at: datetime | None = None
    """Filled when read back."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A launch to ask EC2 about, without launching."""

    template: LaunchTemplate
    instance_type: str
    subnet_ids: tuple[str, ...]
    """One of them must do."""
    context: str = ""


class Refusal(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What EC2 would not do: the call, its code and its words."""

    action: str
    """As EC2 spells it: ``RunInstances``."""
    code: str
    message: str


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """One term of an EC2NodeClass selector: an id, or a name, or tags of which all must match (`*` is any value)."""

    id: str = ""
    name: str = ""
    owner: str = ""
    alias: str = ""
    ssm_parameter: str = ""
    instance_match_criteria: str = ""
    """Of capacity reservations: `open` or `targeted`."""
    tags: Tags = ()


class CapacityReservation(msgspec.Struct, frozen=True, kw_only=True):
    """DescribeCapacityReservations, one that is active."""

    reservation_id: str
    instance_type: str
    zone: str
    owner_id: str = ""
    instance_match_criteria: str = "targeted"
    reservation_type: str = "default"
    """`default`, or `capacity-block`."""
    is_interruptible: bool = False
    available_count: int = 0
    total_count: int = 0
    ends_at: datetime | None = None
    """None: never."""
    state: str = ""
    """What a status says of it, `active` or `expiring`; "" where it was read from EC2."""


class PlacementGroup(msgspec.Struct, frozen=True, kw_only=True):
    """DescribePlacementGroups, one that is available."""

    group_id: str
    name: str = ""
    strategy: str = "cluster"
    """`cluster`, `partition` or `spread`."""
    partition_count: int = 0


class Subnet(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """DescribeSubnets."""

    subnet_id: str
    zone: str
    zone_id: str
    available_ip_count: int


class SecurityGroup(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """DescribeSecurityGroups."""

    group_id: str
    name: str


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """DescribeImages; *architecture* is EC2's: ``x86_64`` or ``arm64``."""

    image_id: str
    name: str
    architecture: str
    created_at: datetime
    deprecated_at: datetime | None = None
    tags: Tags = ()


class GpuDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of GpuInfo, InferenceAcceleratorInfo or NeuronInfo; memory of one device."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int = 0
    cores: int = 0


class NetworkCard(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of NetworkInfo.NetworkCards."""

    index: int
    maximum_interfaces: int
    baseline_gbps: float = 0.0


class InstanceTypeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """DescribeInstanceTypes, what the catalogue is computed from."""

    name: str
    architectures: tuple[str, ...]
    """EC2's words: ``x86_64``, ``arm64``."""
    usage_classes: tuple[str, ...]
    vcpus: int
    memory_mib: int
    maximum_interfaces: int
    """Of the default network card."""
    ipv4_per_interface: int
    cpu_manufacturer: str = ""
    clock_speed_ghz: float = 0.0
    hypervisor: str = ""
    bare_metal: bool = False
    encryption_in_transit: bool = False
    nitro_enclaves: bool = False
    ebs_baseline_mbps: int = 0
    ebs_maximum_mbps: int = 0
    ebs_optimized_support: str = ""
    local_storage_gb: int = 0
    nvme_support: str = "unsupported"
    network_cards: tuple[NetworkCard, ...] = ()
    efa_interfaces: int = 0
    gpus: tuple[GpuDevice, ...] = ()
    inference_accelerators: tuple[GpuDevice, ...] = ()
    neurons: tuple[GpuDevice, ...] = ()
    placement_strategies: tuple[str, ...] = ()
    processor_features: tuple[str, ...] = ()
    ena_support: str = ""
    branch_interfaces: int = 0
    """How many pods may have a network interface of their own; EC2 does not say it, the AWS room knows."""


class SpotPrice(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The newest price of one offering."""

    instance_type: str
    zone: str
    price_usd_per_hour: float
    at: datetime


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """eks:DescribeCluster."""

    name: str
    endpoint: str
    certificate_authority: str
    """Base64."""
    version: str
    """As ``1.33``."""
    service_cidr: str
