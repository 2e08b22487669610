"""Functions as they are deployed, for whoever runs them."""

from bisect import bisect_right
from itertools import accumulate

import msgspec

from sim.account import contract
from sim.account.kinds.functions import split
from sim.account.lambdas.calls import Lambda
from sim.account.lambdas.store import LATEST, Function
from sim.http.protocol import ApiError


def deployed(lambdas: Lambda, name: str, qualifier: str, roll: float) -> contract.Function:
    """Answer the function called *name* (or its ARN) in the version of *qualifier*; *roll*, 0 to 1, chooses of several.

    Raises:
        LookupError: there is none.
    """
    its, own = split(name)
    asked = own or qualifier
    try:
        function = lambdas.find(its)
        routes = function.routes(asked)
        found = _contract(lambdas, function, _chosen(routes, roll), asked)
        return msgspec.structs.replace(found, is_one_of_two=len(routes) > 1)
    except ApiError as error:
        raise LookupError(str(error)) from error


def _chosen(routes: list[tuple[str, float]], roll: float) -> str:
    """Answer the version that *roll* falls on."""
    ends = list(accumulate(part for _, part in routes))
    return routes[min(bisect_right(ends, roll), len(routes) - 1)][0]


def _contract(lambdas: Lambda, function: Function, number: str, asked: str) -> contract.Function:
    version = function.version(number)
    config, invoking = version.config, function.invoke_configs.get(asked or LATEST, {})
    logging = config.get("LoggingConfig", {})
    failed = invoking.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
    return contract.Function(
        arn=f"{function.arn}:{asked}" if asked else function.arn,
        name=function.name,
        version=number,
        handler=config["Handler"],
        environment=dict(config.get("Environment", {}).get("Variables", {})),
        memory_mb=config["MemorySize"],
        timeout_seconds=config["Timeout"],
        role_arn=config["Role"],
        log_group=logging.get("LogGroup", f"/aws/lambda/{function.name}"),
        log_format=logging.get("LogFormat", "Text"),
        code_sha256=version.sha256,
        code=version.code,
        layers=lambdas.layers.code(config["Layers"]),
        reserved_concurrency=function.reserved,
        async_retries=invoking.get("MaximumRetryAttempts", 2),
        max_event_age_seconds=invoking.get("MaximumEventAgeInSeconds", 21_600),
        on_failure_arn=failed or config.get("DeadLetterConfig", {}).get("TargetArn", ""),
    )
