"""Deployments and their pods on the nodes of a cluster, for the tests of surge drains."""

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import SURGE_DRAIN
from shared.model.core.metadata import ObjectMeta, OwnerReference, build_pairs
from shared.model.core.selectors import build_label_selector
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from shared.model.kubernetes.workloads import Rollout, Workload
from tests.support.lifecycle_cases import (
    POOL,
    Case,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    make_pod_disruption_budget,
    merge_fields,
    replace_fields,
)

COMPLETE = Rollout(max_surge=1, pods=1, updated_pods=1, available_pods=1)


def make_surge_pod(
    name: str = "web-abc-1", *, template_hash: str = "abc", deployment: str = "web", **fields: Case
) -> Pod:
    """Return a pod of the Deployment."""
    pod = make_pod(name, **fields)
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=f"{deployment}-{template_hash}", uid="o", controller=True
    )
    labels = build_pairs({"app": deployment, "pod-template-hash": template_hash})
    return replace_fields(pod, meta=replace_fields(pod.meta, labels=labels, owners=(owner,)))


def make_surge_deployment(
    name: str = "web", *, replicas: int = 1, rollout: Rollout = COMPLETE, annotations: dict[str, str] | None = None
) -> Workload:
    meta = ObjectMeta(
        name=name, namespace="shop", uid=f"uid-{name}", resource_version="9", annotations=build_pairs(annotations or {})
    )
    return Workload(
        kind="Deployment", meta=meta, replicas=replicas, selector=build_label_selector({"app": name}), rollout=rollout
    )


def make_surge_pdb(app: str = "web", *, allowed: int = 0, **fields: Case) -> PodDisruptionBudget:
    return make_pod_disruption_budget(app, allowed=allowed, **fields)


def make_surge_cluster(*pods: Pod, pool: str = "true", **fields: Case) -> ClusterSnapshot:
    """Return a cluster with the node `node-a`, whose NodePool has *pool* as its annotation."""
    annotations = build_pairs(dict(POOL.meta.annotations) | ({SURGE_DRAIN: pool} if pool else {}))
    node_pool = replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=annotations))
    return make_cluster(
        pods=pods,
        **merge_fields(
            fields,
            node_pools=(node_pool,),
            node_claims=(make_claim(),),
            nodes=(make_node(),),
            deployments=(make_surge_deployment(),),
            has_surge_drain=True,
        ),
    )
