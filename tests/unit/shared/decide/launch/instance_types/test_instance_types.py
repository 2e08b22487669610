"""Instance types as a node class sees them."""

import msgspec
import pytest

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.decide.launch.instance_types.capacity import (
    CapacitySettings,
    compute_kube_reserved_cpu,
    compute_max_pods,
    count_eni_limited_pods,
)
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.decide.launch.instance_types.labels import build_type_requirements, compute_network_mbps
from shared.model.cloud_provider.instance_type import ObservedMemory, Offering
from shared.model.cloud_provider.regional_offerings import RegionalOfferings
from shared.model.core import labels
from shared.model.ec2.account import CapacityReservation, PlacementGroup
from shared.model.ec2.instance_type_info import GpuDevice, InstanceTypeInfo, NetworkCard
from shared.model.ec2.launch_template import BlockDevice, ConnectionTracking, NetworkInterface
from sim.cloud.catalog.instance_types import load_instance_types as all_types
from tests.support.launch_cases import (
    INFOS,
    MARKET,
    NOW,
    PRICES,
    build_types_by_name,
    get_time_after,
    make_instance_type_info,
    make_kubelet_node_class,
    make_node_class,
)

MIB_BYTES = 1024**2
GIB_BYTES = 1024**3
T3_LARGE = make_instance_type_info("t3.large", 2, 8, enis=3, ips=12)


@pytest.mark.parametrize(
    ("type_info", "reserved", "pods"),
    [
        (T3_LARGE, 0, 35),
        (T3_LARGE, 1, 24),
        (make_instance_type_info("m5.xlarge", 4, 16, enis=4, ips=15), 0, 58),
        (T3_LARGE, 3, 0),
    ],
)
def test_eni_limited_pods_are_secondary_addresses_plus_two_host_network_pods(
    type_info: InstanceTypeInfo, reserved: int, pods: int
) -> None:
    assert count_eni_limited_pods(type_info, reserved) == pods


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
def test_kube_reserved_memory_follows_max_pods_and_the_ami_family(
    family: str, fields: dict[str, object], reserved: int, memory_mib: int
) -> None:

    market = RegionalOfferings(
        region="r", offerings=(("t3.large", "us-east-1a"),), on_demand={"t3.large": 0.1}, spot=MARKET.spot
    )
    kubelet_class = make_node_class(ami_family=family, kubelet=make_kubelet_node_class(**fields).kubelet)
    [instance_type] = build_instance_types((T3_LARGE,), market, kubelet_class, CapacitySettings(reserved_enis=reserved))
    assert instance_type.overhead["memory"] == (memory_mib + 100) * MIB_BYTES


@pytest.mark.parametrize(("vcpus", "milli"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (96, 310)])
def test_kube_reserved_cpu_share_falls_with_the_number_of_vcpus(vcpus: int, milli: int) -> None:

    assert compute_kube_reserved_cpu(vcpus) == milli


def test_memory_capacity_excludes_the_hypervisor_overhead() -> None:
    types_by_name = build_types_by_name()
    assert types_by_name["m5.large"].capacity["memory"] == 7577 * MIB_BYTES
    assert types_by_name["m6g.large"].capacity["memory"] == (8192 - 64 - 610) * MIB_BYTES


def test_pods_per_core_limits_max_pods_except_on_bottlerocket() -> None:
    kubelet_class = make_kubelet_node_class(max_pods=50, pods_per_core=10)
    assert compute_max_pods(INFOS[0], kubelet_class, AMI_FAMILIES["AL2023"], CapacitySettings()) == 20
    assert compute_max_pods(INFOS[0], kubelet_class, AMI_FAMILIES["Bottlerocket"], CapacitySettings()) == 50


