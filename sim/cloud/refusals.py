"""Why an offering cannot be used: EC2's codes and, near enough, its words."""

from collections.abc import Sequence

from shared.errors import Gone


class Refused(Exception):
    """One offering is refused; *code* is EC2's, the message its words."""

    def __init__(self, code: str, message: str) -> None:
        """Carry both."""
        super().__init__(message)
        self.code = code


def missing(gone: Gone) -> Refused:
    """Take code and words from a `Gone` whose message is ``code: words``."""
    code, _, text = str(gone).partition(": ")
    return Refused(code, text)


def no_such_type(instance_type: str) -> Refused:
    """There is no such instance type."""
    return Refused("InvalidInstanceType", f"The instance type '{instance_type}' does not exist")


def no_such_group(group_id: str) -> Refused:
    """There is no such security group."""
    return Refused("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")


def not_in_zone(instance_type: str, zone: str, elsewhere: Sequence[str]) -> Refused:
    """The type is not offered in the zone, but in the zones *elsewhere*."""
    return Refused(
        "Unsupported",
        f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
        f"({zone}). Please retry your request by not specifying an Availability Zone or choosing "
        f"{', '.join(elsewhere) or 'another region'}.",
    )


def not_as_spot(instance_type: str) -> Refused:
    """The type is sold on demand only."""
    return Refused("Unsupported", f"The instance type {instance_type} cannot be requested as spot.")


def not_a_spot_request() -> Refused:
    """The template tags a spot request, and the launch makes none."""
    return Refused(
        "InvalidParameterValue", "'spot-instances-request' is not a valid taggable resource type for this operation."
    )


def other_zone(subnet_id: str, zone: str) -> Refused:
    """The override names a zone that is not its subnet's."""
    return Refused("InvalidParameterValue", f"The subnet '{subnet_id}' is not in the Availability Zone '{zone}'")


def other_architecture(instance_type: Sequence[str], image: str) -> Refused:
    """The image is for another processor."""
    return Refused(
        "InvalidParameterValue",
        f"The architecture '{','.join(instance_type)}' of the specified instance type does not match the architecture "
        f"'{image}' of the specified AMI. Specify an instance type and an AMI that have matching architectures.",
    )


def no_addresses(subnet_id: str) -> Refused:
    """The subnet is full."""
    return Refused(
        "InsufficientFreeAddressesInSubnet",
        f"There are not enough free addresses in subnet '{subnet_id}' to satisfy the requested number of instances.",
    )


def spot_quota() -> Refused:
    """The account may not have so much spot."""
    return Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")


def on_demand_quota(vcpus: int) -> Refused:
    """The account may not have so much on demand."""
    return Refused(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {vcpus} allows for the instance bucket "
        "that the specified instance type belongs to.",
    )


def no_reservation() -> Refused:
    """What was reserved is used, or nothing was."""
    return Refused("ReservationCapacityExceeded", "The requested reservation does not have sufficient capacity.")


def other_reservation(reservation_id: str) -> Refused:
    """The reservation does not exist, or is for another type or zone."""
    return Refused(
        "InvalidCapacityReservationId.NotFound",
        f"The capacity reservation '{reservation_id}' does not exist or has other attributes than the request.",
    )


def no_capacity(instance_type: str, zone: str, elsewhere: Sequence[str]) -> Refused:
    """EC2 has none there; the type is offered in the zones *elsewhere* too."""
    return Refused(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
        f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
        f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing "
        f"{', '.join(elsewhere) or 'another region'}.",
    )


def no_spot_anywhere() -> Refused:
    """What a spot request hears of every empty pool when nothing at all could be started."""
    return Refused(
        "UnfulfillableCapacity",
        "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.",
    )
