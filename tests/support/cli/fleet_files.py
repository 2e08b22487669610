"""A cluster and a catalog as files, for tests of `joiner consolidate`: each object with few parameters."""

import json
from pathlib import Path
from typing import Any

ARGS = ("--now", "2026-11-21T09:00:00Z")
CPUS = (2, 4, 8, 16)
NODECLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
STAGES = ("Launched", "Registered", "Initialized", "Consolidatable")


def make_instance_type(cpu: int) -> dict[str, Any]:
    """Return a type with 4 GiB for each CPU."""
    return {
        "name": f"m.{cpu:02d}",
        "labels": {"kubernetes.io/arch": ["amd64"], "kubernetes.io/os": ["linux"]},
        "capacity": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"},
        "overhead": {},
        "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.05 * cpu, "available": True}],
    }


def make_node_manifests(name: str, cpu: int, **annotations: str) -> list[dict[str, Any]]:
    """Return a node of the pool; names of *annotations* have two underscores for a slash, one for a dash."""
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


def make_claim(name: str, node: str, cpu: int, **meta: object) -> dict[str, Any]:
    """Return a claim of the instance of *node*."""
    labels = {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": f"m.{cpu:02d}"}
    stages = [{"type": stage, "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"} for stage in STAGES]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": labels, **meta},
        "spec": {"nodeClassRef": NODECLASS, "requirements": []},
        "status": {"providerID": f"x/{node}", "nodeName": node, "conditions": stages},
    }


def make_pod(name: str, node: str, cpu: str) -> dict[str, Any]:
    """Return a pod on *node*, or one without node."""
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


def write_small_fleet(tmp_path: Path) -> list[str]:
    """Write a fleet of five nodes: one empty, one with do-not-disrupt, three with one pod each."""
    return write_fleet(
        tmp_path,
        POOL,
        *make_node_manifests("empty", 8),
        *make_node_manifests("large", 16),
        *make_node_manifests("half", 4),
        *make_node_manifests("full", 4),
        *make_node_manifests("held", 2, **{"karpenter.sh__do_not_disrupt": "true"}),
        make_pod("one", "large", "6"),
        make_pod("two", "half", "500m"),
        make_pod("three", "full", "3"),
        make_pod("four", "held", "1900m"),
    )


def write_fleet(tmp_path: Path, *objects: dict[str, Any]) -> list[str]:
    """Write *objects* and a catalog; return the flags that name the files."""
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    catalogue = {"region": "nowhere", "instanceTypes": [make_instance_type(cpu) for cpu in CPUS]}
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json"), *ARGS]
