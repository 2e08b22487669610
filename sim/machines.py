"""From an EC2 instance to a kubelet that boots on it: what a real machine would report, and when.

This does not ask the planner's own estimate (`shared.launch.types`): where the two disagree, a plan comes apart here as
it would in the account.
"""

import base64
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, Protocol

import msgspec

from shared.model.ec2 import Instance, InstanceTypeInfo, LaunchTemplate
from shared.model.units import parse_quantity
from sim.cloud import chance
from sim.cloud.cloud import Cloud
from sim.cluster.kubelet import Boot
from sim.cluster.userdata import UserDataSettings, boot_settings_from_user_data

MIB: Final = 1024**2
GIB: Final = 1024**3
VOLUME_GIB: Final = 20
"""Of the volume that pods write to, where the launch template says nothing."""
KERNEL_SHARE: Final = 0.05
"""Of the memory that EC2 advertises, what firmware and kernel keep: 8 GiB are some 7.6 GiB in /proc/meminfo."""
REGISTERS_AFTER: Final = (timedelta(seconds=18), timedelta(seconds=30))
"""From `running` to the Node: at least, at most."""
READY_AFTER: Final = (timedelta(seconds=6), timedelta(seconds=12))
_GPUS: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
_ARCH: Final = {"x86_64": "amd64", "arm64": "arm64"}


class Rack(Protocol):
    """Where machines are switched on and off, as `LiveCluster` does."""

    def start_node(self, boot: Boot) -> None:
        """Let the machine of *boot* become a Node in its own time."""

    def stop_node(self, name: str, *, gone: bool = True) -> None:
        """Let the machine fall silent; *gone*: its instance is terminated, so that its Node has no reason to stay."""


class Machines:
    """Boots a kubelet in *live* for every instance that *cloud* runs, and lets it fall silent with the instance."""

    def __init__(self, cloud: Cloud, live: Rack, seed: int = 0) -> None:
        """Listen from now on."""
        self._cloud, self._live, self._seed = cloud, live, seed
        self.broken: list[str] = []
        """Instances whose user data says nothing that a kubelet could start with, and why."""
        cloud.on_running(self._boot)
        cloud.on_halted(lambda instance: live.stop_node(instance.private_dns_name, gone=False))
        cloud.on_terminated(lambda instance: live.stop_node(instance.private_dns_name, gone=True))

    def _boot(self, instance: Instance, template: LaunchTemplate) -> None:
        try:
            settings = boot_settings_from_user_data(base64.b64decode(template.user_data))
        except ValueError as error:
            self.broken.append(f"{instance.instance_id}: {error}")
            return
        info = self._cloud.types[instance.instance_type]
        zone_id = self._cloud.network.subnets[instance.subnet_id].zone_id
        capacity, allocatable = sizes(info, settings, _storage_gib(template, settings))
        boot = boot_of(instance, info, settings, self._seed, zone_id)
        self._live.start_node(msgspec.structs.replace(boot, capacity=capacity, allocatable=allocatable))


def living(cloud: Cloud) -> tuple[Instance, ...]:
    """Answer the instances that have not begun to end, sorted by id."""
    return tuple(one for one in cloud.instances() if one.state in ("pending", "running"))


def boot_of(instance: Instance, info: InstanceTypeInfo, settings: UserDataSettings, seed: int, zone_id: str) -> Boot:
    """Answer the machine that *instance* is, with volumes as they come."""
    capacity, allocatable = sizes(info, settings)
    return Boot(
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
        arch=_ARCH[info.architectures[0]],
        internal_ip=instance.private_dns_name.removeprefix("ip-").partition(".")[0].replace("-", "."),
        register_after=chance.between(*REGISTERS_AFTER, seed, instance.instance_id, "register"),
        ready_after=chance.between(*READY_AFTER, seed, instance.instance_id, "ready"),
        late_resources=_devices(info),
        volume_limit=25,
    )


def sizes(
    info: InstanceTypeInfo, settings: UserDataSettings, storage_gib: int = VOLUME_GIB
) -> tuple[dict[str, str], dict[str, str]]:
    """Answer capacity and allocatable as the kubelet would report them."""
    interfaces = info.maximum_interfaces * (info.ipv4_per_interface - 1) + 2
    pods = str(settings.max_pods or interfaces)
    memory = math.floor(info.memory_mib * (1 - KERNEL_SHARE)) * MIB - (64 * MIB if "arm64" in info.architectures else 0)
    has = {"cpu": info.vcpus * 1000, "memory": memory, "ephemeral-storage": storage_gib * GIB - 12 * MIB}
    kube = {"cpu": _kept_cpu(info.vcpus), "memory": (11 * interfaces + 255) * MIB, "ephemeral-storage": GIB}
    kube |= _amounts(settings.kube_reserved)
    system = _amounts(settings.system_reserved)
    kept = {
        "memory": _threshold(settings.eviction_hard.get("memory.available", "100Mi"), memory),
        "ephemeral-storage": _threshold(
            settings.eviction_hard.get("nodefs.available", "10%"), has["ephemeral-storage"]
        ),
    }
    left = {name: max(0, amount - kube[name] - system.get(name, 0) - kept.get(name, 0)) for name, amount in has.items()}
    return _written(has, pods), _written(left, pods)


def _amounts(reserved: Mapping[str, str]) -> dict[str, int]:
    """Answer milli-CPU and bytes of what the user data reserves."""
    known = ("cpu", "memory", "ephemeral-storage")
    return {
        name: parse_quantity(text, per_unit=1000 if name == "cpu" else 1)
        for name, text in sorted(reserved.items())
        if name in known
    }


def _threshold(text: str, capacity: int) -> int:
    return math.ceil(capacity * float(text[:-1]) / 100) if text.endswith("%") else parse_quantity(text)


def _written(amounts: Mapping[str, int], pods: str) -> dict[str, str]:
    milli = amounts["cpu"]
    return {
        "cpu": f"{milli}m" if milli % 1000 else str(milli // 1000),
        "memory": f"{amounts['memory'] // 1024}Ki",
        "ephemeral-storage": f"{amounts['ephemeral-storage'] // 1024}Ki",
        "pods": pods,
    }


def _storage_gib(template: LaunchTemplate, settings: UserDataSettings) -> int:
    """Answer the size of the volume that pods write to: Bottlerocket has one of its own, others the root."""
    volumes = {device.device_name: device.volume_size_gib for device in template.block_devices}
    wanted = "/dev/xvdb" if settings.dialect == "bottlerocket" else "/dev/xvda"
    return volumes.get(wanted) or VOLUME_GIB


def _kept_cpu(vcpus: int) -> int:
    """Answer the milli-CPU that the node agent reserves: a share that falls with every core."""
    shares = [60, 10, 5, 5]
    return math.ceil(sum(shares[:vcpus]) + max(0, vcpus - len(shares)) * 2.5)


def _devices(info: InstanceTypeInfo) -> dict[str, str]:
    found = {_GPUS[one.manufacturer]: str(one.count) for one in info.gpus if one.manufacturer in _GPUS}
    neurons = sum(one.count for one in info.neurons)
    return found | ({"aws.amazon.com/neuron": str(neurons)} if neurons else {})
