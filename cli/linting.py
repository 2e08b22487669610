"""What is wrong with manifests, or is hardly meant so: findings, each with its place and a remedy."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.conversion.accepted import complaints, is_ours, unread
from cli.conversion.convert import convert
from cli.conversion.metadata import ANNOTATIONS, renamed_annotation
from cli.conversion.remarks import Path, Remarks, spelled
from cli.conversion.sources import Written
from cli.conversion.workloads import PODS
from shared.model.catalogue import Catalogue, InstanceType
from shared.model.labels import DO_NOT_DISRUPT, WELL_KNOWN
from shared.model.nodepools import NodePool
from shared.model.requirements import Requirement, Requirements, requirements_from_labels
from shared.model.resources import amount_text, resources
from shared.model.taints import Taint, Toleration
from shared.snapshot.documents import cluster_from_documents

Object = dict[str, Any]
Level: TypeAlias = Literal["error", "warning"]
SHORT: Final = timedelta(hours=1)
"""Nodes that expire sooner spend their lives on starting and draining."""
LEAST: Final = resources({"cpu": 1000, "memory": 512 << 20})
"""No instance of EC2 has less."""
_STRING: Final = "must be of type string"
_NOW: Final = datetime(2024, 1, 1, tzinfo=UTC)
_READ: Final = frozenset((*ANNOTATIONS, DO_NOT_DISRUPT))


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to correct; `error`: the object is refused, or does not do what it says."""

    level: Level
    where: str
    kind: str
    name: str
    field: str
    message: str


def findings(some: Sequence[Written], catalogue: Catalogue | None = None) -> list[Finding]:
    """Answer what is to be said of *some*, in the order in which they were read."""
    found = [finding for one in some for finding in _of_one(one)]
    found += _of_old(some)
    found += _of_pools(some, catalogue)
    places = {id(one): place for place, one in enumerate(some)}
    at = {(one.value["kind"], _name(one.value)): places[id(one)] for one in reversed(some)}
    return sorted(dict.fromkeys(found), key=lambda one: (at.get((one.kind, one.name), 0), _line(one.where), one.field))


def _line(where: str) -> int:
    line = where.rpartition(":")[2]
    return int(line) if line.isdecimal() else 0


def _finding(one: Written, level: Level, path: Path, message: str) -> Finding:
    value = one.value
    return Finding(
        level=level,
        where=one.where(path),
        kind=value["kind"],
        name=_name(value),
        field=spelled(path),
        message=message,
    )


def _name(value: Object) -> str:
    meta = value.get("metadata")
    return str((meta.get("name") if isinstance(meta, dict) else None) or "without a name")


def _of_one(one: Written) -> Iterator[Finding]:
    """Look at *one* alone: its fields, its annotations, its images."""
    if is_ours(one.value):
        for path, close in unread(one.value):
            hint = f"did you mean {close}?" if close else "correct or remove it"
            yield _finding(one, "error", path, f"is no field, so it is silently dropped: {hint}")
        for complaint in complaints(one.value):
            field, _, why = complaint.partition(": ")
            remedy = ': write it in quotes, as "4" or "true"' if _STRING in why else ""
            yield _finding(one, "error", _path(field), f"{why}{remedy}")
        yield from _images(one)
    for path, notes in _annotated(one.value, ()):
        yield from _annotations(one, path, notes)


def _path(field: str) -> Path:
    """Read what `spelled` writes, as far as no key holds a dot."""
    parts: list[str | int] = []
    for part in field.split("."):
        key, *places = part.replace("]", "").split("[")
        parts += [key, *(int(place) for place in places if place.isdecimal())]
    return tuple(parts)


