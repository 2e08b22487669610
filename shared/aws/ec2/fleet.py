"""CreateFleet: conversion of a `FleetRequest` into arguments, and of the response into a `FleetResult`."""

from collections.abc import Mapping
from typing import Any, Final

from shared.model.ec2.fleet import (
    EMPTY_RESULT_ERROR,
    FleetError,
    FleetInstance,
    FleetRequest,
    FleetResult,
    LaunchTemplateConfig,
    Override,
)
from shared.model.ec2.types import CapacityType, Tags

FLEET_TAGGED_RESOURCES: Final = ("instance", "volume", "fleet")
"""Resource types that CreateFleet tags; the launch template tags network interfaces and spot requests."""

INTERRUPTIBLE_RESERVATION: Final = "interruptible-capacity-reservation"


def build_fleet_call(request: FleetRequest) -> dict[str, Any]:
    """Build the arguments of `create_fleet`."""
    call: dict[str, Any] = {
        "Type": "instant",
        "ClientToken": request.client_token,
        "LaunchTemplateConfigs": [_build_config(config) for config in request.configs],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.capacity,
            "DefaultTargetCapacityType": _get_target_capacity_type(request),
        },
        **_build_allocation_options(request),
    }
    if request.tags:
        call["TagSpecifications"] = [build_tag_specification(kind, request.tags) for kind in FLEET_TAGGED_RESOURCES]
    if request.context:
        call["Context"] = request.context
    return call


def build_tag_specification(resource_type: str, tags: Tags) -> dict[str, Any]:
    """Build one TagSpecification."""
    return {"ResourceType": resource_type, "Tags": [{"Key": key, "Value": value} for key, value in tags]}


def parse_fleet_result(response: Mapping[str, Any], request: FleetRequest) -> FleetResult:
    """Parse the response of CreateFleet. A response with neither instances nor errors gets an error that says so."""
    instances = tuple(
        sorted(
            instance
            for part in response.get("Instances", ())
            for instance in _parse_instances(part, request.capacity_type)
        )
    )
    errors = tuple(sorted({_parse_error(part) for part in response.get("Errors", ())}))
    if not instances and not errors:
        errors = (EMPTY_RESULT_ERROR,)
    return FleetResult(fleet_id=response.get("FleetId", ""), instances=instances, errors=errors)


def _get_target_capacity_type(request: FleetRequest) -> str:
    """Return the default target capacity type; a plain capacity reservation is used with on-demand."""
    if request.capacity_type == "spot":
        return "spot"
    return {"capacity-block": "capacity-block", "interruptible": "reserved-capacity"}.get(
        request.reservation_type, "on-demand"
    )


def _build_allocation_options(request: FleetRequest) -> dict[str, Any]:
    """Build the allocation options, by which EC2 chooses among the offerings; a capacity block has no choice."""
    if request.reservation_type == "capacity-block":
        return {}
    if request.reservation_type == "interruptible":
        return {"ReservedCapacityOptions": {"ReservationTypes": [INTERRUPTIBLE_RESERVATION]}}
    name = "SpotOptions" if request.capacity_type == "spot" else "OnDemandOptions"
    return {name: {"AllocationStrategy": request.allocation_strategy}}


def _build_config(config: LaunchTemplateConfig) -> dict[str, Any]:
    template = {"LaunchTemplateName": config.launch_template_name, "Version": "$Latest"}
    overrides = [_build_override(override) for override in config.overrides]
    return {"LaunchTemplateSpecification": template, "Overrides": overrides}


def _build_override(override: Override) -> dict[str, Any]:
    override_data: dict[str, Any] = {
        "InstanceType": override.instance_type,
        "SubnetId": override.subnet_id,
        "AvailabilityZone": override.zone,
    }
    if override.image_id:
        override_data["ImageId"] = override.image_id
    if override.priority is not None:
        override_data["Priority"] = override.priority
    return override_data


def _parse_instances(part: Mapping[str, Any], capacity_type: CapacityType) -> tuple[FleetInstance, ...]:
    override_data = _get_overrides(part)
    return tuple(
        FleetInstance(
            instance_id=instance_id,
            instance_type=part.get("InstanceType") or override_data.get("InstanceType", ""),
            zone=override_data.get("AvailabilityZone", ""),
            subnet_id=override_data.get("SubnetId", ""),
            image_id=override_data.get("ImageId", ""),
            capacity_type=capacity_type,
        )
        for instance_id in part.get("InstanceIds", ())
    )


def _parse_error(part: Mapping[str, Any]) -> FleetError:
    override_data = _get_overrides(part)
    return FleetError(
        code=part.get("ErrorCode", ""),
        message=part.get("ErrorMessage", ""),
        instance_type=override_data.get("InstanceType", ""),
        zone=override_data.get("AvailabilityZone", ""),
        subnet_id=override_data.get("SubnetId", ""),
    )


def _get_overrides(part: Mapping[str, Any]) -> Mapping[str, Any]:
    overrides: Mapping[str, Any] = part.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    return overrides
