"""Status conditions as an algebra of values, by the conventions of Karpenter's condition library.

lastTransitionTime moves with the status only, never with reason or message. A root condition is computed from its
dependents. Lists are sorted by type, so that equal conditions are equal values.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.model.objects import Condition, condition
from shared.model.units import instant_text

CLAIM_ROOTS: Final = ("Initialized", "Launched", "Registered")
POOL_ROOTS: Final = ("NodeClassReady", "ValidationSucceeded")
READY: Final = "Ready"
_AWAITING: Final = "AwaitingReconciliation"


def with_condition(
    conditions: Iterable[Condition],
    type_: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    generation: int = 0,
) -> tuple[Condition, ...]:
    """Set one condition, sorted by type; where *reason* is empty it is the type's name."""
    rest = without_condition(conditions := tuple(conditions), type_)
    old = condition(conditions, type_)
    kept = old is not None and old.status == status and old.since is not None
    new = Condition(
        type=type_,
        status=status,
        reason=reason or type_,
        message=message,
        since=old.since if kept and old is not None else now,
        observed_generation=generation,
    )
    return _sorted((*rest, new))


def without_condition(conditions: Iterable[Condition], type_: str) -> tuple[Condition, ...]:
    """Leave one condition out; sorted by type."""
    return _sorted(one for one in conditions if one.type != type_)


def rooted(
    conditions: Iterable[Condition],
    roots: Iterable[str],
    now: datetime,
    generation: int = 0,
    created_at: datetime | None = None,
) -> tuple[Condition, ...]:
    """Add the *roots* that are missing, as Unknown since *created_at*, and compute `Ready` from all of them.

    Ready is False if a root is False at this *generation*, True if all are True at it, else Unknown; its message
    names those that are not True.
    """
    some = tuple(conditions)
    names = sorted(roots)
    for name in names:
        if condition(some, name) is None:
            start = created_at or now
            some = with_condition(some, name, "Unknown", _AWAITING, "", start, generation)
    current = {one.type: one.status if one.observed_generation >= generation else "Unknown" for one in some}
    poor = [name for name in names if current[name] != "True"]
    message = ", ".join(f"{name}={current[name]}" for name in poor)
    if not poor:
        return with_condition(some, READY, "True", "", "", now, generation)
    failed = any(current[name] == "False" for name in poor)
    status, reason = ("False", "UnhealthyDependents") if failed else ("Unknown", "ReconcilingDependents")
    return with_condition(some, READY, status, reason, message, now, generation)


def restamped(conditions: Iterable[Condition], types: Iterable[str], generation: int) -> tuple[Condition, ...]:
    """Let those of *types* that are decided, True or False, speak for *generation*: they are not decided again."""
    wanted = frozenset(types)
    return _sorted(
        msgspec.structs.replace(one, observed_generation=generation)
        if one.type in wanted and one.status != "Unknown"
        else one
        for one in conditions
    )


def conditions_json(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Write `status.conditions`, ready for JSON; instants to the second."""
    return [_wire(one) for one in _sorted(conditions)]


def same_conditions(one: Iterable[Condition], other: Iterable[Condition]) -> bool:
    """Whether both would be written alike, in whatever order."""
    return conditions_json(one) == conditions_json(other)


def _wire(one: Condition) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
    if one.since is not None:
        wire["lastTransitionTime"] = instant_text(one.since)
    if one.observed_generation:
        wire["observedGeneration"] = one.observed_generation
    return wire


def _sorted(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    return tuple(sorted(conditions, key=lambda one: (one.type, one.status, one.reason)))


def transitions(old: Iterable[Condition], new: Iterable[Condition]) -> tuple[tuple[Condition, str], ...]:
    """Answer the conditions whose status is another one now, with what it was (`Unknown` if it was not there)."""
    before: Mapping[str, str] = {one.type: one.status for one in old}
    return tuple(
        (one, before.get(one.type, "Unknown")) for one in _sorted(new) if one.status != before.get(one.type, "Unknown")
    )
