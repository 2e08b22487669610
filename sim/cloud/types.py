"""The instance types and where they are offered: true data, out of moto's packaged answers of DescribeInstanceTypes.

Read once per process and decoded into the fields that `InstanceTypeInfo` has; about 30 ms.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import msgspec

from shared.aws.branches import branch_interfaces
from shared.model.ec2 import GpuDevice, InstanceTypeInfo, NetworkCard

ARCHITECTURES: Final = frozenset({"x86_64", "arm64"})
COMPASS: Final = {"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"}


class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Fields are spelled as EC2 spells them."""


class _Memory(_Wire, frozen=True, kw_only=True):
    size_in_mib: int = msgspec.field(name="SizeInMiB", default=0)


class _Cpu(_Wire, frozen=True, kw_only=True):
    vcpus: int = msgspec.field(name="DefaultVCpus")


class _Processor(_Wire, frozen=True, kw_only=True):
    manufacturer: str = ""
    supported_architectures: tuple[str, ...] = ()
    supported_features: tuple[str, ...] = ()
    sustained_clock_speed_in_ghz: float = 0.0


class _EbsOptimized(_Wire, frozen=True, kw_only=True):
    baseline_bandwidth_in_mbps: int = 0
    maximum_bandwidth_in_mbps: int = 0


class _Ebs(_Wire, frozen=True, kw_only=True):
    ebs_optimized_info: _EbsOptimized = _EbsOptimized()
    ebs_optimized_support: str = ""


class _Storage(_Wire, frozen=True, kw_only=True):
    nvme_support: str = "unsupported"
    total_size_in_gb: int = msgspec.field(name="TotalSizeInGB", default=0)


class _Card(_Wire, frozen=True, kw_only=True):
    network_card_index: int
    maximum_network_interfaces: int
    baseline_bandwidth_in_gbps: float = 0.0


class _Efa(_Wire, frozen=True, kw_only=True):
    maximum_efa_interfaces: int = 0


class _Network(_Wire, frozen=True, kw_only=True):
    maximum_network_interfaces: int
    ipv4_addresses_per_interface: int
    default_network_card_index: int = 0
    encryption_in_transit_supported: bool = False
    efa_info: _Efa = _Efa()
    ena_support: str = ""
    network_cards: tuple[_Card, ...] = ()


class _Cores(_Wire, frozen=True, kw_only=True):
    count: int = 0


class _Device(_Wire, frozen=True, kw_only=True):
    name: str = ""
    manufacturer: str = "AWS"
    count: int = 0
    memory_info: _Memory = _Memory()
    core_info: _Cores = _Cores()


class _Gpus(_Wire, frozen=True, kw_only=True):
    gpus: tuple[_Device, ...] = ()


class _Accelerators(_Wire, frozen=True, kw_only=True):
    accelerators: tuple[_Device, ...] = ()


class _Neurons(_Wire, frozen=True, kw_only=True):
    neuron_devices: tuple[_Device, ...] = ()


class _Placement(_Wire, frozen=True, kw_only=True):
    supported_strategies: tuple[str, ...] = ()


class _Type(_Wire, frozen=True, kw_only=True):
    instance_type: str
    v_cpu_info: _Cpu
    memory_info: _Memory
    processor_info: _Processor
    network_info: _Network
    supported_virtualization_types: tuple[str, ...]
    supported_usage_classes: tuple[str, ...]
    bare_metal: bool = False
    hypervisor: str = ""
    nitro_enclaves_support: str = "unsupported"
    ebs_info: _Ebs = _Ebs()
    instance_storage_info: _Storage = _Storage()
    gpu_info: _Gpus = _Gpus()
    inference_accelerator_info: _Accelerators = _Accelerators()
    neuron_info: _Neurons = _Neurons()
    placement_group_info: _Placement = _Placement()


class _Offering(_Wire, frozen=True, kw_only=True):
    instance_type: str
    location: str


@cache
def instance_types() -> Mapping[str, InstanceTypeInfo]:
    """Answer every hvm type of x86_64 or arm64 by name, sorted by name."""
    known = msgspec.json.decode(_resource("instance_types.json.gz"), type=dict[str, _Type])
    return MappingProxyType({name: _info(known[name]) for name in sorted(known) if _is_ours(known[name])})


