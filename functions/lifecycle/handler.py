"""Every minute, and soon again while nodes come or go: each claim and node takes its next steps."""

import os
from typing import TYPE_CHECKING

from functions.trigger import clock, told, trigger_of
from shared import cycle
from shared.ports import World
from shared.world import world_from_environment

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, object], context: "LambdaContext") -> dict[str, object]:
    """Answer a Lambda invocation."""
    return handle(event, world_from_environment(os.environ, context.aws_request_id, clock))


def handle(event: dict[str, object], world: World) -> dict[str, object]:
    """Run one cycle, whatever *event* woke us: the snapshot is the state."""
    with told("lifecycle", event, world):
        report = cycle.lifecycle(world, trigger_of(event))
    return {"actions": len(report.outcomes)}
