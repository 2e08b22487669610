"""How much room an instance type has for pods: what a kubelet will report, estimated, and what it will keep.

Capacity is memory less the hypervisor's share, pods by the network interfaces, storage by the block devices.
Overhead is kube-reserved, system-reserved and the hard eviction threshold; soft thresholds take nothing away.
"""

import math
from typing import Final

import msgspec

from shared.launch.amounts import settled
from shared.launch.families import Family
from shared.launch.kubelet import expressions
from shared.launch.type_fits import efa_only
from shared.model.ec2 import InstanceTypeInfo
from shared.model.nodeclasses import EC2NodeClass, Kubelet
from shared.model.objects import Pairs
from shared.model.resources import CPU, MEMORY, PODS, STORAGE, Resources, parse_resources, resources

MIB: Final = 1024**2
GIB: Final = 1024**3
_CPU_BANDS: Final = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, math.inf, 25))
"""Milli-CPU from, to, and how much of ten thousand is kept for the kubelet."""
_EVICTION_MEMORY: Final = 100 * MIB
_GPU_RESOURCES: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """Deployment settings that shape types."""

    vm_memory_overhead_percent: float = 0.075
    """A share of one, whatever the name says; it is Karpenter's."""
    reserved_enis: int = 0
    node_class_cel: bool = False
    """Whether amounts of spec.kubelet may be expressions."""


def room_of(
    info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs, seen_memory: int | None = None
) -> tuple[Resources, Resources]:
    """Answer capacity and overhead; *seen_memory* is what a real node of the type reported, in bytes.

    Thresholds in percent are of the estimate, so that one node's report does not move them.
    """
    kubelet = kubelet_of(info, node_class, family, knobs)
    estimated = _capacity(info, node_class, family, knobs)
    overhead = _overhead(info, estimated, kubelet, family)
    if seen_memory is None:
        return estimated, overhead
    return resources(dict(estimated.amounts) | {MEMORY: seen_memory}), overhead


def storage_bytes(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family) -> int:
    """Answer what pods' ephemeral storage has, before reservations."""
    if node_class.instance_store_policy == "RAID0" and info.local_storage_gb:
        return info.local_storage_gb * 10**9
    devices = node_class.block_devices
    sizes = {device.device_name: device.volume_size_gib for device in devices}
    defaults = {device.device_name: device.volume_size_gib for device in family.default_devices}
    last = devices[-1].volume_size_gib if devices and not family.ephemeral_device else None
    choices = (*(sizes.get(name) for name in node_class.root_devices), last, sizes.get(family.ephemeral_device))
    gib = next((size for size in (*choices, defaults.get(family.ephemeral_device)) if size), 20)
    return gib * GIB


def pod_count(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs) -> int:
    """Answer how many pods the kubelet takes: maxPods, else what the network interfaces allow, else 110.

    Prefix delegation is not seen here: who uses it says maxPods.
    """
    kubelet = kubelet_of(info, node_class, family, knobs)
    count = default_pods(info, node_class, family, knobs) if kubelet.max_pods is None else kubelet.max_pods
    if kubelet.pods_per_core and family.pods_per_core:
        count = min(count, kubelet.pods_per_core * info.vcpus)
    return count


def default_pods(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs) -> int:
    """Answer how many pods the kubelet takes if the class says nothing of it."""
    if not family.eni_limited_pods:
        return 110
    return eni_limited_pods(info, knobs.reserved_enis + efa_only(node_class, card=0))


def kubelet_of(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs) -> Kubelet:
    """Answer what is read of spec.kubelet, with amounts in place of its expressions."""
    if not knobs.node_class_cel or not expressions(node_class):
        return node_class.kubelet
    return settled(node_class, info, default_pods(info, node_class, family, knobs))


def eni_limited_pods(info: InstanceTypeInfo, reserved_enis: int) -> int:
    """Answer how many pods get an address of their own: one per secondary address, and two on the host's network."""
    interfaces = max(0, info.maximum_interfaces - reserved_enis)
    return interfaces * (info.ipv4_per_interface - 1) + 2 if interfaces else 0


def kube_cpu_milli(vcpus: int) -> int:
    """Answer the kubelet's share of the processor.

    >>> [kube_cpu_milli(vcpus) for vcpus in (1, 2, 4, 96)]
    [60, 70, 80, 310]
    """
    milli = vcpus * 1000
    return sum(int((min(milli, top) - bottom) * share / 10000) for bottom, top, share in _CPU_BANDS if milli > bottom)


def _capacity(info: InstanceTypeInfo, node_class: EC2NodeClass, family: Family, knobs: Knobs) -> Resources:
    amounts = {
        CPU: info.vcpus * 1000,
        MEMORY: _memory_bytes(info, knobs),
        STORAGE: storage_bytes(info, node_class, family),
        PODS: pod_count(info, node_class, family, knobs),
        "vpc.amazonaws.com/efa": efa_only(node_class) if node_class.network_interfaces else info.efa_interfaces,
        "vpc.amazonaws.com/pod-eni": info.branch_interfaces,
        "aws.amazon.com/neuron": sum(device.count for device in info.neurons),
        "aws.amazon.com/neuroncore": info.neurons[0].count * info.neurons[0].cores if info.neurons else 0,
    }
    if family.os == "windows":
        amounts["vpc.amazonaws.com/PrivateIPv4Address"] = max(0, info.ipv4_per_interface - 1)
    for device in info.gpus:
        name = _GPU_RESOURCES.get(device.manufacturer)
        if name is not None:
            amounts[name] = amounts.get(name, 0) + device.count
    return resources(amounts)


def _memory_bytes(info: InstanceTypeInfo, knobs: Knobs) -> int:
    mib = info.memory_mib - (64 if info.architectures[:1] == ("arm64",) else 0)
    return (mib - math.ceil(mib * knobs.vm_memory_overhead_percent)) * MIB


def _overhead(info: InstanceTypeInfo, capacity: Resources, kubelet: Kubelet, family: Family) -> Resources:
    pods = eni_limited_pods(info, 0) if family.eni_based_memory_overhead else capacity[PODS]
    kube = {CPU: kube_cpu_milli(info.vcpus), MEMORY: (11 * pods + 255) * MIB, STORAGE: GIB}
    kube |= dict(_reserved(kubelet.kube_reserved).amounts)
    thresholds = dict(kubelet.eviction_hard)
    evicted = {
        MEMORY: _threshold(thresholds.get("memory.available"), capacity[MEMORY], _EVICTION_MEMORY),
        STORAGE: _threshold(thresholds.get("nodefs.available"), capacity[STORAGE], math.ceil(capacity[STORAGE] / 10)),
    }
    return resources(kube) + _reserved(kubelet.system_reserved) + resources(evicted)


def _reserved(some: Pairs) -> Resources:
    return parse_resources({name: value for name, value in some if name in (CPU, MEMORY, STORAGE)})


def _threshold(text: str | None, capacity: int, default: int) -> int:
    if text is None:
        return default
    if text.endswith("%"):
        percent = float(text[:-1])
        return 0 if percent == 100 else math.ceil(capacity * percent / 100)  # noqa: PLR2004 - the kubelet's "off"
    return parse_resources({MEMORY: text})[MEMORY]
