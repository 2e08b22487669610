"""Conditions and timestamps of Kubernetes objects, and predicates on pods."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sim.cluster.controller_runtime.informer import Obj


def format_timestamp(now: datetime) -> str:
    """Return *now* in the format of the Kubernetes API, in whole seconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """Parse a timestamp written by `format_timestamp` or another client."""
    return datetime.fromisoformat(text)


def find_condition(obj: Mapping[str, Any], condition_type: str) -> Obj | None:
    """Return the condition of *obj* with type *condition_type*, None if there is none."""
    for entry in (obj.get("status") or {}).get("conditions") or []:
        if entry["type"] == condition_type:
            return dict(entry)
    return None


def is_true(obj: Mapping[str, Any], condition_type: str) -> bool:
    """Return whether the condition *condition_type* of *obj* is True."""
    entry = find_condition(obj, condition_type)
    return entry is not None and entry.get("status") == "True"


def with_conditions(obj: Obj, updates: Iterable[Obj], now: datetime) -> list[Obj]:
    """Return the conditions of *obj*, updated with *updates*; lastTransitionTime changes only if the status changes."""
    conditions = {entry["type"]: entry for entry in (obj.get("status") or {}).get("conditions") or []}
    for entry in updates:
        previous = conditions.get(entry["type"]) or {}
        since = previous.get("lastTransitionTime") if previous.get("status") == entry["status"] else None
        conditions[entry["type"]] = {**entry, "lastTransitionTime": since or format_timestamp(now)}
    return list(conditions.values())


def is_active(pod: Obj) -> bool:
    """Return whether *pod* has neither finished nor is being deleted."""
    return not is_terminal(pod) and not pod["metadata"].get("deletionTimestamp")


def is_terminal(pod: Obj) -> bool:
    """Return whether *pod* has finished."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether *pod* is Ready."""
    return is_true(pod, "Ready")
