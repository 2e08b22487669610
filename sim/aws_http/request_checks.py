"""Rejects requests over HTTP that AWS would reject, before anything handles them."""

from typing import Final

from sim.aws_http.protocol import MODEL_NAMES, ApiCall, ApiError, parse_parameters
from sim.aws_rules.request_validation import find_rejection, has_operation

_UNCHECKED_SERVICES: Final = frozenset({"", "s3"})
"""S3's parameters are in paths, headers and binary bodies; requests without a signature are of no service."""


def check_api_call(call: ApiCall) -> None:
    """Check the parameters of *call*.

    Raises:
        ApiError: AWS would reject them.
    """
    service = MODEL_NAMES.get(call.service, call.service)
    if service in _UNCHECKED_SERVICES or not has_operation(service, call.action):
        return
    problem = find_rejection(service, call.action, parse_parameters(call))
    if problem is not None:
        raise ApiError(problem.code, problem.message)
