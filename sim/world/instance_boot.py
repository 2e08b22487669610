"""From an EC2 instance to its booting kubelet: what a real instance reports, and when.

This is independent of the planner's own estimate (`shared.decide.launch.instance_types.instance_types`): where the two
disagree, a plan fails here as it would in the account.
"""

import base64
import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, Protocol

import msgspec

from shared.decide.launch.ami_families.bootstrap import is_ipv6
from shared.model.core.units import parse_quantity
from shared.model.ec2.instance import Instance
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud import seeded_random
from sim.cloud.cloud import Cloud
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.cluster.kubelet.user_data import UserDataSettings, parse_user_data

MIB_BYTES: Final = 1024**2
GIB_BYTES: Final = 1024**3
DEFAULT_VOLUME_GIB: Final = 20
"""Size of the volume for pods, if the launch template does not set it."""
KERNEL_MEMORY_RATIO: Final = 0.05
"""Share of the advertised memory that firmware and kernel use: 8 GiB become about 7.6 GiB in /proc/meminfo."""
REGISTRATION_DELAY_RANGE: Final = (timedelta(seconds=18), timedelta(seconds=30))
"""Minimum and maximum time from `running` to the creation of the Node."""
READINESS_DELAY_RANGE: Final = (timedelta(seconds=6), timedelta(seconds=12))
NETWORK_TIMEOUT: Final = timedelta(days=365)
"""How long a node whose VPC CNI gets no addresses is not Ready: for ever."""
_GPU_RESOURCE_BY_MANUFACTURER: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
_KUBERNETES_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}


class NodeLifecycle(Protocol):
    """Starts and stops nodes, as `SimulatedCluster` does."""

    def start_node(self, boot: NodeBoot) -> None:
        """Boot an instance; its Node appears after its registration delay."""

    def stop_node(self, node_name: str, *, terminated: bool = True) -> None:
        """Stop the kubelet; *terminated*: the instance is terminated, so its Node is deleted."""


class InstanceBooter:
    """Boots a kubelet in *node_lifecycle* for every running instance of *cloud*, and stops it with the instance."""

    def __init__(self, cloud: Cloud, node_lifecycle: NodeLifecycle, seed: int = 0) -> None:
        """Subscribe to the instances of *cloud*."""
        self._cloud, self._node_lifecycle, self._seed = cloud, node_lifecycle, seed
        self.boot_failures: list[str] = []
        """Instances with user data that no kubelet can start with, and the reason."""
        self.can_assign_ipv6_addresses: Callable[[str], bool] = lambda _: True
        """Whether the role of an instance profile lets the VPC CNI assign IPv6 addresses."""
        self.is_image_broken: Callable[[str], bool] = lambda _: False
        """Whether the kubelet of instances with an image id never registers its node."""
        cloud.instances.running_listeners.append(self._boot_instance)
        cloud.instances.halted_listeners.append(
            lambda instance: node_lifecycle.stop_node(instance.private_dns_name, terminated=False)
        )
        cloud.instances.terminated_listeners.append(
            lambda instance: node_lifecycle.stop_node(instance.private_dns_name, terminated=True)
        )

    def _boot_instance(self, instance: Instance, template: LaunchTemplate) -> None:
        if self.is_image_broken(instance.image_id):
            self.boot_failures.append(f"{instance.instance_id}: image {instance.image_id} is broken")
            return
        try:
            settings = parse_user_data(base64.b64decode(template.user_data))
        except ValueError as error:
            self.boot_failures.append(f"{instance.instance_id}: {error}")
            return
        info = self._cloud.types[instance.instance_type]
        zone_id = self._cloud.network.subnets[instance.subnet_id].zone_id
        capacity, allocatable = compute_node_resources(info, settings, _get_storage_gib(template, settings))
        boot = build_node_boot(instance, info, settings, self._seed, zone_id)
        boot = msgspec.structs.replace(boot, capacity=capacity, allocatable=allocatable)
        if is_ipv6(self._cloud.facts) and not self.can_assign_ipv6_addresses(template.instance_profile):
            boot = msgspec.structs.replace(boot, ready_after=NETWORK_TIMEOUT)
        self._node_lifecycle.start_node(boot)


def list_active_instances(cloud: Cloud) -> tuple[Instance, ...]:
    """Return the pending and running instances, sorted by id."""
    return tuple(instance for instance in cloud.instances.describe_all() if instance.state in ("pending", "running"))


