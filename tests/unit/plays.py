"""Small plays: few instance types, one node class, one pool."""

from typing import Any

import msgspec

from sim.embedded import Embedded
from sim.play import Moment, Stage
from sim.scenario import Scenario

FEW = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge")
DISCOVERY = [{"tags": {"karpenter.sh/discovery": "*"}}]
NODE_CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": DISCOVERY,
        "securityGroupSelectorTerms": DISCOVERY,
    },
}


def pool(*capacity_types: str, name: str = "default") -> dict[str, Any]:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    wanted = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity_types)}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
            "template": {"spec": {"nodeClassRef": reference, "requirements": [wanted]}},
        },
    }


def deployment(replicas: int, name: str = "web", cpu: str = "900m") -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def document(*acts: dict[str, Any], capacity_type: str = "spot", **fields: Any) -> dict[str, Any]:
    return {"name": "small", "acts": list(acts), "setUp": [NODE_CLASS, pool(capacity_type)], **fields}


def stage(*acts: dict[str, Any], seed: int = 0, told: list[Moment] | None = None, **fields: Any) -> Stage:
    scenario = msgspec.convert(document(*acts, **fields), Scenario)
    made = Stage(scenario, seed, (told if told is not None else []).append)
    narrow(made.world)
    return made


def narrow(world: Embedded) -> None:
    """Sell few types: the catalogue is made anew every few minutes."""
    world.cloud.types = {name: world.cloud.types[name] for name in FEW}
    world.cloud.offerings = tuple((name, zone) for name, zone in world.cloud.offerings if name in FEW)
