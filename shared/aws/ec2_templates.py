"""CreateLaunchTemplate in EC2's words."""

from typing import Any

from shared.aws.ec2_answers import RESERVED_ONLY
from shared.aws.ec2_fleet import tag_specification
from shared.model.ec2 import BlockDevice, LaunchTemplate


def launch_template_call(template: LaunchTemplate, region: str) -> dict[str, Any]:
    """Answer the arguments of `create_launch_template`."""
    call: dict[str, Any] = {
        "LaunchTemplateName": template.name,
        "LaunchTemplateData": {
            "ImageId": template.image_id,
            "UserData": template.user_data,
            "Monitoring": {"Enabled": template.detailed_monitoring},
            "MetadataOptions": _metadata_options(template, region),
            "NetworkInterfaces": [_network_interface(template)],
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
    if template.capacity_type == "reserved":
        data["CapacityReservationSpecification"] = {"CapacityReservationPreference": RESERVED_ONLY}
    if template.tags:
        kinds = ("network-interface", *(["spot-instances-request"] if template.capacity_type == "spot" else []))
        data["TagSpecifications"] = [tag_specification(kind, template.tags) for kind in kinds]
    return data


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


def _network_interface(template: LaunchTemplate) -> dict[str, Any]:
    """Answer the primary interface; security groups are said here, since EC2 takes them in one place only."""
    interface: dict[str, Any] = {"DeviceIndex": 0, "Groups": list(template.security_group_ids)}
    if template.associate_public_ip_address is not None:
        interface["AssociatePublicIpAddress"] = template.associate_public_ip_address
    return interface


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
    }
    return {"DeviceName": device.device_name, "Ebs": {key: value for key, value in said.items() if value is not None}}
