"""Handler of the lifecycle function: advances each NodeClaim and node.

It runs every minute, and sooner while nodes start or terminate.
"""

import os
from typing import TYPE_CHECKING

from functions.events import get_trigger_name
from functions.invocation import get_current_time, report_unexpected_errors, with_time_left
from shared.cycles import lifecycle
from shared.ports.world import World
from shared.production_world import build_world

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, object], context: "LambdaContext") -> dict[str, object]:
    """Handle a Lambda invocation."""
    world = build_world(os.environ, context.aws_request_id, get_current_time)
    return handle(event, with_time_left(world, context))


def handle(event: dict[str, object], world: World) -> dict[str, object]:
    """Run one lifecycle cycle; *event* only names the trigger: the cluster snapshot is the state."""
    with report_unexpected_errors("lifecycle", event, world):
        report = lifecycle.run_lifecycle(world, get_trigger_name(event))
    return {"actions": len(report.outcomes)}
