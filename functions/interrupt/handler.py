"""A message from the interruption queue: a machine is about to go."""

import os
from typing import TYPE_CHECKING

from functions.trigger import bodies_of, clock, counting, ids_of, told, trigger_of
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
    """Act on all messages of *event* at once; a fault brings all of them back, which is harmless.

    Where a single call failed, only the messages come back that are not done. Those that nobody understands are told in
    the log and are not brought back.
    """
    with told("interrupt", event, world):
        report = cycle.interrupt(world, trigger_of(event), bodies_of(event))
    ids = ids_of(event)
    again = [{"itemIdentifier": ids[place]} for place in report.unsettled]
    return {"actions": len(report.outcomes), "batchItemFailures": again}
