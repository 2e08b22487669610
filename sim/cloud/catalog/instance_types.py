"""The instance types and the zones that offer them.

Real data, from moto's packaged output of DescribeInstanceTypes. Read once per process and decoded into the fields of
`InstanceTypeInfo`; takes about 30 ms.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from shared.aws.ec2.branch_interfaces import count_branch_interfaces
from shared.model.ec2.instance_type_info import GpuDevice, InstanceTypeInfo, NetworkCard

ApiDict: TypeAlias = Mapping[str, Any]

ARCHITECTURES: Final = frozenset({"x86_64", "arm64"})
DIRECTION_ABBREVIATIONS: Final = {"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"}


@cache
def load_instance_types() -> Mapping[str, InstanceTypeInfo]:
    """Return every HVM type of x86_64 or arm64 by name, sorted by name."""
    types_by_name = msgspec.json.decode(_read_resource("instance_types.json.gz"), type=dict[str, dict[str, Any]])
    return MappingProxyType(
        {
            name: _build_type_info(types_by_name[name])
            for name in sorted(types_by_name)
            if _is_supported(types_by_name[name])
        }
    )


@cache
def load_types_by_zone(region: str) -> Mapping[str, frozenset[str]]:
    """Return the instance types that each zone of *region* offers, sorted by zone.

    Raises:
        FileNotFoundError: the data does not contain *region*.
    """
    offerings = msgspec.json.decode(
        _read_resource(f"instance_type_offerings/availability-zone/{region}.json.gz"), type=list[dict[str, str]]
    )
    types_by_zone: dict[str, set[str]] = {}
    for offering in offerings:
        types_by_zone.setdefault(offering["Location"], set()).add(offering["InstanceType"])
    return MappingProxyType(
        {zone: frozenset(types_by_zone[zone]) & load_instance_types().keys() for zone in sorted(types_by_zone)}
    )


def build_zone_id(region: str, ordinal: int) -> str:
    """Return the id of zone number *ordinal* (from 1) in *region*: ``use1-az1``, ``apse2-az1``."""
    area, *words, number = region.split("-")
    return f"{area}{''.join(DIRECTION_ABBREVIATIONS.get(word, word[0]) for word in words)}{number}-az{ordinal}"


def _read_resource(name: str) -> bytes:
    """Return a data file of moto, without the import of moto, which takes more than half a second.

    Raises:
        FileNotFoundError: moto has no such file.
        ModuleNotFoundError: moto is not installed.
    """
    specification = find_spec("moto")
    if specification is None or specification.origin is None:
        raise ModuleNotFoundError("No module named 'moto'", name="moto")
    return gzip.decompress((Path(specification.origin).parent / "ec2" / "resources" / name).read_bytes())


def _is_supported(document: ApiDict) -> bool:
    is_hvm = "hvm" in document["SupportedVirtualizationTypes"]
    return is_hvm and not ARCHITECTURES.isdisjoint(document["ProcessorInfo"].get("SupportedArchitectures", ()))


def _build_type_info(document: ApiDict) -> InstanceTypeInfo:
    network, processor = document["NetworkInfo"], document["ProcessorInfo"]
    ebs, storage = document.get("EbsInfo", {}), document.get("InstanceStorageInfo", {})
    bandwidth = ebs.get("EbsOptimizedInfo", {})
    accelerators = document.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    return InstanceTypeInfo(
        name=document["InstanceType"],
        architectures=tuple(processor.get("SupportedArchitectures", ())),
        usage_classes=tuple(document["SupportedUsageClasses"]),
        vcpus=document["VCpuInfo"]["DefaultVCpus"],
        memory_mib=document["MemoryInfo"].get("SizeInMiB", 0),
        maximum_interfaces=_get_default_card_interfaces(network),
        ipv4_per_interface=network["Ipv4AddressesPerInterface"],
        cpu_manufacturer=processor.get("Manufacturer", ""),
        clock_speed_ghz=float(processor.get("SustainedClockSpeedInGhz", 0.0)),
        hypervisor=document.get("Hypervisor", ""),
        bare_metal=document.get("BareMetal", False),
        encryption_in_transit=network.get("EncryptionInTransitSupported", False),
        nitro_enclaves=document.get("NitroEnclavesSupport", "unsupported") == "supported",
        ebs_baseline_mbps=bandwidth.get("BaselineBandwidthInMbps", 0),
        ebs_maximum_mbps=bandwidth.get("MaximumBandwidthInMbps", 0),
        ebs_optimized_support=ebs.get("EbsOptimizedSupport", ""),
        local_storage_gb=storage.get("TotalSizeInGB", 0),
        nvme_support=storage.get("NvmeSupport", "unsupported"),
        network_cards=tuple(map(_build_network_card, network.get("NetworkCards", ()))),
        network_performance=network.get("NetworkPerformance", ""),
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        gpus=tuple(map(_build_gpu_device, document.get("GpuInfo", {}).get("Gpus", ()))),
        inference_accelerators=tuple(map(_build_gpu_device, accelerators)),
        neurons=tuple(map(_build_gpu_device, document.get("NeuronInfo", {}).get("NeuronDevices", ()))),
        placement_strategies=tuple(document.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())),
        processor_features=tuple(processor.get("SupportedFeatures", ())),
        ena_support=network.get("EnaSupport", ""),
        branch_interfaces=count_branch_interfaces(document["InstanceType"]),
    )


def _get_default_card_interfaces(network: ApiDict) -> int:
    cards, fallback = network.get("NetworkCards", ()), int(network["MaximumNetworkInterfaces"])
    interfaces_by_card: dict[int, int] = {card["NetworkCardIndex"]: card["MaximumNetworkInterfaces"] for card in cards}
    return interfaces_by_card.get(network.get("DefaultNetworkCardIndex", 0), fallback)


def _build_network_card(card: ApiDict) -> NetworkCard:
    return NetworkCard(
        index=card["NetworkCardIndex"],
        maximum_interfaces=card["MaximumNetworkInterfaces"],
        baseline_gbps=float(card.get("BaselineBandwidthInGbps", 0.0)),
        peak_gbps=float(card.get("PeakBandwidthInGbps", 0.0)),
    )


def _build_gpu_device(device: ApiDict) -> GpuDevice:
    return GpuDevice(
        name=device.get("Name", ""),
        manufacturer=device.get("Manufacturer", "AWS"),
        count=device.get("Count", 0),
        memory_mib=device.get("MemoryInfo", {}).get("SizeInMiB", 0),
        cores=device.get("CoreInfo", {}).get("Count", 0),
    )
