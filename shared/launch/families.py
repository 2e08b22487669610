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
    arbitrary_kubelet: bool = False
    """The machine takes any field of KubeletConfiguration; else only those that are read here."""
    os: str = "linux"
    windows_build: str = ""


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
        windows_build=build,
    )
    for name, build in (("Windows2019", "10.0.17763"), ("Windows2022", "10.0.20348"), ("Windows2025", "10.0.26100"))
}
FAMILIES: Final = {
    "AL2": Family(name="AL2", ephemeral_device="/dev/xvda", default_devices=_XVDA),
    "AL2023": Family(name="AL2023", ephemeral_device="/dev/xvda", default_devices=_XVDA, arbitrary_kubelet=True),
    "Bottlerocket": Family(
        name="Bottlerocket",
        ephemeral_device="/dev/xvdb",
        default_devices=_BOTTLEROCKET,
        pods_per_core=False,
        eni_based_memory_overhead=False,
    ),
    "Custom": Family(name="Custom", ephemeral_device="", arbitrary_kubelet=True),
} | _WINDOWS

ALIASES: Final = {name.lower(): name for name in FAMILIES if name != "Custom"}
"""Family by the word before the ``@`` of an alias."""
