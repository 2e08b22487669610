"""Capacity and overhead of an instance type: an estimate of what its kubelet will report and reserve.

Capacity is memory less the hypervisor's overhead, pods by the network interfaces, storage by the block devices.
Overhead is kube-reserved, system-reserved and the hard eviction threshold; soft thresholds reserve nothing.
"""

import math
from typing import Final

import msgspec

from shared.decide.launch.ami_families.ami_family import AmiFamily
from shared.decide.launch.instance_types.compatibility import count_efa_only_interfaces
from shared.decide.launch.kubelet.configuration import list_expressions
from shared.decide.launch.kubelet.resource_expressions import evaluate_kubelet
from shared.model.core.metadata import Pairs
from shared.model.core.resources import (
    AMD_GPU,
    CPU,
    EFA,
    GAUDI,
    MEMORY,
    NEURON,
    NEURON_CORE,
    NVIDIA_GPU,
    PODS,
    STORAGE,
    Resources,
    build_resources,
    parse_resources,
)
from shared.model.core.units import BYTES_PER_GIB, BYTES_PER_MIB
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import EC2NodeClass, KubeletConfiguration

_KUBE_RESERVED_CPU_BANDS: Final = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, math.inf, 25))
"""From and to in milli-CPU, and the kubelet's share in ten-thousandths."""
_DEFAULT_EVICTION_MEMORY_BYTES: Final = 100 * BYTES_PER_MIB
_GPU_RESOURCE_BY_MANUFACTURER: Final = {"NVIDIA": NVIDIA_GPU, "AMD": AMD_GPU, "Habana": GAUDI}


class CapacitySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Deployment settings that affect the capacity of instance types."""

    vm_memory_overhead_percent: float = 0.075
    """A ratio, although Karpenter's name says percent."""
    reserved_enis: int = 0
    node_class_cel: bool = False
    """Whether amounts of spec.kubelet may be expressions."""


def compute_capacity_and_overhead(
    info: InstanceTypeInfo,
    node_class: EC2NodeClass,
    family: AmiFamily,
    settings: CapacitySettings,
    seen_memory: int | None = None,
) -> tuple[Resources, Resources]:
    """Return capacity and overhead; *seen_memory* is what a real node of the type reported, in bytes.

    Thresholds in percent apply to the estimate, so that a node's report does not change them.
    """
    kubelet = resolve_kubelet(info, node_class, family, settings)
    estimated_capacity = _compute_capacity(info, node_class, family, settings)
    overhead = _compute_overhead(info, estimated_capacity, kubelet, family)
    if seen_memory is None:
        return estimated_capacity, overhead
    return build_resources(dict(estimated_capacity.amounts) | {MEMORY: seen_memory}), overhead


def compute_storage_bytes(info: InstanceTypeInfo, node_class: EC2NodeClass, family: AmiFamily) -> int:
    """Return the size of the pods' ephemeral storage, before reservations."""
    if node_class.instance_store_policy == "RAID0" and info.local_storage_gb:
        return info.local_storage_gb * 10**9
    devices = node_class.block_devices
    sizes = {device.device_name: device.volume_size_gib for device in devices}
    defaults = {device.device_name: device.volume_size_gib for device in family.default_devices}
    last_size_gib = devices[-1].volume_size_gib if devices and not family.ephemeral_device else None
    choices = (
        *(sizes.get(name) for name in node_class.root_devices),
        last_size_gib,
        sizes.get(family.ephemeral_device),
    )
    size_gib = next((size for size in (*choices, defaults.get(family.ephemeral_device)) if size), 20)
    return size_gib * BYTES_PER_GIB


def compute_max_pods(
    info: InstanceTypeInfo, node_class: EC2NodeClass, family: AmiFamily, settings: CapacitySettings
) -> int:
    """Return the kubelet's pod limit: maxPods, else the limit of the network interfaces, else 110.

    Prefix delegation is not detected: clusters that use it must set maxPods.
    """
    kubelet = resolve_kubelet(info, node_class, family, settings)
    count = (
        compute_default_max_pods(info, node_class, family, settings) if kubelet.max_pods is None else kubelet.max_pods
    )
    if kubelet.pods_per_core and family.pods_per_core:
        count = min(count, kubelet.pods_per_core * info.vcpus)
    return count


def compute_default_max_pods(
    info: InstanceTypeInfo, node_class: EC2NodeClass, family: AmiFamily, settings: CapacitySettings
) -> int:
    """Return the kubelet's pod limit if the node class does not set it."""
    if not family.eni_limited_pods:
        return 110
    return count_eni_limited_pods(info, settings.reserved_enis + count_efa_only_interfaces(node_class, card=0))


