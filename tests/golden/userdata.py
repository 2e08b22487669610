"""What machines are told, byte for byte. `.venv/bin/python -m tests.golden.userdata` writes the files anew.

Read the difference before it is committed: a changed byte replaces every node of the clusters that get it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.launch.userdata import Bootstrap, user_data
from shared.model.ec2 import ClusterFacts
from shared.model.nodeclasses import EC2NodeClass
from shared.model.taints import Taint
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.node_classes import node_class_from_wire
from shared.snapshot.wire_core import Meta

FOLDER = Path(__file__).parent
FACTS = ClusterFacts(
    name="prod",
    endpoint="https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com",
    certificate_authority="LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
    version="1.34",
    service_cidr="10.100.0.0/16",
)
SIX = ClusterFacts(
    name="six", endpoint="https://k", certificate_authority="Q0E=", version="1.32", service_cidr="fd30:1c53:5f8a::/108"
)
BOOT = Bootstrap(
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
ROCKET = {key: value for key, value in KUBELET.items() if key != "podsPerCore"}
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
SETTINGS = """
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


def node_class(**spec: Any) -> EC2NodeClass:
    return node_class_from_wire(wire.NodeClass(metadata=Meta(name="default"), spec=spec))


def _alias(word: str) -> dict[str, Any]:
    return {"amiSelectorTerms": [{"alias": word}]}


CASES: dict[str, tuple[EC2NodeClass, Bootstrap]] = {
    "al2": (node_class(amiFamily="AL2", userData=SCRIPT, kubelet=KUBELET, instanceStorePolicy="RAID0"), BOOT),
    "al2-archive": (node_class(amiFamily="AL2", userData=CLOUD_CONFIG), BOOT),
    "al2-ipv6": (
        node_class(amiFamily="AL2"),
        Bootstrap(facts=SIX, labels=(), taints=(), max_pods=110),
    ),
    "al2023": (node_class(**_alias("al2023@latest"), kubelet=KUBELET, instanceStorePolicy="RAID0"), BOOT),
    "al2023-script": (node_class(**_alias("al2023@latest"), userData=SCRIPT), BOOT),
    "al2023-archive": (node_class(**_alias("al2023@latest"), userData=ARCHIVE), BOOT),
    "al2023-nodeconfig": (
        node_class(**_alias("al2023@latest"), userData=NODE_CONFIG, kubelet={"containerLogMaxFiles": 3, "maxPods": 29}),
        BOOT,
    ),
    "bottlerocket": (node_class(**_alias("bottlerocket@latest"), userData=SETTINGS, kubelet=ROCKET), BOOT),
    "bottlerocket-raid0": (node_class(**_alias("bottlerocket@v1.45.0"), instanceStorePolicy="RAID0"), BOOT),
    "custom": (node_class(amiFamily="Custom", userData=SCRIPT, kubelet=KUBELET), BOOT),
    "windows2022": (node_class(**_alias("windows2022@latest"), userData=POWERSHELL, kubelet=KUBELET), BOOT),
}


def path_of(name: str) -> Path:
    return FOLDER / f"userdata-{name}.txt"


def main() -> None:
    for name, (some, boot) in CASES.items():
        path_of(name).write_bytes(user_data(some, boot).encode())


if __name__ == "__main__":
    main()
