"""Pauses are written where the functions read them: annotations of the Namespace kube-system, and of NodePools."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from cli.files import InputError
from cli.live import live_cluster
from cli.writing import WritingKube
from shared.errors import Conflict, Fault
from shared.model.cluster import Cluster
from shared.model.holds import HOME, WORDS, Hold, holds_from, holds_text
from shared.ports import Kube
from shared.snapshot.kinds import LISTINGS

Change: TypeAlias = Callable[[str, str], str]
"""An annotation's key and text -> what it is to be; "" removes it."""
SEEN: Final = tuple(one for one in LISTINGS if one.field in ("node_pools", "namespaces"))
TRIES: Final = 5
"""So often somebody may write in between."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


def seen(kube: WritingKube, where: str, now: datetime) -> Cluster:
    """Answer what pauses are written on, at the API server's instant if it tells its own.

    Raises:
        InputError: it cannot be seen.
    """
    cluster, notes = live_cluster(kube, now, where, SEEN)
    told = [*notes, *(f"{one.kind} {one.name}: {one.message}" for one in cluster.problems if one.name == "*")]
    if told:
        raise InputError("; ".join(told))
    return msgspec.structs.replace(cluster, taken_at=kube.answered_at or now)


def places(chosen: Iterable[str], cluster: Cluster) -> list[str]:
    """Answer the NodePools that are *chosen*, in order; "", which is the whole cluster, where none is.

    Raises:
        InputError: there is no such NodePool.
    """
    names = list(dict.fromkeys(chosen))
    known = sorted(one.name for one in cluster.node_pools)
    for name in names:
        if name not in known:
            raise InputError(f"NodePool {name}: there is none: known are {', '.join(known) or 'none'}")
    return names or [""]


def write(kube: Kube, pool: str, change: Change) -> None:
    """Make *change* of the annotations of NodePool *pool*, or of the whole cluster's where that is "".

    Raises:
        InputError: it cannot be read or written, or what is there cannot be read.
    """
    kind, name = ("NodePool", pool) if pool else ("Namespace", HOME)
    path = f"/apis/karpenter.sh/v1/nodepools/{pool}" if pool else f"/api/v1/namespaces/{HOME}"
    for left in reversed(range(TRIES)):
        try:
            meta = msgspec.json.decode(kube.read(path), type=_Object).metadata
            kube.patch(path, _patch(meta, change))
        except Conflict:
            if not left:
                raise InputError(f"{kind} {name}: somebody else writes it all the time: try again") from None
        except ValueError as error:
            raise InputError(f"{kind} {name}: {error}: `joiner resume` clears it") from None
        except Fault as fault:
            raise InputError(f"{kind} {name}: {fault}: ask for the right to get and patch it") from None
        else:
            return


def added(hold: Hold, now: datetime) -> Change:
    """Answer the change that holds what *hold* says, instead of what was said of the same before, or is over."""

    def change(key: str, text: str) -> str:
        mine = tuple(one for one in hold.what if one in WORDS[key])
        if not mine:
            return text
        kept = without(_holds(key, text), mine, now)
        return holds_text((*kept, msgspec.structs.replace(hold, what=mine)))

    return change


def taken_back(what: Iterable[str], now: datetime) -> Change:
    """Answer the change that holds nothing of *what* any more; empty: nothing at all, whether it can be read or not."""
    some = tuple(what)

    def change(key: str, text: str) -> str:
        return holds_text(without(_holds(key, text), some, now)) if some else ""

    return change


def without(holds: Iterable[Hold], what: Iterable[str], now: datetime) -> tuple[Hold, ...]:
    """Answer *holds* as far as they count at *now* and are not about *what*."""
    gone = frozenset(what)
    left = (
        msgspec.structs.replace(one, what=tuple(word for word in one.what if word not in gone))
        for one in holds
        if one.counts(now)
    )
    return tuple(one for one in left if one.what)


def _holds(key: str, text: str) -> tuple[Hold, ...]:
    try:
        return holds_from(text, WORDS[key])
    except ValueError as error:
        raise ValueError(f"metadata.annotations[{key}]: {error}") from None


def _patch(meta: _Meta, change: Change) -> bytes:
    said: dict[str, Any] = {}
    for key in WORDS:
        before = meta.annotations.get(key, "")
        after = change(key, before)
        if after != before:
            said[key] = after or None
    return json.dumps({"metadata": {"resourceVersion": meta.resource_version, "annotations": said}}).encode()
