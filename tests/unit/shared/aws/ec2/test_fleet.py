"""CreateFleet in EC2's words."""

from typing import Any

import msgspec
import pytest

from shared.aws.ec2.fleet import EMPTY_RESULT_ERROR, build_fleet_call, parse_fleet_result
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.types import CapacityType

UID = "uid-1"
OVERRIDE = Override(instance_type="m5.large", zone="us-east-1a", subnet_id="subnet-1", image_id="ami-1", priority=0.5)
REQUEST = FleetRequest(
    client_token=UID,
    capacity=2,
    capacity_type="on-demand",
    allocation_strategy="lowest-price",
    configs=(LaunchTemplateConfig(launch_template_name="joiner/1", overrides=(OVERRIDE,)),),
    tags=(("a", "1"), ("b", "2")),
)
OVERRIDE_DOCUMENT = {
    "InstanceType": "m5.large",
    "SubnetId": "subnet-1",
    "AvailabilityZone": "us-east-1a",
    "ImageId": "ami-1",
}


def test_fleet_type_is_instant_with_the_given_client_token() -> None:
    call = build_fleet_call(REQUEST)
    assert (call["Type"], call["ClientToken"]) == ("instant", UID)
    assert "Context" not in call


def test_override_contains_its_offering_and_priority() -> None:
    (config,) = build_fleet_call(REQUEST)["LaunchTemplateConfigs"]
    assert config["LaunchTemplateSpecification"] == {"LaunchTemplateName": "joiner/1", "Version": "$Latest"}
    assert config["Overrides"] == [{**OVERRIDE_DOCUMENT, "Priority": 0.5}]


def test_override_omits_unset_image_and_priority() -> None:
    bare = msgspec.structs.replace(OVERRIDE, image_id="", priority=None)
    configs = (LaunchTemplateConfig(launch_template_name="joiner/1", overrides=(bare,)),)
    (config,) = build_fleet_call(msgspec.structs.replace(REQUEST, configs=configs))["LaunchTemplateConfigs"]
    assert set(config["Overrides"][0]) == {"InstanceType", "SubnetId", "AvailabilityZone"}


@pytest.mark.parametrize(
    ("capacity_type", "target", "options"),
    [
        ("spot", "spot", "SpotOptions"),
        ("on-demand", "on-demand", "OnDemandOptions"),
        ("reserved", "on-demand", "OnDemandOptions"),
    ],
)
def test_capacity_type_selects_spot_or_on_demand_options(
    capacity_type: CapacityType, target: str, options: str
) -> None:
    call = build_fleet_call(msgspec.structs.replace(REQUEST, capacity_type=capacity_type))
    assert call["TargetCapacitySpecification"] == {"TotalTargetCapacity": 2, "DefaultTargetCapacityType": target}
    assert call[options] == {"AllocationStrategy": "lowest-price"}
    assert not {"SpotOptions", "OnDemandOptions"} - {options} & set(call)


def test_instances_volumes_and_the_fleet_are_tagged() -> None:
    tags = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    assert build_fleet_call(REQUEST)["TagSpecifications"] == [
        {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "fleet")
    ]
    assert "TagSpecifications" not in build_fleet_call(msgspec.structs.replace(REQUEST, tags=()))


def test_context_is_passed_to_create_fleet() -> None:
    assert build_fleet_call(msgspec.structs.replace(REQUEST, context="c"))["Context"] == "c"


def make_response(**parts: Any) -> dict[str, Any]:
    return {"FleetId": "fleet-1", **parts}


def test_fleet_instances_are_split_and_sorted_by_id() -> None:
    part = {
        "InstanceIds": ["i-2", "i-1"],
        "InstanceType": "m5.large",
        "Lifecycle": "on-demand",
        "LaunchTemplateAndOverrides": {"Overrides": OVERRIDE_DOCUMENT},
    }
    result = parse_fleet_result(make_response(Instances=[part], Errors=[]), REQUEST)
    assert result.fleet_id == "fleet-1"
    assert result.errors == ()
    assert result.instances == tuple(
        FleetInstance(
            instance_id=instance_id,
            instance_type="m5.large",
            zone="us-east-1a",
            subnet_id="subnet-1",
            image_id="ami-1",
            capacity_type="on-demand",
        )
        for instance_id in ("i-1", "i-2")
    )


def test_fleet_errors_are_returned_even_if_instances_were_launched() -> None:
    error = {
        "ErrorCode": "InsufficientInstanceCapacity",
        "ErrorMessage": "none left",
        "LaunchTemplateAndOverrides": {"Overrides": OVERRIDE_DOCUMENT},
    }
    started = {"InstanceIds": ["i-1"], "LaunchTemplateAndOverrides": {"Overrides": OVERRIDE_DOCUMENT}}
    result = parse_fleet_result(make_response(Instances=[started], Errors=[error, error]), REQUEST)
    assert [instance.instance_type for instance in result.instances] == ["m5.large"]
    assert result.errors == (
        FleetError(
            code="InsufficientInstanceCapacity",
            message="none left",
            instance_type="m5.large",
            zone="us-east-1a",
            subnet_id="subnet-1",
        ),
    )


@pytest.mark.parametrize("response", [{}, {"FleetId": "fleet-1"}, {"Instances": [], "Errors": []}])
def test_empty_fleet_response_is_an_error(response: dict[str, Any]) -> None:
    result = parse_fleet_result(response, REQUEST)
    assert result.instances == ()
    assert result.errors == (FleetError(code=EMPTY_RESULT_ERROR, message=EMPTY_RESULT_ERROR),)


def test_fleet_error_without_an_offering_is_kept() -> None:
    result = parse_fleet_result(make_response(Errors=[{"ErrorCode": "MaxFleetCountExceeded"}]), REQUEST)
    assert result.errors == (FleetError(code="MaxFleetCountExceeded", message=""),)
