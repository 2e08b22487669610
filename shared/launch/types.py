"""DescribeInstanceTypes -> the catalogue's instance types, as one node class sees them (spec-aws chapters 13 and 14).

Capacity is what a kubelet will report, estimated: memory less the hypervisor's share, pods by the ENI formula,
storage by the block devices. Overhead is kube-reserved, system-reserved and the hard eviction threshold.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.launch.families import FAMILIES, Family
from shared.model import labels
from shared.model.catalogue import InstanceType, Offering
from shared.model.ec2 import GpuDevice, InstanceTypeInfo, SpotPrice, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Pairs
from shared.model.requirements import Requirement, Requirements, requirements
from shared.model.resources import CPU, MEMORY, PODS, STORAGE, Resources, parse_resources, resources

MIB: Final = 1024**2
GIB: Final = 1024**3
_NAME: Final = re.compile(r"(?P<category>^[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+).*\.")
_ARCH: Final = {"x86_64": "amd64", "arm64": "arm64"}
_CPU_BANDS: Final = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, math.inf, 25))
"""Milli-CPU from, to, and how much of ten thousand is kept for the kubelet."""
_AWS: Final = "karpenter.k8s.aws/"
_EVICTION_MEMORY: Final = 100 * MIB
_GPU_RESOURCES: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """What is on sale where, and for how much."""

    region: str
    offerings: tuple[tuple[str, str], ...]
    """(instance type, zone), sorted."""
    on_demand: Mapping[str, float]
    spot: tuple[SpotPrice, ...]


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """Deployment settings that shape types."""

    vm_memory_overhead_percent: float = 0.075
    reserved_enis: int = 0


def instance_types(
    infos: Iterable[InstanceTypeInfo], market: Market, node_class: EC2NodeClass, knobs: Knobs
) -> tuple[InstanceType, ...]:
    """Answer the types that *node_class* can start, sorted by name; those in none of its zones are left out."""
    zones = {subnet.zone: subnet for subnet in reversed(node_class.resolved_subnets)}
    sold: dict[str, list[str]] = {}
    for name, zone in market.offerings:
        if zone in zones:
            sold.setdefault(name, []).append(zone)
    spot = {(price.instance_type, price.zone): price.price_usd_per_hour for price in market.spot}
    made = (
        _instance_type(info, [zones[zone] for zone in sold[info.name]], market, spot, node_class, knobs)
        for info in sorted(infos, key=lambda info: info.name)
        if info.name in sold
    )
    return tuple(one for one in made if one.offerings)


def _instance_type(
    info: InstanceTypeInfo,
    subnets: list[Subnet],
    market: Market,
    spot: Mapping[tuple[str, str], float],
    node_class: EC2NodeClass,
    knobs: Knobs,
) -> InstanceType:
    offerings = tuple(sorted(_offerings(info, subnets, market.on_demand, spot)))
    family = FAMILIES.get(node_class.ami_family, FAMILIES["Custom"])
    capacity = _capacity(info, node_class, family, knobs)
    return InstanceType(
        name=info.name,
        requirements=_requirements(info, offerings, market.region, family),
        capacity=capacity,
        overhead=_overhead(info, capacity, node_class, family),
        offerings=offerings,
    )


def _offerings(
    info: InstanceTypeInfo,
    subnets: list[Subnet],
    on_demand: Mapping[str, float],
    spot: Mapping[tuple[str, str], float],
) -> Iterable[Offering]:
    for subnet in subnets:
        prices = {labels.ON_DEMAND: on_demand.get(info.name), labels.SPOT: spot.get((info.name, subnet.zone))}
        for capacity_type, price in prices.items():
            if price is not None and capacity_type in info.usage_classes:
                yield Offering(
                    zone=subnet.zone,
                    zone_id=subnet.zone_id,
                    capacity_type=capacity_type,
                    price_usd_per_hour=price,
                )


def _requirements(info: InstanceTypeInfo, offerings: tuple[Offering, ...], region: str, family: Family) -> Requirements:
    own = _own_labels(info, region, family)
    found = {key: frozenset((value,)) for key, value in own.items() if value}
    found[labels.ZONE] = frozenset(offering.zone for offering in offerings)
    found[labels.ZONE_ID] = frozenset(offering.zone_id for offering in offerings if offering.zone_id)
    found[labels.CAPACITY_TYPE] = frozenset(offering.capacity_type for offering in offerings)
    found[_AWS + "instance-tenancy"] = frozenset(("default", "dedicated"))
    silent = {labels.NODECLASS, _AWS + "placement-group-id", _AWS + "placement-group-partition"}
    keys = (labels.AWS_WELL_KNOWN - silent) | {labels.WINDOWS_BUILD} | set(found)
    return requirements(Requirement(key=key, values=found.get(key, frozenset())) for key in keys)


def _own_labels(info: InstanceTypeInfo, region: str, family: Family) -> dict[str, str]:
    matched = _NAME.match(info.name)
    family_name, _, size = info.name.partition(".")
    return {
        labels.INSTANCE_TYPE: info.name,
        labels.ARCH: _ARCH.get(info.architectures[0], info.architectures[0]),
        labels.OS: family.os,
        labels.REGION: region,
        _AWS + "instance-category": matched["category"] if matched else "",
        _AWS + "instance-generation": matched["generation"] if matched else "",
        _AWS + "instance-family": family_name,
        _AWS + "instance-size": size,
        _AWS + "instance-capability-flex": _boolean("-flex" in family_name),
        _AWS + "instance-cpu": str(info.vcpus),
        _AWS + "instance-cpu-manufacturer": _kebab(info.cpu_manufacturer),
        _AWS + "instance-cpu-sustained-clock-speed-mhz": _number(round(info.clock_speed_ghz * 1000)),
        _AWS + "instance-memory": str(info.memory_mib),
        _AWS + "instance-ebs-bandwidth": _ebs_bandwidth(info),
        _AWS + "instance-network-bandwidth": _number(
            round(sum(card.baseline_gbps for card in info.network_cards) * 1000)
        ),
        _AWS + "instance-local-nvme": _number(info.local_storage_gb) if info.nvme_support != "unsupported" else "",
        _AWS + "instance-hypervisor": info.hypervisor,
        _AWS + "instance-encryption-in-transit-supported": _boolean(info.encryption_in_transit),
        _AWS + "nitro-sandbox": _boolean(info.nitro_enclaves),
        **_device_labels("gpu", info.gpus, with_memory=True),
        **_device_labels("accelerator", info.neurons or info.inference_accelerators, with_memory=False),
    }


def _device_labels(word: str, devices: tuple[GpuDevice, ...], *, with_memory: bool) -> dict[str, str]:
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


def _capacity(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs) -> Resources:
    amounts = {
        CPU: info.vcpus * 1000,
        MEMORY: _memory_bytes(info, knobs),
        STORAGE: storage_bytes(info, node_class, family),
        PODS: pod_count(info, node_class, family, knobs),
        "vpc.amazonaws.com/efa": info.efa_interfaces,
        "aws.amazon.com/neuron": sum(device.count for device in info.neurons),
        "aws.amazon.com/neuroncore": info.neurons[0].count * info.neurons[0].cores if info.neurons else 0,
    }
    for device in info.gpus:
        name = _GPU_RESOURCES.get(device.manufacturer)
        if name is not None:
            amounts[name] = amounts.get(name, 0) + device.count
    return resources(amounts)


def _memory_bytes(info: InstanceTypeInfo, knobs: Knobs) -> int:
    mib = info.memory_mib - (64 if info.architectures[0] == "arm64" else 0)
    return (mib - math.ceil(mib * knobs.vm_memory_overhead_percent)) * MIB


def storage_bytes(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family) -> int:
    """Answer what pods' ephemeral storage has, before reservations."""
    if node_class.instance_store_policy == "RAID0" and info.local_storage_gb:
        return info.local_storage_gb * 10**9
    sizes = {device.device_name: device.volume_size_gib for device in node_class.block_devices}
    defaults = {device.device_name: device.volume_size_gib for device in family.default_devices}
    last = next((size for size in reversed(sizes.values()) if not family.ephemeral_device), None)
    choices = (sizes.get(node_class.root_device), last, sizes.get(family.ephemeral_device))
    gib = next((size for size in (*choices, defaults.get(family.ephemeral_device)) if size), 20)
    return gib * GIB


