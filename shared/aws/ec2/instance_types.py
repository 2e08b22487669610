"""DescribeInstanceTypes: the parser of one entry, with the data from which the catalog is computed."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.aws.ec2.branch_interfaces import count_branch_interfaces
from shared.model.ec2.instance_type_info import GpuDevice, InstanceTypeInfo, NetworkCard


def parse_instance_type(wire: Mapping[str, Any]) -> InstanceTypeInfo:
    """Parse one instance type, lists in EC2's order; values that EC2 does not return are zero or empty."""
    return InstanceTypeInfo(
        name=wire["InstanceType"],
        usage_classes=tuple(wire.get("SupportedUsageClasses", ())),
        vcpus=wire["VCpuInfo"]["DefaultVCpus"],
        memory_mib=wire["MemoryInfo"]["SizeInMiB"],
        hypervisor=wire.get("Hypervisor", ""),
        bare_metal=wire.get("BareMetal", False),
        nitro_enclaves=wire.get("NitroEnclavesSupport", "") == "supported",
        branch_interfaces=count_branch_interfaces(wire["InstanceType"]),
        placement_strategies=tuple(wire.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())),
        **_parse_processor(wire.get("ProcessorInfo", {})),
        **_parse_network(wire.get("NetworkInfo", {})),
        **_parse_storage(wire),
        **_parse_accelerators(wire),
    )


def _parse_processor(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "architectures": tuple(wire.get("SupportedArchitectures", ())),
        "cpu_manufacturer": wire.get("Manufacturer", ""),
        "clock_speed_ghz": wire.get("SustainedClockSpeedInGhz", 0.0),
        "processor_features": tuple(wire.get("SupportedFeatures", ())),
    }


def _parse_network(wire: Mapping[str, Any]) -> dict[str, Any]:
    cards = tuple(
        NetworkCard(
            index=card["NetworkCardIndex"],
            maximum_interfaces=card["MaximumNetworkInterfaces"],
            baseline_gbps=card.get("BaselineBandwidthInGbps", 0.0),
            peak_gbps=card.get("PeakBandwidthInGbps", 0.0),
        )
        for card in wire.get("NetworkCards", ())
    )
    default_card_index = wire.get("DefaultNetworkCardIndex", 0)
    default_card_limits = (card.maximum_interfaces for card in cards if card.index == default_card_index)
    return {
        "network_cards": cards,
        "network_performance": wire.get("NetworkPerformance", ""),
        "maximum_interfaces": next(default_card_limits, wire.get("MaximumNetworkInterfaces", 0)),
        "ena_support": wire.get("EnaSupport", ""),
        "ipv4_per_interface": wire.get("Ipv4AddressesPerInterface", 0),
        "encryption_in_transit": wire.get("EncryptionInTransitSupported", False),
        "efa_interfaces": wire.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
    }


def _parse_storage(wire: Mapping[str, Any]) -> dict[str, Any]:
    ebs, local = wire.get("EbsInfo", {}), wire.get("InstanceStorageInfo", {})
    bandwidth = ebs.get("EbsOptimizedInfo", {})
    return {
        "ebs_optimized_support": ebs.get("EbsOptimizedSupport", ""),
        "ebs_baseline_mbps": bandwidth.get("BaselineBandwidthInMbps", 0),
        "ebs_maximum_mbps": bandwidth.get("MaximumBandwidthInMbps", 0),
        "local_storage_gb": local.get("TotalSizeInGB", 0),
        "nvme_support": local.get("NvmeSupport", "unsupported"),
    }


def _parse_accelerators(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gpus": _parse_devices(wire.get("GpuInfo", {}).get("Gpus", ())),
        "inference_accelerators": _parse_devices(wire.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())),
        "neurons": _parse_devices(wire.get("NeuronInfo", {}).get("NeuronDevices", ()), manufacturer="AWS"),
    }


def _parse_devices(wire: Iterable[Mapping[str, Any]], manufacturer: str = "") -> tuple[GpuDevice, ...]:
    """Return the devices in EC2's order; *manufacturer* is the default where EC2 does not return one."""
    return tuple(
        GpuDevice(
            name=device.get("Name", ""),
            manufacturer=device.get("Manufacturer", manufacturer),
            count=device.get("Count", 0),
            memory_mib=device.get("MemoryInfo", {}).get("SizeInMiB", 0),
            cores=device.get("CoreInfo", {}).get("Count", 0),
        )
        for device in wire
    )
