"""User data of instances, byte for byte; `.venv/bin/python -m tests.golden.userdata` regenerates the files.

Read the difference before you commit it: a changed byte replaces every node of the affected clusters.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.decide.launch.ami_families.bootstrap import Bootstrap
from shared.decide.launch.ami_families.user_data import build_user_data
from shared.model.core.taints import Taint
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.karpenter.node_class import EC2NodeClass
from shared.wire.decode.node_class import parse_node_class
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import ObjectMetaJson

FOLDER = Path(__file__).parent
FACTS = ControlPlaneFacts(
    name="prod",
    endpoint="https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com",
    certificate_authority="LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
    version="1.34",
    service_cidr="10.100.0.0/16",
)
IPV6_FACTS = ControlPlaneFacts(
    name="six", endpoint="https://k", certificate_authority="Q0E=", version="1.32", service_cidr="fd30:1c53:5f8a::/108"
)
BOOTSTRAP = Bootstrap(
    facts=FACTS,
    labels=(
        ("karpenter.sh/capacity-type", "spot"),
        ("karpenter.sh/nodepool", "default"),
        ("kubernetes.io/role", "forbidden"),
        ("team", "shop"),
    ),
    taints=(Taint(key="dedicated", value="gpu", effect="NoSchedule"), Taint(key="quiet", effect="NoExecute")),
    max_pods=29,
)
KUBELET: Mapping[str, Any] = {
    "clusterDNS": ["10.100.0.20"],
    "podsPerCore": 4,
    "systemReserved": {"cpu": "100m", "memory": "200Mi"},
    "kubeReserved": {"cpu": "150m", "ephemeral-storage": "2Gi"},
    "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
    "evictionSoft": {"memory.available": "10%"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s"},
    "evictionMaxPodGracePeriod": 60,
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "cpuCFSQuota": False,
}
BOTTLEROCKET_KUBELET = {key: value for key, value in KUBELET.items() if key != "podsPerCore"}
SCRIPT = '#!/bin/bash\r\necho "ours first" >> /etc/motd\r\n'
ARCHIVE = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: text/cloud-config; charset="us-ascii"
X-Kept: by AL2

packages: [htop]
--BOUNDARY
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config: {registryPullQPS: 20}
--BOUNDARY--
"""
CLOUD_CONFIG = ARCHIVE[: ARCHIVE.index("--BOUNDARY\nContent-Type: application")] + "--BOUNDARY--\n"
NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  featureGates: {FastImagePull: true}\n"
BOTTLEROCKET_SETTINGS = """
[settings.host-containers.admin]
enabled = true
[settings.kubernetes]
log-level = 2
no-such-key = "is dropped"
max-pods = 5
[settings.kubernetes.node-labels]
mine = "kept"
team = "overruled"
[settings.kubernetes.node-taints]
gone = ["x:NoSchedule"]
"""
POWERSHELL = 'Write-Host "ours first"'


def make_node_class(**spec: Any) -> EC2NodeClass:
    return parse_node_class(wire.NodeClassJson(metadata=ObjectMetaJson(name="default"), spec=spec))


def _build_alias_spec(word: str) -> dict[str, Any]:
    return {"amiSelectorTerms": [{"alias": word}]}


CASES: dict[str, tuple[EC2NodeClass, Bootstrap]] = {
    "al2": (make_node_class(amiFamily="AL2", userData=SCRIPT, kubelet=KUBELET, instanceStorePolicy="RAID0"), BOOTSTRAP),
    "al2-archive": (make_node_class(amiFamily="AL2", userData=CLOUD_CONFIG), BOOTSTRAP),
    "al2-ipv6": (
        make_node_class(amiFamily="AL2"),
        Bootstrap(facts=IPV6_FACTS, labels=(), taints=(), max_pods=110),
    ),
    "al2023": (
        make_node_class(**_build_alias_spec("al2023@latest"), kubelet=KUBELET, instanceStorePolicy="RAID0"),
        BOOTSTRAP,
    ),
    "al2023-script": (make_node_class(**_build_alias_spec("al2023@latest"), userData=SCRIPT), BOOTSTRAP),
    "al2023-archive": (make_node_class(**_build_alias_spec("al2023@latest"), userData=ARCHIVE), BOOTSTRAP),
    "al2023-nodeconfig": (
        make_node_class(
            **_build_alias_spec("al2023@latest"),
            userData=NODE_CONFIG,
            kubelet={"containerLogMaxFiles": 3, "maxPods": 29},
        ),
        BOOTSTRAP,
    ),
    "bottlerocket": (
        make_node_class(
            **_build_alias_spec("bottlerocket@latest"), userData=BOTTLEROCKET_SETTINGS, kubelet=BOTTLEROCKET_KUBELET
        ),
        BOOTSTRAP,
    ),
    "bottlerocket-raid0": (
        make_node_class(**_build_alias_spec("bottlerocket@v1.45.0"), instanceStorePolicy="RAID0"),
        BOOTSTRAP,
    ),
    "custom": (make_node_class(amiFamily="Custom", userData=SCRIPT, kubelet=KUBELET), BOOTSTRAP),
    "windows2022": (
        make_node_class(**_build_alias_spec("windows2022@latest"), userData=POWERSHELL, kubelet=KUBELET),
        BOOTSTRAP,
    ),
}


def get_path(name: str) -> Path:
    return FOLDER / f"userdata-{name}.txt"


def main() -> None:
    for name, (node_class, boot) in CASES.items():
        get_path(name).write_bytes(build_user_data(node_class, boot).encode())


if __name__ == "__main__":
    main()