def build_node_boot(
    instance: Instance, info: InstanceTypeInfo, settings: UserDataSettings, seed: int, zone_id: str
) -> NodeBoot:
    """Return the boot data of *instance*, with the default volume size."""
    capacity, allocatable = compute_node_resources(info, settings)
    return NodeBoot(
        node_name=instance.private_dns_name,
        provider_id=instance.provider_id,
        instance_type=instance.instance_type,
        zone=instance.zone,
        zone_id=zone_id,
        region=instance.zone[:-1],
        capacity=capacity,
        allocatable=allocatable,
        labels=settings.labels,
        taints=settings.taints,
        arch=_KUBERNETES_ARCHITECTURES[info.architectures[0]],
        internal_ip=instance.private_dns_name.removeprefix("ip-").partition(".")[0].replace("-", "."),
        register_after=seeded_random.draw_duration(*REGISTRATION_DELAY_RANGE, seed, instance.instance_id, "register"),
        ready_after=seeded_random.draw_duration(*READINESS_DELAY_RANGE, seed, instance.instance_id, "ready"),
        device_resources=_count_devices(info),
        volume_limit=25,
    )


def compute_node_resources(
    info: InstanceTypeInfo, settings: UserDataSettings, storage_gib: int = DEFAULT_VOLUME_GIB
) -> tuple[dict[str, str], dict[str, str]]:
    """Return capacity and allocatable as the kubelet reports them."""
    max_pods_by_interfaces = info.maximum_interfaces * (info.ipv4_per_interface - 1) + 2
    pod_capacity = str(settings.max_pods or max_pods_by_interfaces)
    memory_bytes = math.floor(info.memory_mib * (1 - KERNEL_MEMORY_RATIO)) * MIB_BYTES - (
        64 * MIB_BYTES if "arm64" in info.architectures else 0
    )
    capacity = {
        "cpu": info.vcpus * 1000,
        "memory": memory_bytes,
        "ephemeral-storage": storage_gib * GIB_BYTES - 12 * MIB_BYTES,
    }
    kube_reserved = {
        "cpu": _compute_reserved_cpu(info.vcpus),
        "memory": (11 * max_pods_by_interfaces + 255) * MIB_BYTES,
        "ephemeral-storage": GIB_BYTES,
    }
    kube_reserved |= _parse_reserved_resources(settings.kube_reserved)
    system_reserved = _parse_reserved_resources(settings.system_reserved)
    eviction_thresholds = {
        "memory": _parse_eviction_threshold(settings.eviction_hard.get("memory.available", "100Mi"), memory_bytes),
        "ephemeral-storage": _parse_eviction_threshold(
            settings.eviction_hard.get("nodefs.available", "10%"), capacity["ephemeral-storage"]
        ),
    }
    allocatable = {
        name: max(0, amount - kube_reserved[name] - system_reserved.get(name, 0) - eviction_thresholds.get(name, 0))
        for name, amount in capacity.items()
    }
    return _format_resources(capacity, pod_capacity), _format_resources(allocatable, pod_capacity)


def _parse_reserved_resources(reserved: Mapping[str, str]) -> dict[str, int]:
    """Return the reserved resources of the user data in milli-CPU and bytes."""
    resource_names = ("cpu", "memory", "ephemeral-storage")
    return {
        name: parse_quantity(text, per_unit=1000 if name == "cpu" else 1)
        for name, text in sorted(reserved.items())
        if name in resource_names
    }


def _parse_eviction_threshold(text: str, capacity: int) -> int:
    return math.ceil(capacity * float(text[:-1]) / 100) if text.endswith("%") else parse_quantity(text)


def _format_resources(amounts: Mapping[str, int], pod_capacity: str) -> dict[str, str]:
    cpu_milli = amounts["cpu"]
    return {
        "cpu": f"{cpu_milli}m" if cpu_milli % 1000 else str(cpu_milli // 1000),
        "memory": f"{amounts['memory'] // 1024}Ki",
        "ephemeral-storage": f"{amounts['ephemeral-storage'] // 1024}Ki",
        "pods": pod_capacity,
    }


def _get_storage_gib(template: LaunchTemplate, settings: UserDataSettings) -> int:
    """Return the size of the volume for pods: Bottlerocket has a data volume, the other AMI families use the root."""
    volumes = {device.device_name: device.volume_size_gib for device in template.block_devices}
    device_name = "/dev/xvdb" if settings.dialect == "bottlerocket" else "/dev/xvda"
    return volumes.get(device_name) or DEFAULT_VOLUME_GIB


def _compute_reserved_cpu(vcpus: int) -> int:
    """Return the milli-CPU that the node agent reserves: a share that decreases with every core."""
    first_core_shares = [60, 10, 5, 5]
    return math.ceil(sum(first_core_shares[:vcpus]) + max(0, vcpus - len(first_core_shares)) * 2.5)


def _count_devices(info: InstanceTypeInfo) -> dict[str, str]:
    gpu_resources = {
        _GPU_RESOURCE_BY_MANUFACTURER[gpu.manufacturer]: str(gpu.count)
        for gpu in info.gpus
        if gpu.manufacturer in _GPU_RESOURCE_BY_MANUFACTURER
    }
    neuron_count = sum(neuron.count for neuron in info.neurons)
    return gpu_resources | ({"aws.amazon.com/neuron": str(neuron_count)} if neuron_count else {})
