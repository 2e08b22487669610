"""Nodes that Joiner launches: one of each image and architecture, one Spot node, and a Spot interruption."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from sim.playground.kubectl import NODES_PATH, Manifest, get_collection_path
from tests.e2e_aws.cleanup import list_claim_names
from tests.e2e_aws.environment import NAMESPACE, PREFIX, RUN_TAG, TAINT_KEY, Environment
from tests.e2e_aws.ledger import Lifetime
from tests.e2e_aws.results import Observation, StepFailed, compare
from tests.e2e_aws.steps.fleet_requests import DISCOVERY_TAG

NODE_TIMEOUT: Final = timedelta(minutes=10)
PAUSE_IMAGE: Final = "public.ecr.aws/eks-distro/kubernetes/pause:3.7"
INSTANCE_TYPES: Final = {
    "amd64": ["t3.medium", "t3a.medium", "m5.large"],
    "arm64": ["t4g.medium", "m6g.medium", "m6g.large"],
}
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
MAX_TAINT_SECONDS: Final = 30
"""Two minutes are left to the pods: the taint must come much earlier."""


class NodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool of the test, for one node."""

    name: str
    """Without the prefix."""
    architecture: str
    image_alias: str
    capacity_type: str = "on-demand"

    @property
    def pool(self) -> str:
        """The name of the NodePool, its EC2NodeClass and its pod."""
        return PREFIX + self.name


AL2023_AMD64: Final = NodeRequest(name="al2023-amd64", architecture="amd64", image_alias="al2023@latest")
AL2023_ARM64: Final = NodeRequest(name="al2023-arm64", architecture="arm64", image_alias="al2023@latest")
BOTTLEROCKET: Final = NodeRequest(name="bottlerocket", architecture="arm64", image_alias="bottlerocket@latest")
SPOT: Final = NodeRequest(name="spot", architecture="amd64", image_alias="al2023@latest", capacity_type="spot")
INTERRUPTED: Final = NodeRequest(
    name="interrupted", architecture="amd64", image_alias="al2023@latest", capacity_type="spot"
)


def build_node_check(request: NodeRequest) -> Callable[[Environment], Observation]:
    """Return the step that launches one node for *request*."""

    def check_node(environment: Environment) -> Observation:
        started_at = environment.get_now()
        node = launch_node(environment, request)
        seconds = round((environment.get_now() - started_at).total_seconds(), 1)
        labels, info = node["metadata"]["labels"], node.get("status", {}).get("nodeInfo", {})
        evidence = {
            "instanceType": labels.get("node.kubernetes.io/instance-type", ""),
            "architecture": labels.get("kubernetes.io/arch", ""),
            "capacityType": labels.get("karpenter.sh/capacity-type", ""),
            "image": info.get("osImage", ""),
            "kubelet": info.get("kubeletVersion", ""),
            "secondsToRunningPod": seconds,
        }
        is_expected = (
            evidence["architecture"] == request.architecture and evidence["capacityType"] == request.capacity_type
        )
        observed = f"pod runs after {seconds:.0f}s on {evidence['instanceType']} ({evidence['capacityType']})"
        return compare(observed, is_expected=is_expected, evidence=evidence)

    return check_node


def launch_node(environment: Environment, request: NodeRequest) -> Manifest:
    """Create the NodePool and a pod for *request*; return the Node on which the pod runs.

    Raises:
        StepFailed: the pod does not run within `NODE_TIMEOUT`.
    """
    manifests = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        build_node_class(environment, request),
        build_node_pool(request),
        build_pod(request),
    ]
    for manifest in manifests:
        lifetime: Lifetime = "run" if manifest["kind"] == "Namespace" else "step"
        path = f"{get_collection_path(manifest)}/{manifest['metadata']['name']}"
        if path not in {entry.name for entry in environment.ledger.document.entries}:
            environment.ledger.record("object", path, lifetime)
        environment.kubectl.apply(manifest)
    pod_path = f"{get_collection_path(manifests[-1])}/{request.pool}"

    def read_pod() -> Manifest:
        pod: Manifest = msgspec.json.decode(environment.kubectl.kube.read(pod_path))
        return pod

    if not environment.wait_until(lambda: read_pod().get("status", {}).get("phase") == "Running", NODE_TIMEOUT):
        claims = list_claim_names(environment, request.pool)
        raise StepFailed(f"the pod does not run after {NODE_TIMEOUT}; NodeClaims: {', '.join(claims) or 'none'}")
    return read_node(environment, read_pod()["spec"]["nodeName"])


def read_node(environment: Environment, name: str) -> Manifest:
    """Return the Node *name*."""
    node: Manifest = msgspec.json.decode(environment.kubectl.kube.read(f"{NODES_PATH}/{name}"))
    return node


def build_node_class(environment: Environment, request: NodeRequest) -> Manifest:
    """Return the EC2NodeClass; its tags mark the instances as those of the run."""
    terms = [{"tags": {DISCOVERY_TAG: environment.cluster}}]
    spec = {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": request.image_alias}],
        "subnetSelectorTerms": terms,
        "securityGroupSelectorTerms": terms,
        "tags": {RUN_TAG: environment.run_id},
    }
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": request.pool},
        "spec": spec,
    }


def build_node_pool(request: NodeRequest) -> Manifest:
    """Return the NodePool, with a taint that only the pod of the test tolerates."""
    requirements = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": [request.architecture]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [request.capacity_type]},
        {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": INSTANCE_TYPES[request.architecture],
        },
    ]
    template_spec = {
        "expireAfter": "Never",
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": request.pool},
        "requirements": requirements,
        "taints": [{"key": TAINT_KEY, "value": request.name, "effect": "NoSchedule"}],
    }
    spec = {
        "limits": {"cpu": "4"},
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
        "template": {"spec": template_spec},
    }
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": request.pool}, "spec": spec}


def build_pod(request: NodeRequest) -> Manifest:
    """Return a pod that can run only on a node of the NodePool."""
    container = {"name": "pause", "image": PAUSE_IMAGE, "resources": {"requests": {"cpu": "100m"}}}
    spec = {
        "containers": [container],
        "nodeSelector": {"karpenter.sh/nodepool": request.pool},
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"key": TAINT_KEY, "operator": "Equal", "value": request.name, "effect": "NoSchedule"}],
    }
    metadata = {"name": request.pool, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def has_taint(node: Manifest, key: str) -> bool:
    """Return whether the Node has a taint with *key*."""
    taints: list[dict[str, Any]] = node["spec"].get("taints") or []
    return any(taint["key"] == key for taint in taints)
