"""How good and how fast plans are: `python -m sim.bench_plan CATALOGUE [WORKLOAD …] [--write FOLDER]`.

Workloads as documents; with a folder, each is written there, for a judge that is not ours. Each has a process of its
own, whose peak of memory is that of decoding and planning. What a plan costs is set against a lower bound, which is
reckoned behind the clock's back. The catalogue `made-up` has the 400 types of Karpenter's own benchmark, whose mix of
pods *diverse* is; with --greedy no cheaper plan is sought.
"""

import argparse
import math
import resource
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from timeit import default_timer
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE
from shared.model.requirements import Requirement, requirements
from shared.model.resources import resources
from shared.scheduling.placement import Options
from shared.scheduling.solve import solve
from shared.snapshot.catalogue import decode_catalogue
from shared.snapshot.documents import cluster_from_documents
from sim.cloud.chance import share

Document = dict[str, Any]
MADE_UP: Final = "made-up"
NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
SIZES: Final = (100, 200, 250, 500, 750, 1000, 1500, 2000, 3000, 4000)
"""Milli cpu of a pod of a Deployment."""
RATIOS: Final = (1, 2, 2, 4, 4, 8)
"""Its GiB per core."""
SMALL_CPU: Final = (100, 250, 500, 1000, 1500)
SMALL_MEMORY: Final = (100, 256, 512, 1024, 2048, 4096)
PER_DEPLOYMENT: Final = 100


def pick(some: tuple[int, ...], *words: object) -> int:
    """Answer one of *some*, by chance."""
    return some[int(share(*words) * len(some))]


def pod(name: str, labels: dict[str, str], cpu: int, memory: int, **spec: object) -> Document:
    """Answer a Pod's document; *cpu* in milli, *memory* in MiB."""
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    containers = [{"name": "app", "resources": {"requests": requests}}]
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def spread(key: str, labels: dict[str, str]) -> list[Document]:
    """Answer a hard constraint of skew 1 over *key*."""
    selector = {"matchLabels": labels}
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def _deployment(number: int, replicas: int, *, is_spread: bool) -> Iterator[Document]:
    own = {"app": f"app-{number}"}
    cpu = pick(SIZES, "cpu", number)
    memory = cpu * pick(RATIOS, "ratio", number) * 1024 // 1000 + pick((0, 64, 128), "more", number)
    spec = {"topologySpreadConstraints": spread(ZONE, own)} if is_spread else {}
    return (pod(f"app-{number}-{replica}", own, cpu, memory, **spec) for replica in range(replicas))


