"""Tests of what a booted instance reports: it follows a real kubelet, independent of the planner."""

import base64
from datetime import timedelta

import msgspec
import pytest

from shared.model.core.units import parse_quantity
from shared.model.ec2.instance_type_info import GpuDevice
from shared.model.ec2.launch_template import BlockDevice
from sim.cloud.cloud import Cloud
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.kubelet.user_data import UserDataSettings
from sim.time.virtual_clock import Clock
from sim.world.instance_boot import (
    READINESS_DELAY_RANGE,
    REGISTRATION_DELAY_RANGE,
    InstanceBooter,
    build_node_boot,
    compute_node_resources,
)
from tests.contract.asking import build_fleet_request
from tests.contract.memory_face import build_memory_face

CLOUD = Cloud(Clock())
PLAIN = UserDataSettings(dialect="nodeadm", cluster_name="joiner")
NODE_CONFIG = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: joiner, apiServerEndpoint: https://k, certificateAuthority: Q0E=, cidr: 10.100.0.0/16}
  kubelet:
    config: {maxPods: 17}
    flags: ["--node-labels=team=web"]
"""


def compute_resources(name: str, **settings: object) -> tuple[dict[str, str], dict[str, str]]:
    return compute_node_resources(CLOUD.types[name], msgspec.structs.replace(PLAIN, **settings))


@pytest.mark.parametrize(
    ("name", "cpu", "pods"),
    [
        ("m5.large", "1930m", "29"),
        ("m5.xlarge", "3920m", "58"),
        ("m5.4xlarge", "15890m", "234"),
        ("t3.nano", "1930m", "4"),
    ],
)
def test_kubelet_reserves_cpu_and_reports_max_pods(name: str, cpu: str, pods: str) -> None:
    capacity, allocatable = compute_resources(name)
    assert capacity["cpu"] == str(CLOUD.types[name].vcpus)
    assert (allocatable["cpu"], allocatable["pods"], capacity["pods"]) == (cpu, pods, pods)


def test_node_memory_is_reduced_by_overhead_and_reservations() -> None:
    capacity, allocatable = compute_resources("m5.large")
    mib = {name: parse_quantity(text["memory"]) // 2**20 for name, text in (("all", capacity), ("ours", allocatable))}
    assert mib["all"] == 8192 * 95 // 100
    assert mib["all"] - mib["ours"] == 11 * 29 + 255 + 100


def test_arm_instance_has_slightly_less_memory() -> None:
    (intel, _), (arm, _) = compute_resources("m5.large"), compute_resources("m6g.large")
    assert parse_quantity(intel["memory"]) - parse_quantity(arm["memory"]) == 64 * 2**20


def test_ephemeral_storage_reserves_a_tenth_and_one_gib() -> None:
    capacity, allocatable = compute_resources("m5.large")
    disk = parse_quantity(capacity["ephemeral-storage"])
    assert 19 * 2**30 < disk < 20 * 2**30
    assert disk - parse_quantity(allocatable["ephemeral-storage"]) == pytest.approx(disk / 10 + 2**30, abs=2048)


def test_user_data_can_set_max_pods() -> None:
    capacity, allocatable = compute_resources("m5.large", max_pods=110)
    assert capacity["pods"] == allocatable["pods"] == "110"


def test_user_data_can_set_reserved_resources_and_eviction_thresholds() -> None:
    capacity, allocatable = compute_resources(
        "m5.large",
        kube_reserved={"cpu": "200m", "memory": "1Gi", "pid": "100"},
        system_reserved={"cpu": "300m", "ephemeral-storage": "2Gi"},
        eviction_hard={"memory.available": "5%", "nodefs.available": "1Gi"},
    )
    memory, disk = (parse_quantity(capacity[name]) for name in ("memory", "ephemeral-storage"))
    assert allocatable["cpu"] == "1500m"
    assert parse_quantity(allocatable["memory"]) == pytest.approx(memory * 0.95 - 2**30, abs=2048)
    assert parse_quantity(allocatable["ephemeral-storage"]) == disk - 4 * 2**30


def test_reservations_above_capacity_leave_zero_allocatable() -> None:
    assert compute_resources("m5.large", system_reserved={"memory": "1Ti"})[1]["memory"] == "0Ki"


def test_whole_cpu_cores_are_written_without_millicores() -> None:
    assert compute_resources("m5.large", kube_reserved={"cpu": "1"})[1]["cpu"] == "1"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"gpus": (GpuDevice(name="T4", manufacturer="NVIDIA", count=2),)}, {"nvidia.com/gpu": "2"}),
        ({"gpus": (GpuDevice(name="?", manufacturer="Unheard", count=2),)}, {}),
        (
            {
                "neurons": (
                    GpuDevice(name="a", manufacturer="AWS", count=2),
                    GpuDevice(name="b", manufacturer="AWS", count=1),
                )
            },
            {"aws.amazon.com/neuron": "3"},
        ),
    ],
    ids=["none", "a GPU", "GPU of an unknown manufacturer", "neurons"],
)
def test_device_resources_are_reported_separately_from_initial_capacity(
    changes: dict[str, object], expected: dict[str, str]
) -> None:
    world = World()
    instance = world.start()
    info = msgspec.structs.replace(CLOUD.types["m5.large"], **changes)
    boot = build_node_boot(world.cloud.instances.describe(instance), info, PLAIN, 0, "use1-az1")
    assert boot.device_resources == expected
    assert not expected.keys() & boot.capacity.keys()


class World:
    """A cloud, a cluster and the instances that connect them."""

    def __init__(self, user_data: str = NODE_CONFIG, seed: int = 0, **template: object) -> None:
        """Prepare instances with *user_data*; *template* replaces fields of their launch template."""
        self.clock = Clock()
        self.cloud = Cloud(self.clock, seed)
        self.live = SimulatedCluster(self.clock, seed)
        self.machines = InstanceBooter(self.cloud, self.live, seed)
        self._template = {"user_data": base64.b64encode(user_data.encode()).decode(), **template}

    def start(self, after: timedelta = timedelta(minutes=2)) -> str:
        """Start one m5.large, advance the clock by *after*, and return the instance's ID."""
        fleet_request = build_fleet_request(build_memory_face(self.cloud), "m5.large")
        [template] = self.cloud.templates.list_by_tag("eks:eks-cluster-name", "joiner")
        self.cloud.templates.delete(template.name)
        self.cloud.create_launch_template(msgspec.structs.replace(template, **self._template))
        instance_id = self.cloud.fleets.create(fleet_request).instances[0].instance_id
        self.clock.advance(after)
        return instance_id

    def list_nodes(self) -> list[dict[str, object]]:
        return self.live.api.list("nodes")


