"""Handler of the interrupt function: handles messages of the interruption queue."""

import os
from typing import TYPE_CHECKING

from functions.events import get_trigger_name, list_messages
from functions.invocation import get_current_time, report_unexpected_errors, with_time_left
from functions.message_batch import build_batch_response
from shared.cycles import interrupt
from shared.ports.world import World
from shared.production_world import build_world

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, object], context: "LambdaContext") -> dict[str, object]:
    """Handle a Lambda invocation."""
    world = build_world(os.environ, context.aws_request_id, get_current_time)
    return handle(event, with_time_left(world, context))


def handle(event: dict[str, object], world: World) -> dict[str, object]:
    """Handle all messages of *event* together; after a fault SQS delivers all of them again, which is harmless.

    If single calls failed, only the messages that are not settled are delivered again. Messages that cannot be parsed
    are logged and not delivered again.
    """
    messages = list_messages(event)
    with report_unexpected_errors("interrupt", event, world):
        bodies = [str(message.body) for message in messages]
        report = interrupt.run_interrupt(world, get_trigger_name(event), bodies)
    return {"actions": len(report.outcomes), **build_batch_response(messages, report.unsettled)}
