"""Contract of instance types, prices, parameters and the EKS cluster, for every implementation of the cloud."""

from datetime import timedelta

import pytest

from shared.errors import NotFound
from shared.model.ec2.account import SelectorTerm
from tests.contract.asking import AL2023
from tests.contract.memory_face import Face


def test_instance_types_include_only_supported_architectures(aws: Face) -> None:
    types = aws.ec2.describe_instance_types()
    assert len(types) > 1000
    assert [info.name for info in types] == sorted({info.name for info in types})
    assert all({"x86_64", "arm64"} & set(info.architectures) for info in types)


def test_instance_type_has_all_its_details(aws: Face) -> None:
    types = {info.name: info for info in aws.ec2.describe_instance_types()}
    small = types["c5d.large"]
    assert (small.vcpus, small.memory_mib, small.architectures) == (2, 4096, ("x86_64",))
    assert (small.maximum_interfaces, small.ipv4_per_interface) == (3, 10)
    assert (small.cpu_manufacturer, small.clock_speed_ghz, small.hypervisor) == ("Intel", 3.4, "nitro")
    assert (small.local_storage_gb, small.nvme_support) == (50, "required")
    assert (small.ebs_baseline_mbps, small.ebs_maximum_mbps, small.ebs_optimized_support) == (650, 4750, "default")
    assert small.usage_classes == ("on-demand", "spot")
    large = types["p4d.24xlarge"]
    assert [(gpu.name, gpu.manufacturer, gpu.count, gpu.memory_mib) for gpu in large.gpus] == [
        ("A100", "NVIDIA", 8, 40960)
    ]
    assert (large.efa_interfaces, len(large.network_cards), large.maximum_interfaces) == (4, 4, 15)
    (neuron,) = types["inf2.xlarge"].neurons
    assert (neuron.name, neuron.manufacturer, neuron.count, neuron.cores) == ("Inferentia2", "AWS", 1, 2)
    assert "nested-virtualization" in types["m7i-flex.large"].processor_features
    assert types["m5.metal"].bare_metal


def test_every_implementation_returns_the_instance_types_of_the_simulated_cloud(aws: Face) -> None:
    assert aws.ec2.describe_instance_types() == tuple(aws.cloud.types.values())


def test_offerings_are_sorted_and_limited_to_the_zones_of_the_cluster(aws: Face) -> None:
    offerings = aws.ec2.describe_offerings()
    assert list(offerings) == sorted(set(offerings))
    assert {zone for _, zone in offerings} == {"us-east-1a", "us-east-1b", "us-east-1c"}
    assert {kind for kind, _ in offerings} <= {info.name for info in aws.ec2.describe_instance_types()}


def test_every_offered_instance_type_has_an_on_demand_price(aws: Face) -> None:
    prices = aws.prices.get_on_demand_prices("us-east-1")
    assert all(prices[kind] > 0 for kind, _ in aws.ec2.describe_offerings())
    assert prices["m5.xlarge"] == 2 * prices["m5.large"]


def test_spot_is_cheaper_than_on_demand_everywhere(aws: Face) -> None:
    prices, spot = aws.prices.get_on_demand_prices("us-east-1"), aws.ec2.describe_spot_prices()
    assert [(price.instance_type, price.zone) for price in spot] == sorted(
        {(price.instance_type, price.zone) for price in spot}
    )
    assert all(0 < price.price_usd_per_hour < prices[price.instance_type] for price in spot)
    assert all(price.at <= aws.cloud.clock.get_time() for price in spot)


def test_spot_prices_change_every_hour(aws: Face) -> None:
    now = aws.ec2.describe_spot_prices()
    aws.cloud.clock.advance(timedelta(minutes=59))
    assert aws.ec2.describe_spot_prices() == now
    aws.cloud.clock.advance(timedelta(minutes=1))
    assert aws.ec2.describe_spot_prices() != now


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        *(
            (f"{AL2023}/x86_64/{variant}/recommended/image_id", "x86_64")
            for variant in ("standard", "nvidia", "neuron")
        ),
        *((f"{AL2023}/arm64/{variant}/recommended/image_id", "arm64") for variant in ("standard", "nvidia")),
        ("/aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest/image_id", "x86_64"),
        ("/aws/service/bottlerocket/aws-k8s-1.34/arm64/latest/image_id", "arm64"),
        ("/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/latest/image_id", "arm64"),
        ("/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id", "x86_64"),
        ("/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id", "arm64"),
        ("/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id", "x86_64"),
        ("/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id", "x86_64"),
        ("/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id", "x86_64"),
    ],
)
def test_ssm_parameter_resolves_to_an_existing_image(aws: Face, name: str, architecture: str) -> None:
    (image,) = aws.ec2.describe_images((SelectorTerm(id=aws.parameters.get_parameter(name)),))
    assert image.architecture == architecture


def test_new_ami_release_changes_the_recommended_parameter_but_not_the_pinned_one(aws: Face) -> None:
    newest = f"{AL2023}/x86_64/standard/recommended/image_id"
    before = aws.parameters.get_parameter(newest)
    (old,) = aws.ec2.describe_images((SelectorTerm(id=before),))
    aws.cloud.release_amis()
    assert aws.parameters.get_parameter(newest) != before
    assert aws.parameters.get_parameter(f"{AL2023}/x86_64/standard/{old.name}/image_id") == before
    (new,) = aws.ec2.describe_images((SelectorTerm(id=aws.parameters.get_parameter(newest)),))
    assert new.created_at > old.created_at


@pytest.mark.parametrize(
    "name",
    ["/no/such", "/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id"],
)
def test_missing_ssm_parameter_raises_not_found(aws: Face, name: str) -> None:
    with pytest.raises(NotFound):
        aws.parameters.get_parameter(name)


def test_describe_cluster_returns_version_endpoint_and_network(aws: Face) -> None:
    facts = aws.eks.describe_cluster("joiner")
    assert (facts.name, facts.version, facts.service_cidr) == ("joiner", "1.34", "10.100.0.0/16")
    assert facts.endpoint.startswith("https://")
    assert facts.certificate_authority


def test_the_control_plane_can_be_upgraded(aws: Face) -> None:
    aws.cloud.upgrade_cluster("1.35")
    assert aws.eks.describe_cluster("joiner").version == "1.35"


def test_unknown_cluster_raises_not_found(aws: Face) -> None:
    with pytest.raises(NotFound):
        aws.eks.describe_cluster("other")
