"""Launch templates: block devices, network interfaces, metadata options."""

from datetime import datetime

import msgspec

from shared.model.ec2.types import CapacityType, ReservationType, Tags, Tenancy


class BlockDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One block device mapping of a launch template."""

    device_name: str
    volume_size_gib: int | None = None
    volume_type: str = ""
    """Empty: not sent, so the image or EC2 decides."""
    encrypted: bool | None = None
    """None: not sent, so the image, the snapshot or the account's default decides."""
    delete_on_termination: bool | None = None
    iops: int | None = None
    throughput: int | None = None
    kms_key_id: str = ""
    snapshot_id: str = ""
    volume_initialization_rate: int | None = None


class NetworkInterface(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """One network interface of a node class."""

    network_card_index: int = 0
    device_index: int = 0
    interface_type: str = "interface"
    """`interface`, or `efa-only`, which has no IP addresses."""


class ConnectionTracking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Timeouts of idle connections in security groups, in seconds; None: EC2's default."""

    tcp_established_timeout: int | None = None
    udp_stream_timeout: int | None = None
    udp_timeout: int | None = None


class LaunchTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """The content of CreateLaunchTemplate; *name* is derived from it, so equal content is the same template."""

    name: str
    image_id: str
    user_data: str
    """Base64, as required by EC2."""
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
    """Whether the cluster's services have IPv6 addresses: interfaces get one too, and prefixes are IPv6."""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    """Empty: the primary interface only."""
    connection_tracking: ConnectionTracking | None = None
    nested_virtualization: str = ""
    efa_interfaces: int = 0
    """One EFA interface on each of so many network cards; 0: none. *network_interfaces* take precedence."""
    enclaves: bool = False
    """Whether Nitro Enclaves are enabled."""
    placement_group_id: str = ""
    partition_number: int | None = None
    """The partition of the placement group; None: EC2 chooses."""
    tenancy: Tenancy = "default"
    capacity_type: CapacityType = "on-demand"
    """`spot`: spot requests are tagged, which EC2 refuses for others; `reserved`: launched in the reservation only."""
    reservation_id: str = ""
    """For reserved capacity: the reservation it is launched from."""
    reservation_type: ReservationType = ""
    uses_open_reservations: bool = True
    """Whether an instance that is not reserved may use a matching open reservation."""
    tags: Tags = ()
    """Tags of the template itself, and of what CreateFleet cannot tag: network interfaces, spot requests."""
    created_at: datetime | None = None
    """Set when the template is read back."""
