"""The labels of an instance type: every well-known key, those that it has not as `DoesNotExist`."""

import re
from collections.abc import Iterable
from typing import Final

from shared.launch.families import Family
from shared.model import labels
from shared.model.catalogue import Offering
from shared.model.ec2 import GpuDevice, InstanceTypeInfo, PlacementGroup
from shared.model.requirements import Requirement, Requirements, requirements

_NAME: Final = re.compile(r"(?P<category>^[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+).*\.")
_ARCH: Final = {"x86_64": "amd64", "arm64": "arm64"}
_AWS: Final = "karpenter.k8s.aws/"
_BUILDS: Final = {"Windows2019": "10.0.17763", "Windows2022": "10.0.20348", "Windows2025": "10.0.26100"}
_TENANCIES: Final = frozenset(("default", "dedicated"))
_SILENT: Final = frozenset((labels.NODECLASS, _AWS + "placement-group-id", _AWS + "placement-group-partition"))
"""What a type says nothing of, unless a placement group is chosen."""
_KEYS: Final = (labels.AWS_WELL_KNOWN - _SILENT) | {labels.WINDOWS_BUILD}


def labels_of(
    info: InstanceTypeInfo, offerings: Iterable[Offering], region: str, family: Family, group: PlacementGroup | None
) -> Requirements:
    """Answer what a node of this type is; zones, capacity types and reservations follow from *offerings*."""
    sold = tuple(offerings)
    found = {key: frozenset((value,)) for key, value in _own(info, region, family).items() if value}
    found |= _of_offerings(sold) | _of_group(group)
    found[_AWS + "instance-tenancy"] = _TENANCIES
    if family.os == "windows" and architecture(info) != "amd64":
        found[labels.OS] = frozenset()
    keys = _KEYS | set(found)
    return requirements(Requirement(key=key, values=found.get(key, frozenset())) for key in keys)


def architecture(info: InstanceTypeInfo) -> str:
    """Answer Kubernetes' word for the first architecture; EC2's own where Kubernetes has none."""
    known = next((_ARCH[one] for one in info.architectures if one in _ARCH), "")
    return known or next(iter(info.architectures), "")


def network_mbps(info: InstanceTypeInfo) -> int:
    """Answer what the network carries at all times: the sum of its cards; 0 where EC2 gives no number."""
    return round(sum(card.baseline_gbps for card in info.network_cards) * 1000)


def _own(info: InstanceTypeInfo, region: str, family: Family) -> dict[str, str]:
    return {
        labels.ARCH: architecture(info),
        labels.OS: family.os,
        labels.REGION: region,
        labels.WINDOWS_BUILD: _BUILDS.get(family.name, ""),
        **_of_name(info.name),
        **_of_processor(info),
        _AWS + "instance-memory": str(info.memory_mib),
        _AWS + "instance-ebs-bandwidth": _ebs_bandwidth(info),
        _AWS + "instance-network-bandwidth": _number(network_mbps(info)),
        _AWS + "instance-local-nvme": _number(info.local_storage_gb) if info.nvme_support != "unsupported" else "",
        _AWS + "instance-hypervisor": info.hypervisor,
        _AWS + "instance-encryption-in-transit-supported": _boolean(info.encryption_in_transit),
        _AWS + "nitro-sandbox": _boolean(info.nitro_enclaves),
        **_of_devices("gpu", info.gpus, with_memory=True),
        **_of_devices("accelerator", info.neurons or info.inference_accelerators, with_memory=False),
    }


def _of_name(name: str) -> dict[str, str]:
    matched = _NAME.match(name)
    parts = name.split(".")
    family, size = parts if len(parts) == 2 else ("", "")  # noqa: PLR2004 - family and size
    return {
        labels.INSTANCE_TYPE: name,
        _AWS + "instance-category": matched["category"] if matched else "",
        _AWS + "instance-generation": matched["generation"] if matched else "",
        _AWS + "instance-family": family,
        _AWS + "instance-size": size,
        _AWS + "instance-capability-flex": _boolean("-flex" in family),
    }


def _of_processor(info: InstanceTypeInfo) -> dict[str, str]:
    return {
        _AWS + "instance-cpu": str(info.vcpus),
        _AWS + "instance-cpu-manufacturer": _kebab(info.cpu_manufacturer),
        _AWS + "instance-cpu-sustained-clock-speed-mhz": _number(round(info.clock_speed_ghz * 1000)),
    }


def _of_devices(word: str, devices: tuple[GpuDevice, ...], *, with_memory: bool) -> dict[str, str]:
    if len(devices) != 1:
        return {}
    [device] = devices
    maker = "aws" if word == "accelerator" and not device.manufacturer else _kebab(device.manufacturer)
    memory = {f"{_AWS}instance-{word}-memory": str(device.memory_mib)} if with_memory else {}
    return memory | {
        f"{_AWS}instance-{word}-name": _kebab(device.name),
        f"{_AWS}instance-{word}-manufacturer": maker,
        f"{_AWS}instance-{word}-count": str(device.count),
    }


def _of_offerings(sold: tuple[Offering, ...]) -> dict[str, frozenset[str]]:
    reserved = [one for one in sold if one.reservation_id]
    found = {
        labels.ZONE: frozenset(one.zone for one in sold),
        labels.ZONE_ID: frozenset(one.zone_id for one in sold if one.zone_id),
        labels.CAPACITY_TYPE: frozenset(one.capacity_type for one in sold),
    }
    if reserved:
        found[_AWS + "capacity-reservation-id"] = frozenset(one.reservation_id for one in reserved)
        found[_AWS + "capacity-reservation-type"] = frozenset(one.reservation_type or "default" for one in reserved)
        found[_AWS + "capacity-reservation-interruptible"] = frozenset(
            _boolean(one.reservation_interruptible) for one in reserved
        )
    return found


def _of_group(group: PlacementGroup | None) -> dict[str, frozenset[str]]:
    if group is None:
        return {}
    partitions = frozenset(str(number + 1) for number in range(group.partition_count))
    own = {_AWS + "placement-group-id": frozenset((group.group_id,))}
    return own | ({_AWS + "placement-group-partition": partitions} if group.strategy == "partition" else {})


def _ebs_bandwidth(info: InstanceTypeInfo) -> str:
    return _number(info.ebs_maximum_mbps) if info.ebs_optimized_support == "default" else ""


def _number(value: int) -> str:
    return str(value) if value else ""


def _boolean(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


def _kebab(text: str) -> str:
    return text.lower().replace(" ", "-")
