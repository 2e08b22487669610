"""What a launch template wants of the machine itself: whether such an instance type can be started so at all."""

from shared.model.ec2 import InstanceTypeInfo, LaunchTemplate
from sim.cloud.refusals import Refused
from sim.cloud.reservations import Reservations


def check_shape(template: LaunchTemplate, info: InstanceTypeInfo, set_aside: Reservations) -> None:
    """Judge interfaces, enclaves and place.

    Raises:
        Refused: *info* is of a type that has none of it, or the placement group does not exist.
    """
    if template.efa_interfaces > info.efa_interfaces:
        text = f"EFA interfaces are not supported on {info.name} in that number"
        raise Refused("InvalidParameterCombination", text)
    if template.enclaves and not info.nitro_enclaves:
        raise Refused("UnsupportedOperation", f"The instance type {info.name} does not support enclaves")
    _check_place(template, info, set_aside)


def _check_place(template: LaunchTemplate, info: InstanceTypeInfo, set_aside: Reservations) -> None:
    name = template.placement_group_id
    if not name:
        return
    group = next((one for one in set_aside.groups() if one.group_id == name), None)
    if group is None:
        raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if group.strategy not in info.placement_strategies:
        text = f"{group.strategy.capitalize()} placement groups are not supported by the '{info.name}' instance type."
        raise Refused("InvalidParameterCombination", text)
    number = template.partition_number
    if number is not None and not 1 <= number <= group.partition_count:
        raise Refused("InvalidParameterValue", f"Value ({number}) for parameter partitionNumber is invalid.")
