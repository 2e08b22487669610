"""The environment variables of an execution environment: Lambda's own have precedence over the function's."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sim.aws_account.function_runtime import Credentials, DeployedFunction

EXECUTION_RUNTIME: Final = "python3.13"


def build_environment_variables(
    function: DeployedFunction,
    *,
    log_stream: str,
    task_root: Path,
    libraries: Path,
    credentials: Credentials,
    region: str,
    extra_variables: Mapping[str, str],
) -> dict[str, str]:
    """Return all environment variables: the function's configuration, then Lambda's own, then *extra_variables*.

    *log_stream* is the log stream, *libraries* the folder that replaces the layers. The environment of this process is
    not included, and AWS_LAMBDA_RUNTIME_API is not set yet.
    """
    lambda_variables = {
        "_HANDLER": function.handler,
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{EXECUTION_RUNTIME}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": function.version,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
        "AWS_LAMBDA_LOG_FORMAT": function.log_format,
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "AWS_REGION": region,
        "LAMBDA_TASK_ROOT": str(task_root),
        "LANG": "en_US.UTF-8",
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join((str(task_root), str(libraries))),
        "TZ": ":UTC",
    }
    return {**function.environment, **lambda_variables, **credentials.build_environment(), **extra_variables}
