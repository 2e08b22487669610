"""Manifests of a script: node classes, NodePools, and a few workloads."""

from typing import Final

from shared.model.core.labels import (
    GRACEFUL_EXPIRATION,
    ON_DEMAND_BASE,
    REBALANCE_POLICY,
    SCHEDULE,
    SPOT_SHARE,
    SURGE_DRAIN,
)
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.features import feature_manifests
from sim.world import manifests
from sim.world.manifests import Json

INSTANCE_TYPES: Final = ("c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge")
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
MAIN_POOL: Final = "main"
SECOND_POOL: Final = "second"
STATIC_POOL: Final = "static"
RESERVED_TYPE: Final = "m5.xlarge"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
CLOSED_WINDOW_MINUTES: Final = 5
"""Length of the window in which no node may be disrupted, if the setup has one."""
SCRIPT_START_MINUTE: Final = 8 * 60 + 1
"""The minute of the day when a script starts."""

SCHEDULE_WINDOW: Final = "brief: 6,12 8 * * * 3m"
"""The window of a schedule, if the setup has one: it is open twice, 5 and 11 minutes after the start of a script."""

WORKLOADS: Final[dict[str, tuple[int, str]]] = {
    "big": (2, "3"),
    "fixed": (1, "500m"),
    "guarded": (4, "700m"),
    "spread": (4, "600m"),
    "store": (3, "800m"),
    "web": (6, "900m"),
}
"""The workloads: the maximum number of replicas, and the CPU of a pod.

*fixed* must not be disrupted; of *guarded* one pod may be unavailable at a time; *spread* is required to spread over
zones; *store* is a StatefulSet with a zonal volume per pod, of which half may be unavailable at a time.
"""
AGENT_CPU: Final = "150m"
"""CPU of the DaemonSet pod."""


def build_manifests(setup: ScriptSetup) -> list[Json]:
    """Return all manifests, in the order in which they are applied."""
    pools = [build_node_class(setup), build_main_pool(setup)]
    if setup.second_pool_cpu:
        pools += build_second_pool(setup)
    if setup.has_static:
        pools += [build_static_pool(setup.static_replicas)]
    pools += [build_feature_pool(setup, name) for name in feature_manifests.list_pools(setup.features)]
    daemon_sets = [build_agent()] if setup.has_agent else []
    return [
        *pools,
        *build_pod_budgets(),
        build_storage_class(),
        *daemon_sets,
        *(build_workload(name, count) for name, count in setup.replicas),
        *(build_single() if setup.has_surge_drain else ()),
        *feature_manifests.build_workloads(setup.features),
    ]


def build_node_class(setup: ScriptSetup, name: str = MAIN_POOL, owner: str = "") -> Json:
    """Return an EC2NodeClass for the embedded account; a different *owner* makes all its nodes drift."""
    spec: Json = {"tags": {"owner": owner}} if owner else {}
    if setup.reserved_count:
        spec["capacityReservationSelectorTerms"] = [{"tags": {"purpose": "chaos"}}]
    node_class = manifests.build_node_class(name, **spec)
    if annotations := feature_manifests.build_class_annotations(setup.features):
        node_class["metadata"]["annotations"] = annotations
    return node_class


def build_main_pool(setup: ScriptSetup, release: str = "r", excluded_type: str = "") -> Json:
    """Return the NodePool; a different *release* makes all its nodes drift, an excluded instance type some of them."""
    capacity_types = ["on-demand", "spot"] if setup.allows_spot else ["on-demand"]
    types = [name for name in INSTANCE_TYPES if name != excluded_type]
    reserved = ["reserved"] if setup.reserved_count else []
    template = _build_template(setup, MAIN_POOL, [*capacity_types, *reserved], types)
    template["metadata"] = {"labels": {"release": release}}
    budget_counts = [str(setup.budget), *([setup.budget_percent] if setup.budget_percent else [])]
    disruption_budgets: list[Json] = [{"nodes": count} for count in budget_counts]
    if setup.closed_after_minutes:
        hour, minute = divmod(SCRIPT_START_MINUTE + setup.closed_after_minutes, 60)
        disruption_budgets.append(
            {"nodes": "0", "schedule": f"{minute} {hour} * * *", "duration": f"{CLOSED_WINDOW_MINUTES}m"}
        )
    spec = {"limits": {"cpu": str(setup.limit_cpu)}, "disruption": _build_disruption(setup, disruption_budgets)}
    manifest = manifests.build_node_pool(MAIN_POOL, template, **spec)
    annotations = {
        REBALANCE_POLICY: setup.rebalance_policy,
        SURGE_DRAIN: "true" if setup.has_surge_drain else "",
        GRACEFUL_EXPIRATION: setup.graceful_expiration,
        SPOT_SHARE: setup.spot_share_percent,
        ON_DEMAND_BASE: "1" if setup.spot_share_percent else "",
        SCHEDULE: f"{SCHEDULE_WINDOW} {setup.scheduled_values}" if setup.scheduled_values else "",
    }
    manifest["metadata"]["annotations"] = {key: text for key, text in annotations.items() if text}
    return manifest


