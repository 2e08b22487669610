"""The requirements of an instance type: every well-known key; keys without a value are `DoesNotExist`."""

import re
from collections.abc import Iterable
from typing import Final

from shared.decide.launch.ami_families.ami_family import AmiFamily
from shared.decide.launch.instance_types.network_bandwidth import compute_network_mbps
from shared.model.cloud_provider.instance_type import Offering
from shared.model.core import labels
from shared.model.core.requirements import Requirement, Requirements, build_requirements
from shared.model.ec2.account import PlacementGroup
from shared.model.ec2.instance_type_info import GpuDevice, InstanceTypeInfo
from shared.model.ec2.types import KUBERNETES_ARCH_BY_EC2_ARCH

_TYPE_NAME: Final = re.compile(r"(?P<category>^[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+).*\.")
_TENANCIES: Final = frozenset(("default", "dedicated"))
_PLACEMENT_GROUP_KEYS: Final = frozenset((labels.NODECLASS, labels.PLACEMENT_GROUP, labels.PARTITION))
"""Keys that a type has only if the node class selects a placement group."""
_DEFAULT_KEYS: Final = (labels.AWS_WELL_KNOWN - _PLACEMENT_GROUP_KEYS) | {labels.WINDOWS_BUILD}


def build_type_requirements(
    info: InstanceTypeInfo, offerings: Iterable[Offering], region: str, family: AmiFamily, group: PlacementGroup | None
) -> Requirements:
    """Return the requirements of the type; zones, capacity types and reservations follow from *offerings*."""
    offering_list = tuple(offerings)
    values_by_key = {
        key: frozenset((value,)) for key, value in _build_own_labels(info, region, family).items() if value
    }
    values_by_key |= _build_offering_labels(offering_list) | _build_placement_group_labels(group)
    values_by_key[labels.TENANCY] = _TENANCIES
    if family.os == "windows" and get_architecture(info) != "amd64":
        values_by_key[labels.OS] = frozenset()
    keys = _DEFAULT_KEYS | set(values_by_key)
    return build_requirements(Requirement(key=key, values=values_by_key.get(key, frozenset())) for key in keys)


def get_architecture(info: InstanceTypeInfo) -> str:
    """Return the Kubernetes name of the first architecture; EC2's name where Kubernetes has none."""
    kubernetes_name = next(
        (
            KUBERNETES_ARCH_BY_EC2_ARCH[architecture]
            for architecture in info.architectures
            if architecture in KUBERNETES_ARCH_BY_EC2_ARCH
        ),
        "",
    )
    return kubernetes_name or next(iter(info.architectures), "")


def _build_own_labels(info: InstanceTypeInfo, region: str, family: AmiFamily) -> dict[str, str]:
    return {
        labels.ARCH: get_architecture(info),
        labels.OS: family.os,
        labels.REGION: region,
        labels.WINDOWS_BUILD: family.windows_build,
        **_build_name_labels(info.name),
        **_build_processor_labels(info),
        labels.AWS_PREFIX + "instance-memory": str(info.memory_mib),
        labels.AWS_PREFIX + "instance-ebs-bandwidth": _format_ebs_bandwidth(info),
        labels.AWS_PREFIX + "instance-network-bandwidth": _format_number(compute_network_mbps(info)),
        labels.AWS_PREFIX + "instance-local-nvme": _format_number(info.local_storage_gb)
        if info.nvme_support != "unsupported"
        else "",
        labels.AWS_PREFIX + "instance-hypervisor": info.hypervisor,
        labels.AWS_PREFIX + "instance-encryption-in-transit-supported": _format_boolean(info.encryption_in_transit),
        labels.AWS_PREFIX + "nitro-sandbox": _format_boolean(info.nitro_enclaves),
        **_build_device_labels("gpu", info.gpus, with_memory=True),
        **_build_device_labels("accelerator", info.neurons or info.inference_accelerators, with_memory=False),
    }


def _build_name_labels(name: str) -> dict[str, str]:
    matched = _TYPE_NAME.match(name)
    parts = name.split(".")
    family, size = parts if len(parts) == 2 else ("", "")  # noqa: PLR2004 - family and size
    return {
        labels.INSTANCE_TYPE: name,
        labels.AWS_PREFIX + "instance-category": matched["category"] if matched else "",
        labels.AWS_PREFIX + "instance-generation": matched["generation"] if matched else "",
        labels.AWS_PREFIX + "instance-family": family,
        labels.AWS_PREFIX + "instance-size": size,
        labels.AWS_PREFIX + "instance-capability-flex": _format_boolean("-flex" in family),
    }


def _build_processor_labels(info: InstanceTypeInfo) -> dict[str, str]:
    return {
        labels.AWS_PREFIX + "instance-cpu": str(info.vcpus),
        labels.AWS_PREFIX + "instance-cpu-manufacturer": _format_kebab_case(info.cpu_manufacturer),
        labels.AWS_PREFIX + "instance-cpu-sustained-clock-speed-mhz": _format_number(
            round(info.clock_speed_ghz * 1000)
        ),
    }


def _build_device_labels(device_kind: str, devices: tuple[GpuDevice, ...], *, with_memory: bool) -> dict[str, str]:
    if len(devices) != 1:
        return {}
    [device] = devices
    manufacturer = (
        "aws" if device_kind == "accelerator" and not device.manufacturer else _format_kebab_case(device.manufacturer)
    )
    memory = {f"{labels.AWS_PREFIX}instance-{device_kind}-memory": str(device.memory_mib)} if with_memory else {}
    return memory | {
        f"{labels.AWS_PREFIX}instance-{device_kind}-name": _format_kebab_case(device.name),
        f"{labels.AWS_PREFIX}instance-{device_kind}-manufacturer": manufacturer,
        f"{labels.AWS_PREFIX}instance-{device_kind}-count": str(device.count),
    }


def _build_offering_labels(offerings: tuple[Offering, ...]) -> dict[str, frozenset[str]]:
    reserved = [offering for offering in offerings if offering.reservation_id]
    values_by_key = {
        labels.ZONE: frozenset(offering.zone for offering in offerings),
        labels.ZONE_ID: frozenset(offering.zone_id for offering in offerings if offering.zone_id),
        labels.CAPACITY_TYPE: frozenset(offering.capacity_type for offering in offerings),
    }
    if reserved:
        values_by_key[labels.RESERVATION_ID] = frozenset(offering.reservation_id for offering in reserved)
        values_by_key[labels.RESERVATION_TYPE] = frozenset(
            offering.reservation_type or "default" for offering in reserved
        )
        values_by_key[labels.RESERVATION_INTERRUPTIBLE] = frozenset(
            _format_boolean(offering.reservation_interruptible) for offering in reserved
        )
    return values_by_key


def _build_placement_group_labels(group: PlacementGroup | None) -> dict[str, frozenset[str]]:
    if group is None:
        return {}
    partitions = frozenset(str(number + 1) for number in range(group.partition_count))
    group_labels = {labels.PLACEMENT_GROUP: frozenset((group.group_id,))}
    return group_labels | ({labels.PARTITION: partitions} if group.strategy == "partition" else {})


def _format_ebs_bandwidth(info: InstanceTypeInfo) -> str:
    return _format_number(info.ebs_maximum_mbps) if info.ebs_optimized_support == "default" else ""


def _format_number(value: int) -> str:
    return str(value) if value else ""


def _format_boolean(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


def _format_kebab_case(text: str) -> str:
    return text.lower().replace(" ", "-")
