"""Clusters before Joiner: with Karpenter and its nodes, or with Cluster Autoscaler and its node group.

Karpenter's objects are those that 1.x leaves: CRDs without Joiner's mark, hashes of its own version, NodeClaims with
instances that it launched and tagged. Neither controller acts: the tests are about the migration to Joiner.
"""

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from shared.model.ec2.fleet import FleetInstance, FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud.cloud import Cloud
from sim.playground.kubectl import NODE_CLAIMS_PATH, NODES_PATH
from sim.world.measurements import is_joiner_node
from tests.e2e.stage import CLUSTER, Stage
from tests.guide.pages import ROOT

Object = dict[str, Any]

INSTANCE_TYPE: Final = "m5.large"
NODE_COUNT: Final = 2
IMAGE: Final = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/x86_64/standard/recommended/image_id"
PROFILE: Final = "KarpenterNodeRole-demo"
NODE_POOL_HASHES: Final = {
    "karpenter.sh/nodepool-hash": "1234567890123456789",
    "karpenter.sh/nodepool-hash-version": "v3",
}
NODE_CLASS_HASHES: Final = {
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


def install_karpenter(stage: Stage) -> None:
    """Install Karpenter's objects in the cluster, with a NodePool, two nodes and pods that run there."""
    stage.prepare_cluster()
    stage.kubectl.apply_crds()
    stage.wait_until(stage.kubectl.has_crds, "Karpenter's definitions are served")
    for manifest in yaml.safe_load_all(
        (ROOT / "examples" / "getting-started.yaml").read_text().replace("CLUSTER", CLUSTER)
    ):
        manifest["metadata"]["annotations"] = NODE_POOL_HASHES if manifest["kind"] == "NodePool" else NODE_CLASS_HASHES
        stage.kubectl.apply(manifest)
    stage.kubectl.apply(_build_controller("karpenter", "public.ecr.aws/karpenter/controller:1.8.0", 2))
    with stage.account.lock:
        started = _launch(stage.cloud)
    stage.wait_until(lambda: len(_list_joined_nodes(stage)) == NODE_COUNT, "Karpenter's nodes join")
    for number, instance in enumerate(started):
        _register_instance(stage, f"default-{number}abcd", instance)
    stage.kubectl.apply(_build_inflate(3))
    stage.wait_until(lambda: stage.has_running_pods(3), "pods run on Karpenter's nodes")


def install_cluster_autoscaler(stage: Stage) -> None:
    """Install a Cluster Autoscaler in the cluster, and a pod that runs on the node of its group."""
    stage.prepare_cluster()
    image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    stage.kubectl.apply(_build_controller("cluster-autoscaler", image, 1))
    stage.kubectl.apply(_build_inflate(1))
    stage.wait_until(lambda: stage.has_running_pods(1), "a pod runs on the group's node")


def _launch(cloud: Cloud) -> tuple[FleetInstance, ...]:
    """Launch instances as Karpenter does; the caller holds the account's lock."""
    facts = cloud.facts
    text = _USER_DATA.format(
        name=facts.name,
        endpoint=facts.endpoint,
        authority=facts.certificate_authority,
        cidr=facts.service_cidr,
        labels=",".join(f"{key}={value}" for key, value in _LABELS.items()),
    )
    subnet = next(candidate for candidate in cloud.network.subnets.values() if candidate.zone == cloud.zones[0])
    image_id = cloud.images.get_parameter(IMAGE.format(version=facts.version))
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
    override = Override(instance_type=INSTANCE_TYPE, zone=subnet.zone, subnet_id=subnet.subnet_id, image_id=image_id)
    request = FleetRequest(
        client_token=template.name,
        capacity=NODE_COUNT,
        capacity_type="on-demand",
        allocation_strategy="lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name=template.name, overrides=(override,)),),
        tags=tags,
    )
    return cloud.fleets.create(request).instances


def _list_joined_nodes(stage: Stage) -> list[Object]:
    return [node for node in stage.list_nodes() if is_joiner_node(node)]


def _register_instance(stage: Stage, name: str, instance: FleetInstance) -> None:
    """Create the NodeClaim *name* for *instance*, and register its Node."""
    provider_id = f"aws:///{instance.zone}/{instance.instance_id}"
    node = next(candidate for candidate in _list_joined_nodes(stage) if candidate["spec"]["providerID"] == provider_id)
    labels = {
        **_LABELS,
        "node.kubernetes.io/instance-type": INSTANCE_TYPE,
        "topology.kubernetes.io/zone": instance.zone,
    }
    needs = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(labels.items())]
    claim = stage.kubectl.apply(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {**NODE_POOL_HASHES, **NODE_CLASS_HASHES},
                "finalizers": ["karpenter.sh/termination"],
            },
            "spec": {
                "expireAfter": "720h",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [requirement for requirement in needs if requirement["key"] != "karpenter.sh/nodepool"],
            },
        }
    )
    status = {
        "providerID": provider_id,
        "imageID": instance.image_id,
        "nodeName": node["metadata"]["name"],
        "capacity": node["status"]["capacity"],
        "allocatable": node["status"]["allocatable"],
        "conditions": list(_build_conditions(claim["metadata"]["creationTimestamp"])),
    }
    stage.kubectl.kube.patch(f"{NODE_CLAIMS_PATH}/{name}/status", msgspec.json.encode({"status": status}))
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": claim["metadata"]["uid"]}
    metadata = {
        "labels": {**labels, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"},
        "annotations": {**NODE_POOL_HASHES, **NODE_CLASS_HASHES},
        "finalizers": ["karpenter.sh/termination"],
        "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
    }
    taints = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != _TAINT["key"]]
    body = {"metadata": metadata, "spec": {"taints": taints}}
    stage.kubectl.kube.patch(f"{NODES_PATH}/{node['metadata']['name']}", msgspec.json.encode(body))


def _build_conditions(at: str) -> Iterable[Object]:
    for kind in ("Launched", "Registered", "Initialized", "Ready"):
        yield {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at}


def _build_controller(name: str, image: str, replicas: int) -> Object:
    """Return a Deployment called *name* that does nothing."""
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


def _build_inflate(replicas: int) -> Object:
    manifest: Object = yaml.safe_load((ROOT / "examples" / "inflate.yaml").read_text())
    manifest["spec"]["replicas"] = replicas
    return manifest
