"""A cluster and a catalogue as files, for tests of `joiner consolidate`: each object with the fewest words."""

import json
from pathlib import Path
from typing import Any

ARGS = ("--now", "2026-11-21T09:00:00Z")
CPUS = (2, 4, 8, 16)
NODECLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
STAGES = ("Launched", "Registered", "Initialized", "Consolidatable")


def kind(cpu: int) -> dict[str, Any]:
    """A type with four GiB for each cpu."""
    return {
        "name": f"m.{cpu:02d}",
        "labels": {"kubernetes.io/arch": ["amd64"], "kubernetes.io/os": ["linux"]},
        "capacity": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"},
        "overhead": {},
        "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.05 * cpu, "available": True}],
    }


def machine(name: str, cpu: int, **annotations: str) -> list[dict[str, Any]]:
    """A node of the pool; in names of *annotations* two underscores stand for a slash, one for a dash."""
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": f"m.{cpu:02d}",
        "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "a",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    room = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    notes = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    meta = {"name": name, "labels": labels, "annotations": notes}
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"providerID": f"x/{name}"}, "status": status}
    ]


def claim(name: str, node: str, cpu: int, **meta: object) -> dict[str, Any]:
    """A claim whose instance is *node*'s."""
    labels = {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": f"m.{cpu:02d}"}
    stages = [{"type": one, "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"} for one in STAGES]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": labels, **meta},
        "spec": {"nodeClassRef": NODECLASS, "requirements": []},
        "status": {"providerID": f"x/{node}", "nodeName": node, "conditions": stages},
    }


def pod(name: str, node: str, cpu: str) -> dict[str, Any]:
    """A pod on *node*, or one without node."""
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": containers},
        "status": {"phase": "Running"},
    }


POOL: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {"spec": {"nodeClassRef": NODECLASS, "requirements": []}},
        "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
    },
}


def small(tmp_path: Path) -> list[str]:
    """Write a fleet of five: one empty, one held, three with a pod each."""
    return written(
        tmp_path,
        POOL,
        *machine("empty", 8),
        *machine("large", 16),
        *machine("half", 4),
        *machine("full", 4),
        *machine("held", 2, **{"karpenter.sh__do_not_disrupt": "true"}),
        pod("one", "large", "6"),
        pod("two", "half", "500m"),
        pod("three", "full", "3"),
        pod("four", "held", "1900m"),
    )


def written(tmp_path: Path, *objects: dict[str, Any]) -> list[str]:
    """Write *objects* and a catalogue; answer the flags that name them."""
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    catalogue = {"region": "nowhere", "instanceTypes": [kind(cpu) for cpu in CPUS]}
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json"), *ARGS]
