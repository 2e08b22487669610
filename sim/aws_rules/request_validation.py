"""Decides whether AWS would accept a request, from botocore's service models and from `rules.toml`."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import botocore.session
from botocore.exceptions import UnknownServiceError

from sim.aws_rules.problem import CLIENT_SIDE_CODE, RequestProblem
from sim.aws_rules.rules_checks import build_rule_check
from sim.aws_rules.rules_table import list_rules
from sim.aws_rules.service_model import ShapeCheck, ShapeCompiler

_VALUE_CODES: Final = {"ec2": "InvalidParameterValue", "query": "ValidationError", "rest-xml": "InvalidArgument"}
"""The error code of a value outside its enum, pattern or length, by protocol."""
_DEFAULT_VALUE_CODE: Final = "ValidationException"
EMBEDDED_METRICS_CALL: Final = "logs:EmbeddedMetrics"
"""Not a call: a log line in the embedded metric format."""


def find_problem(service: str, operation: str, parameters: Mapping[str, Any]) -> RequestProblem | None:
    """Return the reason for which botocore or AWS rejects the request; None if they accept it.

    *service* is botocore's name of the service, or `logs` with the operation `EmbeddedMetrics` for a log line.
    """
    return next(_compile_request_check(service, operation)(parameters), None)


def find_rejection(service: str, operation: str, parameters: Mapping[str, Any]) -> RequestProblem | None:
    """Return the reason for which AWS rejects the request that botocore has sent; None if it accepts it."""
    problems = _compile_request_check(service, operation)(parameters)
    return next((problem for problem in problems if problem.code != CLIENT_SIDE_CODE), None)


@cache
def _compile_request_check(service: str, operation: str) -> Callable[[Mapping[str, Any]], Iterator[RequestProblem]]:
    call = f"{service}:{operation}"
    check_shape = None if call == EMBEDDED_METRICS_CALL else _compile_input_check(service, operation)
    rule_checks = tuple((rule, build_rule_check(rule)) for rule in list_rules(call))

    def list_problems(parameters: Mapping[str, Any]) -> Iterator[RequestProblem]:
        for problem in check_shape(parameters) if check_shape is not None else ():
            code = CLIENT_SIDE_CODE if problem.kind == "type" else _get_value_code(service)
            place = problem.path.lstrip(".") or "the request"
            yield RequestProblem(code=code, message=f"{problem.message} at {place}")
        for rule, check_rule in rule_checks:
            for value in check_rule(parameters):
                yield RequestProblem(code=rule.code, message=rule.build_message(value), rule=rule.id)

    return list_problems


def _compile_input_check(service: str, operation: str) -> ShapeCheck | None:
    """Return the check of the operation's parameters, None if it has none.

    Raises:
        OperationNotFoundError: the service has no such operation.
    """
    shape = load_service_model(service).operation_model(operation).input_shape
    return None if shape is None else _get_compiler(service).compile_shape(shape)


@cache
def load_service_model(service: str) -> Any:  # noqa: ANN401 - botocore has no types
    """Return botocore's model of *service*."""
    return _get_session().get_service_model(service)


@cache
def load_paginators(service: str) -> Any:  # noqa: ANN401 - botocore has no types
    """Return botocore's model of the paginators of *service*."""
    return _get_session().get_paginator_model(service)


@cache
def has_operation(service: str, operation: str) -> bool:
    """Return whether botocore knows *operation* of *service*."""
    try:
        return operation in load_service_model(service).operation_names
    except UnknownServiceError:
        return False


@cache
def _get_session() -> Any:  # noqa: ANN401 - botocore has no types
    return botocore.session.get_session()


@cache
def _get_compiler(service: str) -> ShapeCompiler:
    del service
    return ShapeCompiler()


@cache
def _get_value_code(service: str) -> str:
    return _VALUE_CODES.get(load_service_model(service).metadata.get("protocol", ""), _DEFAULT_VALUE_CODE)
