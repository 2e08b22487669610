"""Whether the nodes of a NodePool join: `NodeRegistrationHealthy`, from the last four launches that came to an end.

Those that joined are seen, on their claims; those that did not are deleted, so an annotation of the pool remembers them
while they count. It forgets when the pool or its node class is changed: what failed may be mended. Nothing depends on
it, the pool is used all the same.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.lifecycle.liveness import LAUNCH_TIMEOUT, REGISTRATION_TIMEOUT
from shared.lifecycle.machines import View
from shared.model.action import PatchMetadata
from shared.model.conditions import with_condition
from shared.model.labels import NODEPOOL, REGISTRATION_HEALTH
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import Condition, condition, is_true

HEALTHY: Final = "NodeRegistrationHealthy"
LATEST: Final = 4
TOO_MANY: Final = 2
"""So many failures among the `LATEST` are too many."""
_AWAITING: Final = "AwaitingReconciliation"


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The annotation."""

    of: str = ""
    """Generations of the pool and of its node class."""
    since: datetime
    """What came to an end before does not count."""
    failed: dict[str, datetime] = {}
    """When the claims that did not join were given up, by name."""


class _End(msgspec.Struct, frozen=True, kw_only=True, order=True):
    at: datetime
    name: str
    joined: bool


def with_health(conditions: tuple[Condition, ...], pool: NodePool, view: View) -> tuple[Condition, ...]:
    """Set the pool's condition among *conditions*."""
    before, memory = _memory_of(pool), _memory(pool, view)
    known = condition(conditions, HEALTHY) if before is None or before.of == memory.of else None
    latest = _latest(pool, memory, view)
    failed = [one.name for one in latest if not one.joined]
    found = ("Unknown", _AWAITING, "") if known is None else (known.status, known.reason, known.message)
    if len(failed) >= TOO_MANY and found[0] != "False":
        found = ("False", *_why(failed[-1], view))
    elif len(failed) < TOO_MANY and any(one.joined for one in latest):
        found = ("True", "", "")
    return with_condition(conditions, HEALTHY, *found, view.now, pool.meta.generation)


def remember(pool: NodePool, view: View) -> tuple[PatchMetadata, ...]:
    """Write down which claims failed to join, where that is not there yet."""
    memory = _memory(pool, view)
    failed = {one.name: one.at for one in _latest(pool, memory, view) if not one.joined}
    memory = msgspec.structs.replace(memory, failed=failed)
    if memory == _memory_of(pool):
        return ()
    text = msgspec.json.encode(memory).decode()
    why = "how many of its nodes have joined lately"
    return (PatchMetadata(kind="NodePool", name=pool.name, annotations=((REGISTRATION_HEALTH, text),), why=why),)


def _memory(pool: NodePool, view: View) -> Memory:
    """Answer what the pool remembers; nothing, from now on, if it or its class was changed."""
    node_class = next((one for one in view.cluster.node_classes if one.name == pool.node_class.name), None)
    of = f"{pool.meta.generation}/{node_class.meta.generation if node_class is not None else 0}"
    known = _memory_of(pool)
    if known is not None and known.of == of:
        return known
    # Of a pool that never was judged all counts that can be seen.
    return Memory(of=of, since=view.now if known is not None else _beginning(pool, view))


def _beginning(pool: NodePool, view: View) -> datetime:
    return (pool.meta.created_at or view.now) if condition(pool.conditions, HEALTHY) is None else view.now


def _memory_of(pool: NodePool) -> Memory | None:
    try:
        return msgspec.json.decode(pool.meta.annotation(REGISTRATION_HEALTH), type=Memory)
    except msgspec.DecodeError:
        return None


def _latest(pool: NodePool, memory: Memory, view: View) -> list[_End]:
    ends = {_End(at=at, name=name, joined=False) for name, at in memory.failed.items()}
    for claim in view.cluster.node_claims:
        if claim.meta.label(NODEPOOL) == pool.name and not _is_of_another(claim, pool):
            ends.update(end for end in _end_of(claim, view) if end.at > memory.since)
    return sorted(ends)[-LATEST:]


def _is_of_another(claim: NodeClaim, pool: NodePool) -> bool:
    """Whether a pool made it that had the same name."""
    return any(one.kind == "NodePool" and one.uid != pool.meta.uid for one in claim.meta.owners)


def _end_of(claim: NodeClaim, view: View) -> Iterator[_End]:
    known = condition(claim.conditions, "Registered")
    if known is not None and known.status == "True":
        if known.since is not None:
            yield _End(at=known.since, name=claim.name, joined=True)
        return
    over = claim.meta.deleted_at or view.now
    due = _given_up(claim)
    if due is not None and due <= over and not view.may_hide_a_node(claim):
        yield _End(at=due, name=claim.name, joined=False)


def _given_up(claim: NodeClaim) -> datetime | None:
    """Answer when liveness gives up a claim that does not join."""
    launched, registered = (condition(claim.conditions, one) for one in ("Launched", "Registered"))
    is_late = not claim.provider_id and not is_true(claim.conditions, "Launched")
    known, patience = (launched, LAUNCH_TIMEOUT) if is_late else (registered, REGISTRATION_TIMEOUT)
    begun = (known.since if known is not None else None) or claim.meta.created_at
    return begun + patience if begun is not None else None


def _why(name: str, view: View) -> tuple[str, str]:
    claim = next((one for one in view.cluster.node_claims if one.name == name), None)
    launched = condition(claim.conditions, "Launched") if claim is not None and not claim.provider_id else None
    if launched is not None and launched.status != "True":
        return launched.reason, launched.message
    return "RegistrationFailed", f"nodes were launched and did not join, {name} the last: see docs/faults.md"
