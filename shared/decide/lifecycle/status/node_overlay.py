"""Status conditions of NodeOverlays: whether they are used and, if not, which other overlay conflicts with them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from shared.model.core.conditions import (
    encode_conditions,
    has_equal_conditions,
    with_condition,
    with_current_root_conditions,
)
from shared.model.core.metadata import Condition
from shared.model.decisions.action import Action, PatchStatus
from shared.model.karpenter.node_overlay import NodeOverlay, OverlayVerdict

OVERLAY_ROOT_CONDITIONS: Final = ("ValidationSucceeded",)


def describe_node_overlays(
    overlays: Iterable[NodeOverlay], verdicts: Mapping[str, OverlayVerdict], now: datetime
) -> tuple[Action, ...]:
    """Return a status patch for each overlay whose conditions change.

    An overlay without a verdict is left unchanged.
    """
    return tuple(
        action
        for overlay in sorted(overlays, key=lambda overlay: overlay.name)
        if overlay.name in verdicts
        for action in _build_status_patches(overlay, verdicts[overlay.name], now)
    )


def _build_status_patches(overlay: NodeOverlay, verdict: OverlayVerdict, now: datetime) -> tuple[PatchStatus, ...]:
    conditions = build_overlay_conditions(overlay, verdict, now)
    if has_equal_conditions(conditions, overlay.conditions):
        return ()
    body = msgspec.json.encode({"conditions": encode_conditions(conditions)}).decode()
    message = verdict[1] or "a NodePool uses it"
    version = overlay.meta.resource_version
    return (PatchStatus(kind="NodeOverlay", name=overlay.name, resource_version=version, status=body, message=message),)


def build_overlay_conditions(overlay: NodeOverlay, verdict: OverlayVerdict, now: datetime) -> tuple[Condition, ...]:
    """Return the overlay's new conditions."""
    reason, message = verdict
    generation = overlay.meta.generation
    status = "False" if reason else "True"
    conditions = with_condition(
        overlay.conditions, OVERLAY_ROOT_CONDITIONS[0], status, reason, message, now, generation
    )
    return with_current_root_conditions(conditions, OVERLAY_ROOT_CONDITIONS, now, overlay.meta)