def resolve_kubelet(
    info: InstanceTypeInfo, node_class: EC2NodeClass, family: AmiFamily, settings: CapacitySettings
) -> KubeletConfiguration:
    """Return spec.kubelet with its expressions replaced by their values."""
    if not settings.node_class_cel or not list_expressions(node_class):
        return node_class.kubelet
    return evaluate_kubelet(node_class, info, compute_default_max_pods(info, node_class, family, settings))


def count_eni_limited_pods(info: InstanceTypeInfo, reserved_enis: int) -> int:
    """Return the pods that the network interfaces allow: one per secondary address, and two on the host network."""
    interfaces = max(0, info.maximum_interfaces - reserved_enis)
    return interfaces * (info.ipv4_per_interface - 1) + 2 if interfaces else 0


def compute_kube_reserved_cpu(vcpus: int) -> int:
    """Return the CPU that the kubelet reserves, in milli-CPU.

    >>> [compute_kube_reserved_cpu(vcpus) for vcpus in (1, 2, 4, 96)]
    [60, 70, 80, 310]
    """
    milli = vcpus * 1000
    return sum(
        int((min(milli, band_end) - band_start) * share / 10000)
        for band_start, band_end, share in _KUBE_RESERVED_CPU_BANDS
        if milli > band_start
    )


def _compute_capacity(
    info: InstanceTypeInfo, node_class: EC2NodeClass, family: AmiFamily, settings: CapacitySettings
) -> Resources:
    amounts = {
        CPU: info.vcpus * 1000,
        MEMORY: _compute_memory_bytes(info, settings),
        STORAGE: compute_storage_bytes(info, node_class, family),
        PODS: compute_max_pods(info, node_class, family, settings),
        EFA: count_efa_only_interfaces(node_class) if node_class.network_interfaces else info.efa_interfaces,
        "vpc.amazonaws.com/pod-eni": info.branch_interfaces,
        NEURON: sum(device.count for device in info.neurons),
        NEURON_CORE: info.neurons[0].count * info.neurons[0].cores if info.neurons else 0,
    }
    if family.os == "windows":
        amounts["vpc.amazonaws.com/PrivateIPv4Address"] = max(0, info.ipv4_per_interface - 1)
    for device in info.gpus:
        name = _GPU_RESOURCE_BY_MANUFACTURER.get(device.manufacturer)
        if name is not None:
            amounts[name] = amounts.get(name, 0) + device.count
    return build_resources(amounts)


def _compute_memory_bytes(info: InstanceTypeInfo, settings: CapacitySettings) -> int:
    mib = info.memory_mib - (64 if info.architectures[:1] == ("arm64",) else 0)
    return (mib - math.ceil(mib * settings.vm_memory_overhead_percent)) * BYTES_PER_MIB


def _compute_overhead(
    info: InstanceTypeInfo, capacity: Resources, kubelet: KubeletConfiguration, family: AmiFamily
) -> Resources:
    pods = count_eni_limited_pods(info, 0) if family.eni_based_memory_overhead else capacity[PODS]
    kube_reserved = {
        CPU: compute_kube_reserved_cpu(info.vcpus),
        MEMORY: (11 * pods + 255) * BYTES_PER_MIB,
        STORAGE: BYTES_PER_GIB,
    }
    kube_reserved |= dict(_parse_reserved(kubelet.kube_reserved).amounts)
    thresholds = dict(kubelet.eviction_hard)
    eviction_thresholds = {
        MEMORY: _parse_threshold(thresholds.get("memory.available"), capacity[MEMORY], _DEFAULT_EVICTION_MEMORY_BYTES),
        STORAGE: _parse_threshold(
            thresholds.get("nodefs.available"), capacity[STORAGE], math.ceil(capacity[STORAGE] / 10)
        ),
    }
    return (
        build_resources(kube_reserved) + _parse_reserved(kubelet.system_reserved) + build_resources(eviction_thresholds)
    )


def _parse_reserved(amounts: Pairs) -> Resources:
    return parse_resources({name: value for name, value in amounts if name in (CPU, MEMORY, STORAGE)})


def _parse_threshold(text: str | None, capacity: int, default: int) -> int:
    if text is None:
        return default
    if text.endswith("%"):
        percent = float(text[:-1])
        return 0 if percent == 100 else math.ceil(capacity * percent / 100)  # noqa: PLR2004 - the kubelet's "off"
    return parse_resources({MEMORY: text})[MEMORY]
