"""Builds deployed functions for the code that runs them."""

from bisect import bisect_right
from itertools import accumulate

import msgspec

from sim.aws_account import function_runtime
from sim.aws_account.lambda_api.function_store import LATEST_QUALIFIER, Function
from sim.aws_account.lambda_api.lambda_api import LambdaApi
from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.aws_http.protocol import ApiError
from sim.lambda_runtime.async_retry import DEFAULT_ASYNC_RETRIES


def build_deployed_function(
    lambda_api: LambdaApi, name: str, qualifier: str, roll: float
) -> function_runtime.DeployedFunction:
    """Return the function with the name or ARN *name* in the version that *qualifier* selects.

    *roll*, from 0 to 1, chooses between the versions of a weighted alias.

    Raises:
        LookupError: there is no such function or version.
    """
    function_name, own_qualifier = parse_function_name(name)
    effective_qualifier = own_qualifier or qualifier
    try:
        function = lambda_api.get_function(function_name)
        routes = function.list_routes(effective_qualifier)
        deployed_function = _build_function(lambda_api, function, _choose_version(routes, roll), effective_qualifier)
        return msgspec.structs.replace(deployed_function, is_weighted_choice=len(routes) > 1)
    except ApiError as error:
        raise LookupError(str(error)) from error


def _choose_version(routes: list[tuple[str, float]], roll: float) -> str:
    """Return the version whose weight interval contains *roll*."""
    upper_bounds = list(accumulate(part for _, part in routes))
    return routes[min(bisect_right(upper_bounds, roll), len(routes) - 1)][0]


def _build_function(
    lambda_api: LambdaApi, function: Function, version_number: str, qualifier: str
) -> function_runtime.DeployedFunction:
    version = function.get_version(version_number)
    config, invoke_config = version.config, function.invoke_configs.get(qualifier or LATEST_QUALIFIER, {})
    logging = config.get("LoggingConfig", {})
    on_failure_arn = invoke_config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
    return function_runtime.DeployedFunction(
        arn=f"{function.arn}:{qualifier}" if qualifier else function.arn,
        name=function.name,
        version=version_number,
        handler=config["Handler"],
        environment=dict(config.get("Environment", {}).get("Variables", {})),
        memory_mb=config["MemorySize"],
        timeout_seconds=config["Timeout"],
        role_arn=config["Role"],
        log_group=logging.get("LogGroup", f"/aws/lambda/{function.name}"),
        log_format=logging.get("LogFormat", "Text"),
        code_sha256=version.sha256,
        code=version.code,
        layers=tuple(lambda_api.layers.code_by_arn[arn] for arn in config["Layers"]),
        reserved_concurrency=function.reserved_concurrency,
        async_retries=invoke_config.get("MaximumRetryAttempts", DEFAULT_ASYNC_RETRIES),
        max_event_age_seconds=invoke_config.get("MaximumEventAgeInSeconds", 21_600),
        on_failure_arn=on_failure_arn or config.get("DeadLetterConfig", {}).get("TargetArn", ""),
    )
