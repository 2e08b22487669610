"""CreateLaunchTemplate in EC2's words."""

from typing import Any, Final

from shared.aws.ec2_answers import RESERVED_ONLY
from shared.aws.ec2_fleet import INTERRUPTIBLE, tag_specification
from shared.model.ec2 import BlockDevice, LaunchTemplate

_MARKETS: Final = {"capacity-block": "capacity-block", "interruptible": INTERRUPTIBLE}

EFA: Final = "efa"
EFA_ONLY: Final = "efa-only"


def launch_template_call(template: LaunchTemplate, region: str) -> dict[str, Any]:
    """Answer the arguments of `create_launch_template`."""
    call: dict[str, Any] = {
        "LaunchTemplateName": template.name,
        "LaunchTemplateData": {
            "ImageId": template.image_id,
            "UserData": template.user_data,
            "Monitoring": {"Enabled": template.detailed_monitoring},
            "MetadataOptions": _metadata_options(template, region),
            "NetworkInterfaces": network_interfaces(template),
            "Placement": _placement(template),
            **_where_given(template),
        },
    }
    if template.tags:
        call["TagSpecifications"] = [tag_specification("launch-template", template.tags)]
    return call


def _where_given(template: LaunchTemplate) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if template.instance_profile:
        data["IamInstanceProfile"] = {"Name": template.instance_profile}
    if template.block_devices:
        data["BlockDeviceMappings"] = [_block_device(device) for device in template.block_devices]
    if template.nested_virtualization:
        data["CpuOptions"] = {"NestedVirtualization": template.nested_virtualization}
    if template.enclaves:
        data["EnclaveOptions"] = {"Enabled": True}
    reservation = _reservation(template)
    if reservation:
        data["CapacityReservationSpecification"] = reservation
    market = _MARKETS.get(template.reservation_type)
    if market:
        data["InstanceMarketOptions"] = {"MarketType": market}
    if template.tags:
        kinds = ("network-interface", *(["spot-instances-request"] if template.capacity_type == "spot" else []))
        data["TagSpecifications"] = [tag_specification(kind, template.tags) for kind in kinds]
    return data


def _placement(template: LaunchTemplate) -> dict[str, Any]:
    said = {
        "Tenancy": template.tenancy,
        "GroupId": template.placement_group_id or None,
        "PartitionNumber": template.partition_number,
    }
    return {key: value for key, value in said.items() if value is not None}


def _reservation(template: LaunchTemplate) -> dict[str, Any]:
    """Answer which reservation is used: the one that is named, or an open one that fits, or none."""
    if template.capacity_type != "reserved":
        return {} if template.uses_open_reservations else {"CapacityReservationPreference": "none"}
    said: dict[str, Any] = {"CapacityReservationPreference": RESERVED_ONLY}
    if template.reservation_id:
        said["CapacityReservationTarget"] = {"CapacityReservationId": template.reservation_id}
    return said


def _metadata_options(template: LaunchTemplate, region: str) -> dict[str, Any]:
    """Answer the options; the isolated regions do not know the IPv6 endpoint."""
    options: dict[str, Any] = {
        "HttpEndpoint": template.http_endpoint,
        "HttpPutResponseHopLimit": template.http_put_response_hop_limit,
        "HttpTokens": template.http_tokens,
        "InstanceMetadataTags": "disabled",
    }
    if not region.startswith("us-iso"):
        options["HttpProtocolIpv6"] = template.http_protocol_ipv6
    return options


def network_interfaces(template: LaunchTemplate) -> list[dict[str, Any]]:
    """Answer the interfaces; security groups are said here, since EC2 takes them in one place only.

    An `efa-only` interface has no addresses, so nothing about addresses is said of it.
    """
    if not template.network_interfaces and template.efa_interfaces:
        return [
            {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": EFA, **_addresses(template)}
            for card in range(template.efa_interfaces)
        ]
    if not template.network_interfaces:
        return [{"DeviceIndex": 0, **_addresses(template)}]
    return [
        {
            "NetworkCardIndex": one.network_card_index,
            "DeviceIndex": one.device_index,
            "InterfaceType": one.interface_type,
            **(
                {"Groups": list(template.security_group_ids)}
                if one.interface_type == EFA_ONLY
                else _addresses(template)
            ),
        }
        for one in template.network_interfaces
    ]


def _addresses(template: LaunchTemplate) -> dict[str, Any]:
    said: dict[str, Any] = {
        "Groups": list(template.security_group_ids),
        "AssociatePublicIpAddress": template.associate_public_ip_address,
        "Ipv6PrefixCount" if template.is_ipv6 else "Ipv4PrefixCount": template.ip_prefix_count,
        **({"PrimaryIpv6": True, "Ipv6AddressCount": 1} if template.is_ipv6 else {}),
    }
    tracking = template.connection_tracking
    if tracking is not None:
        timeouts = {
            "TcpEstablishedTimeout": tracking.tcp_established_timeout,
            "UdpStreamTimeout": tracking.udp_stream_timeout,
            "UdpTimeout": tracking.udp_timeout,
        }
        said["ConnectionTrackingSpecification"] = {key: value for key, value in timeouts.items() if value is not None}
    return {key: value for key, value in said.items() if value is not None}


def _block_device(device: BlockDevice) -> dict[str, Any]:
    said = {
        "Encrypted": device.encrypted,
        "VolumeType": device.volume_type,
        "VolumeSize": device.volume_size_gib,
        "DeleteOnTermination": device.delete_on_termination,
        "Iops": device.iops or None,
        "Throughput": device.throughput or None,
        "KmsKeyId": device.kms_key_id or None,
        "SnapshotId": device.snapshot_id or None,
        "VolumeInitializationRate": device.volume_initialization_rate,
    }
    return {"DeviceName": device.device_name, "Ebs": {key: value for key, value in said.items() if value is not None}}
