"""The network bandwidth of instance types agrees with the values that Karpenter takes from the EC2 guide."""

import msgspec
import pytest

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.decide.launch.instance_types.labels import build_type_requirements
from shared.decide.launch.instance_types.network_bandwidth import DIFFERENTLY_DOCUMENTED_MBPS, compute_network_mbps
from shared.model.ec2.instance_type_info import InstanceTypeInfo, NetworkCard
from sim.cloud.catalog.instance_types import load_instance_types
from tests.support.launch_cases import make_instance_type_info

LABEL = "karpenter.k8s.aws/instance-network-bandwidth"


def make_info(name: str, performance: str, *cards: tuple[float, float]) -> InstanceTypeInfo:
    network_cards = tuple(
        NetworkCard(index=index, maximum_interfaces=8, baseline_gbps=baseline, peak_gbps=peak)
        for index, (baseline, peak) in enumerate(cards)
    )
    info = make_instance_type_info(name, 128, 256)
    return msgspec.structs.replace(info, network_performance=performance, network_cards=network_cards)


@pytest.mark.parametrize(
    ("info", "mbps"),
    [
        (make_info("c6in.32xlarge", "200 Gigabit", (200, 200), (200, 200)), 200_000),
        (make_info("hpc6id.32xlarge", "200 Gigabit", (200, 200), (200, 200)), 200_000),
        (make_info("hpc7a.96xlarge", "300 Gigabit", (150, 150), (150, 150)), 300_000),
        (make_info("hpc8a.96xlarge", "300 Gigabit", (300, 300), (300, 300)), 300_000),
        (make_info("c8gn.48xlarge", "600 Gigabit", (300, 300), (300, 300)), 600_000),
        (make_info("u7in-16tb.224xlarge", "200 Gigabit", (100, 100), (100, 100)), 200_000),
        (make_info("g6e.24xlarge", "200 Gigabit", (200, 200), (200, 200)), 200_000),
        (make_info("g6e.48xlarge", "400 Gigabit", *((400.0, 400.0),) * 4), 400_000),
        (make_info("g7e.48xlarge", "1600 Gigabit", *((400.0, 400.0),) * 4), 1_600_000),
        (make_info("p4d.24xlarge", "4x 100 Gigabit", *((100.0, 100.0),) * 4), 400_000),
        (make_info("trn1n.32xlarge", "16x 100 Gigabit", *((100.0, 100.0),) * 16), 1_600_000),
        (make_info("p5.48xlarge", "3200 Gigabit", *((100.0, 100.0),) * 32), 3_200_000),
        (make_info("p6-b200.48xlarge", "3200 Gigabit", *((200.0, 200.0),) * 8), 3_200_000),
        (make_info("p6-b300.48xlarge", "6400 Gigabit", (350, 350), *((400.0, 400.0),) * 16), 6_400_000),
        (make_info("i8ge.48xlarge", "300 Gigabit", (300, 300), (300, 300)), 180_000),
        (make_info("i7ie.48xlarge", "200 Gigabit", (100, 100), (100, 100)), 100_000),
    ],
    ids=lambda value: value.name if isinstance(value, InstanceTypeInfo) else "",
)
def test_the_bandwidth_of_several_network_cards_is_the_documented_one(info: InstanceTypeInfo, mbps: int) -> None:
    assert compute_network_mbps(info) == mbps


@pytest.mark.parametrize(
    ("info", "mbps"),
    [
        (make_info("c8gb.16xlarge", "133.33 Gigabit", (133.333, 133.333)), 133_330),
        (make_info("c3.8xlarge", "10 Gigabit", (5, 10)), 10_000),
        (make_info("trn2.3xlarge", "200 Gigabit", (50, 50)), 200_000),
        (make_info("m6i.large", "Up to 12.5 Gigabit", (0.781, 12.5)), 781),
        (make_info("c7g.xlarge", "Up to 12.5 Gigabit", (1.876, 12.5)), 1_876),
        (make_info("i7i.12xlarge", "Up to 28 Gigabit", (28.125, 28.125)), 28_120),
        (make_info("t2.micro", "Low to Moderate", (0.064, 1.024)), 0),
        (make_info("m3.large", "Moderate", (0.7, 2.8)), 0),
        (make_info("x1.unknown", "", (10, 10)), 0),
    ],
    ids=lambda value: value.name if isinstance(value, InstanceTypeInfo) else "",
)
def test_the_bandwidth_of_one_network_card_is_the_documented_baseline(info: InstanceTypeInfo, mbps: int) -> None:
    assert compute_network_mbps(info) == mbps


def test_a_type_with_a_vague_bandwidth_has_no_label() -> None:
    info = make_info("m3.large", "Moderate", (0.7, 2.8))
    assert build_type_requirements(info, (), "r", AMI_FAMILIES["AL2023"], None)[LABEL].operator == "DoesNotExist"


def test_the_label_is_the_documented_bandwidth() -> None:
    info = make_info("c6in.32xlarge", "200 Gigabit", (200, 200), (200, 200))
    assert build_type_requirements(info, (), "r", AMI_FAMILIES["AL2023"], None)[LABEL].values == {"200000"}


def test_every_type_with_a_stated_performance_has_a_bandwidth() -> None:
    infos = load_instance_types()
    without_bandwidth = {info.network_performance for info in infos.values() if compute_network_mbps(info) == 0}
    assert without_bandwidth == {"Very Low", "Low", "Low to Moderate", "Moderate", "High"}
    assert infos.keys() >= DIFFERENTLY_DOCUMENTED_MBPS.keys()