def build_second_pool(setup: ScriptSetup) -> list[Json]:
    """Return the second NodePool, which is preferred and small, after its EC2NodeClass."""
    template = _build_template(setup, SECOND_POOL, ["on-demand"], ["m5.large", "m5.xlarge"])
    spec = {"limits": {"cpu": str(setup.second_pool_cpu)}, "weight": 50}
    disruption = _build_disruption(setup, [{"nodes": "50%"}, {"nodes": "1"}])
    return [
        build_node_class(setup, SECOND_POOL),
        manifests.build_node_pool(SECOND_POOL, template, disruption=disruption, **spec),
    ]


def build_static_pool(replicas: int) -> Json:
    """Return the static NodePool, which has *replicas* nodes regardless of pods."""
    template = _build_template(ScriptSetup(), MAIN_POOL, ["on-demand"], ["m5.large"])
    disruption = {"consolidateAfter": "Never"}
    return manifests.build_node_pool(STATIC_POOL, template, replicas=replicas, disruption=disruption)


def build_feature_pool(setup: ScriptSetup, name: str) -> Json:
    """Return the NodePool *name* of an optional feature."""
    capacity_types = ["on-demand", "spot"] if setup.allows_spot else ["on-demand"]
    template = _build_template(setup, MAIN_POOL, capacity_types, list(feature_manifests.FEATURE_TYPES))
    return feature_manifests.build_pool(name, template, _build_disruption(setup, [{"nodes": "1"}]))


def _build_template(setup: ScriptSetup, class_name: str, capacity_types: list[str], types: list[str]) -> Json:
    requirements = {"karpenter.sh/capacity-type": capacity_types, "node.kubernetes.io/instance-type": types}
    spec = {"expireAfter": setup.expire_after}
    if setup.termination_grace_period:
        spec["terminationGracePeriod"] = setup.termination_grace_period
    return manifests.build_node_template(requirements, class_name, **spec)


def _build_disruption(setup: ScriptSetup, disruption_budgets: list[Json]) -> Json:
    policy = {"consolidationPolicy": setup.policy, "consolidateAfter": setup.consolidate_after}
    return policy | {"budgets": disruption_budgets}


def get_workload_kind(name: str) -> str:
    """Return the kind of the workload *name*, also of a gang or a workload with devices."""
    return "StatefulSet" if name == "store" else "Deployment"


def build_workload(name: str, replicas: int) -> Json:
    """Return the Deployment or StatefulSet of one of `WORKLOADS`."""
    kind, cpu = get_workload_kind(name), WORKLOADS[name][1]
    manifest = manifests.build_workload(kind, name, _build_pod_spec(cpu), replicas=replicas)
    pod = manifest["spec"]["template"]
    if name == "fixed":
        pod["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    if name == "spread":
        spread = manifests.build_spread_constraint("topology.kubernetes.io/zone", {"app": name})
        pod["spec"]["topologySpreadConstraints"] = [spread]
    if name == "store":
        volume_claims = [_build_volume_claim()]
        manifest["spec"] |= {
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "volumeClaimTemplates": volume_claims,
        }
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return manifest


def build_job(name: str, pods: int, seconds: int) -> Json:
    """Return a Job with *pods* parallel pods that run for *seconds* each."""
    annotations = {"sim.joiner.dev/run-seconds": str(seconds)}
    return manifests.build_job(name, pods, _build_pod_spec("600m"), {"app": name}, annotations, backoffLimit=100)


def build_single() -> tuple[Json, Json]:
    """Return a Deployment with one replica, and the PodDisruptionBudget that refuses its eviction."""
    deployment = manifests.build_workload("Deployment", "single", _build_pod_spec("300m"), replicas=1)
    return deployment, manifests.build_pod_budget("single", minAvailable=1)


def build_agent() -> Json:
    """Return the DaemonSet."""
    return manifests.build_workload("DaemonSet", "agent", _build_pod_spec(AGENT_CPU))


def _build_pod_spec(cpu: str) -> Json:
    return {"containers": [manifests.build_container(cpu)], "terminationGracePeriodSeconds": 5}


def _build_volume_claim() -> Json:
    volume_spec = {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]}
    return {"metadata": {"name": "data"}, "spec": volume_spec | {"resources": {"requests": {"storage": "1Gi"}}}}


def build_storage_class() -> Json:
    """Return the StorageClass, whose volumes are created where their first pod is scheduled."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def build_pod_budgets() -> list[Json]:
    """Return the PodDisruptionBudgets: one pod of *guarded* may be unavailable, and half of *store*."""
    return [
        manifests.build_pod_budget("guarded", maxUnavailable=1),
        manifests.build_pod_budget("store", maxUnavailable="50%"),
    ]
