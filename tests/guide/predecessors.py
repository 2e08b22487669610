"""What was in a cluster before Joiner: a Karpenter with nodes of its own, or a Cluster Autoscaler with its group's.

Karpenter's objects are those that 1.x leaves: definitions without our mark, hashes of its own version, NodeClaims with
machines that it launched and tagged. Neither controller acts: what follows is about who comes after them.
"""

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from shared.model.ec2 import FleetInstance, FleetRequest, LaunchTemplate, LaunchTemplateConfig, Override
from sim.cloud.cloud import Cloud
from sim.measure import is_ours
from sim.playground_desk import NODE_CLAIMS, NODES
from tests.e2e.stage import CLUSTER, Stage
from tests.guide.pages import ROOT

Object = dict[str, Any]

TYPE: Final = "m5.large"
NODES_MADE: Final = 2
IMAGE: Final = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/x86_64/standard/recommended/image_id"
PROFILE: Final = "KarpenterNodeRole-demo"
HASHES: Final = {"karpenter.sh/nodepool-hash": "1234567890123456789", "karpenter.sh/nodepool-hash-version": "v3"}
CLASS_HASHES: Final = {
    "karpenter.k8s.aws/ec2nodeclass-hash": "9876543210987654321",
    "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
}
_LABELS: Final = {
    "karpenter.sh/nodepool": "default",
    "karpenter.k8s.aws/ec2nodeclass": "default",
    "karpenter.sh/capacity-type": "on-demand",
}
_TAINT: Final = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
_USER_DATA: Final = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {{name: {name}, apiServerEndpoint: "{endpoint}", certificateAuthority: {authority}, cidr: {cidr}}}
  kubelet:
    config: {{registerWithTaints: [{{key: karpenter.sh/unregistered, effect: NoExecute}}]}}
    flags: ["--node-labels={labels}"]
"""


def furnish_karpenter(stage: Stage) -> None:
    """Put a Karpenter into the cluster, with a NodePool, two nodes and pods that run there."""
    stage.furnish()
    stage.desk.define()
    stage.until(stage.desk.is_defined, "Karpenter's definitions are served")
    for one in yaml.safe_load_all((ROOT / "examples" / "getting-started.yaml").read_text().replace("CLUSTER", CLUSTER)):
        one["metadata"]["annotations"] = HASHES if one["kind"] == "NodePool" else CLASS_HASHES
        stage.desk.apply(one)
    stage.desk.apply(_controller("karpenter", "public.ecr.aws/karpenter/controller:1.8.0", 2))
    with stage.account.lock:
        started = _launch(stage.cloud)
    stage.until(lambda: len(_joined(stage)) == NODES_MADE, "Karpenter's nodes join")
    for number, instance in enumerate(started):
        _own(stage, f"default-{number}abcd", instance)
    stage.desk.apply(_inflated(3))
    stage.until(lambda: stage.run(3), "pods run on Karpenter's nodes")


def furnish_cluster_autoscaler(stage: Stage) -> None:
    """Put a Cluster Autoscaler into the cluster, and a pod that runs on the node of its group."""
    stage.furnish()
    image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    stage.desk.apply(_controller("cluster-autoscaler", image, 1))
    stage.desk.apply(_inflated(1))
    stage.until(lambda: stage.run(1), "a pod runs on the group's node")


def _launch(cloud: Cloud) -> tuple[FleetInstance, ...]:
    """Start machines as Karpenter does; the caller holds the account's lock."""
    facts = cloud.facts
    text = _USER_DATA.format(
        name=facts.name,
        endpoint=facts.endpoint,
        authority=facts.certificate_authority,
        cidr=facts.service_cidr,
        labels=",".join(f"{key}={value}" for key, value in _LABELS.items()),
    )
    subnet = next(one for one in cloud.network.subnets.values() if one.zone == cloud.zones[0])
    image_id = cloud.images.parameter(IMAGE.format(version=facts.version))
    tags = tuple(
        sorted({**_LABELS, "eks:eks-cluster-name": CLUSTER, f"kubernetes.io/cluster/{CLUSTER}": "owned"}.items())
    )
    template = LaunchTemplate(
        name="karpenter.k8s.aws/1234567890",
        image_id=image_id,
        user_data=base64.b64encode(text.encode()).decode(),
        instance_profile=PROFILE,
        tags=tags,
    )
    cloud.create_launch_template(template)
    override = Override(instance_type=TYPE, zone=subnet.zone, subnet_id=subnet.subnet_id, image_id=image_id)
    request = FleetRequest(
        client_token=template.name,
        capacity=NODES_MADE,
        capacity_type="on-demand",
        allocation_strategy="lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name=template.name, overrides=(override,)),),
        tags=tags,
    )
    return cloud.create_fleet(request).instances


def _joined(stage: Stage) -> list[Object]:
    return [one for one in stage.nodes() if is_ours(one)]


def _own(stage: Stage, name: str, instance: FleetInstance) -> None:
    """Make the NodeClaim *name* for *instance*, and its Node what a registered one is."""
    provider_id = f"aws:///{instance.zone}/{instance.instance_id}"
    node = next(one for one in _joined(stage) if one["spec"]["providerID"] == provider_id)
    labels = {**_LABELS, "node.kubernetes.io/instance-type": TYPE, "topology.kubernetes.io/zone": instance.zone}
    needs = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(labels.items())]
    claim = stage.desk.apply(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {**HASHES, **CLASS_HASHES},
                "finalizers": ["karpenter.sh/termination"],
            },
            "spec": {
                "expireAfter": "720h",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [one for one in needs if one["key"] != "karpenter.sh/nodepool"],
            },
        }
    )
    status = {
        "providerID": provider_id,
        "imageID": instance.image_id,
        "nodeName": node["metadata"]["name"],
        "capacity": node["status"]["capacity"],
        "allocatable": node["status"]["allocatable"],
        "conditions": list(_conditions(claim["metadata"]["creationTimestamp"])),
    }
    stage.desk.kube.patch(f"{NODE_CLAIMS}/{name}/status", msgspec.json.encode({"status": status}))
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": claim["metadata"]["uid"]}
    metadata = {
        "labels": {**labels, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"},
        "annotations": {**HASHES, **CLASS_HASHES},
        "finalizers": ["karpenter.sh/termination"],
        "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
    }
    taints = [one for one in node["spec"].get("taints", ()) if one["key"] != _TAINT["key"]]
    body = {"metadata": metadata, "spec": {"taints": taints}}
    stage.desk.kube.patch(f"{NODES}/{node['metadata']['name']}", msgspec.json.encode(body))


def _conditions(at: str) -> Iterable[Object]:
    for kind in ("Launched", "Registered", "Initialized", "Ready"):
        yield {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at}


def _controller(name: str, image: str, replicas: int) -> Object:
    """Answer a Deployment that does nothing, called *name*."""
    labels = {"app.kubernetes.io/name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "controller", "image": image}]},
            },
        },
    }


def _inflated(replicas: int) -> Object:
    manifest: Object = yaml.safe_load((ROOT / "examples" / "inflate.yaml").read_text())
    manifest["spec"]["replicas"] = replicas
    return manifest
