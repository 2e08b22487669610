"""Workloads and NodePools of a simulated week: two NodePools, services with a daily cycle, and jobs that end."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from sim.world import manifests
from sim.world.manifests import Json

NAMESPACE: Final = "default"
DEPLOYMENT_RESOURCE: Final = "deployments.apps"
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
    capacity_type: str
    policy: str
    consolidate_after: str
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
NODE_POOLS: Final = (
    SoakNodePool(
        name=SERVICES_POOL,
        capacity_type="on-demand",
        policy="WhenEmptyOrUnderutilized",
        consolidate_after="2m",
        budgets=(
            PoolBudget(percent=20),
            PoolBudget(count=2, reasons=("Drifted",)),
            PoolBudget(count=1, reasons=("Underutilized", "Drifted"), in_office_hours=True),
        ),
    ),
    SoakNodePool(
        name=SPOT_POOL, capacity_type="spot", policy="Balanced", consolidate_after="30s", budgets=(PoolBudget(count=3),)
    ),
)
DO_NOT_DISRUPT: Final = (("karpenter.sh/do-not-disrupt", "true"),)
SERVICE_WORKLOADS: Final = (
    ServiceWorkload(name="web", cpu_milli=500, memory_mib=768, replicas=(16, 60), pod_budget={"maxUnavailable": "10%"}),
    ServiceWorkload(
        name="api", cpu_milli=1000, memory_mib=2048, replicas=(8, 28), peak_hour=14, pod_budget={"minAvailable": "75%"}
    ),
    ServiceWorkload(
        name="search",
        cpu_milli=1500,
        memory_mib=6144,
        replicas=(4, 10),
        peak_hour=20,
        pod_budget={"maxUnavailable": 1},
        is_spread=True,
    ),
    ServiceWorkload(name="cache", cpu_milli=500, memory_mib=3072, replicas=(4, 4), pod_budget={"maxUnavailable": 1}),
    ServiceWorkload(name="ledger", cpu_milli=1000, memory_mib=4096, replicas=(3, 3), annotations=DO_NOT_DISRUPT),
    ServiceWorkload(name="mail", cpu_milli=250, memory_mib=512, replicas=(4, 14), peak_hour=9),
    ServiceWorkload(
        name="worker",
        pool=SPOT_POOL,
        cpu_milli=900,
        memory_mib=1800,
        replicas=(10, 36),
        peak_hour=2,
        pod_budget={"maxUnavailable": "20%"},
    ),
    ServiceWorkload(name="thumbnails", pool=SPOT_POOL, cpu_milli=500, memory_mib=1024, replicas=(4, 20), peak_hour=19),
)


def scale_services(size: float = 1.0) -> tuple[ServiceWorkload, ...]:
    """Return the services with their replicas scaled by *size*, at least one each."""
    return tuple(
        msgspec.structs.replace(
            service, replicas=tuple(max(1, round(size * replicas)) for replicas in service.replicas)
        )
        for service in SERVICE_WORKLOADS
    )


def build_manifests(size: float = 1.0) -> Iterator[Json]:
    """Yield all initial manifests; *size* scales the replicas of services."""
    yield manifests.build_node_class()
    yield from map(_build_node_pool, NODE_POOLS)
    agent_spec = {"tolerations": [{"operator": "Exists"}], "containers": [manifests.build_container("100m", "128Mi")]}
    yield manifests.build_workload("DaemonSet", "agent", agent_spec, "kube-system")
    for service in scale_services(size):
        yield build_deployment(service, service.replicas[0])
        if service.pod_budget:
            yield manifests.build_pod_budget(service.name, **service.pod_budget)


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


def build_job(name: str, pods: int, run_duration: timedelta, *, is_guarded: bool) -> Json:
    """Return a Job of *pods* parallel pods on spot that run for *run_duration* each.

    *is_guarded*: they must not be disrupted.
    """
    annotations = {"sim.joiner.dev/run-seconds": str(int(run_duration.total_seconds()))} | dict(
        DO_NOT_DISRUPT if is_guarded else ()
    )
    container = manifests.build_container("1500m", "2048Mi")
    spec = {"nodeSelector": {"pool": SPOT_POOL}, "containers": [container]}
    return manifests.build_job(name, pods, spec, {"job": name}, annotations, ttlSecondsAfterFinished=60)


def _build_node_pool(pool: SoakNodePool) -> Json:
    requirements = {
        "karpenter.sh/capacity-type": [pool.capacity_type],
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
    return manifests.build_node_pool(pool.name, template, disruption=disruption)
