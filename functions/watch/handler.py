"""Every few seconds, or when kube-scheduler's log says so: pods that began to wait wake provision at once."""

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
    """Look once, whatever *event* woke us: what a log says is only a reason to look."""
    with told("watch", event, world):
        report = cycle.watch(world, trigger_of(event))
    return {"actions": len(report.outcomes)}