@pytest.mark.parametrize(
    ("fields", "gib"),
    [
        ({}, 20),
        ({"block_devices": (BlockDevice(device_name="/dev/xvda", volume_size_gib=80),)}, 80),
        ({"block_devices": (BlockDevice(device_name="/dev/sdb", volume_size_gib=80),)}, 20),
        (
            {
                "block_devices": (BlockDevice(device_name="/dev/sdb", volume_size_gib=80),),
                "root_devices": ("/dev/sdb",),
            },
            80,
        ),
        ({"block_devices": (BlockDevice(device_name="x", volume_size_gib=7),), "ami_family": "Custom"}, 7),
    ],
)
def test_ephemeral_storage_is_the_size_of_the_root_or_data_volume(fields: dict[str, object], gib: int) -> None:
    assert build_types_by_name(make_node_class(**fields))["m5.large"].capacity["ephemeral-storage"] == gib * GIB_BYTES


def test_user_provided_eviction_thresholds_and_reservations_replace_the_defaults() -> None:
    kubelet_class = make_kubelet_node_class(
        kube_reserved=(("cpu", "1"),),
        system_reserved=(("memory", "1Gi"),),
        eviction_hard=(("memory.available", "10%"), ("nodefs.available", "100%")),
    )
    instance_type = build_types_by_name(kubelet_class)["m5.large"]
    assert instance_type.overhead["cpu"] == 1000
    assert instance_type.overhead["memory"] == (11 * 29 + 255) * MIB_BYTES + GIB_BYTES + -(
        -instance_type.capacity["memory"] // 10
    )
    assert instance_type.overhead["ephemeral-storage"] == GIB_BYTES


def test_soft_eviction_thresholds_add_no_overhead() -> None:
    kubelet_class = make_kubelet_node_class(
        eviction_soft=(("memory.available", "1Gi"),), eviction_soft_grace_period=(("memory.available", "1m"),)
    )
    assert build_types_by_name(kubelet_class) == build_types_by_name()


@pytest.mark.parametrize(
    ("threshold", "mib"), [("250Mi", 250), ("0", 0), ("0%", 0), ("100%", 0), ("1.5%", 113.655), ("50%", 3788.5)]
)
def test_hard_eviction_threshold_is_an_amount_or_a_percentage_of_memory(threshold: str, mib: float) -> None:
    instance_type = build_types_by_name(make_kubelet_node_class(eviction_hard=(("memory.available", threshold),)))[
        "m5.large"
    ]
    reserved_bytes = instance_type.overhead["memory"] - (11 * 29 + 255) * MIB_BYTES
    assert reserved_bytes == pytest.approx(mib * MIB_BYTES, abs=1)


def test_inode_and_pid_thresholds_add_no_overhead() -> None:
    hard = (("nodefs.inodesFree", "5%"), ("imagefs.available", "15%"), ("pid.available", "10%"))
    assert build_types_by_name(make_kubelet_node_class(eviction_hard=hard)) == build_types_by_name()
    assert (
        build_types_by_name(
            make_kubelet_node_class(kube_reserved=(("pid", "1000"),), system_reserved=(("pid", "1000"),))
        )
        == build_types_by_name()
    )


def test_instance_type_without_a_price_is_left_out() -> None:

    market = msgspec.structs.replace(MARKET, on_demand={}, spot=())
    assert build_instance_types(INFOS, market, make_node_class(), CapacitySettings()) == ()


def test_only_zones_of_the_node_class_are_offered() -> None:
    instance_type = build_types_by_name()["m5.large"]
    assert {offering.zone for offering in instance_type.offerings} == {"us-east-1a", "us-east-1b"}
    assert instance_type.requirements[labels.ZONE_ID].values == {"use1-az1", "use1-az2"}


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
def test_instance_type_labels_describe_its_properties(key: str, value: str) -> None:
    assert build_types_by_name()["m5.large"].requirements[f"karpenter.k8s.aws/{key}"].values == {value}


def test_label_of_a_missing_feature_has_operator_does_not_exist() -> None:
    assert (
        build_types_by_name()["m5.large"].requirements["karpenter.k8s.aws/instance-gpu-name"].operator == "DoesNotExist"
    )


