"""Small scenarios: few instance types, one node class, one pool."""

from typing import Any

import msgspec

from sim.scenarios.runner import ScenarioRunner, TimelineEntry
from sim.scenarios.scenario import Scenario
from sim.world.embedded_world import EmbeddedWorld

INSTANCE_TYPES = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge")
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


def make_node_pool(*capacity_types: str, name: str = "default") -> dict[str, Any]:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(capacity_types)}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
            "template": {"spec": {"nodeClassRef": reference, "requirements": [requirement]}},
        },
    }


def make_deployment(replicas: int, name: str = "web", cpu: str = "900m") -> dict[str, Any]:
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


def make_scenario_document(*acts: dict[str, Any], capacity_type: str = "spot", **fields: Any) -> dict[str, Any]:
    return {"name": "small", "acts": list(acts), "setUp": [NODE_CLASS, make_node_pool(capacity_type)], **fields}


def make_runner(
    *acts: dict[str, Any], seed: int = 0, timeline: list[TimelineEntry] | None = None, **fields: Any
) -> ScenarioRunner:
    scenario = msgspec.convert(make_scenario_document(*acts, **fields), Scenario)
    runner = ScenarioRunner(scenario, seed, (timeline if timeline is not None else []).append)
    narrow(runner.world)
    return runner


def narrow(world: EmbeddedWorld) -> None:
    """Offer few types only, because the catalog is rebuilt every few minutes."""
    world.cloud.types = {name: world.cloud.types[name] for name in INSTANCE_TYPES}
    world.cloud.offerings = tuple((name, zone) for name, zone in world.cloud.offerings if name in INSTANCE_TYPES)
