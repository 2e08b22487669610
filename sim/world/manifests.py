"""Builders of the plain manifests that simulations apply: NodePools, EC2NodeClasses, workloads."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def build_node_class(name: str = "default", discovery: str = "*", **spec: Any) -> Json:  # noqa: ANN401 - fields of a spec
    """Return an EC2NodeClass that selects subnets and security groups by the tag *discovery*, with more *spec*."""
    selector = [{"tags": {"karpenter.sh/discovery": discovery}}]
    defaults = {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": selector,
        "securityGroupSelectorTerms": selector,
    }
    metadata = {"name": name}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": metadata, "spec": defaults | spec}


def build_node_pool(name: str, template: Json, **spec: Any) -> Json:  # noqa: ANN401 - fields of a spec
    """Return a NodePool with *template*, from `build_node_template`, and more *spec*."""
    metadata = {"name": name}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": {**spec, "template": template},
    }


def build_node_template(
    requirements: Mapping[str, Iterable[str]],
    node_class: str = "default",
    **spec: Any,  # noqa: ANN401 - fields of a spec
) -> Json:
    """Return the template of a NodePool: *requirements* has the allowed values by label."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class}
    expressions = [{"key": key, "operator": "In", "values": list(values)} for key, values in requirements.items()]
    return {"spec": {"nodeClassRef": reference, "requirements": expressions, **spec}}


def build_container(cpu: str, memory: str = "") -> Json:
    """Return a container with requests as quantities."""
    requests = {"cpu": cpu} | ({"memory": memory} if memory else {})
    return {"name": "main", "image": "main", "resources": {"requests": requests}}


def build_workload(kind: str, name: str, pod_spec: Json, namespace: str = "default", **spec: Any) -> Json:  # noqa: ANN401 - fields of a spec
    """Return a workload of the API group apps; its pods have the label ``app: name``."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def build_job(name: str, pods: int, pod_spec: Json, labels: Json, annotations: Json, **spec: int) -> Json:
    """Return a Job with *pods* parallel pods."""
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "Never"} | pod_spec,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"parallelism": pods, "completions": pods, "template": template, **spec},
    }


def build_pod_budget(name: str, **spec: int | str) -> Json:
    """Return the PodDisruptionBudget of the workload *name*."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def build_spread_constraint(topology_key: str, labels: Mapping[str, str]) -> Json:
    """Return a required topology spread constraint with maxSkew 1."""
    rule = {"maxSkew": 1, "topologyKey": topology_key, "whenUnsatisfiable": "DoNotSchedule"}
    return rule | {"labelSelector": {"matchLabels": dict(labels)}}
