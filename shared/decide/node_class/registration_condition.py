"""The condition NodeRegistrationHealthy of an EC2NodeClass whose launches may pause."""

from datetime import datetime
from typing import Final

from shared.model.core.conditions import with_condition, without_condition
from shared.model.core.labels import PAUSE_AFTER_FAILURES
from shared.model.core.metadata import Condition, find_condition
from shared.model.karpenter.health.launch_failures import (
    LAUNCHES_PAUSED_REASON,
    find_launch_pause,
    parse_failure_limit,
)
from shared.model.karpenter.node_class import EC2NodeClass

NODE_REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
"""As on NodePools in Karpenter. Ready does not depend on it."""


def with_registration_condition(
    conditions: tuple[Condition, ...], node_class: EC2NodeClass, now: datetime
) -> tuple[Condition, ...]:
    """Set the condition among *conditions*; remove it if the user has not requested pauses."""
    if not node_class.meta.get_annotation(PAUSE_AFTER_FAILURES):
        has_condition = find_condition(conditions, NODE_REGISTRATION_HEALTHY) is not None
        return without_condition(conditions, NODE_REGISTRATION_HEALTHY) if has_condition else conditions
    status, reason, message = _describe_state(node_class, now)
    generation = node_class.meta.generation
    return with_condition(conditions, NODE_REGISTRATION_HEALTHY, status, reason, message, now, generation)


def _describe_state(node_class: EC2NodeClass, now: datetime) -> tuple[str, str, str]:
    """Return status, reason and message of the condition."""
    try:
        parse_failure_limit(node_class)
    except ValueError as error:
        return "False", "InvalidAnnotation", f"{error}; launches do not pause"
    pause = find_launch_pause(node_class, (), now)
    return ("True", "", "") if pause is None else ("False", LAUNCHES_PAUSED_REASON, pause.describe_cause())
