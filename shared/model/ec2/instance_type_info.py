"""Instance type descriptions and spot prices as EC2 returns them."""

from datetime import datetime

import msgspec


class GpuDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of GpuInfo, InferenceAcceleratorInfo or NeuronInfo; the memory is that of one device."""

    name: str
    manufacturer: str
    count: int
    memory_mib: int = 0
    cores: int = 0


class NetworkCard(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of NetworkInfo.NetworkCards."""

    index: int
    maximum_interfaces: int
    baseline_gbps: float = 0.0
    peak_gbps: float = 0.0


class InstanceTypeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The part of DescribeInstanceTypes from which the catalog is computed."""

    name: str
    architectures: tuple[str, ...]
    """EC2's spelling: ``x86_64``, ``arm64``."""
    usage_classes: tuple[str, ...]
    vcpus: int
    memory_mib: int
    maximum_interfaces: int
    """Of the default network card."""
    ipv4_per_interface: int
    cpu_manufacturer: str = ""
    clock_speed_ghz: float = 0.0
    hypervisor: str = ""
    bare_metal: bool = False
    encryption_in_transit: bool = False
    nitro_enclaves: bool = False
    ebs_baseline_mbps: int = 0
    ebs_maximum_mbps: int = 0
    ebs_optimized_support: str = ""
    local_storage_gb: int = 0
    nvme_support: str = "unsupported"
    network_cards: tuple[NetworkCard, ...] = ()
    network_performance: str = ""
    """NetworkInfo.NetworkPerformance, for example ``Up to 10 Gigabit``."""
    efa_interfaces: int = 0
    gpus: tuple[GpuDevice, ...] = ()
    inference_accelerators: tuple[GpuDevice, ...] = ()
    neurons: tuple[GpuDevice, ...] = ()
    placement_strategies: tuple[str, ...] = ()
    processor_features: tuple[str, ...] = ()
    ena_support: str = ""
    branch_interfaces: int = 0
    """How many pods can have their own network interface; not reported by EC2, read from the AWS VPC resource
    limits.
    """


class SpotPrice(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The newest spot price of one offering."""

    instance_type: str
    zone: str
    price_usd_per_hour: float
    at: datetime
