"""Objects for the tests of `joiner plan`."""

from typing import Any

Object = dict[str, Any]
POOL: Object = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
                "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
            }
        }
    },
}
"""Pods that do not tolerate its taint cannot be scheduled."""


def make_pod_spec(cpu: str = "1", **fields: Any) -> Object:
    """Return the spec of a pod that tolerates the pool's taint."""
    pod_spec = {
        "containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    }
    return pod_spec | {"tolerations": [{"key": "team", "operator": "Exists"}]} | fields


def make_pod(name: str, cpu: str = "1", *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a bare pod manifest that tolerates the pool's taint."""
    meta: Object = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": make_pod_spec(cpu, **spec)}


def make_workload(name: str, replicas: Any, *, kind: str = "Deployment", **fields: Any) -> Object:
    """Return a manifest of a workload whose pods tolerate the pool's taint; *fields* extends its spec."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": make_pod_spec()}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template} | fields
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def make_node_pool(name: str, **template: Any) -> Object:
    """Return a NodePool without taints; *template* extends spec.template.spec."""
    template_spec = POOL["spec"]["template"]["spec"] | {"taints": []} | template
    return POOL | {"metadata": {"name": name}, "spec": {"template": {"spec": template_spec}}}


def make_instance_type(name: str, cpu: int, price: float) -> Object:
    """Return a type in two zones, more expensive in the second."""
    return {
        "name": name,
        "labels": {"kubernetes.io/arch": ["amd64"]},
        "capacity": {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"},
        "overhead": {},
        "offerings": [
            {"zone": zone, "zoneId": zone, "capacityType": "on-demand", "price": price * factor, "available": True}
            for zone, factor in (("a", 1), ("b", 2))
        ],
    }


CATALOGUE: Object = {
    "region": "nowhere",
    "instanceTypes": [make_instance_type("m.02", 2, 0.1), make_instance_type("m.04", 4, 0.2)],
}
EXISTING: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "here"},
    "spec": {},
    "status": {
        "capacity": {"cpu": "1", "memory": "4Gi", "pods": "10"},
        "allocatable": {"cpu": "1", "memory": "4Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