@pytest.mark.parametrize(
    ("name", "category", "generation"),
    [
        ("u-12tb1.metal", "u", "1"),
        ("m7i-flex.large", "m", "7"),
        ("inf2.xlarge", "inf", "2"),
        ("trn1.2xlarge", "trn", "1"),
        ("hpc7g.4xlarge", "hpc", "7"),
        ("mac2-m2pro.metal", "mac", "2"),
        ("u7i-12tb.224xlarge", "u", "7"),
        ("g4dn.xlarge", "g", "4"),
    ],
)
def test_instance_category_and_generation_are_parsed_from_the_name(name: str, category: str, generation: str) -> None:

    requirements = build_type_requirements(make_instance_type_info(name, 2, 8), (), "r", AMI_FAMILIES["AL2023"], None)
    assert requirements["karpenter.k8s.aws/instance-category"].values == {category}
    assert requirements["karpenter.k8s.aws/instance-generation"].values == {generation}


def test_gpus_are_extended_resources_and_labels() -> None:

    gpu = GpuDevice(name="A10G", manufacturer="NVIDIA", count=4, memory_mib=24576)
    type_info = msgspec.structs.replace(INFOS[0], gpus=(gpu,))
    [instance_type] = build_instance_types((type_info,), MARKET, make_node_class(), CapacitySettings())
    assert instance_type.capacity["nvidia.com/gpu"] == 4
    assert instance_type.requirements["karpenter.k8s.aws/instance-gpu-name"].values == {"a10g"}
    assert instance_type.requirements["karpenter.k8s.aws/instance-gpu-memory"].values == {"24576"}


def compute_capacity(type_info: InstanceTypeInfo, **fields: object) -> dict[str, int]:
    market = msgspec.structs.replace(
        MARKET, offerings=((type_info.name, "us-east-1a"),), on_demand={type_info.name: 1.0}
    )
    [instance_type] = build_instance_types((type_info,), market, make_node_class(**fields), CapacitySettings())
    return dict(instance_type.capacity.amounts)


M6IDN = make_instance_type_info("m6idn.32xlarge", 128, 512, enis=8, ips=50)
EFA_ONLY = (NetworkInterface(), NetworkInterface(device_index=1, interface_type="efa-only"))


@pytest.mark.parametrize(
    ("type_info", "fields", "resource", "amount"),
    [
        (M6IDN, {}, "pods", 394),
        (msgspec.structs.replace(M6IDN, efa_interfaces=2), {}, "vpc.amazonaws.com/efa", 2),
        (
            msgspec.structs.replace(M6IDN, efa_interfaces=2),
            {"network_interfaces": EFA_ONLY},
            "vpc.amazonaws.com/efa",
            1,
        ),
        (msgspec.structs.replace(M6IDN, efa_interfaces=2), {"network_interfaces": EFA_ONLY}, "pods", 7 * 49 + 2),
        (msgspec.structs.replace(M6IDN, branch_interfaces=84), {}, "vpc.amazonaws.com/pod-eni", 84),
        (T3_LARGE, {"ami_family": "Windows2022"}, "vpc.amazonaws.com/PrivateIPv4Address", 11),
        (T3_LARGE, {"ami_family": "Windows2022"}, "pods", 110),
        (msgspec.structs.replace(M6IDN, local_storage_gb=7600), {}, "ephemeral-storage", 20 * GIB_BYTES),
        (
            msgspec.structs.replace(M6IDN, local_storage_gb=7600),
            {"instance_store_policy": "RAID0"},
            "ephemeral-storage",
            7600 * 10**9,
        ),
    ],
)
def test_capacity_includes_pods_efa_pod_eni_and_local_storage(
    type_info: InstanceTypeInfo, fields: dict[str, object], resource: str, amount: int
) -> None:
    assert compute_capacity(type_info, **fields)[resource] == amount


def test_neuron_devices_and_cores_are_counted() -> None:
    device = GpuDevice(name="Inferentia2", manufacturer="AWS", count=6, cores=2)
    type_info = msgspec.structs.replace(make_instance_type_info("inf2.24xlarge", 96, 384), neurons=(device,))
    capacity = compute_capacity(type_info)
    assert (capacity["aws.amazon.com/neuron"], capacity["aws.amazon.com/neuroncore"]) == (6, 12)
    requirements = build_type_requirements(type_info, (), "r", AMI_FAMILIES["AL2023"], None)
    assert requirements["karpenter.k8s.aws/instance-accelerator-name"].values == {"inferentia2"}
    assert requirements["karpenter.k8s.aws/instance-accelerator-manufacturer"].values == {"aws"}
    assert requirements["karpenter.k8s.aws/instance-accelerator-count"].values == {"6"}