def _images(one: Written) -> Iterator[Finding]:
    spec = one.value.get("spec")
    terms = spec.get("amiSelectorTerms") if isinstance(spec, dict) else None
    for place, term in enumerate(terms if isinstance(terms, list) else ()):
        name = term.get("name") if isinstance(term, dict) else None
        if isinstance(name, str) and name.startswith("ami-"):
            path = ("spec", "amiSelectorTerms", place, "name")
            yield _finding(
                one, "error", path, f"{name} is an image's id, and no image is called so: write `id: {name}`"
            )


def _annotated(value: Any, path: Path) -> Iterator[tuple[Path, Object]]:  # noqa: ANN401 - JSON
    """Iterate over all annotations in *value*: of the object, and of what it makes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "annotations" and path[-1:] == ("metadata",) and isinstance(inner, dict):
                yield (*path, key), inner
            else:
                yield from _annotated(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _annotated(inner, (*path, place))


def _annotations(one: Written, path: Path, notes: Object) -> Iterator[Finding]:
    for key, value in notes.items():
        where, remarks = (*path, key), Remarks()
        now = renamed_annotation(str(key), where, remarks)
        if key in ANNOTATIONS:
            yield _finding(one, "warning", where, f"is the old name of {now}: `joiner convert` writes it")
        yield from (_finding(one, "warning", where, said.message) for said in remarks.said if said.level == "warning")
        if now in _READ and not isinstance(value, str):
            text = str(value).lower()
            yield _finding(
                one, "error", where, f'is no text, which the API server refuses: write it in quotes: "{text}"'
            )


def _of_old(some: Sequence[Written]) -> Iterator[Finding]:
    """Say which are of an older API, and what `joiner convert` would refuse of them."""
    done = convert(some)
    for note in done.notes:
        if note.level != "changed" and note.kind not in PODS:
            level: Level = "error" if note.level == "refused" else "warning"
            yield Finding(
                level=level, where=note.where, kind=note.kind, name=note.name, field=note.field, message=note.message
            )
    for one in some:
        api = str(one.value["apiVersion"])
        if api.partition("/")[0] in ("karpenter.sh", "karpenter.k8s.aws") and not is_ours(one.value):
            yield _finding(one, "error", ("apiVersion",), f"{api} is served no more: `joiner convert` writes it as v1")


def _of_pools(some: Sequence[Written], catalogue: Catalogue | None) -> Iterator[Finding]:
    """Look at pools among each other, and at what could be made for them."""
    written = {_name(one.value): one for one in some if is_ours(one.value) and one.value["kind"] == "NodePool"}
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
            yield _finding(
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
        yield _finding(
            one,
            "warning",
            path,
            f"nodes go after {minutes:g} minutes, whatever budgets say: write 24h or more, or Never",
        )


def _limits(one: Written, pool: NodePool, catalogue: Catalogue | None) -> Iterator[Finding]:
    types = _types_for(pool, catalogue)
    for name, amount in () if pool.limits is None else pool.limits.amounts:
        least = min((kind.capacity[name] for kind in types), default=LEAST[name])
        if 0 < amount < least:
            path = ("spec", "limits", name)
            limit, smallest = amount_text(name, amount), amount_text(name, least)
            yield _finding(
                one,
                "error",
                path,
                f"is {limit}, and the smallest type has {smallest}: nothing can be launched: raise it",
            )


def _types_for(pool: NodePool, catalogue: Catalogue | None) -> tuple[InstanceType, ...]:
    if catalogue is None:
        return ()
    types = catalogue.types_for(pool.node_class.name, pool.name)
    return tuple(kind for kind in types if not kind.requirements.conflict(pool.requirements))


def _taints(one: Written, pool: NodePool, tolerations: Sequence[Sequence[Toleration]]) -> Iterator[Finding]:
    for place, taint in enumerate(pool.taints):
        if taint.effect != "PreferNoSchedule" and not any(_tolerates(some, taint) for some in tolerations):
            path = ("spec", "template", "spec", "taints", place)
            yield _finding(
                one, "warning", path, f"no pod that is read here tolerates {taint}: add a toleration to some"
            )


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
