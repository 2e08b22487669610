"""The environment variables of an execution environment: Lambda's own, above the function's."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sim.account.contract import Credentials, Function

RUNTIME: Final = "python3.13"


def variables(
    function: Function,
    *,
    stream: str,
    task_root: Path,
    libraries: Path,
    credentials: Credentials,
    region: str,
    further: Mapping[str, str],
) -> dict[str, str]:
    """Answer all of them: what the function's configuration says, then what Lambda sets, then *further*.

    *stream* is the log stream, *libraries* the folder in the place of the layers. Nothing of this process's own
    environment is in it, and not yet AWS_LAMBDA_RUNTIME_API.
    """
    own = {
        "_HANDLER": function.handler,
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{RUNTIME}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": function.version,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
        "AWS_LAMBDA_LOG_FORMAT": function.log_format,
        "AWS_LAMBDA_LOG_STREAM_NAME": stream,
        "AWS_REGION": region,
        "LAMBDA_TASK_ROOT": str(task_root),
        "LANG": "en_US.UTF-8",
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join((str(task_root), str(libraries))),
        "TZ": ":UTC",
    }
    return {**function.environment, **own, **credentials.environment(), **further}
