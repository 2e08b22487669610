"""CreateFleet requests and results."""

from typing import Final

import msgspec

from shared.model.ec2.types import AllocationStrategy, CapacityType, ReservationType, Tags

NO_SPOT_ROLE_CODE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
"""The spot service-linked role is missing: the request is invalid, although Joiner has its permissions."""


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
    """A CreateFleet request of type `instant`; the same *client_token* with the same content is the same call."""

    client_token: str
    capacity: int
    capacity_type: CapacityType
    allocation_strategy: AllocationStrategy
    configs: tuple[LaunchTemplateConfig, ...]
    tags: Tags = ()
    context: str = ""
    reservation_type: ReservationType = ""


class FleetInstance(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One instance launched by a fleet."""

    instance_id: str
    instance_type: str
    zone: str
    subnet_id: str
    image_id: str
    capacity_type: CapacityType


class FleetError(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """EC2's error for one offering that it tried, with EC2's error code."""

    code: str
    message: str
    instance_type: str = ""
    zone: str = ""
    subnet_id: str = ""


EMPTY_RESULT_ERROR: Final = FleetError(code="too few instances returned", message="too few instances returned")
"""Stands for a response with neither instances nor errors."""


class FleetResult(msgspec.Struct, frozen=True, kw_only=True):
    """The response of CreateFleet: instances sorted by id; there can be errors even if instances were launched."""

    fleet_id: str
    instances: tuple[FleetInstance, ...] = ()
    errors: tuple[FleetError, ...] = ()

    def is_explained(self) -> bool:
        """Return whether there are instances, or EC2 names an offering that it could not launch."""
        return bool(self.instances) or any(error.instance_type for error in self.errors)
