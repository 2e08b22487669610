"""Workloads and NodePools that the simulated weeks consist of, and their manifests."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from sim.cluster.kubelet.pod_stages import RUN_SECONDS_ANNOTATION
from sim.world import manifests
from sim.world.manifests import Json

NAMESPACE: Final = "default"
DEPLOYMENT_RESOURCE: Final = "deployments.apps"
JOB_RESOURCE: Final = "jobs.batch"
POD_BUDGET_RESOURCE: Final = "poddisruptionbudgets.policy"
SERVICES_POOL: Final = "services"
SPOT_POOL: Final = "spot"
NODE_CLASS_NAME: Final = "default"


class PoolBudget(msgspec.Struct, frozen=True, kw_only=True):
    """One disruption budget: at most this many nodes, or this percentage of them, at a time."""

    count: int = 0
    percent: int = 0
    """If not 0, used instead of the count."""
    reasons: tuple[str, ...] = ()
    """Empty: all reasons."""
    in_office_hours: bool = False
    """Whether it applies only from 9 to 17 UTC, Monday to Friday."""

    def compute_allowed(self, reason: str, total: int, now: datetime) -> int | None:
        """Return how many of *total* nodes may be disrupted at *now* for *reason*.

        None if the budget does not apply.
        """
        if self.reasons and reason not in self.reasons:
            return None
        if self.in_office_hours and not (
            now.weekday() < SATURDAY_INDEX and OFFICE_OPENING_HOUR <= now.hour < OFFICE_CLOSING_HOUR
        ):
            return None
        return -(-total * self.percent // 100) if self.percent else self.count

    def build_manifest(self) -> Json:
        """Return the budget as in a NodePool."""
        nodes = f"{self.percent}%" if self.percent else str(self.count)
        schedule_fields = (
            {
                "schedule": f"0 {OFFICE_OPENING_HOUR} * * 1-5",
                "duration": f"{OFFICE_CLOSING_HOUR - OFFICE_OPENING_HOUR}h",
            }
            if self.in_office_hours
            else {}
        )
        return {"nodes": nodes} | ({"reasons": list(self.reasons)} if self.reasons else {}) | schedule_fields


class SoakNodePool(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool of a simulated week."""

    name: str
    capacity_types: tuple[str, ...]
    policy: str
    consolidate_after: str
    annotations: dict[str, str] = {}
    budgets: tuple[PoolBudget, ...]

    def compute_allowed(self, reason: str, total: int, now: datetime) -> int:
        """Return the minimum of what its budgets allow."""
        allowed_counts = [budget.compute_allowed(reason, total, now) for budget in self.budgets]
        return min([allowed_count for allowed_count in allowed_counts if allowed_count is not None], default=total)


class ServiceWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment whose replicas follow a daily cycle."""

    name: str
    pool: str = SERVICES_POOL
    cpu_milli: int
    memory_mib: int
    replicas: tuple[int, int]
    """The fewest, and the most at the peak hour."""
    peak_hour: int = 15
    """Hour of the day, UTC."""
    pod_budget: dict[str, int | str] = {}
    """Fields of its PodDisruptionBudget; empty: it has none."""
    annotations: tuple[tuple[str, str], ...] = ()
    is_spread: bool = False
    """Evenly over zones."""


SATURDAY_INDEX: Final = 5
OFFICE_OPENING_HOUR: Final = 9
OFFICE_CLOSING_HOUR: Final = 17
DO_NOT_DISRUPT: Final = (("karpenter.sh/do-not-disrupt", "true"),)


def scale_services(services: Iterable[ServiceWorkload], size: float) -> tuple[ServiceWorkload, ...]:
    """Return *services* with their replicas scaled by *size*, at least one each."""
    return tuple(
        msgspec.structs.replace(
            service, replicas=tuple(max(1, round(size * replicas)) for replicas in service.replicas)
        )
        for service in services
    )


def build_deployment(service: ServiceWorkload, replicas: int) -> Json:
    """Return the Deployment of *service*."""
    container = manifests.build_container(f"{service.cpu_milli}m", f"{service.memory_mib}Mi")
    spec: Json = {"nodeSelector": {"pool": service.pool}, "containers": [container]}
    if service.is_spread:
        spread = manifests.build_spread_constraint("topology.kubernetes.io/zone", {"app": service.name})
        spec["topologySpreadConstraints"] = [spread]
    deployment = manifests.build_workload("Deployment", service.name, spec, NAMESPACE, replicas=replicas)
    deployment["spec"]["template"]["metadata"]["annotations"] = dict(service.annotations)
    return deployment


def build_job(
    name: str,
    pods: int,
    run_duration: timedelta,
    *,
    is_guarded: bool,
    pool: str = SPOT_POOL,
    requests: tuple[int, int] = (1500, 2048),
) -> Json:
    """Return a Job of *pods* parallel pods that run for *run_duration* each.

    *is_guarded*: they must not be disrupted. *requests*: millicores and MiB of each pod.
    """
    annotations = {RUN_SECONDS_ANNOTATION: str(int(run_duration.total_seconds()))} | dict(
        DO_NOT_DISRUPT if is_guarded else ()
    )
    container = manifests.build_container(f"{requests[0]}m", f"{requests[1]}Mi")
    spec = {"nodeSelector": {"pool": pool}, "containers": [container]}
    return manifests.build_job(name, pods, spec, {"job": name}, annotations, ttlSecondsAfterFinished=60)


def build_node_pool(pool: SoakNodePool) -> Json:
    """Return the manifest of *pool*: current instance types of 2 to 8 vCPUs."""
    requirements = {
        "karpenter.sh/capacity-type": list(pool.capacity_types),
        "kubernetes.io/arch": ["amd64"],
        "karpenter.k8s.aws/instance-category": ["c", "m", "r"],
        "karpenter.k8s.aws/instance-cpu": ["2", "4", "8"],
    }
    template = manifests.build_node_template(requirements, NODE_CLASS_NAME)
    template["metadata"] = {"labels": {"pool": pool.name}}
    generation = {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]}
    template["spec"]["requirements"].insert(3, generation)
    disruption = {
        "consolidationPolicy": pool.policy,
        "consolidateAfter": pool.consolidate_after,
        "budgets": [budget.build_manifest() for budget in pool.budgets],
    }
    manifest = manifests.build_node_pool(pool.name, template, disruption=disruption)
    if pool.annotations:
        manifest["metadata"]["annotations"] = dict(pool.annotations)
    return manifest