def test_observed_memory_replaces_the_estimate_and_keeps_eviction_thresholds() -> None:
    observed_memory = (
        ObservedMemory(instance_type="m5.large", image_id="ami-amd64", memory_bytes=7700 * MIB_BYTES, at=NOW),
    )
    kubelet_class = make_kubelet_node_class(eviction_hard=(("memory.available", "10%"),))
    estimated_types = {
        instance_type.name: instance_type
        for instance_type in build_instance_types(INFOS, MARKET, kubelet_class, CapacitySettings())
    }
    measured_types = {
        instance_type.name: instance_type
        for instance_type in build_instance_types(INFOS, MARKET, kubelet_class, CapacitySettings(), observed_memory)
    }
    assert measured_types["m5.large"].capacity["memory"] == 7700 * MIB_BYTES
    assert measured_types["m5.large"].overhead == estimated_types["m5.large"].overhead
    assert measured_types["m5.xlarge"] == estimated_types["m5.xlarge"]
    other_image_class = make_node_class(resolved_images=tuple(reversed(make_node_class().resolved_images))[:1])
    assert build_instance_types(
        INFOS, MARKET, other_image_class, CapacitySettings(), observed_memory
    ) == build_instance_types(INFOS, MARKET, other_image_class, CapacitySettings())


@pytest.mark.parametrize(
    ("name", "fields", "changed", "possible"),
    [
        ("a1.large", {}, {}, False),
        ("a1.large", {"ami_family": "AL2"}, {}, True),
        ("m5.large", {"connection_tracking": ConnectionTracking()}, {}, True),
        ("m5.large", {"connection_tracking": ConnectionTracking()}, {"hypervisor": ""}, False),
        ("m5.large", {"nested_virtualization": "enabled"}, {}, False),
        ("m5.large", {"nested_virtualization": "disabled"}, {}, True),
        ("m5.large", {"nested_virtualization": "enabled"}, {"processor_features": ("nested-virtualization",)}, True),
        ("m5.large", {"resolved_placement_group": PlacementGroup(group_id="pg-1", strategy="cluster")}, {}, False),
        (
            "m5.large",
            {"resolved_placement_group": PlacementGroup(group_id="pg-1", strategy="cluster")},
            {"placement_strategies": ("cluster",)},
            True,
        ),
        ("m5.large", {"network_interfaces": EFA_ONLY}, {}, False),
        ("m5.large", {"network_interfaces": EFA_ONLY}, {"efa_interfaces": 1}, True),
        ("m5.large", {"network_interfaces": EFA_ONLY}, {"efa_interfaces": 1, "ena_support": "unsupported"}, False),
        ("m5.large", {"network_interfaces": EFA_ONLY}, {"efa_interfaces": 1, "network_cards": ()}, False),
        ("m5.large", {"network_interfaces": (NetworkInterface(device_index=3),)}, {}, False),
        ("m5.large", {"network_interfaces": (NetworkInterface(network_card_index=1),)}, {}, False),
        (
            "m5.large",
            {"network_interfaces": (NetworkInterface(network_card_index=1),)},
            {"network_cards": tuple(NetworkCard(index=number, maximum_interfaces=1) for number in (0, 1))},
            True,
        ),
    ],
)
def test_instance_type_without_features_required_by_the_node_class_is_listed_as_unavailable(
    name: str, fields: dict[str, object], changed: dict[str, object], *, possible: bool
) -> None:
    type_info = msgspec.structs.replace(make_instance_type_info(name, 2, 8), **changed)
    market = msgspec.structs.replace(MARKET, offerings=((name, "us-east-1a"),), on_demand={name: 0.1})
    [instance_type] = build_instance_types((type_info,), market, make_node_class(**fields), CapacitySettings())
    assert {offering.available for offering in instance_type.offerings} == {possible}


