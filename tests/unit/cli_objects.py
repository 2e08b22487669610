"""What the tests of `joiner plan` plan with."""

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
"""Who does not tolerate its taint has no place."""


def spec_of(cpu: str = "1", **more: Any) -> Object:
    """Answer the spec of a pod that tolerates the pool's taint."""
    some = {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}
    return some | {"tolerations": [{"key": "team", "operator": "Exists"}]} | more


def pod(name: str, cpu: str = "1", *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """Answer a bare manifest that tolerates the pool's taint."""
    meta: Object = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec_of(cpu, **spec)}


def deployment(name: str, replicas: Any, *, kind: str = "Deployment", **more: Any) -> Object:
    """Answer a manifest of a workload whose pods tolerate the pool's taint; *more* is of its spec."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec_of()}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template} | more
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def pool(name: str, **template: Any) -> Object:
    """Answer a NodePool without taints; *template* is of spec.template.spec."""
    own = POOL["spec"]["template"]["spec"] | {"taints": []} | template
    return POOL | {"metadata": {"name": name}, "spec": {"template": {"spec": own}}}


def sold(name: str, cpu: int, price: float) -> Object:
    """Answer a type in two zones, dearer in the second."""
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


CATALOGUE: Object = {"region": "nowhere", "instanceTypes": [sold("m.02", 2, 0.1), sold("m.04", 4, 0.2)]}
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
