"""User data, compared byte by byte with tests/golden and read back with the parsers that nodes use."""

import email
import tomllib
from email.message import Message
from typing import Any

import pytest
import yaml

from shared.decide.launch.ami_families.user_data import build_user_data
from sim.cluster.kubelet.user_data import parse_user_data
from tests.golden.userdata import CASES, FACTS, FOLDER, SCRIPT, get_path

JOINING = sorted(name for name in CASES if name.startswith(("al2", "bottlerocket")))
ARCHIVES = [name for name in JOINING if name.startswith("al2")]


def read_golden_file(name: str) -> str:
    return get_path(name).read_bytes().decode()


def parse_mime_parts(name: str) -> list[Message]:
    message = email.message_from_string(read_golden_file(name))
    assert message.get_content_type() == "multipart/mixed"
    assert not message.defects
    return [part for part in message.walk() if not part.is_multipart()]


def parse_node_config(part: Message) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(str(part.get_payload()))
    assert (document["apiVersion"], document["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    return document


def parse_bottlerocket_settings(name: str) -> dict[str, Any]:
    toml_settings: dict[str, Any] = tomllib.loads(read_golden_file(name))["settings"]
    return toml_settings


@pytest.mark.parametrize("name", CASES)
def test_user_data_equals_its_golden_file(name: str) -> None:
    node_class, boot = CASES[name]
    assert build_user_data(node_class, boot).encode() == get_path(name).read_bytes(), "see tests/golden/userdata.py"


def test_every_golden_file_belongs_to_a_case() -> None:
    assert sorted(FOLDER.glob("userdata-*.txt")) == sorted(map(get_path, CASES))


@pytest.mark.parametrize("name", JOINING)
def test_simulated_node_parses_the_golden_file_and_joins(name: str) -> None:
    read = parse_user_data(read_golden_file(name).encode())
    boot = CASES[name][1]
    assert read.cluster_name == boot.facts.name
    assert read.max_pods == boot.max_pods
    assert "karpenter.sh/unregistered" in [taint["key"] for taint in read.taints]
    assert read.labels["karpenter.sh/do-not-sync-taints"] == "true"
    assert "kubernetes.io/role" not in read.labels


@pytest.mark.parametrize("name", ["al2", "al2023", "bottlerocket"])
def test_all_ami_families_pass_the_same_kubelet_settings(name: str) -> None:
    read = parse_user_data(read_golden_file(name).encode())
    assert read.cluster_dns == ("10.100.0.20",)
    assert read.kube_reserved == {"cpu": "150m", "ephemeral-storage": "2Gi"}
    assert read.system_reserved == {"cpu": "100m", "memory": "200Mi"}
    assert read.eviction_hard == {"memory.available": "5%", "nodefs.available": "10%"}


@pytest.mark.parametrize("name", ARCHIVES)
def test_mime_archive_has_user_parts_before_joiner_parts_and_no_carriage_return(name: str) -> None:
    content_type = (
        "text/x-shellscript" if name.startswith(("al2-", "al2.")) or name == "al2" else "application/node.eks.aws"
    )
    assert parse_mime_parts(name)[-1].get_content_type() == content_type
    assert "\r" not in read_golden_file(name)


def test_al2_keeps_all_mime_headers_and_al2023_only_content_types() -> None:
    assert parse_mime_parts("al2-archive")[0]["X-Kept"] == "by AL2"
    assert parse_mime_parts("al2023-archive")[0]["X-Kept"] is None
    kinds = [part.get_content_type() for part in parse_mime_parts("al2023-archive")]
    assert kinds == ["text/cloud-config", "application/node.eks.aws", "application/node.eks.aws"]
    assert parse_node_config(parse_mime_parts("al2023-archive")[1])["spec"]["kubelet"]["config"] == {
        "registryPullQPS": 20
    }


def test_al2023_node_config_has_all_kubelet_settings_and_the_cluster() -> None:
    spec = parse_node_config(parse_mime_parts("al2023")[-1])["spec"]
    assert spec["cluster"] == {
        "name": FACTS.name,
        "apiServerEndpoint": FACTS.endpoint,
        "certificateAuthority": FACTS.certificate_authority,
        "cidr": FACTS.service_cidr,
    }
    assert spec["instance"] == {"localStorage": {"strategy": "RAID0"}}
    kubelet = spec["kubelet"]["config"]
    assert kubelet["evictionSoftGracePeriod"] == {"memory.available": "1m30s"}
    assert (kubelet["podsPerCore"], kubelet["cpuCFSQuota"], kubelet["maxPods"]) == (4, False, 29)
    merged_config = parse_node_config(parse_mime_parts("al2023-nodeconfig")[-1])["spec"]["kubelet"]["config"]
    assert (merged_config["containerLogMaxFiles"], merged_config["clusterDNS"]) == (3, ["10.100.0.10"])


def test_al2_bootstrap_script_passes_every_kubelet_setting_as_a_flag() -> None:
    script = str(parse_mime_parts("al2")[-1].get_payload())
    for flag in (
        "--pods-per-core=4",
        '--eviction-hard="memory.available<5%,nodefs.available<10%"',
        '--eviction-soft="memory.available<10%"',
        '--eviction-soft-grace-period="memory.available=1m30s"',
        "--eviction-max-pod-grace-period=60",
        "--image-gc-high-threshold=85",
        "--image-gc-low-threshold=80",
        "--cpu-cfs-quota=false",
        '--register-with-taints="dedicated=gpu:NoSchedule,quiet:NoExecute,karpenter.sh/unregistered:NoExecute"',
        "--local-disks raid0",
        "--use-max-pods false",
    ):
        assert flag in script
    assert "--ip-family ipv6" not in script
    six = str(parse_mime_parts("al2-ipv6")[-1].get_payload())
    assert "--ip-family ipv6" in six
    assert "--dns-cluster-ip 'fd30:1c53:5f8a::a'" in six


def test_bottlerocket_keeps_user_settings_and_adds_the_other_settings() -> None:
    bottlerocket_settings = parse_bottlerocket_settings("bottlerocket")
    kubelet = bottlerocket_settings["kubernetes"]
    assert bottlerocket_settings["host-containers"]["admin"]["enabled"] is True
    assert (kubelet["log-level"], kubelet["max-pods"]) == (2, 29)
    assert "no-such-key" not in kubelet
    assert (kubelet["node-labels"]["mine"], kubelet["node-labels"]["team"]) == ("kept", "shop")
    assert "gone" not in kubelet["node-taints"]
    assert kubelet["node-taints"]["quiet"] == [":NoExecute"]
    assert (kubelet["image-gc-high-threshold-percent"], kubelet["cpu-cfs-quota-enforced"]) == ("85", False)


def test_bottlerocket_mounts_local_disks_with_the_commands_of_its_release() -> None:
    [first, second] = parse_bottlerocket_settings("bottlerocket-raid0")["bootstrap-commands"][
        "000-mount-instance-storage"
    ]["commands"]
    assert first == ["apiclient", "ephemeral-storage", "init"]
    assert second[3:] == ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]


def test_windows_user_data_runs_the_user_script_first() -> None:
    lines = read_golden_file("windows2022").splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("<powershell>", 'Write-Host "ours first"', "</powershell>")
    assert lines[2].endswith(r'Start-EKSBootstrap.ps1"')
    assert "-DNSClusterIP '10.100.0.20'" in lines[3]
    assert "--max-pods=29" in lines[3]


def test_custom_user_data_golden_file_equals_the_user_script() -> None:
    assert read_golden_file("custom") == SCRIPT
