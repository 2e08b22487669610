"""What EC2 checks before a launch; a refusal has EC2's error code and, approximately, its message."""

from collections.abc import Mapping

import msgspec

from shared.errors import NotFound
from shared.model.ec2.fleet import FleetRequest, Override
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType
from sim.cloud.ec2.capacity_pools import CapacityPool, CapacityPools
from sim.cloud.ec2.instance_lifecycle import InstanceRegistry
from sim.cloud.ec2.reservations import ReservationPool, Reservations
from sim.cloud.resources.images import ImageRegistry
from sim.cloud.resources.network import Network


class Refused(Exception):
    """One offering is refused; *code* is EC2's error code, the message its text."""

    def __init__(self, code: str, message: str) -> None:
        """Set the code and the message."""
        super().__init__(message)
        self.code = code


class LaunchChecks(msgspec.Struct, frozen=True, kw_only=True):
    """The account's resources and capacity, against which each launch is checked."""

    types: Mapping[str, InstanceTypeInfo]
    types_by_zone: Mapping[str, frozenset[str]]
    pools: CapacityPools
    network: Network
    images: ImageRegistry
    instances: InstanceRegistry
    reservations: Reservations

    def check_configuration(
        self, request: FleetRequest, override: Override, template: LaunchTemplate, image_id: str
    ) -> None:
        """Refuse a launch that would fail even with unlimited capacity.

        Raises:
            Refused: a parameter is wrong, or the type does not support the template.
        """
        info = self.types.get(override.instance_type)
        if info is None:
            raise Refused("InvalidInstanceType", f"The instance type '{override.instance_type}' does not exist")
        self._check_subnet(override)
        self._check_image(info, image_id)
        check_hardware_support(template, info, self.reservations)
        for group_id in template.security_group_ids:
            if not self.network.has_security_group(group_id):
                raise Refused("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        if request.capacity_type == "spot":
            if "spot" not in info.usage_classes:
                raise Refused("Unsupported", f"The instance type {info.name} cannot be requested as spot.")
        elif template.capacity_type == "spot" and template.tags:
            text = "'spot-instances-request' is not a valid taggable resource type for this operation."
            raise Refused("InvalidParameterValue", text)

    def _check_subnet(self, override: Override) -> None:
        instance_type, zone = override.instance_type, override.zone
        try:
            subnet = self.network.get_subnet(override.subnet_id)
        except NotFound as error:
            raise _convert_not_found(error) from error
        if zone != subnet.zone:
            text = f"The subnet '{override.subnet_id}' is not in the Availability Zone '{zone}'"
            raise Refused("InvalidParameterValue", text)
        if instance_type not in self.types_by_zone[zone]:
            text = (
                f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
                f"({zone}). Please retry your request by not specifying an Availability Zone or choosing "
                f"{', '.join(self._list_other_zones(instance_type, zone)) or 'another region'}."
            )
            raise Refused("Unsupported", text)

    def _check_image(self, info: InstanceTypeInfo, image_id: str) -> None:
        try:
            image = self.images.find(image_id)
        except NotFound as error:
            raise _convert_not_found(error) from error
        if image.architecture not in info.architectures:
            text = (
                f"The architecture '{','.join(info.architectures)}' of the specified instance type does not match the "
                f"architecture '{image.architecture}' of the specified AMI. Specify an instance type and an AMI that "
                "have matching architectures."
            )
            raise Refused("InvalidParameterValue", text)

    def get_capacity_pool(self, override: Override, capacity_type: CapacityType, reservation_id: str) -> CapacityPool:
        """Return the pool to launch from: the reservation, or without *reservation_id* the regular pool.

        Raises:
            Refused: the reservation does not exist or is for another offering.
        """
        if not reservation_id:
            return self.pools.get_pool(override.instance_type, override.zone, capacity_type)
        reservation, offering = self.reservations.find(reservation_id), (override.instance_type, override.zone)
        if reservation is None or (reservation.instance_type, reservation.zone) != offering:
            text = (
                f"The capacity reservation '{reservation_id}' does not exist or has other attributes than the request."
            )
            raise Refused("InvalidCapacityReservationId.NotFound", text)
        return ReservationPool(self.reservations, reservation_id)

    def check_capacity(self, override: Override, capacity_type: CapacityType, pool: CapacityPool) -> None:
        """Refuse a launch for which there is no quota, address or capacity at the moment.

        Raises:
            Refused: one of them is missing.
        """
        instance_type, zone = override.instance_type, override.zone
        self._check_quota(instance_type, capacity_type)
        if self.network.get_subnet(override.subnet_id).free <= 0:
            text = (
                f"There are not enough free addresses in subnet '{override.subnet_id}' to satisfy the requested number"
            )
            raise Refused("InsufficientFreeAddressesInSubnet", f"{text} of instances.")
        if pool.free == 0 and capacity_type == "reserved":
            text = "The requested reservation does not have sufficient capacity."
            raise Refused("ReservationCapacityExceeded", text)
        if pool.free == 0:
            text = (
                f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
                f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
                f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing "
                f"{', '.join(self._list_other_zones(instance_type, zone)) or 'another region'}."
            )
            raise Refused("InsufficientInstanceCapacity", text)

    def _check_quota(self, instance_type: str, capacity_type: CapacityType) -> None:
        is_spot, quota = capacity_type == "spot", self.pools.get_quota(capacity_type)
        if quota is None or self.instances.count_vcpus(is_spot=is_spot) + self.types[instance_type].vcpus <= quota:
            return
        if is_spot:
            raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        text = f"You have requested more vCPU capacity than your current vCPU limit of {quota} allows for the instance"
        raise Refused("VcpuLimitExceeded", f"{text} bucket that the specified instance type belongs to.")

    def _list_other_zones(self, instance_type: str, excluded_zone: str) -> list[str]:
        return [zone for zone, types in self.types_by_zone.items() if instance_type in types and zone != excluded_zone]


def _convert_not_found(error: NotFound) -> Refused:
    """Return the refusal with the code and text of an error whose message is ``code: text``."""
    code, _, text = str(error).partition(": ")
    return Refused(code, text)


def check_hardware_support(template: LaunchTemplate, info: InstanceTypeInfo, reservations: Reservations) -> None:
    """Check EFA interfaces, enclaves and the placement group.

    Raises:
        Refused: the type of *info* does not support one of them, or the placement group does not exist.
    """
    if template.efa_interfaces > info.efa_interfaces:
        text = f"EFA interfaces are not supported on {info.name} in that number"
        raise Refused("InvalidParameterCombination", text)
    if template.enclaves and not info.nitro_enclaves:
        raise Refused("UnsupportedOperation", f"The instance type {info.name} does not support enclaves")
    _check_placement_group(template, info, reservations)


def _check_placement_group(template: LaunchTemplate, info: InstanceTypeInfo, reservations: Reservations) -> None:
    group_id = template.placement_group_id
    if not group_id:
        return
    group = next((candidate for candidate in reservations.list_groups() if candidate.group_id == group_id), None)
    if group is None:
        raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{group_id}' is unknown.")
    if group.strategy not in info.placement_strategies:
        text = f"{group.strategy.capitalize()} placement groups are not supported by the '{info.name}' instance type."
        raise Refused("InvalidParameterCombination", text)
    partition_number = template.partition_number
    if partition_number is not None and not 1 <= partition_number <= group.partition_count:
        raise Refused("InvalidParameterValue", f"Value ({partition_number}) for parameter partitionNumber is invalid.")
