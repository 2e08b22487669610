"""What runs in a simulated week, and on what: two NodePools, services that breathe by the hour, jobs that end."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

Json = dict[str, Any]
NAMESPACE: Final = "default"
DEPLOYMENTS: Final = "deployments.apps"
POD_BUDGETS: Final = "poddisruptionbudgets.policy"
SERVICES: Final = "services"
SPOT: Final = "spot"
CLASS: Final = "default"


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """One disruption budget: so many nodes, or percent of them, at a time."""

    count: int = 0
    percent: int = 0
    """If not 0, instead of the count."""
    reasons: tuple[str, ...] = ()
    """None: for every reason."""
    office_hours: bool = False
    """Only then: 9 to 17 UTC, Monday to Friday."""

    def allows(self, reason: str, total: int, now: datetime) -> int | None:
        """Answer how many of *total* nodes may go at *now* for *reason*; None if this says nothing of that."""
        if self.reasons and reason not in self.reasons:
            return None
        if self.office_hours and not (now.weekday() < SATURDAY and OPENS <= now.hour < CLOSES):
            return None
        return -(-total * self.percent // 100) if self.percent else self.count

    def manifest(self) -> Json:
        """Answer it as a NodePool has it."""
        nodes = f"{self.percent}%" if self.percent else str(self.count)
        window = {"schedule": f"0 {OPENS} * * 1-5", "duration": f"{CLOSES - OPENS}h"} if self.office_hours else {}
        return {"nodes": nodes} | ({"reasons": list(self.reasons)} if self.reasons else {}) | window


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool of a week."""

    name: str
    capacity_type: str
    policy: str
    after: str
    limits: tuple[Limit, ...]

    def allows(self, reason: str, total: int, now: datetime) -> int:
        """Answer the least that its budgets allow."""
        said = [one.allows(reason, total, now) for one in self.limits]
        return min([one for one in said if one is not None], default=total)


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment whose replicas rise and fall once a day."""

    name: str
    pool: str
    cpu_milli: int
    memory_mib: int
    low: int
    high: int
    peak: int = 15
    """Hour of the day, UTC."""
    budget: tuple[tuple[str, int | str], ...] = ()
    """Of its PodDisruptionBudget; none: it has no such."""
    annotations: tuple[tuple[str, str], ...] = ()
    spread: bool = False
    """Evenly over zones."""


SATURDAY: Final = 5
OPENS: Final = 9
CLOSES: Final = 17
POOLS: Final = (
    Pool(
        name=SERVICES,
        capacity_type="on-demand",
        policy="WhenEmptyOrUnderutilized",
        after="2m",
        limits=(
            Limit(percent=20),
            Limit(count=2, reasons=("Drifted",)),
            Limit(count=1, reasons=("Underutilized", "Drifted"), office_hours=True),
        ),
    ),
    Pool(name=SPOT, capacity_type="spot", policy="Balanced", after="30s", limits=(Limit(count=3),)),
)
GUARDED: Final = (("karpenter.sh/do-not-disrupt", "true"),)
FLEET: Final = (
    Service(
        name="web",
        pool=SERVICES,
        cpu_milli=500,
        memory_mib=768,
        low=16,
        high=60,
        budget=(("maxUnavailable", "10%"),),
    ),
    Service(
        name="api",
        pool=SERVICES,
        cpu_milli=1000,
        memory_mib=2048,
        low=8,
        high=28,
        peak=14,
        budget=(("minAvailable", "75%"),),
    ),
    Service(
        name="search",
        pool=SERVICES,
        cpu_milli=1500,
        memory_mib=6144,
        low=4,
        high=10,
        peak=20,
        budget=(("maxUnavailable", 1),),
        spread=True,
    ),
    Service(
        name="cache", pool=SERVICES, cpu_milli=500, memory_mib=3072, low=4, high=4, budget=(("maxUnavailable", 1),)
    ),
    Service(name="ledger", pool=SERVICES, cpu_milli=1000, memory_mib=4096, low=3, high=3, annotations=GUARDED),
    Service(name="mail", pool=SERVICES, cpu_milli=250, memory_mib=512, low=4, high=14, peak=9),
    Service(
        name="worker",
        pool=SPOT,
        cpu_milli=900,
        memory_mib=1800,
        low=10,
        high=36,
        peak=2,
        budget=(("maxUnavailable", "20%"),),
    ),
    Service(name="thumbnails", pool=SPOT, cpu_milli=500, memory_mib=1024, low=4, high=20, peak=19),
)


def fleet(size: float = 1.0) -> tuple[Service, ...]:
    """Answer the services, with so large a part of their replicas; none has fewer than one."""
    return tuple(
        msgspec.structs.replace(one, low=max(1, round(size * one.low)), high=max(1, round(size * one.high)))
        for one in FLEET
    )


def set_up(size: float = 1.0) -> Iterator[Json]:
    """Iterate over all that is there at the beginning, where services have such a part of their replicas."""
    yield _node_class()
    yield from map(_node_pool, POOLS)
    yield _daemon("agent", "100m", "128Mi")
    for service in fleet(size):
        yield deployment(service, service.low)
        if service.budget:
            yield _disruption_budget(service)


def deployment(service: Service, replicas: int) -> Json:
    """Answer the Deployment of *service*."""
    labels = {"app": service.name}
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]
    spec = {
        "nodeSelector": {"pool": service.pool},
        "containers": [_container(service.cpu_milli, service.memory_mib)],
    } | ({"topologySpreadConstraints": spread} if service.spread else {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": service.name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": dict(service.annotations)}, "spec": spec},
        },
    }


def job(name: str, pods: int, runs: timedelta, *, is_guarded: bool) -> Json:
    """Answer a Job of *pods* that run for *runs* side by side on spot, and are not to be disturbed if *is_guarded*."""
    annotations = {"sim.joiner.dev/run-seconds": str(int(runs.total_seconds()))} | dict(GUARDED if is_guarded else ())
    spec = {"restartPolicy": "Never", "nodeSelector": {"pool": SPOT}, "containers": [_container(1500, 2048)]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "ttlSecondsAfterFinished": 60,
            "template": {"metadata": {"labels": {"job": name}, "annotations": annotations}, "spec": spec},
        },
    }


def _container(cpu_milli: int, memory_mib: int) -> Json:
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    return {"name": "main", "image": "main", "resources": {"requests": requests}}


def _disruption_budget(service: Service) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": service.name, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": service.name}}} | dict(service.budget),
    }


def _daemon(name: str, cpu: str, memory: str) -> Json:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    spec = {"tolerations": [{"operator": "Exists"}], "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def _node_class() -> Json:
    selector = [{"tags": {"karpenter.sh/discovery": "*"}}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": CLASS},
        "spec": {
            "role": "joiner-node",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": selector,
            "securityGroupSelectorTerms": selector,
        },
    }


def _node_pool(pool: Pool) -> Json:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [pool.capacity_type]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2", "4", "8"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": CLASS}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": pool.name},
        "spec": {
            "disruption": {
                "consolidationPolicy": pool.policy,
                "consolidateAfter": pool.after,
                "budgets": [one.manifest() for one in pool.limits],
            },
            "template": {
                "metadata": {"labels": {"pool": pool.name}},
                "spec": {"nodeClassRef": reference, "requirements": requirements},
            },
        },
    }
