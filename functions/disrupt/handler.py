"""Every minute, and when a node's time comes: nodes that are not needed go."""

import os
from typing import TYPE_CHECKING

from functions.trigger import clock, counting, told, trigger_of
from shared import cycle
from shared.ports import World
from shared.world import world_from_environment

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, object], context: "LambdaContext") -> dict[str, object]:
    """Answer a Lambda invocation."""
    world = world_from_environment(os.environ, context.aws_request_id, clock)
    return handle(event, counting(world, context))


def handle(event: dict[str, object], world: World) -> dict[str, object]:
    """Run one cycle, whatever *event* woke us: the snapshot is the state."""
    with told("disrupt", event, world):
        report = cycle.disrupt(world, trigger_of(event))
    return {"actions": len(report.outcomes)}
