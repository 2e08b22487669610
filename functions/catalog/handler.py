"""Handler of the catalog function.

It runs every five minutes and when a node class appears, and records what the account offers.
"""

import os
from typing import TYPE_CHECKING

from functions.events import get_trigger_name
from functions.invocation import get_current_time, report_unexpected_errors
from shared.cycles import catalog
from shared.ports.world import World
from shared.production_world import build_world

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, object], context: "LambdaContext") -> dict[str, object]:
    """Handle a Lambda invocation."""
    return handle(event, build_world(os.environ, context.aws_request_id, get_current_time))


def handle(event: dict[str, object], world: World) -> dict[str, object]:
    """Run one catalog cycle; *event* only names the trigger."""
    with report_unexpected_errors("catalog", event, world):
        report = catalog.run_catalog(world, get_trigger_name(event))
    return {"actions": len(report.outcomes)}
