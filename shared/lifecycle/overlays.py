"""What NodeOverlays say of themselves: whether they are used, and if not, which other one is in the way."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from shared.model.action import Action, PatchStatus
from shared.model.conditions import conditions_json, restamped, rooted, same_conditions, with_condition
from shared.model.objects import Condition
from shared.model.overlays import NodeOverlay, Verdict

ROOTS: Final = ("ValidationSucceeded",)


def describe_overlays(
    overlays: Iterable[NodeOverlay], verdicts: Mapping[str, Verdict], now: datetime
) -> tuple[Action, ...]:
    """Write each overlay's conditions where they say anything new; one without a verdict stays as it is."""
    return tuple(
        action
        for overlay in sorted(overlays, key=lambda one: one.name)
        if overlay.name in verdicts
        for action in _told(overlay, verdicts[overlay.name], now)
    )


def _told(overlay: NodeOverlay, verdict: Verdict, now: datetime) -> tuple[PatchStatus, ...]:
    conditions = conditions_of(overlay, verdict, now)
    if same_conditions(conditions, overlay.conditions):
        return ()
    body = msgspec.json.encode({"conditions": conditions_json(conditions)}).decode()
    why = verdict[1] or "it is used"
    version = overlay.meta.resource_version
    return (PatchStatus(kind="NodeOverlay", name=overlay.name, resource_version=version, status=body, why=why),)


def conditions_of(overlay: NodeOverlay, verdict: Verdict, now: datetime) -> tuple[Condition, ...]:
    """Answer the overlay's conditions as they are to be."""
    reason, message = verdict
    generation = overlay.meta.generation
    status = "False" if reason else "True"
    some = with_condition(overlay.conditions, ROOTS[0], status, reason, message, now, generation)
    return rooted(restamped(some, ROOTS, generation), ROOTS, now, generation, overlay.meta.created_at)
