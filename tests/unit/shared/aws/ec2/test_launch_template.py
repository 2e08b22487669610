"""CreateLaunchTemplate in EC2's words."""

from typing import Any

import msgspec
import pytest

from shared.aws.ec2.launch_template import build_launch_template_call
from shared.model.ec2.launch_template import BlockDevice, ConnectionTracking, LaunchTemplate, NetworkInterface
from shared.model.ec2.types import CapacityType

PLAIN = LaunchTemplate(name="joiner/1", image_id="ami-1", user_data="YQ==", security_group_ids=("sg-1", "sg-2"))


def build_data(region: str = "us-east-1", **changes: Any) -> dict[str, Any]:
    call = build_launch_template_call(msgspec.structs.replace(PLAIN, **changes), region)
    template_data: dict[str, Any] = call["LaunchTemplateData"]
    return template_data


def test_minimal_launch_template_has_default_options() -> None:
    assert build_launch_template_call(PLAIN, "us-east-1") == {
        "LaunchTemplateName": "joiner/1",
        "LaunchTemplateData": {
            "ImageId": "ami-1",
            "UserData": "YQ==",
            "Monitoring": {"Enabled": False},
            "MetadataOptions": {
                "HttpEndpoint": "enabled",
                "HttpProtocolIpv6": "disabled",
                "HttpPutResponseHopLimit": 1,
                "HttpTokens": "required",
                "InstanceMetadataTags": "disabled",
            },
            "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-1", "sg-2"]}],
            "Placement": {"Tenancy": "default"},
        },
    }


@pytest.mark.parametrize("region", ["us-iso-east-1", "us-isob-east-1"])
def test_isolated_regions_omit_the_ipv6_metadata_endpoint(region: str) -> None:
    assert "HttpProtocolIpv6" not in build_data(region)["MetadataOptions"]


@pytest.mark.parametrize("is_public", [True, False])
def test_public_ip_association_is_set_only_if_configured(*, is_public: bool) -> None:
    (interface,) = build_data(associate_public_ip_address=is_public)["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is is_public


def test_instance_profile_is_set_by_name() -> None:
    assert build_data(instance_profile="nodes")["IamInstanceProfile"] == {"Name": "nodes"}


def test_block_device_mapping_contains_only_configured_fields() -> None:
    devices = (
        BlockDevice(device_name="/dev/xvda", volume_size_gib=20, iops=0),
        BlockDevice(
            device_name="/dev/xvdb",
            volume_type="io2",
            encrypted=False,
            delete_on_termination=True,
            iops=4000,
            throughput=250,
            kms_key_id="key",
            snapshot_id="snap-1",
        ),
    )
    assert build_data(block_devices=devices)["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": 20}},
        {
            "DeviceName": "/dev/xvdb",
            "Ebs": {
                "Encrypted": False,
                "VolumeType": "io2",
                "DeleteOnTermination": True,
                "Iops": 4000,
                "Throughput": 250,
                "KmsKeyId": "key",
                "SnapshotId": "snap-1",
            },
        },
    ]


@pytest.mark.parametrize(
    ("capacity_type", "tagged"),
    [
        ("on-demand", ["network-interface"]),
        ("reserved", ["network-interface"]),
        ("spot", ["network-interface", "spot-instances-request"]),
    ],
)
def test_spot_instances_request_is_tagged_only_for_spot(capacity_type: CapacityType, tagged: list[str]) -> None:
    call = build_launch_template_call(
        msgspec.structs.replace(PLAIN, capacity_type=capacity_type, tags=(("a", "1"),)), "us-east-1"
    )
    tags = [{"Key": "a", "Value": "1"}]
    assert call["TagSpecifications"] == [{"ResourceType": "launch-template", "Tags": tags}]
    assert call["LaunchTemplateData"]["TagSpecifications"] == [{"ResourceType": kind, "Tags": tags} for kind in tagged]


def test_reserved_launch_template_uses_capacity_reservations_only() -> None:
    only = {"CapacityReservationPreference": "capacity-reservations-only"}
    assert build_data(capacity_type="reserved")["CapacityReservationSpecification"] == only
    assert "CapacityReservationSpecification" not in build_data(capacity_type="spot")


def test_all_network_interfaces_are_listed_and_efa_only_has_no_addresses() -> None:
    primary, fast = build_data(
        network_interfaces=(
            NetworkInterface(),
            NetworkInterface(network_card_index=1, device_index=1, interface_type="efa-only"),
        ),
        associate_public_ip_address=False,
        ip_prefix_count=2,
        connection_tracking=ConnectionTracking(udp_timeout=40, tcp_established_timeout=600),
    )["NetworkInterfaces"]
    assert primary == {
        "NetworkCardIndex": 0,
        "DeviceIndex": 0,
        "InterfaceType": "interface",
        "Groups": ["sg-1", "sg-2"],
        "AssociatePublicIpAddress": False,
        "Ipv4PrefixCount": 2,
        "ConnectionTrackingSpecification": {"TcpEstablishedTimeout": 600, "UdpTimeout": 40},
    }
    assert fast == {
        "NetworkCardIndex": 1,
        "DeviceIndex": 1,
        "InterfaceType": "efa-only",
        "Groups": ["sg-1", "sg-2"],
    }


def test_ipv6_clusters_get_ipv6_network_interfaces() -> None:
    (interface,) = build_data(is_ipv6=True, ip_prefix_count=1)["NetworkInterfaces"]
    assert (interface["PrimaryIpv6"], interface["Ipv6AddressCount"], interface["Ipv6PrefixCount"]) == (True, 1, 1)
    assert "Ipv4PrefixCount" not in interface


def test_nested_virtualization_and_volume_initialization_rate_are_set() -> None:
    device = BlockDevice(device_name="/dev/xvda", snapshot_id="snap-1", volume_initialization_rate=200)
    template_data = build_data(nested_virtualization="enabled", block_devices=(device,))
    assert template_data["CpuOptions"] == {"NestedVirtualization": "enabled"}
    assert template_data["BlockDeviceMappings"][0]["Ebs"]["VolumeInitializationRate"] == 200
    assert "CpuOptions" not in build_data()


def test_monitoring_and_metadata_options_are_set_as_requested() -> None:
    template_data = build_data(
        detailed_monitoring=True,
        http_endpoint="disabled",
        http_protocol_ipv6="enabled",
        http_put_response_hop_limit=2,
        http_tokens="optional",
    )
    assert template_data["Monitoring"] == {"Enabled": True}
    assert template_data["MetadataOptions"] == {
        "HttpEndpoint": "disabled",
        "HttpProtocolIpv6": "enabled",
        "HttpPutResponseHopLimit": 2,
        "HttpTokens": "optional",
        "InstanceMetadataTags": "disabled",
    }
