"""Manifests for tests of bad input: a NodePool, valid pods, and a complete pod that can be poisoned anywhere."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from tests.support.catalogues import SIZES

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]
NOW: Final = datetime(2026, 11, 21, 8, tzinfo=UTC)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

POOL: Final[Json] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["1"]}],
            }
        }
    },
}


def make_pod_manifest(
    name: str, labels: dict[str, str] | None = None, requests: dict[str, Any] | None = None, **spec: Any
) -> Json:
    """Return a pod manifest as a user writes it."""
    container = {"name": "app", "resources": {"requests": {"cpu": "100m"} if requests is None else requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels or {}},
        "spec": {"containers": [container]} | spec,
    }


def make_node_affinity(key: str, operator: str, *values: str) -> Json:
    """Return required node affinity with one expression."""
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def make_pod_affinity(key: str, **labels: str) -> Json:
    """Return required pod affinity."""
    return {"podAffinity": {_REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": labels}}]}}


def make_spread_constraints(key: str, **fields: Any) -> list[Json]:
    """Return one constraint for the pods labelled ``app: x``."""
    common = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}
    return [{"topologyKey": key} | common | fields]


def build_cluster(*pods: Json) -> ClusterSnapshot:
    """Return the snapshot of *pods* and the NodePool that a planner reads."""
    cluster = build_snapshot_from_documents([POOL, *pods], NOW)
    return replace(cluster, catalog=Catalog(region="nowhere", instance_types=SIZES))


def make_complete_pod() -> Json:
    """Return a pod with every field that is read."""
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    pod_term = {"topologyKey": "kubernetes.io/hostname", "namespaces": ["a"], "namespaceSelector": {}}
    pod_manifest = make_pod_manifest(
        "bad",
        {"app": "x"},
        nodeSelector={"kubernetes.io/arch": "amd64", "karpenter.k8s.aws/instance-cpu": "4"},
        tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "value": ""}],
        priority=1,
        priorityClassName="low",
        terminationGracePeriodSeconds=30,
        hostNetwork=False,
        overhead={"cpu": "1m"},
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        initContainers=[
            {
                "name": "sidecar",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "1Mi"}},
                "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "1.2.3.4", "protocol": "TCP"}],
            }
        ],
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "e", "ephemeral": {}}],
        topologySpreadConstraints=make_spread_constraints(
            "topology.kubernetes.io/zone", minDomains=2, matchLabelKeys=["app"], labelSelector=selector
        ),
        affinity={
            "nodeAffinity": make_node_affinity("karpenter.k8s.aws/instance-cpu", "Gt", "1")["nodeAffinity"]
            | {_PREFERRED: [{"weight": 3, "preference": {"matchExpressions": selector["matchExpressions"]}}]},
            "podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": pod_term | {"labelSelector": selector}}]},
            "podAntiAffinity": {_REQUIRED: [pod_term | {"labelSelector": selector}]},
        },
    )
    pod_manifest["metadata"] |= {
        "uid": "uid-bad",
        "creationTimestamp": "2026-11-20T00:00:00Z",
        "annotations": {"karpenter.sh/do-not-disrupt": "true", "controller.kubernetes.io/pod-deletion-cost": "3"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        ],
    }
    pod_manifest["status"] = {
        "phase": "Pending",
        "startTime": "2026-11-20T00:00:00Z",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "lastTransitionTime": "2026-11-20T00:00:00Z",
            }
        ],
        "containerStatuses": [
            {"name": "app", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
        ],
    }
    return pod_manifest


def iterate_paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path to *value* and to every value inside it."""
    yield path
    if isinstance(value, dict):
        for key in sorted(value):
            yield from iterate_paths(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iterate_paths(item, (*path, index))


def make_poisoned_pod(path: Path, poison: object) -> Json:
    """Return the complete pod with *poison* at *path*."""
    pod_manifest = deepcopy(make_complete_pod())
    inner: Any = pod_manifest
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = poison
    return pod_manifest
