"""Conditions, instants and what they say of an object."""

from collections.abc import Iterable
from datetime import UTC, datetime

from sim.cluster.controllers.informer import Obj


def text_of(now: datetime) -> str:
    """Spell *now* as the API does, in whole seconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant_of(text: str) -> datetime:
    """Read what `text_of` or another client wrote."""
    return datetime.fromisoformat(text)


def condition(obj: Obj, kind: str) -> Obj | None:
    """Answer the condition of *obj* called *kind*."""
    for entry in (obj.get("status") or {}).get("conditions") or []:
        if entry["type"] == kind:
            return dict(entry)
    return None


def is_true(obj: Obj, kind: str) -> bool:
    """Say whether condition *kind* of *obj* is True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def with_conditions(obj: Obj, fresh: Iterable[Obj], now: datetime) -> list[Obj]:
    """Answer the conditions of *obj* with *fresh* put in place; lastTransitionTime moves only with the status."""
    conditions = {entry["type"]: entry for entry in (obj.get("status") or {}).get("conditions") or []}
    for entry in fresh:
        old = conditions.get(entry["type"]) or {}
        since = old.get("lastTransitionTime") if old.get("status") == entry["status"] else None
        conditions[entry["type"]] = {**entry, "lastTransitionTime": since or text_of(now)}
    return list(conditions.values())


def is_active(pod: Obj) -> bool:
    """Say whether *pod* neither finished nor is being deleted."""
    return not is_terminal(pod) and not pod["metadata"].get("deletionTimestamp")


def is_terminal(pod: Obj) -> bool:
    """Say whether *pod* has finished."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def is_ready(pod: Obj) -> bool:
    """Say whether *pod* is Ready."""
    return is_true(pod, "Ready")
