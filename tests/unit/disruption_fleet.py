"""A fleet of nodes with their claims and pods, for tests of what is disrupted: each with the fewest words."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from shared.disruption.candidates import Blocked
from shared.disruption.scope import DEFAULT
from shared.disruption.sweep import Sweep, sweep
from shared.disruption.terms import Terms
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS, NODEPOOL, ZONE
from shared.model.nodepools import Budget, NodePool
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition, Meta, Owner, pairs
from shared.model.pods import Pod, PodDisruptionBudget
from shared.model.selectors import selector
from shared.scheduling.placement import Options
from tests.unit.catalogues import NOW, claimed, instance_type, node, pod, pool, world

Machine = tuple[Node, NodeClaim, tuple[Pod, ...]]
CPUS = (2, 4, 8, 16)
TYPES = tuple(instance_type(f"m.{cpu:02d}", cpu) for cpu in CPUS)
BOTH = tuple(instance_type(f"m.{cpu:02d}", cpu, capacity_types=("spot", "on-demand")) for cpu in CPUS)
MANY_SPOT = tuple(
    instance_type(f"m{letter}.{cpu:02d}", cpu, capacity_types=("spot",), price=cpu * 0.05 + number * 0.001)
    for number, letter in enumerate("abcdefgh")
    for cpu in CPUS
)
OPTIONS = Options()
FREE = pool(budgets=())
STAGES = ("Launched", "Registered", "Initialized", "Consolidatable")
REPLICA_SET = Owner(api_version="apps/v1", kind="ReplicaSet", name="web", uid="rs")


def true(*types: str, reason: str = "") -> tuple[Condition, ...]:
    return tuple(Condition(type=one, status="True", reason=reason or one, since=NOW) for one in types)


def machine(
    name: str,
    *pods: Pod,
    cpu: int = 4,
    zone: str = "a",
    capacity_type: str = "on-demand",
    kind: str = "",
    own: str = "default",
    conditions: tuple[Condition, ...] = true(*STAGES),
    annotations: Mapping[str, str] | None = None,
    **fields: object,
) -> Machine:
    """A node in use and its pods, which are bound to it."""
    labels = {INSTANCE_TYPE: kind or f"m.{cpu:02d}", CAPACITY_TYPE: capacity_type, ZONE: zone, NODECLASS: "default"}
    some = node(name, cpu=str(cpu), memory=f"{4 * cpu}Gi", labels=labels, conditions=true("Ready"))
    there, claim = claimed(some)
    claim = replace(claim, conditions=conditions, **fields)
    notes = pairs(annotations or {})
    there = replace(there, meta=replace(there.meta, annotations=notes, labels=_in_pool(there.meta, own)))
    claim = replace(claim, meta=replace(claim.meta, uid=f"uid-{name}", labels=_in_pool(claim.meta, own)))
    return there, claim, tuple(_bound(one, name) for one in pods)


def _in_pool(meta: Meta, own: str) -> tuple[tuple[str, str], ...]:
    return pairs(dict(meta.labels) | {NODEPOOL: own})


def _bound(one: Pod, name: str) -> Pod:
    return replace(one, node_name=name, phase="Running", conditions=())


def fleet(*machines: Machine, pools: Iterable[NodePool] = (FREE,), types: object = TYPES, **more: object) -> Cluster:
    pods = tuple(one for _, _, some in machines for one in some) + tuple(more.pop("pods", ()))  # type: ignore[arg-type]
    return world(
        *sorted(pods, key=lambda one: one.name),
        types=types,  # type: ignore[arg-type]
        node_pools=tuple(pools),
        nodes=tuple(sorted((one for one, _, _ in machines), key=lambda one: one.name)),
        node_claims=tuple(sorted((one for _, one, _ in machines), key=lambda one: one.name)),
        **more,
    )


def swept(cluster: Cluster, terms: Terms = DEFAULT, **more: object) -> Sweep:
    return sweep(cluster, options=OPTIONS, terms=terms, **more)  # type: ignore[arg-type]


def gone(found: Sweep) -> list[tuple[str, list[str], list[str]]]:
    """By command: the method, the nodes that go, and the types that the replacements may be."""
    return [
        (
            one.method,
            sorted(one.nodes()),
            [kind for made in one.replacements for kind in sorted(made.claim.requirements[INSTANCE_TYPE].values)],
        )
        for one in found.commands
    ]


def verdict(found: Sweep, name: str) -> tuple[str, str, str]:
    one = next(one for one in found.verdicts if one.node == name)
    return one.verdict, one.reason, one.message


def guard(name: str, labels: Mapping[str, str], allowed: int, **more: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        meta=Meta(name=name, namespace="shop"),
        selector=selector(dict(labels)),
        disruptions_allowed=allowed,
        **more,  # type: ignore[arg-type]
    )


def web(name: str, cpu: str = "1", **more: object) -> Pod:
    """A pod of the workload `web`."""
    return pod(name, cpu, owners=(REPLICA_SET,), **({"labels": {"app": "web"}} | more))  # type: ignore[arg-type]


def percent(nodes: str, **more: object) -> NodePool:
    """A pool with one budget."""
    return pool(budgets=(Budget(nodes=nodes, **more),))  # type: ignore[arg-type]


__all__ = ["Blocked", "fleet", "gone", "guard", "machine", "percent", "swept", "verdict", "web"]