def pod_count(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs) -> int:
    """Answer how many pods the kubelet takes: maxPods, else what the network interfaces allow, else 110."""
    kubelet = node_class.kubelet
    count = 110
    if kubelet.max_pods is not None:
        count = kubelet.max_pods
    elif family.eni_limited_pods:
        count = eni_limited_pods(info, knobs.reserved_enis)
    if kubelet.pods_per_core and family.pods_per_core:
        count = min(count, kubelet.pods_per_core * info.vcpus)
    return count


def eni_limited_pods(info: InstanceTypeInfo, reserved_enis: int) -> int:
    """Answer how many pods get an address of their own: one per secondary address, and two on the host's network."""
    interfaces = max(0, info.maximum_interfaces - reserved_enis)
    return interfaces * (info.ipv4_per_interface - 1) + 2 if interfaces else 0


def _overhead(info: InstanceTypeInfo, capacity: Resources, node_class: EC2NodeClass, family: Family) -> Resources:
    kubelet = node_class.kubelet
    pods = eni_limited_pods(info, 0) if family.eni_based_memory_overhead else capacity[PODS]
    kube = {CPU: _kube_cpu_milli(info.vcpus), MEMORY: (11 * pods + 255) * MIB, STORAGE: GIB}
    kube |= dict(_reserved(kubelet.kube_reserved).amounts)
    thresholds = dict(kubelet.eviction_hard)
    evicted = {
        MEMORY: _threshold(thresholds.get("memory.available"), capacity[MEMORY], _EVICTION_MEMORY),
        STORAGE: _threshold(thresholds.get("nodefs.available"), capacity[STORAGE], math.ceil(capacity[STORAGE] / 10)),
    }
    return resources(kube) + _reserved(kubelet.system_reserved) + resources(evicted)


def _kube_cpu_milli(vcpus: int) -> int:
    milli = vcpus * 1000
    return sum(int((min(milli, top) - bottom) * share / 10000) for bottom, top, share in _CPU_BANDS if milli > bottom)


def _reserved(some: Pairs) -> Resources:
    return parse_resources({name: value for name, value in some if name in (CPU, MEMORY, STORAGE)})


def _threshold(text: str | None, capacity: int, default: int) -> int:
    if text is None:
        return default
    if text.endswith("%"):
        percent = float(text[:-1])
        return 0 if percent == 100 else math.ceil(capacity * percent / 100)  # noqa: PLR2004 - the kubelet's "off"
    return parse_resources({MEMORY: text})[MEMORY]


def _ebs_bandwidth(info: InstanceTypeInfo) -> str:
    return _number(info.ebs_maximum_mbps) if info.ebs_optimized_support == "default" else ""


def _number(value: int) -> str:
    return str(value) if value else ""


def _boolean(value: bool) -> str:  # noqa: FBT001 - the value itself
    return "true" if value else "false"


def _kebab(text: str) -> str:
    return text.lower().replace(" ", "-")
