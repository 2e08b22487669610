"""minValues at launch: the instance types of one fleet request must still have the variety that minValues requires."""

from collections.abc import Iterable

from shared.decide.launch.fleets.offerings import LaunchOffering
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.requirements import Requirement, Requirements


def describe_min_values_shortfall(launch_offerings: Iterable[LaunchOffering], requirements: Requirements) -> str:
    """Return which minValues of *requirements* the types of *launch_offerings* do not meet; "" if all are met."""
    types = {offer.instance_type.name: offer.instance_type for offer in launch_offerings}
    for requirement in _list_min_values_requirements(requirements):
        values = {
            value for instance_type in types.values() for value in _list_allowed_values(instance_type, requirement)
        }
        if len(values) < (requirement.min_values or 0):
            return f"{requirement.key} has {len(values)} of {requirement.min_values} required values"
    return ""


def select_types_for_min_values(types: Iterable[InstanceType], requirements: Requirements) -> list[str]:
    """Return the cheapest types (*types* is sorted by price) that together meet all minValues, as far as possible."""
    covered_values: dict[str, set[str]] = {item.key: set() for item in _list_min_values_requirements(requirements)}
    type_names: list[str] = []
    for instance_type in types:
        for requirement in _list_min_values_requirements(requirements):
            new_values = _list_allowed_values(instance_type, requirement) - covered_values[requirement.key]
            if new_values and len(covered_values[requirement.key]) < (requirement.min_values or 0):
                type_names.append(instance_type.name)
                for other_requirement in _list_min_values_requirements(requirements):
                    covered_values[other_requirement.key] |= _list_allowed_values(instance_type, other_requirement)
    return list(dict.fromkeys(type_names))


def _list_min_values_requirements(requirements: Requirements) -> list[Requirement]:
    return [requirement for requirement in requirements if requirement.min_values is not None]


def _list_allowed_values(instance_type: InstanceType, requirement: Requirement) -> frozenset[str]:
    return frozenset(value for value in instance_type.requirements[requirement.key].values if requirement.has(value))
