"""Workloads of the benchmark of plans, and the catalog of Karpenter's own benchmark."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.core.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE
from shared.model.core.requirements import Requirement, build_requirements
from shared.model.core.resources import build_resources
from sim.cloud.seeded_random import draw_fraction
from sim.world import manifests
from sim.world.manifests import Json

DEPLOYMENT_CPU_MILLI: Final = (100, 200, 250, 500, 750, 1000, 1500, 2000, 3000, 4000)
"""Possible CPU requests of a Deployment's pod, in milli-CPU."""
GIB_PER_CORE_RATIOS: Final = (1, 2, 2, 4, 4, 8)
"""Possible memory requests of a Deployment's pod, in GiB per core."""
SMALL_CPU_MILLI: Final = (100, 250, 500, 1000, 1500)
SMALL_MEMORY_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
DEPLOYMENT_COUNT: Final = 100


def choose_value(values: tuple[int, ...], *seed_parts: object) -> int:
    """Return one of *values*, chosen pseudo-randomly by *seed_parts*."""
    return values[int(draw_fraction(*seed_parts) * len(values))]


def build_pod(name: str, labels: dict[str, str], cpu_milli: int, memory_mib: int, **spec: object) -> Json:
    """Return the manifest of a Pod; *cpu_milli* in milli-CPU, *memory_mib* in MiB."""
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    containers = [{"name": "app", "resources": {"requests": requests}}]
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def _build_deployment_pods(deployment_number: int, replicas: int, *, is_spread: bool) -> Iterator[Json]:
    deployment_labels = {"app": f"app-{deployment_number}"}
    cpu_milli = choose_value(DEPLOYMENT_CPU_MILLI, "cpu", deployment_number)
    gib_per_core = choose_value(GIB_PER_CORE_RATIOS, "ratio", deployment_number)
    memory_mib = cpu_milli * gib_per_core * 1024 // 1000 + choose_value((0, 64, 128), "more", deployment_number)
    spec = (
        {"topologySpreadConstraints": [manifests.build_spread_constraint(ZONE, deployment_labels)]} if is_spread else {}
    )
    return (
        build_pod(f"app-{deployment_number}-{replica}", deployment_labels, cpu_milli, memory_mib, **spec)
        for replica in range(replicas)
    )


def build_deployments(pod_count: int, *, has_spread: bool = True) -> Iterator[Json]:
    """Yield the replicas of Deployments with typical sizes; every second Deployment is spread over zones."""
    for number in range(DEPLOYMENT_COUNT):
        is_spread = has_spread and number % 2 > 0
        yield from _build_deployment_pods(number, pod_count // DEPLOYMENT_COUNT, is_spread=is_spread)


def build_distinct_pods(pod_count: int) -> Iterator[Json]:
    """Yield pods that all differ.

    One fifth requires on-demand capacity; one fifth is in twenty groups that are spread over zones.
    """
    for number in range(pod_count):
        group_labels = {"tier": str(number % 20)}
        spec: Json = {"nodeSelector": {CAPACITY_TYPE: "on-demand"}} if draw_fraction("demand", number) < 1 / 5 else {}
        if draw_fraction("spread", number) < 1 / 5:
            spec["topologySpreadConstraints"] = [manifests.build_spread_constraint(ZONE, group_labels)]
        memory_mib = 128 + int(draw_fraction("memory", number) * 12_000)
        yield build_pod(
            f"odd-{number}", group_labels | {"app": f"odd-{number}"}, 100 + number % 4000, memory_mib, **spec
        )


def build_diverse_pods(pod_count: int) -> Iterator[Json]:
    """Yield the five pod kinds of Karpenter's benchmark in equal parts.

    The kinds: no constraint, spread over zones, spread over hosts, pod affinity by zone, pod anti-affinity by host.
    """
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for number in range(pod_count):
        cpu_and_memory = choose_value(SMALL_CPU_MILLI, "cpu", number), choose_value(SMALL_MEMORY_MIB, "memory", number)
        own_labels, other_labels = (
            {"my-label": "abcdefg"[choose_value(tuple(range(7)), label_role, number)]}
            for label_role in ("own", "other")
        )
        affinity_labels, anti_affinity_labels = {"my-affinity": own_labels["my-label"]}, {"app": "nginx"}
        kinds: tuple[tuple[dict[str, str], Json], ...] = (
            (own_labels, {}),
            (own_labels, {"topologySpreadConstraints": [manifests.build_spread_constraint(ZONE, other_labels)]}),
            (own_labels, {"topologySpreadConstraints": [manifests.build_spread_constraint(HOSTNAME, other_labels)]}),
            (affinity_labels, {"affinity": {"podAffinity": {required: [_build_affinity_term(ZONE, affinity_labels)]}}}),
            (
                anti_affinity_labels,
                {"affinity": {"podAntiAffinity": {required: [_build_affinity_term(HOSTNAME, anti_affinity_labels)]}}},
            ),
        )
        labels, spec = kinds[number % len(kinds)]
        yield build_pod(f"pod-{number}", labels, *cpu_and_memory, **spec)


def _build_affinity_term(topology_key: str, labels: dict[str, str]) -> Json:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}


