"""What is wrong with pools among each other, and with what could be made for them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from cli.conversion.accepted import is_ours
from cli.conversion.sources import Written
from cli.conversion.workloads import PODS
from cli.findings import Finding, finding, name_of
from shared.model.catalogue import Catalogue, InstanceType
from shared.model.labels import WELL_KNOWN
from shared.model.nodepools import NodePool
from shared.model.requirements import Requirement, Requirements, requirements_from_labels
from shared.model.resources import amount_text, resources
from shared.model.taints import Taint, Toleration
from shared.snapshot.documents import cluster_from_documents

Object = dict[str, Any]
SHORT: Final = timedelta(hours=1)
"""Nodes that expire sooner spend their lives on starting and draining."""
LEAST: Final = resources({"cpu": 1000, "memory": 512 << 20})
"""No instance of EC2 has less."""
_SIZES: Final = {
    "cpu": ("karpenter.k8s.aws/instance-cpu", 1000),
    "memory": ("karpenter.k8s.aws/instance-memory", 1 << 20),
}
"""The requirement that says how much of a resource a machine has, and its unit."""
_NOW: Final = datetime(2024, 1, 1, tzinfo=UTC)


def of_pools(some: Sequence[Written], catalogue: Catalogue | None) -> Iterator[Finding]:
    """Look at pools among each other, and at what could be made for them."""
    written = {name_of(one.value): one for one in some if is_ours(one.value) and one.value["kind"] == "NodePool"}
    cluster = cluster_from_documents([one.value for one in written.values()], _NOW)
    pools = sorted(cluster.node_pools, key=lambda pool: (-pool.weight, pool.name))
    tolerations = [tuple(_tolerations(pod)) for one in some for pod in _pods(one.value)]
    for place, pool in enumerate(pools):
        one = written[pool.name]
        yield from _expiry(one, pool)
        yield from _limits(one, pool, catalogue)
        if tolerations:
            yield from _taints(one, pool, tolerations)
        shadow = next((other for other in pools[:place] if _shadows(other, pool)), None)
        if shadow is not None:
            yield finding(
                one,
                "warning",
                ("spec", "weight"),
                f"NodePool {shadow.name} comes first, takes every pod that this one takes, and has no limits, so this "
                "one is never used: raise the weight, or narrow the other",
            )


def _expiry(one: Written, pool: NodePool) -> Iterator[Finding]:
    if pool.expire_after is not None and pool.expire_after < SHORT:
        path = ("spec", "template", "spec", "expireAfter")
        minutes = pool.expire_after.total_seconds() / 60
        yield finding(
            one,
            "warning",
            path,
            f"nodes go after {minutes:g} minutes, whatever budgets say: write 24h or more, or Never",
        )


def _limits(one: Written, pool: NodePool, catalogue: Catalogue | None) -> Iterator[Finding]:
    types = _types_for(pool, catalogue)
    for name, amount in () if pool.limits is None else pool.limits.amounts:
        least = min((kind.capacity[name] for kind in types), default=max(LEAST[name], _asked(pool, name)))
        if 0 < amount < least:
            path = ("spec", "limits", name)
            limit, smallest = amount_text(name, amount), amount_text(name, least)
            yield finding(
                one,
                "error",
                path,
                f"is {limit}, and the smallest type has {smallest}: nothing can be launched: raise it",
            )


def _asked(pool: NodePool, name: str) -> int:
    """Answer how much of *name* each machine has that *pool* asks for, as far as it says."""
    key, unit = _SIZES.get(name, ("", 0))
    one = pool.requirements[key]
    values = [] if one.complement else [int(value) for value in one.values if value.isdecimal()]
    return unit * max(min(values, default=0), one.gte or 0)


def _types_for(pool: NodePool, catalogue: Catalogue | None) -> tuple[InstanceType, ...]:
    if catalogue is None:
        return ()
    types = catalogue.types_for(pool.node_class.name, pool.name)
    return tuple(kind for kind in types if not kind.requirements.conflict(pool.requirements))


def _taints(one: Written, pool: NodePool, tolerations: Sequence[Sequence[Toleration]]) -> Iterator[Finding]:
    for place, taint in enumerate(pool.taints):
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(some, taint) for some in tolerations):
            path = ("spec", "template", "spec", "taints", place)
            yield finding(one, "warning", path, f"no pod that is read here tolerates {taint}: add a toleration to some")


def _tolerates(some: Iterable[Toleration], taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in some)


def _pods(value: Object) -> Iterator[Object]:
    """Answer the specification of the pods that *value* is, or makes; a DaemonSet's follow nodes, and ask for none."""
    kind = value["kind"]
    inner: Any = value
    for key in (*PODS.get(kind, ()), "spec"):
        inner = inner.get(key) if isinstance(inner, dict) else None
    if kind in PODS and kind != "DaemonSet" and isinstance(inner, dict):
        yield inner


def _tolerations(pod: Object) -> Iterator[Toleration]:
    some = pod.get("tolerations")
    for one in some if isinstance(some, list) else ():
        if isinstance(one, dict):
            texts = {name: str(one.get(name) or "") for name in ("key", "operator", "value", "effect")}
            yield Toleration(**texts | {"operator": texts["operator"] or "Equal"})


def _shadows(first: NodePool, other: NodePool) -> bool:
    """Whether *first*, which is asked before, takes whatever *other* takes."""
    if first.limits is not None or first.replicas is not None or other.replicas is not None:
        return False
    mine = first.requirements & requirements_from_labels(first.labels)
    theirs = other.requirements & requirements_from_labels(other.labels)
    return (
        all(taint in other.taints for taint in first.taints)
        and all(_holds(one, theirs) for one in mine)
        and all(one.key in WELL_KNOWN or one.key in mine for one in theirs)
    )


def _holds(one: Requirement, some: Requirements) -> bool:
    """Whether *one* allows all that *some* allow."""
    other = some[one.key]
    return one.key in some and replace(one & other, min_values=None) == replace(other, min_values=None)
