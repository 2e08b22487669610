"""Operations on status conditions, by the conventions of Karpenter's condition library.

lastTransitionTime changes with the status only, never with reason or message. A root condition is computed from its
dependents. Lists are sorted by type, so that equal conditions are equal values.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import msgspec

from shared.model.core.metadata import Condition, ObjectMeta, find_condition
from shared.model.core.units import format_instant

NODE_CLAIM_ROOTS: Final = ("Initialized", "Launched", "Registered")
NODE_POOL_ROOTS: Final = ("NodeClassReady", "ValidationSucceeded")
READY: Final = "Ready"
AWAITING_RECONCILIATION: Final = "AwaitingReconciliation"


def with_condition(
    conditions: Iterable[Condition],
    type_: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    generation: int = 0,
) -> tuple[Condition, ...]:
    """Return *conditions* with one condition set, sorted by type; an empty *reason* becomes the type's name."""
    all_conditions = tuple(conditions)
    old = find_condition(all_conditions, type_)
    is_status_unchanged = old is not None and old.status == status and old.since is not None
    new = Condition(
        type=type_,
        status=status,
        reason=reason or type_,
        message=message,
        since=old.since if is_status_unchanged and old is not None else now,
        observed_generation=generation,
    )
    if new == old:
        return _sort_conditions(all_conditions)
    return _sort_conditions((*(item for item in all_conditions if item.type != type_), new))


def without_condition(conditions: Iterable[Condition], type_: str) -> tuple[Condition, ...]:
    """Return *conditions* without the one of type *type_*, sorted by type."""
    return _sort_conditions(item for item in conditions if item.type != type_)


def with_root_conditions(
    conditions: Iterable[Condition],
    roots: Iterable[str],
    now: datetime,
    generation: int = 0,
    created_at: datetime | None = None,
) -> tuple[Condition, ...]:
    """Add the missing *roots*, as Unknown since *created_at*, and compute `Ready` from all of them.

    Ready is False if a root is False at this *generation*, True if all are True at it, else Unknown; its message names
    the roots that are not True.
    """
    all_conditions = tuple(conditions)
    names = sorted(roots)
    for name in names:
        if find_condition(all_conditions, name) is None:
            since = created_at or now
            all_conditions = with_condition(
                all_conditions, name, "Unknown", AWAITING_RECONCILIATION, "", since, generation
            )
    status_by_type = {
        item.type: item.status if item.observed_generation >= generation else "Unknown" for item in all_conditions
    }
    not_true = [name for name in names if status_by_type[name] != "True"]
    message = ", ".join(f"{name}={status_by_type[name]}" for name in not_true)
    if not not_true:
        return with_condition(all_conditions, READY, "True", "", "", now, generation)
    has_failed = any(status_by_type[name] == "False" for name in not_true)
    status, reason = ("False", "UnhealthyDependents") if has_failed else ("Unknown", "ReconcilingDependents")
    return with_condition(all_conditions, READY, status, reason, message, now, generation)


def with_observed_generation(
    conditions: Iterable[Condition], types: Iterable[str], generation: int
) -> tuple[Condition, ...]:
    """Set the observed generation of the conditions of *types* that are True or False, without a new evaluation."""
    type_set = frozenset(types)
    return _sort_conditions(
        msgspec.structs.replace(item, observed_generation=generation)
        if item.type in type_set and item.status != "Unknown"
        else item
        for item in conditions
    )


def with_current_root_conditions(
    conditions: Iterable[Condition], roots: Collection[str], now: datetime, meta: ObjectMeta
) -> tuple[Condition, ...]:
    """Return *conditions* with the *roots* at the generation of *meta*, and `Ready` computed from them."""
    current_conditions = with_observed_generation(conditions, roots, meta.generation)
    return with_root_conditions(current_conditions, roots, now, meta.generation, meta.created_at)


def encode_conditions(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Return `status.conditions`, ready for JSON; instants have whole seconds."""
    return [_encode_condition(item) for item in _sort_conditions(conditions)]


def has_equal_conditions(first: Iterable[Condition], second: Iterable[Condition]) -> bool:
    """Return whether both would be encoded equally, in any order."""
    first_conditions, second_conditions = tuple(first), tuple(second)
    return first_conditions == second_conditions or (
        encode_conditions(first_conditions) == encode_conditions(second_conditions)
    )


def _encode_condition(item: Condition) -> dict[str, Any]:
    encoded: dict[str, Any] = {"type": item.type, "status": item.status, "reason": item.reason, "message": item.message}
    if item.since is not None:
        encoded["lastTransitionTime"] = format_instant(item.since)
    if item.observed_generation:
        encoded["observedGeneration"] = item.observed_generation
    return encoded


def _sort_conditions(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    all_conditions = tuple(conditions)
    for first, second in pairwise(all_conditions):
        if first.type >= second.type:
            key = attrgetter("type", "status", "reason")
            return tuple(sorted(all_conditions, key=key))
    return all_conditions  # nearly always: it is called several times for each NodeClaim in each run


def find_transitions(old: Iterable[Condition], new: Iterable[Condition]) -> tuple[tuple[Condition, str], ...]:
    """Return the conditions with a changed status, with the old status (`Unknown` if the condition is new)."""
    old_status_by_type: Mapping[str, str] = {item.type: item.status for item in old}
    return tuple(
        (item, old_status_by_type.get(item.type, "Unknown"))
        for item in _sort_conditions(new)
        if item.status != old_status_by_type.get(item.type, "Unknown")
    )