@cache
def offered(region: str) -> Mapping[str, frozenset[str]]:
    """Answer the instance types by the name of the zone that has them, zones sorted.

    Raises:
        FileNotFoundError: the data knows no such *region*.
    """
    rows = msgspec.json.decode(
        _resource(f"instance_type_offerings/availability-zone/{region}.json.gz"), type=list[_Offering]
    )
    zones: dict[str, set[str]] = {}
    for row in rows:
        zones.setdefault(row.location, set()).add(row.instance_type)
    return MappingProxyType({zone: frozenset(zones[zone]) & instance_types().keys() for zone in sorted(zones)})


def zone_id(region: str, ordinal: int) -> str:
    """Answer the id of the zone that is number *ordinal*, from 1, in *region*: ``use1-az1``, ``apse2-az1``."""
    area, *words, number = region.split("-")
    return f"{area}{''.join(COMPASS.get(word, word[0]) for word in words)}{number}-az{ordinal}"


def _resource(name: str) -> bytes:
    return gzip.decompress((files("moto") / "ec2" / "resources" / name).read_bytes())


def _is_ours(wire: _Type) -> bool:
    hvm = "hvm" in wire.supported_virtualization_types
    return hvm and not ARCHITECTURES.isdisjoint(wire.processor_info.supported_architectures)


def _info(wire: _Type) -> InstanceTypeInfo:
    network, ebs, storage = wire.network_info, wire.ebs_info.ebs_optimized_info, wire.instance_storage_info
    return InstanceTypeInfo(
        name=wire.instance_type,
        architectures=wire.processor_info.supported_architectures,
        usage_classes=wire.supported_usage_classes,
        vcpus=wire.v_cpu_info.vcpus,
        memory_mib=wire.memory_info.size_in_mib,
        maximum_interfaces=_default_card_interfaces(network),
        ipv4_per_interface=network.ipv4_addresses_per_interface,
        cpu_manufacturer=wire.processor_info.manufacturer,
        clock_speed_ghz=wire.processor_info.sustained_clock_speed_in_ghz,
        hypervisor=wire.hypervisor,
        bare_metal=wire.bare_metal,
        encryption_in_transit=network.encryption_in_transit_supported,
        nitro_enclaves=wire.nitro_enclaves_support == "supported",
        ebs_baseline_mbps=ebs.baseline_bandwidth_in_mbps,
        ebs_maximum_mbps=ebs.maximum_bandwidth_in_mbps,
        ebs_optimized_support=wire.ebs_info.ebs_optimized_support,
        local_storage_gb=storage.total_size_in_gb,
        nvme_support=storage.nvme_support,
        network_cards=tuple(map(_card, network.network_cards)),
        efa_interfaces=network.efa_info.maximum_efa_interfaces,
        gpus=tuple(map(_device, wire.gpu_info.gpus)),
        inference_accelerators=tuple(map(_device, wire.inference_accelerator_info.accelerators)),
        neurons=tuple(map(_device, wire.neuron_info.neuron_devices)),
        placement_strategies=wire.placement_group_info.supported_strategies,
        processor_features=wire.processor_info.supported_features,
        ena_support=network.ena_support,
        branch_interfaces=branch_interfaces(wire.instance_type),
    )


def _default_card_interfaces(network: _Network) -> int:
    cards = {card.network_card_index: card.maximum_network_interfaces for card in network.network_cards}
    return cards.get(network.default_network_card_index, network.maximum_network_interfaces)


def _card(wire: _Card) -> NetworkCard:
    return NetworkCard(
        index=wire.network_card_index,
        maximum_interfaces=wire.maximum_network_interfaces,
        baseline_gbps=wire.baseline_bandwidth_in_gbps,
    )


def _device(wire: _Device) -> GpuDevice:
    return GpuDevice(
        name=wire.name,
        manufacturer=wire.manufacturer,
        count=wire.count,
        memory_mib=wire.memory_info.size_in_mib,
        cores=wire.core_info.count,
    )
