"""What differs between image families (spec: AMIs, block devices, kubelet features)."""

from typing import Final

import msgspec

from shared.model.ec2 import BlockDevice


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One amiFamily."""

    name: str
    ephemeral_device: str
    """Where pods' ephemeral storage lies; "" if only the image knows."""
    default_devices: tuple[BlockDevice, ...] = ()
    eni_limited_pods: bool = True
    pods_per_core: bool = True
    eni_based_memory_overhead: bool = True
    """kube-reserved memory follows the ENI formula, whatever maxPods says."""
    os: str = "linux"


def _gp3(device: str, gib: int) -> BlockDevice:
    return BlockDevice(device_name=device, volume_size_gib=gib)


_XVDA: Final = (_gp3("/dev/xvda", 20),)
_BOTTLEROCKET: Final = (_gp3("/dev/xvda", 4), _gp3("/dev/xvdb", 20))
_WINDOWS: Final = {
    name: Family(
        name=name,
        ephemeral_device="/dev/sda1",
        default_devices=(_gp3("/dev/sda1", 50),),
        eni_limited_pods=False,
        eni_based_memory_overhead=False,
        os="windows",
    )
    for name in ("Windows2019", "Windows2022", "Windows2025")
}
FAMILIES: Final = {
    "AL2": Family(name="AL2", ephemeral_device="/dev/xvda", default_devices=_XVDA),
    "AL2023": Family(name="AL2023", ephemeral_device="/dev/xvda", default_devices=_XVDA),
    "Bottlerocket": Family(
        name="Bottlerocket",
        ephemeral_device="/dev/xvdb",
        default_devices=_BOTTLEROCKET,
        pods_per_core=False,
        eni_based_memory_overhead=False,
    ),
    "Custom": Family(name="Custom", ephemeral_device=""),
} | _WINDOWS
