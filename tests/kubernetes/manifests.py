"""What a test applies, as kubectl would."""

from typing import Any

Object = dict[str, Any]


def make_daemon_set(name: str, cpu: str) -> Object:
    requests = {"cpu": cpu, "memory": "32Mi"}
    spec = {
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": name, "image": name, "resources": {"requests": requests}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": body,
    }


def make_deployment(name: str, replicas: int, cpu: str, memory: str, **fields: object) -> Object:
    requests = {"cpu": cpu, "memory": memory}
    spec = {
        "terminationGracePeriodSeconds": 5,
        "containers": [{"name": name, "image": name, "resources": {"requests": requests}}],
        **fields,
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def make_node_class() -> Object:
    tags = [{"tags": {"karpenter.sh/discovery": "*"}}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {
            "role": "joiner-node",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": tags,
            "securityGroupSelectorTerms": tags,
        },
    }


def make_zone_spread(app: str) -> Object:
    """Build a required topology spread constraint over zones for the pods of *app*."""
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def make_node_pool(
    name: str, *, weight: int = 1, expire_after: str = "720h", tier: str = "", consolidates: bool = False
) -> Object:
    """Build a NodePool for instance types of all sizes; a *tier* adds a label and a taint.

    Nodes are removed 5s after they became empty, with *consolidates* 30s after they became underutilized.
    """
    allowed_values = {
        "karpenter.sh/capacity-type": ["spot", "on-demand"],
        "kubernetes.io/arch": ["amd64"],
        "karpenter.k8s.aws/instance-category": ["c", "m", "r"],
    }
    spec: Object = {
        "expireAfter": expire_after,
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in allowed_values.items()],
    }
    labels = {}
    if tier:
        labels = {"tier": tier}
        spec["taints"] = [{"key": "tier", "value": tier, "effect": "NoSchedule"}]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized" if consolidates else "WhenEmpty",
                "consolidateAfter": "30s" if consolidates else "5s",
                "budgets": [{"nodes": "100%"}],
            },
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def build_tier_pod_fields(tier: str) -> Object:
    """Build the pod fields that select and tolerate the nodes of *tier*."""
    return {"nodeSelector": {"tier": tier}, "tolerations": [{"key": "tier", "operator": "Exists"}]}


def make_pod_disruption_budget(app: str, allowed: int | str) -> Object:
    spec = {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}