def deployments(count: int) -> Iterator[Document]:
    """Replicas of Deployments of everyday sizes, every second one spread over zones."""
    for number in range(PER_DEPLOYMENT):
        yield from _deployment(number, count // PER_DEPLOYMENT, is_spread=number % 2 > 0)


def plain(count: int) -> Iterator[Document]:
    """The same, none spread."""
    for number in range(PER_DEPLOYMENT):
        yield from _deployment(number, count // PER_DEPLOYMENT, is_spread=False)


def distinct(count: int) -> Iterator[Document]:
    """No two alike; a fifth on demand, a fifth in twenty groups that are spread over zones."""
    for number in range(count):
        group = {"tier": str(number % 20)}
        spec: Document = {"nodeSelector": {CAPACITY_TYPE: "on-demand"}} if share("demand", number) < 1 / 5 else {}
        if share("spread", number) < 1 / 5:
            spec["topologySpreadConstraints"] = spread(ZONE, group)
        memory = 128 + int(share("memory", number) * 12_000)
        yield pod(f"odd-{number}", group | {"app": f"odd-{number}"}, 100 + number % 4000, memory, **spec)


def diverse(count: int) -> Iterator[Document]:
    """Five kinds in equal parts: plain, spread over zones, over hosts, near each other by zone, apart by host."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for number in range(count):
        size = pick(SMALL_CPU, "cpu", number), pick(SMALL_MEMORY, "memory", number)
        own, other = ({"my-label": "abcdefg"[pick(tuple(range(7)), which, number)]} for which in ("own", "other"))
        near, far = {"my-affinity": own["my-label"]}, {"app": "nginx"}
        kinds: tuple[tuple[dict[str, str], Document], ...] = (
            (own, {}),
            (own, {"topologySpreadConstraints": spread(ZONE, other)}),
            (own, {"topologySpreadConstraints": spread(HOSTNAME, other)}),
            (near, {"affinity": {"podAffinity": {required: [_term(ZONE, near)]}}}),
            (far, {"affinity": {"podAntiAffinity": {required: [_term(HOSTNAME, far)]}}}),
        )
        labels, spec = kinds[number % len(kinds)]
        yield pod(f"pod-{number}", labels, *size, **spec)


def _term(key: str, labels: dict[str, str]) -> Document:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def preferences(count: int) -> Iterator[Document]:
    """Equal pods with a preferred zone, and a preference to be apart in zones, which cannot be, and on hosts."""
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    own = {"app": "nginx"}
    zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["us-east-1a"]}]}
    terms = ((10, ZONE), (1, HOSTNAME))
    affinity = {
        "nodeAffinity": {preferred: [{"weight": 1, "preference": zone}]},
        "podAntiAffinity": {
            preferred: [{"weight": weight, "podAffinityTerm": _term(key, own)} for weight, key in terms]
        },
    }
    return (pod(f"wish-{number}", own, 500, 1024, affinity=affinity) for number in range(count))


WORKLOADS: Final[dict[str, tuple[Callable[[int], Iterator[Document]], int]]] = {
    "plain-1000": (plain, 1_000),
    "deployments-1000": (deployments, 1_000),
    "deployments-10000": (deployments, 10_000),
    "deployments-40000": (deployments, 40_000),
    "distinct-5000": (distinct, 5_000),
    "diverse-5000": (diverse, 5_000),
    "diverse-10000": (diverse, 10_000),
    "diverse-20000": (diverse, 20_000),
    "diverse-40000": (diverse, 40_000),
    "preferences-4000": (preferences, 4_000),
}


def made_up(count: int = 400) -> Catalogue:
    """Answer types with 1, 2 … cores, 2 GiB and 10 pods for each; spot in two zones, on-demand in three."""
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    places = [(SPOT, zone) for zone in zones[:2]] + [(ON_DEMAND, zone) for zone in zones]
    return Catalogue(region="us-east-1", instance_types=tuple(_made_up(cores, places) for cores in range(1, count + 1)))


def _made_up(cores: int, places: list[tuple[str, str]]) -> InstanceType:
    memory = 2 * cores * 1024**3
    labels = {
        INSTANCE_TYPE: f"m{cores}.any",
        ARCH: "amd64",
        OS: "linux",
        "karpenter.k8s.aws/instance-category": "m",
    }
    several = {ZONE: {zone for _, zone in places}, CAPACITY_TYPE: {kind for kind, _ in places}}
    own = [Requirement(key=key, values=frozenset((value,))) for key, value in labels.items()]
    own += [Requirement(key=key, values=frozenset(values)) for key, values in several.items()]
    price = 0.1 * cores + 0.1 * memory / 1e9
    return InstanceType(
        name=f"m{cores}.any",
        requirements=requirements(own),
        capacity=resources({"cpu": 1000 * cores, "memory": memory, "pods": 10 * cores}),
        overhead=resources({"cpu": 100, "memory": 10 << 20}),
        offerings=tuple(Offering(zone=zone, capacity_type=kind, price_usd_per_hour=price) for kind, zone in places),
    )


def documents(name: str) -> list[Document]:
    """Answer a NodePool of everyday types, and the pods of the workload *name*."""
    make, count = WORKLOADS[name]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    wanted = (
        ("kubernetes.io/arch", ["amd64"]),
        (CAPACITY_TYPE, ["spot", "on-demand"]),
        ("karpenter.k8s.aws/instance-category", ["c", "m", "r"]),
    )
    needs = [{"key": key, "operator": "In", "values": values} for key, values in wanted]
    template = {"spec": {"nodeClassRef": reference, "requirements": needs}}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": template},
    }
    return [pool, *make(count)]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload took, and what its plan costs per hour."""

    decode_seconds: float
    plan_seconds: float
    pods: int
    peak_mib: float
    nodes: int
    price: float
    greedy: float
    bound: float

    def line(self, name: str) -> str:
        """Answer it as a line of the table."""
        above = f"{self.price / self.bound:8.3f}" if self.bound else f"{'-':>8}"
        return (
            f"{name:20}{self.decode_seconds:9.2f}{self.plan_seconds:8.2f}{self.pods / self.plan_seconds:9.0f}"
            f"{self.peak_mib:10.0f}{self.nodes:7}{self.price:10.3f}{self.greedy:10.3f}{self.bound:10.3f}{above}\n"
        )


HEAD: Final = (
    f"{'workload':20}{'decode s':>9}{'plan s':>8}{'pods/s':>9}{'peak MiB':>10}{'nodes':>7}{'$/h':>10}{'greedy':>10}"
    f"{'bound':>10}{'÷ bound':>8}\n"
)


def main() -> None:
    """Plan each workload, and print what that took and what it costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("catalogue", help="a file, or made-up")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--greedy", action="store_const", const="Greedy", default="Priced")
    chosen = parser.parse_args()
    seconds: dict[str, float] = {}
    sys.stdout.write(HEAD)
    for name in chosen.workloads or usual(chosen.catalogue):
        if chosen.write is not None:
            (chosen.write / f"{name}.json").write_bytes(encoded(name))
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
            found = own.submit(figures, name, chosen.catalogue, chosen.greedy).result()
        sys.stdout.write(found.line(name))
        sys.stdout.flush()
        seconds[name] = found.plan_seconds
    for kind, exponent in growth(seconds):
        sys.stdout.write(f"{kind}: seconds grow as pods to the power of {exponent:.2f}\n")


def usual(catalogue: str) -> list[str]:
    """Answer the workloads for *catalogue*: Karpenter's own for the types that it made up, else those of everyday."""
    return [name for name, (make, _) in WORKLOADS.items() if (make in (diverse, preferences)) == (catalogue == MADE_UP)]


def encoded(name: str) -> bytes:
    """Answer a workload as an API server would send it."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents(name)})


def figures(name: str, catalogue: str, packing: str) -> Figures:
    """Decode and plan a workload, and take the time."""
    sold = made_up() if catalogue == MADE_UP else decode_catalogue(Path(catalogue).read_bytes())
    options = msgspec.convert({"readiness": "Assumed", "packing": packing}, Options)
    sent = encoded(name)
    began = default_timer()
    cluster = replace(cluster_from_documents([sent], NOW), catalogue=sold)
    decoded = default_timer()
    found = solve(cluster, options=options)
    took = default_timer() - decoded
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    from sim.bound.program import lower_bound  # noqa: PLC0415 - its libraries are no part of the peak

    return Figures(
        decode_seconds=decoded - began,
        plan_seconds=took,
        pods=len(cluster.pods),
        peak_mib=peak,
        nodes=len(found.new_nodes),
        price=found.price_usd_per_hour,
        greedy=found.greedy_usd_per_hour,
        bound=lower_bound(cluster, found, options),
    )


def growth(seconds: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Answer, by kind of workload, the exponent between its smallest and its largest."""
    kinds: dict[str, list[tuple[int, float]]] = {}
    for name, took in seconds.items():
        kind, _, count = name.rpartition("-")
        kinds.setdefault(kind, []).append((int(count), took))
    for kind, some in sorted(kinds.items()):
        (few, briefly), (many, long) = min(some), max(some)
        if many > few:
            yield kind, math.log(long / briefly) / math.log(many / few)


if __name__ == "__main__":
    main()
