"""What EC2 checks before a launch, whether or not there is capacity: type, subnet, image, security groups, hardware."""

from shared.errors import NotFound
from shared.model.ec2.fleet import FleetRequest, Override
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud.ec2.capacity_checks import CapacityChecks
from sim.cloud.ec2.launch_refusal import Refused
from sim.cloud.ec2.reservations import Reservations
from sim.cloud.resources.images import ImageRegistry


class LaunchChecks(CapacityChecks, frozen=True, kw_only=True):
    """The account's resources and capacity, against which each launch is checked."""

    images: ImageRegistry

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
                f"{', '.join(self.list_other_zones(instance_type, zone)) or 'another region'}."
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
