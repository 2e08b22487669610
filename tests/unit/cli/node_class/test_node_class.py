"""`joiner nodeclass resolve`: what it prints, what it complains about, how it leaves."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.aws.account_api import AccountApis, build_account_apis
from cli.aws.session import open_apis
from cli.main import main
from cli.node_class import command, resolution
from shared.model.cloud_provider.regional_offerings import RegionalOfferings
from shared.model.ec2.account import CapacityReservation, Image, PlacementGroup
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2
from sim.time.virtual_clock import Clock
from tests.contract.http_face import get_clients, get_embedded_aws

Out = pytest.CaptureFixture[str]
pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("cloud")]
EXAMPLE = "examples/nodeclass/al2023.yaml"
SPEC: dict[str, Any] = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "bottlerocket@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
    "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
}


def _list_types_and_offerings() -> tuple[tuple[InstanceTypeInfo, ...], RegionalOfferings]:
    """A few true types: all of them are a thousand pages of XML."""
    ec2 = CloudEc2(seed_cloud := Cloud(Clock()))
    infos = tuple(info for info in ec2.describe_instance_types() if info.name.startswith(("m5.", "m6g.", "g5.")))
    market = RegionalOfferings(
        region="us-east-1",
        offerings=ec2.describe_offerings(),
        on_demand=seed_cloud.prices.on_demand,
        spot=ec2.describe_spot_prices(),
    )
    return infos, market


SOLD = _list_types_and_offerings()


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """One server for all tests."""
    fresh_cloud = Cloud(Clock(), cluster="demo")
    get_embedded_aws().reset(fresh_cloud)

    @contextmanager
    def open_cloud_over_http(*_: object, **__: object) -> Iterator[AccountApis]:
        yield build_account_apis(get_clients(), fresh_cloud.clock.get_time())

    monkeypatch.setattr(command, "open_apis", open_cloud_over_http)
    monkeypatch.setattr(resolution, "read_types_and_offerings", lambda *_: SOLD)
    for name in ("CLUSTER_NAME", "JOINER_INSTANCE_PROFILE", "FEATURE_GATES"):
        monkeypatch.delenv(name, raising=False)
    return fresh_cloud


def write_node_class(folder: Path, **spec: Any) -> str:
    effective_spec = {key: value for key, value in (SPEC | spec).items() if value is not None}
    document = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": effective_spec,
    }
    path = folder / "nodeclass.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def run_resolve(path: str, *flags: str) -> int:
    return main(["nodeclass", "resolve", "-f", path, "--embedded", *flags])


def test_resolve_prints_a_readable_summary_of_the_node_class(capsys: Out) -> None:
    assert run_resolve(EXAMPLE) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("EC2NodeClass default (AL2023) would be Ready\ninstance profile: joiner-nodes\n")
    for word in ("us-east-1a", "use1-az1", "8,187", "eks-cluster-sg-demo", "no gpu-count", "m6g.medium", "--all"):
        assert word in captured.out
    assert "joiner nodeclass:" not in captured.err


def test_all_flag_prints_every_instance_type(capsys: Out) -> None:
    run_resolve(EXAMPLE, "--all")
    output = capsys.readouterr().out
    assert "m5.24xlarge" in output
    assert "--all shows them" not in output


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_json_output_has_status_instance_types_and_user_data(output: str, tmp_path: Path, capsys: Out) -> None:
    assert run_resolve(write_node_class(tmp_path), "-o", output, "--user-data") == 0
    text = capsys.readouterr().out
    [document] = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert (document["name"], document["amiFamily"], document["instanceProfile"]) == (
        "default",
        "Bottlerocket",
        "joiner-nodes",
    )
    assert {subnet["freeIPs"] for subnet in document["subnets"]} == {8187}
    assert {condition["type"]: condition["status"] for condition in document["conditions"]}["Ready"] == "True"
    [large] = [instance_type for instance_type in document["instanceTypes"] if instance_type["name"] == "m5.large"]
    assert large["allocatable"]["cpu"] == "1930m"
    assert {offering["capacityType"] for offering in large["offerings"]} == {"on-demand", "spot"}
    assert all(offering["usdPerHour"] > 0 for offering in large["offerings"])
    assert large["ami"] in {image["id"] for image in document["amis"]}
    assert tomllib.loads(document["userData"])["settings"]["kubernetes"]["cluster-name"] == "demo"


@pytest.mark.parametrize(
    ("alias", "word"),
    [("windows2022@latest", "windows"), ("bottlerocket@1.41.0", "aws-k8s-1.34"), ("al2023@v20261111", "v20261111")],
)
def test_every_supported_ami_alias_is_resolved(alias: str, word: str, tmp_path: Path, capsys: Out) -> None:
    assert run_resolve(write_node_class(tmp_path, amiSelectorTerms=[{"alias": alias}]), "--user-data") == 0
    assert word in capsys.readouterr().out


def test_user_data_is_printed_last(capsys: Out) -> None:
    run_resolve(EXAMPLE, "--user-data")
    assert capsys.readouterr().out.rstrip().endswith("--//--")


def test_placement_groups_and_capacity_reservations_are_printed(cloud: Cloud, tmp_path: Path, capsys: Out) -> None:
    group = cloud.reservations.add_group(PlacementGroup(group_id="", name="racks"))
    capacity_reservation = CapacityReservation(
        reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a", available_count=2, total_count=3
    )
    cloud.reservations.add(capacity_reservation)
    path = write_node_class(
        tmp_path, placementGroupSelector={"name": "racks"}, capacityReservationSelectorTerms=[{"id": "cr-1"}]
    )
    run_resolve(path)
    output = capsys.readouterr().out
    assert f"placement group: {group} racks (cluster)" in output
    assert "2 of 3" in output
    run_resolve(path, "-o", "json")
    [document] = json.loads(capsys.readouterr().out)
    assert document["placementGroup"]["id"] == group
    assert [reservation["id"] for reservation in document["capacityReservations"]] == ["cr-1"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"subnetSelectorTerms": []}, ("SubnetsReady", "spec.subnetSelectorTerms: is empty")),
        (
            {"subnetSelectorTerms": [{"tags": {"a": "b"}}]},
            ("SubnetsReady: SubnetsNotFound: spec.subnetSelectorTerms matched no resource", "tags a=b", "check ids"),
        ),
        ({"subnetSelectorTerms": [{"id": "subnet-0b"}]}, ("SubnetsNotFound", "[0] subnet-0b")),
        (
            {"amiSelectorTerms": [{"alias": "al2024@latest"}]},
            ("amiSelectorTerms[0].alias: 'al2024@latest' is not an AMI family",),
        ),
        ({"amiSelectorTerms": [{"alias": "al2@latest"}]}, ("UnsupportedAlias", "use al2023@latest")),
        ({"amiSelectorTerms": [{"alias": "al2023@v1"}]}, ("AMINotFound", "[0] al2023@v1")),
        ({"tags": {"karpenter.sh/nodepool": "x"}}, ("TagValidationFailed: spec.tags[karpenter.sh/nodepool]",)),
        ({"userData": "[x"}, ("UserDataInvalid: spec.userData: is not TOML",)),
        ({"kubelet": {"podsPerCore": 3}}, ("UnsupportedKubeletConfiguration", "use maxPods")),
        ({"kubelet": {"maxPods": [3]}}, ("EC2NodeClass default:", "spec.kubelet.maxPods")),
        ({"placementGroupSelector": {"name": "no"}}, ("PlacementGroupNotFound", "no does not exist in this account")),
    ],
)
def test_invalid_node_class_field_is_reported_with_a_fix(
    spec: dict[str, Any], words: tuple[str, ...], tmp_path: Path, capsys: Out
) -> None:
    assert run_resolve(write_node_class(tmp_path, **spec), "--user-data") == 1
    stderr = capsys.readouterr().err
    assert "joiner nodeclass: EC2NodeClass default:" in stderr
    for word in words:
        assert word in stderr


def test_missing_subnet_id_among_others_is_noted(tmp_path: Path, capsys: Out) -> None:
    terms = [*SPEC["subnetSelectorTerms"], {"id": "subnet-0b"}]
    assert run_resolve(write_node_class(tmp_path, subnetSelectorTerms=terms)) == 0
    assert "note: EC2NodeClass default: spec.subnetSelectorTerms: subnet-0b does not exist" in capsys.readouterr().err


def test_max_pods_exceeding_ip_addresses_is_noted(tmp_path: Path, capsys: Out) -> None:
    assert run_resolve(write_node_class(tmp_path, kubelet={"maxPods": 30})) == 0
    assert (
        "spec.kubelet.maxPods: exceeds the IP addresses of 3 instance types (m5.large, m6g.large"
        in capsys.readouterr().err
    )
    assert run_resolve(write_node_class(tmp_path, kubelet={"maxPods": 30}, ipPrefixCount=2)) == 0
    assert "maxPods" not in capsys.readouterr().err


def test_subnets_in_a_single_zone_are_noted(cloud: Cloud, tmp_path: Path, capsys: Out) -> None:
    zone = {"id": cloud.network.add_subnet("us-east-1a", cidr="10.0.240.0/24")}
    image = Image(
        image_id="ami-0a", name="a", architecture="arm64", created_at=cloud.clock.get_time(), tags=(("a", "b"),)
    )
    cloud.images.add(image)
    spec = {"amiSelectorTerms": [{"id": "ami-0a"}], "amiFamily": "Custom", "subnetSelectorTerms": [zone]}
    run_resolve(write_node_class(tmp_path, **spec))
    assert "all subnets are in us-east-1a: choose two zones" in capsys.readouterr().err


def test_missing_run_instances_permission_is_reported_unless_dry_run_is_skipped(
    cloud: Cloud, tmp_path: Path, capsys: Out
) -> None:
    cloud.dry_runs.deny("RunInstances")
    path = write_node_class(tmp_path)
    assert run_resolve(path) == 1
    assert "RunInstancesAuthCheckFailed: ec2:RunInstances with DryRun" in capsys.readouterr().err
    assert run_resolve(path, "--no-dry-run") == 0


def test_unsupported_dry_run_is_noted(tmp_path: Path, capsys: Out) -> None:
    get_embedded_aws().inject_error("ec2", "RunInstances", "Unsupported", 400, times=3)
    assert run_resolve(write_node_class(tmp_path)) == 0
    assert "note: EC2NodeClass default: ec2:RunInstances: Unsupported" in capsys.readouterr().err


def test_throttled_dry_run_leaves_validation_unknown(tmp_path: Path, capsys: Out) -> None:
    get_embedded_aws().inject_error("ec2", "CreateFleet", "RequestLimitExceeded", 503)
    assert run_resolve(write_node_class(tmp_path)) == 1
    captured = capsys.readouterr()
    assert "Throttled" in captured.err
    assert "would not be Ready: ValidationSucceeded=Unknown" in captured.out


def test_missing_instance_profile_error_names_the_role_field(tmp_path: Path, capsys: Out) -> None:
    assert main(["nodeclass", "resolve", "-f", write_node_class(tmp_path), "--cluster", "demo"]) == 1
    assert "InstanceProfileNotFound: spec.role" in capsys.readouterr().err
    arguments = ["--cluster", "demo", "--instance-profile", "nodes"]
    assert main(["nodeclass", "resolve", "-f", write_node_class(tmp_path), *arguments]) == 0


def test_missing_eks_cluster_is_reported(tmp_path: Path, capsys: Out) -> None:
    assert run_resolve(write_node_class(tmp_path), "--cluster", "other", "--user-data") == 1
    captured = capsys.readouterr()
    assert "Cluster other: NotFound" in captured.err
    assert captured.out.rstrip().endswith("user data:")


def test_input_without_a_node_class_is_reported(tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    assert run_resolve(str(path)) == 1
    assert "no EC2NodeClass of karpenter.k8s.aws/v1 in the input" in capsys.readouterr().err
    assert run_resolve(str(tmp_path / "none.yaml")) == 1
    assert "none.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nodeclass"], "which ACTION? resolve"),
        (["nodeclass", "resolve"], "no EC2NodeClass: name a file with -f"),
        (["nodeclass", "resolve", "-f", EXAMPLE], "write --cluster NAME, or --embedded"),
    ],
)
def test_invalid_usage_exits_with_2(arguments: list[str], words: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert words in capsys.readouterr().err


def test_help_has_examples(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["nodeclass", "resolve", "--help"])
    assert "joiner nodeclass resolve -f examples/nodeclass/al2023.yaml --embedded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, ""),
        ({"tags": {f"team-{number}": "a" for number in range(60)}}, "ec2:CreateFleet: TagLimitExceeded"),
        ({"role": None, "instanceProfile": "two words"}, "InstanceProfileNotFound: spec.instanceProfile"),
        ({"amiFamily": "Custom", "amiSelectorTerms": [{"ssmParameter": "two words"}]}, "Invalid parameter name"),
    ],
)
def test_embedded_cloud_reports_in_process_what_aws_rejects_over_http(
    spec: dict[str, Any], words: str, cloud: Cloud, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cloud
    path = write_node_class(tmp_path, **spec)
    over_http = (run_resolve(path), capsys.readouterr())
    assert words in over_http[1].err
    monkeypatch.setattr(command, "open_apis", open_apis)
    assert (run_resolve(path), capsys.readouterr()) == over_http
