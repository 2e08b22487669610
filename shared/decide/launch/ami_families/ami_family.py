"""Differences between AMI families: images, block devices, kubelet features."""

from typing import Final

import msgspec

from shared.model.ec2.launch_template import BlockDevice


class AmiFamily(msgspec.Struct, frozen=True, kw_only=True):
    """One amiFamily."""

    name: str
    ephemeral_device: str
    """The device with the pods' ephemeral storage; "" if only the image defines it."""
    default_devices: tuple[BlockDevice, ...] = ()
    eni_limited_pods: bool = True
    pods_per_core: bool = True
    eni_based_memory_overhead: bool = True
    """kube-reserved memory follows the ENI formula, regardless of maxPods."""
    arbitrary_kubelet: bool = False
    """The node accepts any field of KubeletConfiguration; otherwise only the fields that Joiner reads."""
    os: str = "linux"
    windows_build: str = ""


def _build_gp3_device(device: str, size_gib: int) -> BlockDevice:
    return BlockDevice(device_name=device, volume_size_gib=size_gib, volume_type="gp3", encrypted=True)


_XVDA_DEVICES: Final = (_build_gp3_device("/dev/xvda", 20),)
_BOTTLEROCKET_DEVICES: Final = (_build_gp3_device("/dev/xvda", 4), _build_gp3_device("/dev/xvdb", 20))
_WINDOWS_FAMILIES: Final = {
    name: AmiFamily(
        name=name,
        ephemeral_device="/dev/sda1",
        default_devices=(_build_gp3_device("/dev/sda1", 50),),
        eni_limited_pods=False,
        eni_based_memory_overhead=False,
        os="windows",
        windows_build=build,
    )
    for name, build in (("Windows2019", "10.0.17763"), ("Windows2022", "10.0.20348"), ("Windows2025", "10.0.26100"))
}
AMI_FAMILIES: Final = {
    "AL2": AmiFamily(name="AL2", ephemeral_device="/dev/xvda", default_devices=_XVDA_DEVICES),
    "AL2023": AmiFamily(
        name="AL2023", ephemeral_device="/dev/xvda", default_devices=_XVDA_DEVICES, arbitrary_kubelet=True
    ),
    "Bottlerocket": AmiFamily(
        name="Bottlerocket",
        ephemeral_device="/dev/xvdb",
        default_devices=_BOTTLEROCKET_DEVICES,
        pods_per_core=False,
        eni_based_memory_overhead=False,
    ),
    "Custom": AmiFamily(name="Custom", ephemeral_device="", arbitrary_kubelet=True),
} | _WINDOWS_FAMILIES