def make_reservation(**fields: object) -> CapacityReservation:
    defaults = {"reservation_id": "cr-1", "instance_type": "m5.large", "zone": "us-east-1a", "available_count": 2}
    return msgspec.convert(defaults | fields, CapacityReservation)


def list_reserved_offerings(*reservations: CapacityReservation) -> list[Offering]:
    instance_types = build_instance_types(
        INFOS, MARKET, make_node_class(resolved_capacity_reservations=reservations), CapacitySettings(), now=NOW
    )
    return [
        offering for kind in instance_types for offering in kind.offerings if offering.capacity_type == labels.RESERVED
    ]


@pytest.mark.parametrize(
    ("fields", "available"),
    [
        ({}, True),
        ({"available_count": 0}, False),
        ({"ends_at": get_time_after(60)}, True),
        ({"ends_at": NOW}, False),
        ({"ends_at": get_time_after(39 * 60), "reservation_type": "capacity-block"}, False),
        ({"ends_at": get_time_after(41 * 60), "reservation_type": "capacity-block"}, True),
    ],
)
def test_capacity_reservation_is_an_offering_until_it_is_exhausted_or_ends(
    fields: dict[str, object], *, available: bool
) -> None:
    [offering] = list_reserved_offerings(make_reservation(**fields))
    assert (offering.reservation_id, offering.available, offering.zone_id) == ("cr-1", available, "use1-az1")
    assert offering.price_usd_per_hour == PRICES["m5.large"] / 10_000_000


def test_capacity_reservation_in_another_zone_or_of_an_unknown_type_is_ignored() -> None:
    assert (
        list_reserved_offerings(make_reservation(zone="us-east-1c"), make_reservation(instance_type="x9.large")) == []
    )


def test_instance_type_with_a_capacity_reservation_has_reservation_labels() -> None:
    reserved_class = make_node_class(resolved_capacity_reservations=(make_reservation(is_interruptible=True),))
    types_by_name = build_types_by_name(reserved_class)
    values_by_key = {item.key: item.values for item in types_by_name["m5.large"].requirements}
    assert values_by_key["karpenter.k8s.aws/capacity-reservation-id"] == {"cr-1"}
    assert values_by_key["karpenter.k8s.aws/capacity-reservation-type"] == {"default"}
    assert values_by_key["karpenter.k8s.aws/capacity-reservation-interruptible"] == {"true"}
    assert labels.RESERVED in values_by_key[labels.CAPACITY_TYPE]
    assert (
        types_by_name["m5.xlarge"].requirements["karpenter.k8s.aws/capacity-reservation-id"].operator == "DoesNotExist"
    )


def test_only_partition_placement_groups_have_partition_labels() -> None:
    group = PlacementGroup(group_id="pg-1", strategy="partition", partition_count=3)
    requirements = build_type_requirements(INFOS[0], (), "r", AMI_FAMILIES["AL2023"], group)
    assert requirements["karpenter.k8s.aws/placement-group-id"].values == {"pg-1"}
    assert requirements["karpenter.k8s.aws/placement-group-partition"].values == {"1", "2", "3"}
    spread = build_type_requirements(
        INFOS[0], (), "r", AMI_FAMILIES["AL2023"], PlacementGroup(group_id="pg-1", strategy="spread")
    )
    assert "karpenter.k8s.aws/placement-group-partition" not in spread


@pytest.mark.parametrize(("arch", "systems"), [("x86_64", {"windows"}), ("arm64", set())])
def test_windows_instance_types_are_amd64_and_have_a_windows_build_label(arch: str, systems: set[str]) -> None:
    requirements = build_type_requirements(
        make_instance_type_info("m5.large", 2, 8, arch=arch), (), "r", AMI_FAMILIES["Windows2022"], None
    )
    assert requirements[labels.OS].values == systems
    assert requirements[labels.WINDOWS_BUILD].values == {"10.0.20348"}
    linux = build_type_requirements(
        make_instance_type_info("m5.large", 2, 8, arch=arch), (), "r", AMI_FAMILIES["AL2023"], None
    )
    assert linux[labels.WINDOWS_BUILD].operator == "DoesNotExist"


