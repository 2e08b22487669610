"""Handler of the installer function: runs when the stack is created, updated or deleted."""

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions.invocation import get_current_time, with_time_left
from shared.errors import Fault, NotFound
from shared.installer.cloudformation import build_response, parse_cloudformation_request, send_response
from shared.installer.cloudformation_requests import handle_request
from shared.production_world import build_world, write_to_stdout
from shared.report.log import LineLevel, write_line

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: "LambdaContext") -> None:
    """Handle a CloudFormation request; a response is sent in every case."""
    request = parse_cloudformation_request(event)
    body = build_response(request, "FAILED", f"see the log stream {context.log_stream_name}")
    try:
        world = with_time_left(build_world(os.environ, context.aws_request_id, get_current_time), context)
        body = handle_request(request, world, _sleep)
    except NotFound as fault:
        # Only the lookup of the cluster itself raises this: a cluster that does not exist contains nothing of ours.
        body = build_response(request, "SUCCESS" if request.request_type == "Delete" else "FAILED", str(fault))
    except Fault as fault:
        body = build_response(request, "FAILED", str(fault))
    finally:
        _send_logged_response(request.response_url, body)


def _send_logged_response(url: str, body: bytes) -> None:
    """Send the response and log its HTTP status; a rejected response fails the invocation.

    The log does not depend on the world, which may be what could not be built.
    """
    try:
        _log("INFO", f"PUT of the response to CloudFormation: HTTP {send_response(url, body)}")
    except Fault as fault:
        _log("ERROR", str(fault))
        raise


def _log(level: LineLevel, message: str) -> None:
    write_line(level, message, {"function": "installer"}, get_current_time(), write_to_stdout)


def _sleep(pause: timedelta) -> None:
    time.sleep(pause.total_seconds())
