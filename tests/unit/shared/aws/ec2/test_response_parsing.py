"""What EC2's Describe calls answer, in our words."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shared.aws.ec2.instance_types import parse_instance_type
from shared.aws.ec2.response_parsing import (
    parse_capacity_type,
    parse_image,
    parse_instance,
    parse_launch_template,
    parse_security_group,
    parse_subnet,
)
from shared.model.ec2.account import Image, SecurityGroup, Subnet
from shared.model.ec2.instance import Instance
from shared.model.ec2.instance_type_info import GpuDevice, InstanceTypeInfo, NetworkCard

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONLY = {"CapacityReservationPreference": "capacity-reservations-only"}
OPEN = {"CapacityReservationPreference": "open"}


@pytest.mark.parametrize(
    ("document", "capacity_type"),
    [
        ({}, "on-demand"),
        ({"SpotInstanceRequestId": "sir-1"}, "spot"),
        ({"InstanceLifecycle": "spot"}, "spot"),
        ({"InstanceLifecycle": "scheduled"}, "on-demand"),
        ({"CapacityReservationId": "cr-1", "CapacityReservationSpecification": ONLY}, "reserved"),
        ({"CapacityReservationId": "cr-1", "CapacityReservationSpecification": OPEN}, "on-demand"),
        ({"CapacityReservationId": "cr-1"}, "on-demand"),
        ({"CapacityReservationSpecification": ONLY}, "on-demand"),
        ({"SpotInstanceRequestId": "", "InstanceLifecycle": ""}, "on-demand"),
    ],
)
def test_capacity_type_is_derived_from_lifecycle_and_reservation(document: dict[str, Any], capacity_type: str) -> None:
    assert parse_capacity_type(document) == capacity_type


def test_instance_without_optional_fields_is_parsed() -> None:
    document = {
        "InstanceId": "i-1",
        "InstanceType": "m5.large",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Code": 48, "Name": "terminated"},
        "LaunchTime": NOON.astimezone(timezone(timedelta(hours=1))),
    }
    assert parse_instance(document) == Instance(
        instance_id="i-1",
        instance_type="m5.large",
        zone="us-east-1a",
        subnet_id="",
        image_id="",
        state="terminated",
        launched_at=NOON,
        capacity_type="on-demand",
    )


def test_image_creation_and_deprecation_times_are_parsed() -> None:
    document = {
        "ImageId": "ami-1",
        "Name": "al2023",
        "Architecture": "arm64",
        "CreationDate": "2026-11-21T12:00:00.000Z",
        "DeprecationTime": "2028-11-21T12:00:00.000Z",
        "Tags": [{"Key": "b", "Value": "2"}, {"Key": "a", "Value": "1"}],
    }
    assert parse_image(document) == Image(
        image_id="ami-1",
        name="al2023",
        architecture="arm64",
        created_at=NOON,
        deprecated_at=NOON.replace(year=2028),
        tags=(("a", "1"), ("b", "2")),
    )


def test_image_without_deprecation_time_is_parsed() -> None:
    document = {"ImageId": "ami-1", "Architecture": "arm64", "CreationDate": "2026-11-21T12:00:00.000Z"}
    assert parse_image(document).deprecated_at is None


def test_omitted_response_fields_are_empty() -> None:
    subnet = parse_subnet({"SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a"})
    assert subnet == Subnet(subnet_id="subnet-1", zone="us-east-1a", zone_id="", available_ip_count=0)
    assert parse_security_group({"GroupId": "sg-1"}) == SecurityGroup(group_id="sg-1", name="")
    template = parse_launch_template({"LaunchTemplateName": "a", "CreateTime": NOON})
    assert (template.name, template.tags, template.created_at) == ("a", (), NOON)


def test_instance_type_without_optional_fields_is_parsed() -> None:
    document = {
        "InstanceType": "t1.micro",
        "VCpuInfo": {"DefaultVCpus": 1},
        "MemoryInfo": {"SizeInMiB": 627},
        "NetworkInfo": {"MaximumNetworkInterfaces": 2, "Ipv4AddressesPerInterface": 2},
    }
    assert parse_instance_type(document) == InstanceTypeInfo(
        name="t1.micro",
        architectures=(),
        usage_classes=(),
        vcpus=1,
        memory_mib=627,
        maximum_interfaces=2,
        ipv4_per_interface=2,
    )


def test_maximum_interfaces_come_from_the_default_network_card() -> None:
    cards = [
        {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2},
        {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 7, "BaselineBandwidthInGbps": 12.5},
    ]
    network = {"MaximumNetworkInterfaces": 9, "DefaultNetworkCardIndex": 1, "NetworkCards": cards}
    document = {"InstanceType": "a", "VCpuInfo": {"DefaultVCpus": 1}, "MemoryInfo": {"SizeInMiB": 1}}
    info = parse_instance_type({**document, "NetworkInfo": network})
    assert info.maximum_interfaces == 7
    assert info.network_cards == (
        NetworkCard(index=0, maximum_interfaces=2),
        NetworkCard(index=1, maximum_interfaces=7, baseline_gbps=12.5),
    )


def test_neuron_device_manufacturer_is_aws() -> None:
    device = {"Name": "Trainium", "Count": 16, "CoreInfo": {"Count": 2}, "MemoryInfo": {"SizeInMiB": 32768}}
    document = {"InstanceType": "a", "VCpuInfo": {"DefaultVCpus": 1}, "MemoryInfo": {"SizeInMiB": 1}}
    info = parse_instance_type({**document, "NeuronInfo": {"NeuronDevices": [device]}})
    assert info.neurons == (GpuDevice(name="Trainium", manufacturer="AWS", count=16, memory_mib=32768, cores=2),)