def test_instance_becomes_a_ready_node() -> None:
    world = World()
    instance = world.cloud.instances.describe(world.start())
    [node] = world.live.api.list("nodes")
    assert node["metadata"]["name"] == instance.private_dns_name
    assert node["spec"]["providerID"] == instance.provider_id
    labels = node["metadata"]["labels"]
    assert (labels["team"], labels["kubernetes.io/arch"]) == ("web", "amd64")
    assert (labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"]) == (
        "us-east-1a",
        "us-east-1",
    )
    assert (node["status"]["capacity"]["pods"], node["status"]["allocatable"]["cpu"]) == ("17", "1930m")
    [ready] = [condition for condition in node["status"]["conditions"] if condition["type"] == "Ready"]
    assert ready["status"] == "True"


def test_node_boot_delays_depend_on_instance_id_and_seed() -> None:
    world = World()
    started = world.cloud.instances.describe(world.start())
    boots = [
        build_node_boot(
            msgspec.structs.replace(started, instance_id=f"i-{number}"), CLOUD.types["m5.large"], PLAIN, seed, ""
        )
        for number in range(5)
        for seed in range(2)
    ]
    for took, (minimum, maximum) in (
        ([boot.register_after for boot in boots], REGISTRATION_DELAY_RANGE),
        ([boot.ready_after for boot in boots], READINESS_DELAY_RANGE),
    ):
        assert len(set(took)) == len(boots)
        assert minimum <= min(took) <= max(took) <= maximum


@pytest.mark.parametrize(
    ("devices", "gib"),
    [
        ((), 20),
        ((BlockDevice(device_name="/dev/xvda", volume_size_gib=100),), 100),
        ((BlockDevice(device_name="/dev/xvdz", volume_size_gib=100),), 20),
    ],
)
def test_root_volume_size_is_the_ephemeral_storage(devices: tuple[BlockDevice, ...], gib: int) -> None:
    world = World(block_devices=devices)
    world.start()
    [node] = world.live.api.list("nodes")
    assert parse_quantity(node["status"]["capacity"]["ephemeral-storage"]) == gib * 2**30 - 12 * 2**20


def test_bottlerocket_data_volume_size_is_the_ephemeral_storage() -> None:
    settings = (
        '[settings.kubernetes]\ncluster-name = "joiner"\napi-server = "https://k"\ncluster-certificate = "Q0E="\n'
    )
    devices = (
        BlockDevice(device_name="/dev/xvda", volume_size_gib=4),
        BlockDevice(device_name="/dev/xvdb", volume_size_gib=50),
    )
    world = World(settings, block_devices=devices)
    world.start()
    [node] = world.live.api.list("nodes")
    assert parse_quantity(node["status"]["capacity"]["ephemeral-storage"]) == 50 * 2**30 - 12 * 2**20


@pytest.mark.parametrize("user_data", ["#!/bin/sh\necho hello\n", "spec: [", "apiVersion: v1\nkind: Pod\n"])
def test_instance_with_invalid_user_data_never_registers_and_reports_the_reason(user_data: str) -> None:
    world = World(user_data)
    instance_id = world.start()
    world.clock.advance(timedelta(minutes=30))
    assert world.list_nodes() == []
    [broken] = world.machines.boot_failures
    assert broken.startswith(f"{instance_id}: ")
    assert len(broken) > len(instance_id) + 10


def test_node_of_a_terminated_instance_is_deleted() -> None:
    world = World()
    instance_id = world.start()
    [node] = world.live.api.list("nodes")
    world.cloud.terminate_instances([instance_id])
    assert not world.live.kubelet.is_running(node["metadata"]["name"])
    world.clock.advance(timedelta(minutes=5))
    assert world.list_nodes() == []


def test_instance_terminated_during_boot_never_registers() -> None:
    world = World()
    instance_id = world.start(after=timedelta(seconds=20))
    assert world.list_nodes() == []
    world.cloud.instances.terminate_immediately(instance_id)
    world.clock.advance(timedelta(minutes=10))
    assert world.list_nodes() == []
    assert world.machines.boot_failures == []


def test_stopped_instance_keeps_its_node_but_its_kubelet_stops() -> None:
    world = World()
    instance_id = world.start()
    [node] = world.live.api.list("nodes")
    world.cloud.instances.stop(instance_id)
    assert not world.live.kubelet.is_running(node["metadata"]["name"])
    assert world.list_nodes() != []
