"""Instance types as a node class sees them."""

import msgspec
import pytest

from shared.launch.families import FAMILIES
from shared.launch.types import (
    Knobs,
    Market,
    _kube_cpu_milli,
    _own_labels,
    eni_limited_pods,
    instance_types,
    pod_count,
)
from shared.model import labels
from shared.model.ec2 import BlockDevice, GpuDevice, InstanceTypeInfo
from tests.unit.launch_cases import INFOS, MARKET, info, kubelet, node_class, types

MIB = 1024**2
GIB = 1024**3
T3_LARGE = info("t3.large", 2, 8, enis=3, ips=12)


@pytest.mark.parametrize(
    ("some", "reserved", "pods"),
    [(T3_LARGE, 0, 35), (T3_LARGE, 1, 24), (info("m5.xlarge", 4, 16, enis=4, ips=15), 0, 58), (T3_LARGE, 3, 0)],
)
def test_each_secondary_address_is_a_pod_and_two_use_the_hosts(
    some: InstanceTypeInfo, reserved: int, pods: int
) -> None:
    assert eni_limited_pods(some, reserved) == pods


@pytest.mark.parametrize(
    ("family", "fields", "reserved", "memory_mib"),
    [
        ("AL2023", {}, 0, 640),
        ("AL2023", {}, 1, 640),
        ("Bottlerocket", {}, 1, 519),
        ("AL2023", {"max_pods": 10}, 0, 640),
        ("Bottlerocket", {"max_pods": 10}, 0, 365),
        ("Bottlerocket", {"max_pods": 110}, 0, 1465),
    ],
)
def test_the_kubelets_memory_follows_the_pods_of_its_family(
    family: str, fields: dict[str, object], reserved: int, memory_mib: int
) -> None:

    market = Market(region="r", offerings=(("t3.large", "us-east-1a"),), on_demand={"t3.large": 0.1}, spot=MARKET.spot)
    some = node_class(ami_family=family, kubelet=kubelet(**fields).kubelet)
    [one] = instance_types((T3_LARGE,), market, some, Knobs(reserved_enis=reserved))
    assert one.overhead["memory"] == (memory_mib + 100) * MIB


@pytest.mark.parametrize(("vcpus", "milli"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310)])
def test_the_kubelets_share_of_a_cpu_falls_with_every_core(vcpus: int, milli: int) -> None:

    assert _kube_cpu_milli(vcpus) == milli


def test_memory_is_less_what_the_hypervisor_keeps() -> None:
    found = types()
    assert found["m5.large"].capacity["memory"] == 7577 * MIB
    assert found["m6g.large"].capacity["memory"] == (8192 - 64 - 610) * MIB


def test_pods_per_core_caps_even_max_pods() -> None:
    some = kubelet(max_pods=50, pods_per_core=10)
    assert pod_count(INFOS[0], some, FAMILIES["AL2023"], Knobs()) == 20
    assert pod_count(INFOS[0], some, FAMILIES["Bottlerocket"], Knobs()) == 50


@pytest.mark.parametrize(
    ("fields", "gib"),
    [
        ({}, 20),
        ({"block_devices": (BlockDevice(device_name="/dev/xvda", volume_size_gib=80),)}, 80),
        ({"block_devices": (BlockDevice(device_name="/dev/sdb", volume_size_gib=80),)}, 20),
        ({"block_devices": (BlockDevice(device_name="/dev/sdb", volume_size_gib=80),), "root_device": "/dev/sdb"}, 80),
        ({"block_devices": (BlockDevice(device_name="x", volume_size_gib=7),), "ami_family": "Custom"}, 7),
    ],
)
def test_storage_is_that_of_the_device_pods_write_to(fields: dict[str, object], gib: int) -> None:
    assert types(node_class(**fields))["m5.large"].capacity["ephemeral-storage"] == gib * GIB


def test_thresholds_and_reservations_of_the_user_replace_the_defaults() -> None:
    some = kubelet(
        kube_reserved=(("cpu", "1"),),
        system_reserved=(("memory", "1Gi"),),
        eviction_hard=(("memory.available", "10%"), ("nodefs.available", "100%")),
    )
    one = types(some)["m5.large"]
    assert one.overhead["cpu"] == 1000
    assert one.overhead["memory"] == (11 * 29 + 255) * MIB + GIB + -(-one.capacity["memory"] // 10)
    assert one.overhead["ephemeral-storage"] == GIB


def test_a_type_without_a_price_is_not_for_free() -> None:

    market = msgspec.structs.replace(MARKET, on_demand={}, spot=())
    assert instance_types(INFOS, market, node_class(), Knobs()) == ()


def test_only_the_zones_of_the_node_class_are_offered() -> None:
    one = types()["m5.large"]
    assert {offering.zone for offering in one.offerings} == {"us-east-1a", "us-east-1b"}
    assert one.requirements[labels.ZONE_ID].values == {"use1-az1", "use1-az2"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("instance-category", "m"),
        ("instance-generation", "5"),
        ("instance-family", "m5"),
        ("instance-size", "large"),
        ("instance-cpu", "2"),
        ("instance-memory", "8192"),
        ("instance-cpu-manufacturer", "intel"),
        ("instance-network-bandwidth", "750"),
        ("instance-capability-flex", "false"),
    ],
)
def test_labels_say_what_the_type_is(key: str, value: str) -> None:
    assert types()["m5.large"].requirements[f"karpenter.k8s.aws/{key}"].values == {value}


def test_a_label_that_a_type_has_not_does_not_exist() -> None:
    assert types()["m5.large"].requirements["karpenter.k8s.aws/instance-gpu-name"].operator == "DoesNotExist"


@pytest.mark.parametrize(
    ("name", "category", "generation"),
    [
        ("u-12tb1.metal", "u", "1"),
        ("m7i-flex.large", "m", "7"),
        ("inf2.xlarge", "inf", "2"),
        ("trn1.2xlarge", "trn", "1"),
    ],
)
def test_category_and_generation_are_read_from_the_name(name: str, category: str, generation: str) -> None:

    own = _own_labels(info(name, 2, 8), "r", FAMILIES["AL2023"])
    assert own["karpenter.k8s.aws/instance-category"] == category
    assert own["karpenter.k8s.aws/instance-generation"] == generation


def test_gpus_are_resources_and_labels() -> None:

    gpu = GpuDevice(name="A10G", manufacturer="NVIDIA", count=4, memory_mib=24576)
    some = msgspec.structs.replace(INFOS[0], gpus=(gpu,))
    [one] = instance_types((some,), MARKET, node_class(), Knobs())
    assert one.capacity["nvidia.com/gpu"] == 4
    assert one.requirements["karpenter.k8s.aws/instance-gpu-name"].values == {"a10g"}
    assert one.requirements["karpenter.k8s.aws/instance-gpu-memory"].values == {"24576"}
