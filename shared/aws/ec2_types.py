"""DescribeInstanceTypes: one entry as the catalogue wants it."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.aws.branches import branch_interfaces
from shared.model.ec2 import GpuDevice, InstanceTypeInfo, NetworkCard


def instance_type_from_wire(wire: Mapping[str, Any]) -> InstanceTypeInfo:
    """Answer one instance type, lists in EC2's order; what EC2 does not say is zero or empty."""
    return InstanceTypeInfo(
        name=wire["InstanceType"],
        usage_classes=tuple(wire.get("SupportedUsageClasses", ())),
        vcpus=wire["VCpuInfo"]["DefaultVCpus"],
        memory_mib=wire["MemoryInfo"]["SizeInMiB"],
        hypervisor=wire.get("Hypervisor", ""),
        bare_metal=wire.get("BareMetal", False),
        nitro_enclaves=wire.get("NitroEnclavesSupport", "") == "supported",
        branch_interfaces=branch_interfaces(wire["InstanceType"]),
        placement_strategies=tuple(wire.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())),
        **_processor(wire.get("ProcessorInfo", {})),
        **_network(wire.get("NetworkInfo", {})),
        **_storage(wire),
        **_accelerators(wire),
    )


def _processor(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "architectures": tuple(wire.get("SupportedArchitectures", ())),
        "cpu_manufacturer": wire.get("Manufacturer", ""),
        "clock_speed_ghz": wire.get("SustainedClockSpeedInGhz", 0.0),
        "processor_features": tuple(wire.get("SupportedFeatures", ())),
    }


def _network(wire: Mapping[str, Any]) -> dict[str, Any]:
    cards = tuple(
        NetworkCard(
            index=card["NetworkCardIndex"],
            maximum_interfaces=card["MaximumNetworkInterfaces"],
            baseline_gbps=card.get("BaselineBandwidthInGbps", 0.0),
        )
        for card in wire.get("NetworkCards", ())
    )
    default = wire.get("DefaultNetworkCardIndex", 0)
    of_default = (card.maximum_interfaces for card in cards if card.index == default)
    return {
        "network_cards": cards,
        "maximum_interfaces": next(of_default, wire.get("MaximumNetworkInterfaces", 0)),
        "ena_support": wire.get("EnaSupport", ""),
        "ipv4_per_interface": wire.get("Ipv4AddressesPerInterface", 0),
        "encryption_in_transit": wire.get("EncryptionInTransitSupported", False),
        "efa_interfaces": wire.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
    }


def _storage(wire: Mapping[str, Any]) -> dict[str, Any]:
    ebs, local = wire.get("EbsInfo", {}), wire.get("InstanceStorageInfo", {})
    bandwidth = ebs.get("EbsOptimizedInfo", {})
    return {
        "ebs_optimized_support": ebs.get("EbsOptimizedSupport", ""),
        "ebs_baseline_mbps": bandwidth.get("BaselineBandwidthInMbps", 0),
        "ebs_maximum_mbps": bandwidth.get("MaximumBandwidthInMbps", 0),
        "local_storage_gb": local.get("TotalSizeInGB", 0),
        "nvme_support": local.get("NvmeSupport", "unsupported"),
    }


def _accelerators(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gpus": _devices(wire.get("GpuInfo", {}).get("Gpus", ())),
        "inference_accelerators": _devices(wire.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())),
        "neurons": _devices(wire.get("NeuronInfo", {}).get("NeuronDevices", ()), manufacturer="AWS"),
    }


def _devices(wire: Iterable[Mapping[str, Any]], manufacturer: str = "") -> tuple[GpuDevice, ...]:
    """Answer the devices in EC2's order; *manufacturer* where EC2 does not say one."""
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