def build_preferring_pods(pod_count: int) -> Iterator[Json]:
    """Yield equal pods with three preferences.

    The preferences: a preferred zone, anti-affinity between zones (cannot be satisfied) and anti-affinity between
    hosts.
    """
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    pod_labels = {"app": "nginx"}
    zone_preference = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["us-east-1a"]}]}
    weighted_keys = ((10, ZONE), (1, HOSTNAME))
    affinity = {
        "nodeAffinity": {preferred: [{"weight": 1, "preference": zone_preference}]},
        "podAntiAffinity": {
            preferred: [
                {"weight": weight, "podAffinityTerm": _build_affinity_term(key, pod_labels)}
                for weight, key in weighted_keys
            ]
        },
    }
    return (build_pod(f"wish-{number}", pod_labels, 500, 1024, affinity=affinity) for number in range(pod_count))


WORKLOADS: Final[dict[str, tuple[Callable[[int], Iterator[Json]], int]]] = {
    "plain-1000": (partial(build_deployments, has_spread=False), 1_000),
    "deployments-1000": (build_deployments, 1_000),
    "deployments-10000": (build_deployments, 10_000),
    "deployments-40000": (build_deployments, 40_000),
    "distinct-5000": (build_distinct_pods, 5_000),
    "diverse-5000": (build_diverse_pods, 5_000),
    "diverse-10000": (build_diverse_pods, 10_000),
    "diverse-20000": (build_diverse_pods, 20_000),
    "diverse-40000": (build_diverse_pods, 40_000),
    "preferences-4000": (build_preferring_pods, 4_000),
}


def build_karpenter_catalog(count: int = 400) -> Catalog:
    """Return the instance types of Karpenter's own benchmark.

    They have 1, 2, … *count* cores, with 2 GiB and 10 pods per core; spot in two zones, on-demand in three.
    """
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    capacity_types_and_zones = [(SPOT, zone) for zone in zones[:2]] + [(ON_DEMAND, zone) for zone in zones]
    return Catalog(
        region="us-east-1",
        instance_types=tuple(_build_karpenter_type(cores, capacity_types_and_zones) for cores in range(1, count + 1)),
    )


def _build_karpenter_type(cores: int, capacity_types_and_zones: list[tuple[str, str]]) -> InstanceType:
    memory_bytes = 2 * cores * 1024**3
    labels = {INSTANCE_TYPE: f"m{cores}.any", ARCH: "amd64", OS: "linux", "karpenter.k8s.aws/instance-category": "m"}
    offering_values = {
        ZONE: {zone for _, zone in capacity_types_and_zones},
        CAPACITY_TYPE: {capacity_type for capacity_type, _ in capacity_types_and_zones},
    }
    type_requirements = [Requirement(key=key, values=frozenset((value,))) for key, value in labels.items()]
    type_requirements += [Requirement(key=key, values=frozenset(values)) for key, values in offering_values.items()]
    price_usd_per_hour = 0.1 * cores + 0.1 * memory_bytes / 1e9
    return InstanceType(
        name=f"m{cores}.any",
        requirements=build_requirements(type_requirements),
        capacity=build_resources({"cpu": 1000 * cores, "memory": memory_bytes, "pods": 10 * cores}),
        overhead=build_resources({"cpu": 100, "memory": 10 << 20}),
        offerings=tuple(
            Offering(zone=zone, capacity_type=capacity_type, price_usd_per_hour=price_usd_per_hour)
            for capacity_type, zone in capacity_types_and_zones
        ),
    )


def build_workload_documents(name: str) -> list[Json]:
    """Return a NodePool of the categories c, m and r, and the pods of the workload *name*."""
    build_pods, count = WORKLOADS[name]
    requirements = {
        "kubernetes.io/arch": ["amd64"],
        CAPACITY_TYPE: ["spot", "on-demand"],
        "karpenter.k8s.aws/instance-category": ["c", "m", "r"],
    }
    pool = manifests.build_node_pool("default", manifests.build_node_template(requirements))
    return [pool, *build_pods(count)]
