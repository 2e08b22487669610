"""CreateLaunchTemplate: conversion of a `LaunchTemplate` into the call's arguments."""

from typing import Any, Final

from shared.aws.ec2.fleet import INTERRUPTIBLE_RESERVATION, build_tag_specification
from shared.aws.ec2.response_parsing import RESERVED_ONLY_PREFERENCE
from shared.model.ec2.launch_template import BlockDevice, LaunchTemplate

_MARKET_TYPES: Final = {"capacity-block": "capacity-block", "interruptible": INTERRUPTIBLE_RESERVATION}

EFA: Final = "efa"
EFA_ONLY: Final = "efa-only"


def build_launch_template_call(template: LaunchTemplate, region: str) -> dict[str, Any]:
    """Build the arguments of `create_launch_template`."""
    call: dict[str, Any] = {
        "LaunchTemplateName": template.name,
        "LaunchTemplateData": {
            "ImageId": template.image_id,
            "UserData": template.user_data,
            "Monitoring": {"Enabled": template.detailed_monitoring},
            "MetadataOptions": _build_metadata_options(template, region),
            "NetworkInterfaces": build_network_interfaces(template),
            "Placement": _build_placement(template),
            **_build_optional_data(template),
        },
    }
    if template.tags:
        call["TagSpecifications"] = [build_tag_specification("launch-template", template.tags)]
    return call


def _build_optional_data(template: LaunchTemplate) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if template.instance_profile:
        data["IamInstanceProfile"] = {"Name": template.instance_profile}
    if template.block_devices:
        data["BlockDeviceMappings"] = [_build_block_device(device) for device in template.block_devices]
    if template.nested_virtualization:
        data["CpuOptions"] = {"NestedVirtualization": template.nested_virtualization}
    if template.enclaves:
        data["EnclaveOptions"] = {"Enabled": True}
    reservation = _build_reservation_specification(template)
    if reservation:
        data["CapacityReservationSpecification"] = reservation
    market = _MARKET_TYPES.get(template.reservation_type)
    if market:
        data["InstanceMarketOptions"] = {"MarketType": market}
    if template.tags:
        kinds = ("network-interface", *(["spot-instances-request"] if template.capacity_type == "spot" else []))
        data["TagSpecifications"] = [build_tag_specification(kind, template.tags) for kind in kinds]
    return data


def _build_placement(template: LaunchTemplate) -> dict[str, Any]:
    placement = {
        "Tenancy": template.tenancy,
        "GroupId": template.placement_group_id or None,
        "PartitionNumber": template.partition_number,
    }
    return {key: value for key, value in placement.items() if value is not None}


def _build_reservation_specification(template: LaunchTemplate) -> dict[str, Any]:
    """Build the reservation preference: the reservation that the template names, any matching open one, or none."""
    if template.capacity_type != "reserved":
        return {} if template.uses_open_reservations else {"CapacityReservationPreference": "none"}
    specification: dict[str, Any] = {"CapacityReservationPreference": RESERVED_ONLY_PREFERENCE}
    if template.reservation_id:
        specification["CapacityReservationTarget"] = {"CapacityReservationId": template.reservation_id}
    return specification


def _build_metadata_options(template: LaunchTemplate, region: str) -> dict[str, Any]:
    """Build the metadata options; the isolated regions do not support the IPv6 endpoint."""
    options: dict[str, Any] = {
        "HttpEndpoint": template.http_endpoint,
        "HttpPutResponseHopLimit": template.http_put_response_hop_limit,
        "HttpTokens": template.http_tokens,
        "InstanceMetadataTags": "disabled",
    }
    if not region.startswith("us-iso"):
        options["HttpProtocolIpv6"] = template.http_protocol_ipv6
    return options


def build_network_interfaces(template: LaunchTemplate) -> list[dict[str, Any]]:
    """Build the network interfaces, with the security groups, which EC2 accepts in one place only.

    An `efa-only` interface has no addresses, so it gets no address settings.
    """
    if not template.network_interfaces and template.efa_interfaces:
        return [
            {
                "NetworkCardIndex": card,
                "DeviceIndex": min(card, 1),
                "InterfaceType": EFA,
                **_build_address_settings(template),
            }
            for card in range(template.efa_interfaces)
        ]
    if not template.network_interfaces:
        return [{"DeviceIndex": 0, **_build_address_settings(template)}]
    return [
        {
            "NetworkCardIndex": interface.network_card_index,
            "DeviceIndex": interface.device_index,
            "InterfaceType": interface.interface_type,
            **(
                {"Groups": list(template.security_group_ids)}
                if interface.interface_type == EFA_ONLY
                else _build_address_settings(template)
            ),
        }
        for interface in template.network_interfaces
    ]


def _build_address_settings(template: LaunchTemplate) -> dict[str, Any]:
    settings: dict[str, Any] = {
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
        settings["ConnectionTrackingSpecification"] = {
            key: value for key, value in timeouts.items() if value is not None
        }
    return {key: value for key, value in settings.items() if value is not None}


def _build_block_device(device: BlockDevice) -> dict[str, Any]:
    ebs = {
        "Encrypted": device.encrypted,
        "VolumeType": device.volume_type or None,
        "VolumeSize": device.volume_size_gib,
        "DeleteOnTermination": device.delete_on_termination,
        "Iops": device.iops or None,
        "Throughput": device.throughput or None,
        "KmsKeyId": device.kms_key_id or None,
        "SnapshotId": device.snapshot_id or None,
        "VolumeInitializationRate": device.volume_initialization_rate,
    }
    return {"DeviceName": device.device_name, "Ebs": {key: value for key, value in ebs.items() if value is not None}}
