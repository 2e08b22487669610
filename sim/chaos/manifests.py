"""What people apply in a play: a node class, a NodePool, and Deployments of a few shapes."""

from typing import Any, Final

from sim.chaos.script import Setting

Json = dict[str, Any]
TYPES: Final = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge")
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
POOL: Final = "main"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

SHAPES: Final[dict[str, tuple[int, str]]] = {
    "big": (2, "3"),
    "fixed": (1, "500m"),
    "guarded": (4, "700m"),
    "spread": (4, "600m"),
    "web": (6, "900m"),
}
"""The Deployments: the most replicas of each, and the CPU of a pod.

*fixed* must not be disrupted; of *guarded* one may be missing at a time; *spread* is over zones, and must be.
"""


def set_up(setting: Setting) -> list[Json]:
    """Answer all manifests, in order."""
    deployments = [deployment(name, count) for name, count in setting.replicas]
    return [node_class(), pool(setting), budget("guarded"), *deployments]


def node_class() -> Json:
    """Answer an EC2NodeClass that finds what the embedded account has."""
    selector = [{"tags": {"karpenter.sh/discovery": "*"}}]
    spec = {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    metadata = {"name": POOL}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": metadata, "spec": spec}


def pool(setting: Setting, release: str = "r") -> Json:
    """Answer the NodePool as *setting* has it; another *release* is a drift of all its nodes."""
    capacity = ["on-demand", "spot"] if setting.spot else ["on-demand"]
    template: Json = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": POOL},
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(TYPES)},
        ],
        "expireAfter": setting.expire_after,
    }
    if setting.grace:
        template["terminationGracePeriod"] = setting.grace
    disruption = {
        "consolidationPolicy": setting.policy,
        "consolidateAfter": setting.consolidate_after,
        "budgets": [{"nodes": str(setting.budget)}],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": POOL},
        "spec": {
            "limits": {"cpu": str(setting.limit_cpu)},
            "disruption": disruption,
            "template": {"metadata": {"labels": {"release": release}}, "spec": template},
        },
    }


def deployment(name: str, replicas: int) -> Json:
    """Answer the Deployment of one of `SHAPES`."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": SHAPES[name][1]}}}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 5}
    if name == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
        ]
    notes = {DO_NOT_DISRUPT: "true"} if name == "fixed" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}, "annotations": notes}, "spec": spec},
        },
    }


def budget(name: str) -> Json:
    """Answer a PodDisruptionBudget under which one pod of a Deployment may be missing."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    }
