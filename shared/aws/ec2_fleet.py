"""CreateFleet: our request in EC2's words, and EC2's answer in ours."""

from collections.abc import Mapping
from typing import Any, Final

from shared.model.ec2 import (
    CapacityType,
    FleetError,
    FleetInstance,
    FleetRequest,
    FleetResult,
    LaunchTemplateConfig,
    Override,
    Tags,
)

TAGGED: Final = ("instance", "volume", "fleet")
"""What CreateFleet tags; network interfaces and spot requests are tagged by the launch template."""

INTERRUPTIBLE: Final = "interruptible-capacity-reservation"
NOTHING_STARTED: Final = "too few instances returned"
"""Code and text of the error that stands for an answer with neither instances nor errors."""


def fleet_call(request: FleetRequest) -> dict[str, Any]:
    """Answer the arguments of `create_fleet`."""
    call: dict[str, Any] = {
        "Type": "instant",
        "ClientToken": request.client_token,
        "LaunchTemplateConfigs": [_config(config) for config in request.configs],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.capacity,
            "DefaultTargetCapacityType": _target(request),
        },
        **_options(request),
    }
    if request.tags:
        call["TagSpecifications"] = [tag_specification(kind, request.tags) for kind in TAGGED]
    if request.context:
        call["Context"] = request.context
    return call


def tag_specification(resource_type: str, tags: Tags) -> dict[str, Any]:
    """Answer one TagSpecification."""
    return {"ResourceType": resource_type, "Tags": [{"Key": key, "Value": value} for key, value in tags]}


def fleet_result_from_wire(answer: Mapping[str, Any], request: FleetRequest) -> FleetResult:
    """Answer what CreateFleet did. An answer that says nothing at all gets an error that says so."""
    instances = tuple(
        sorted(instance for part in answer.get("Instances", ()) for instance in _instances(part, request.capacity_type))
    )
    errors = tuple(sorted({_error(part) for part in answer.get("Errors", ())}))
    if not instances and not errors:
        errors = (FleetError(code=NOTHING_STARTED, message=NOTHING_STARTED),)
    return FleetResult(fleet_id=answer.get("FleetId", ""), instances=instances, errors=errors)


def _target(request: FleetRequest) -> str:
    """Answer EC2's word for how the machines are paid for; an on-demand reservation is used on demand."""
    if request.capacity_type == "spot":
        return "spot"
    return {"capacity-block": "capacity-block", "interruptible": "reserved-capacity"}.get(
        request.reservation_type, "on-demand"
    )


def _options(request: FleetRequest) -> dict[str, Any]:
    """Answer how EC2 chooses among the offerings; of a capacity block there is no choice."""
    if request.reservation_type == "capacity-block":
        return {}
    if request.reservation_type == "interruptible":
        return {"ReservedCapacityOptions": {"ReservationTypes": [INTERRUPTIBLE]}}
    name = "SpotOptions" if request.capacity_type == "spot" else "OnDemandOptions"
    return {name: {"AllocationStrategy": request.allocation_strategy}}


def _config(config: LaunchTemplateConfig) -> dict[str, Any]:
    template = {"LaunchTemplateName": config.launch_template_name, "Version": "$Latest"}
    overrides = [_override(override) for override in config.overrides]
    return {"LaunchTemplateSpecification": template, "Overrides": overrides}


def _override(override: Override) -> dict[str, Any]:
    said: dict[str, Any] = {
        "InstanceType": override.instance_type,
        "SubnetId": override.subnet_id,
        "AvailabilityZone": override.zone,
    }
    if override.image_id:
        said["ImageId"] = override.image_id
    if override.priority is not None:
        said["Priority"] = override.priority
    return said


def _instances(part: Mapping[str, Any], capacity_type: CapacityType) -> tuple[FleetInstance, ...]:
    said = _overrides(part)
    return tuple(
        FleetInstance(
            instance_id=instance_id,
            instance_type=part.get("InstanceType") or said.get("InstanceType", ""),
            zone=said.get("AvailabilityZone", ""),
            subnet_id=said.get("SubnetId", ""),
            image_id=said.get("ImageId", ""),
            capacity_type=capacity_type,
        )
        for instance_id in part.get("InstanceIds", ())
    )


def _error(part: Mapping[str, Any]) -> FleetError:
    said = _overrides(part)
    return FleetError(
        code=part.get("ErrorCode", ""),
        message=part.get("ErrorMessage", ""),
        instance_type=said.get("InstanceType", ""),
        zone=said.get("AvailabilityZone", ""),
        subnet_id=said.get("SubnetId", ""),
    )


def _overrides(part: Mapping[str, Any]) -> Mapping[str, Any]:
    overrides: Mapping[str, Any] = part.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    return overrides
