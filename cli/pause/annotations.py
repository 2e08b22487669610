"""Pauses are annotations of the Namespace kube-system and of NodePools, where the functions read them."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from cli.cluster.live_cluster import read_live_cluster
from cli.cluster.writable_client import ReadWriteKube
from cli.terminal.errors import InputError
from shared.errors import Conflict, Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.pause import CLUSTER_NAMESPACE, WORDS_BY_ANNOTATION, Pause, format_pauses, parse_pauses
from shared.ports.kubernetes import Kube
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

AnnotationChange: TypeAlias = Callable[[str, str], str]
"""The key and text of an annotation -> its new text; "" removes it."""
PAUSE_LISTINGS: Final = tuple(kind for kind in RESOURCE_KINDS if kind.field in ("node_pools", "namespaces"))
MAX_WRITE_ATTEMPTS: Final = 5
"""Number of attempts if other clients write the object at the same time."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


def read_pause_targets(kube: ReadWriteKube, cluster_name: str, now: datetime) -> ClusterSnapshot:
    """Return the objects that carry pauses, as of the API server's time if it is known.

    Raises:
        InputError: they cannot be read.
    """
    cluster, notes = read_live_cluster(kube, now, cluster_name, PAUSE_LISTINGS)
    messages = [
        *notes,
        *(f"{problem.kind} {problem.name}: {problem.message}" for problem in cluster.problems if problem.name == "*"),
    ]
    if messages:
        raise InputError("; ".join(messages))
    return msgspec.structs.replace(cluster, taken_at=kube.answered_at or now)


def choose_pause_targets(pool_names: Iterable[str], cluster: ClusterSnapshot) -> list[str]:
    """Return the NodePools in *pool_names*, in order; "" (the whole cluster) if there are none.

    Raises:
        InputError: there is no such NodePool.
    """
    names = list(dict.fromkeys(pool_names))
    existing_names = sorted(pool.name for pool in cluster.node_pools)
    for name in names:
        if name not in existing_names:
            raise InputError(
                f"NodePool {name} does not exist; existing NodePools: {', '.join(existing_names) or 'none'}"
            )
    return names or [""]


def write_pauses(
    kube: Kube, pool: str, change: AnnotationChange, annotations: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Apply *change* to the annotations of NodePool *pool*, or of the whole cluster if *pool* is "".

    *annotations* are set as well.

    Raises:
        InputError: they cannot be read or written, or their current text cannot be parsed.
    """
    kind, name = ("NodePool", pool) if pool else ("Namespace", CLUSTER_NAMESPACE)
    path = f"/apis/karpenter.sh/v1/nodepools/{pool}" if pool else f"/api/v1/namespaces/{CLUSTER_NAMESPACE}"
    for attempts_left in reversed(range(MAX_WRITE_ATTEMPTS)):
        try:
            meta = msgspec.json.decode(kube.read(path), type=_Object).metadata
            kube.patch(path, _build_patch(meta, change, annotations))
        except Conflict:
            if not attempts_left:
                raise InputError(f"{kind} {name}: other clients keep changing it: try again") from None
        except ValueError as error:
            raise InputError(f"{kind} {name}: {error}: `joiner resume` removes the pause") from None
        except Fault as fault:
            raise InputError(f"{kind} {name}: {fault}: you need the permissions get and patch on it") from None
        else:
            return


def build_pause_change(hold: Pause, now: datetime) -> AnnotationChange:
    """Return the change that adds *hold*, replacing earlier pauses of the same reasons and expired ones."""

    def apply_change(key: str, text: str) -> str:
        own_reasons = tuple(reason for reason in hold.reasons if reason in WORDS_BY_ANNOTATION[key])
        if not own_reasons:
            return text
        other_holds = drop_reasons(_parse_holds(key, text), own_reasons, now)
        return format_pauses((*other_holds, msgspec.structs.replace(hold, reasons=own_reasons)))

    return apply_change


def build_resume_change(reasons: Iterable[str], now: datetime) -> AnnotationChange:
    """Return the change that removes the pauses of *reasons*; empty: all pauses, even if they cannot be parsed."""
    reason_names = tuple(reasons)

    def apply_change(key: str, text: str) -> str:
        return format_pauses(drop_reasons(_parse_holds(key, text), reason_names, now)) if reason_names else ""

    return apply_change


def drop_reasons(holds: Iterable[Pause], reasons: Iterable[str], now: datetime) -> tuple[Pause, ...]:
    """Return *holds* without *reasons* and without pauses that have expired at *now*."""
    dropped_reasons = frozenset(reasons)
    remaining_holds = (
        msgspec.structs.replace(hold, reasons=tuple(word for word in hold.reasons if word not in dropped_reasons))
        for hold in holds
        if hold.is_active(now)
    )
    return tuple(hold for hold in remaining_holds if hold.reasons)


def _parse_holds(key: str, text: str) -> tuple[Pause, ...]:
    try:
        return parse_pauses(text, WORDS_BY_ANNOTATION[key])
    except ValueError as error:
        raise ValueError(f"metadata.annotations[{key}]: {error}") from None


def _build_patch(meta: _Meta, change: AnnotationChange, more_annotations: Mapping[str, str]) -> bytes:
    annotations: dict[str, Any] = dict(more_annotations)
    for key in WORDS_BY_ANNOTATION:
        before = meta.annotations.get(key, "")
        after = change(key, before)
        if after != before:
            annotations[key] = after or None
    return json.dumps({"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}}).encode()