def test_prices_of_an_earlier_day_are_marked_as_estimated() -> None:
    market = msgspec.structs.replace(MARKET, estimated_capacity_types=frozenset(("on-demand",)))
    offerings = build_instance_types(INFOS, market, make_node_class(), CapacitySettings())[0].offerings
    assert {offering.capacity_type: offering.is_estimated for offering in offerings} == {
        "on-demand": True,
        "spot": False,
    }


def test_every_instance_type_defines_or_excludes_every_well_known_label() -> None:
    keys = (labels.WELL_KNOWN - {labels.NODEPOOL, labels.NODECLASS}) - {
        "karpenter.k8s.aws/placement-group-id",
        "karpenter.k8s.aws/placement-group-partition",
    }
    for type_info in all_types().values():
        sold = (Offering(zone="a", zone_id="1", capacity_type="spot", price_usd_per_hour=1.0),)
        requirements = build_type_requirements(type_info, sold, "r", AMI_FAMILIES["AL2023"], None)
        assert {item.key for item in requirements} == keys, type_info.name
        assert requirements["karpenter.k8s.aws/instance-category"].values
        assert requirements["karpenter.k8s.aws/instance-generation"].values
        assert requirements["karpenter.k8s.aws/instance-family"].values == {type_info.name.partition(".")[0]}
        assert requirements["karpenter.k8s.aws/instance-size"].values == {type_info.name.partition(".")[2]}


@pytest.mark.parametrize(
    "name", ["m5.large", "c7gn.16xlarge", "g5.48xlarge", "t3.micro", "u-6tb1.112xlarge", "a1.medium"]
)
def test_real_instance_types_have_eni_pods_and_hypervisor_memory_overhead(name: str) -> None:
    type_info = all_types()[name]
    assert count_eni_limited_pods(type_info, 0) > 0
    assert compute_capacity(type_info, ami_family="AL2")["memory"] < type_info.memory_mib * MIB_BYTES


@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("t3.nano", 4),
        ("t3.micro", 4),
        ("a1.medium", 8),
        ("m5.large", 29),
        ("t3.large", 35),
        ("m5.xlarge", 58),
        ("r5.2xlarge", 58),
        ("c5.4xlarge", 234),
        ("m5.24xlarge", 737),
        ("p4d.24xlarge", 737),
    ],
)
def test_real_instance_types_have_the_expected_eni_limited_pods(name: str, pods: int) -> None:
    assert compute_capacity(all_types()[name], ami_family="AL2")["pods"] == pods


@pytest.mark.parametrize(
    ("name", "mbps"),
    [("c5.12xlarge", 12000), ("t3.nano", 32), ("m6i.large", 781), ("p4d.24xlarge", 400000), ("g5.48xlarge", 100000)],
)
def test_network_bandwidth_is_the_sum_of_the_baseline_of_all_network_cards(name: str, mbps: int) -> None:
    assert compute_network_mbps(all_types()[name]) == mbps


def test_a1_medium_has_the_expected_capacity_and_allocatable() -> None:
    market = msgspec.structs.replace(
        MARKET, offerings=(("a1.medium", "us-east-1a"),), on_demand={"a1.medium": 0.02}, spot=()
    )
    [instance_type] = build_instance_types(
        (all_types()["a1.medium"],), market, make_node_class(ami_family="AL2"), CapacitySettings()
    )
    assert instance_type.capacity["memory"] == 1835 * MIB_BYTES
    assert instance_type.allocatable["memory"] == 1392 * MIB_BYTES
    assert instance_type.allocatable["cpu"] == 940


@pytest.mark.parametrize(
    ("architectures", "value"),
    [(("x86_64",), "amd64"), (("arm64",), "arm64"), (("i386", "x86_64"), "amd64"), (("x86_64_mac",), "x86_64_mac")],
)
def test_architecture_is_converted_to_the_kubernetes_name(architectures: tuple[str, ...], value: str) -> None:
    type_info = msgspec.structs.replace(INFOS[0], architectures=architectures)
    assert build_type_requirements(type_info, (), "r", AMI_FAMILIES["AL2023"], None)[labels.ARCH].values == {value}
