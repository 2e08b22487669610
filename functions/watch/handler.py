"""Handler of the watch function: wakes provision at once when pods become pending.

It runs every few seconds, or when kube-scheduler's log reports an unschedulable pod.
"""

import os
from typing import TYPE_CHECKING

from functions.events import get_trigger_name
from functions.invocation import get_current_time, report_unexpected_errors
from shared.cycles import watch
from shared.ports.world import World
from shared.production_world import build_world

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, object], context: "LambdaContext") -> dict[str, object]:
    """Handle a Lambda invocation."""
    return handle(event, build_world(os.environ, context.aws_request_id, get_current_time))


def handle(event: dict[str, object], world: World) -> dict[str, object]:
    """Look for new pending pods once; *event* only names the trigger, and log records are not read."""
    with report_unexpected_errors("watch", event, world):
        report = watch.run_watch(world, get_trigger_name(event))
    return {"actions": len(report.outcomes)}
