"""When the stack is made, changed or deleted: what Joiner needs in the cluster is put there, or taken out."""

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions.installer.answer import parse_order, reply, send
from functions.installer.orders import handle
from functions.trigger import clock, counting
from shared.errors import Fault, Gone
from shared.world import world_from_environment

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: "LambdaContext") -> None:
    """Answer CloudFormation, whatever happens."""
    order = parse_order(event)
    body = reply(order, "FAILED", f"see the log, {context.log_stream_name}")
    try:
        world = counting(world_from_environment(os.environ, context.aws_request_id, clock), context)
        body = handle(order, world, _sleep)
    except Gone as fault:
        # Only asking for the cluster itself gets here: a cluster that is gone has nothing of ours in it.
        body = reply(order, "SUCCESS" if order.request_type == "Delete" else "FAILED", str(fault))
    except Fault as fault:
        body = reply(order, "FAILED", str(fault))
    finally:
        send(order.response_url, body)


def _sleep(pause: timedelta) -> None:
    time.sleep(pause.total_seconds())
