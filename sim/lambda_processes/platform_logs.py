"""The platform log lines of Lambda: START, END and REPORT, as text or JSON."""

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from sim.aws_account.function_runtime import DeployedFunction
from sim.lambda_processes.execution_environment import ExecutionResult

_ONE_MILLISECOND: Final = timedelta(milliseconds=1)


def format_start_line(function: DeployedFunction, request_id: str, at: datetime) -> str:
    """Return the log line before the handler's output."""
    if function.log_format == "JSON":
        return _format_json_line("platform.start", at, {"requestId": request_id, "version": function.version})
    return f"START RequestId: {request_id} Version: {function.version}"


def format_end_lines(
    function: DeployedFunction, request_id: str, at: datetime, result: ExecutionResult
) -> tuple[str, ...]:
    """Return the log lines after the handler's output."""
    metrics = _build_report_metrics(function, result)
    if function.log_format == "JSON":
        error_fields = {"errorType": result.error_type} if result.error_type else {}
        report_record = {"requestId": request_id, "metrics": metrics, "status": result.status, **error_fields}
        return (_format_json_line("platform.report", at, report_record),)
    report_fields = [
        f"REPORT RequestId: {request_id}",
        f"Duration: {metrics['durationMs']} ms",
        f"Billed Duration: {metrics['billedDurationMs']} ms",
        f"Memory Size: {function.memory_mb} MB",
        f"Max Memory Used: {result.peak_memory_mb} MB",
    ]
    report_fields += [f"Init Duration: {metrics['initDurationMs']} ms"] if result.init_duration else []
    report_fields += [f"Status: {result.status}"] if result.error_type else []
    report_fields += [f"Error Type: {result.error_type}"] if result.error_type and result.status == "error" else []
    return (f"END RequestId: {request_id}", "\t".join(report_fields))


def _build_report_metrics(function: DeployedFunction, result: ExecutionResult) -> dict[str, float]:
    duration_milliseconds = result.duration / _ONE_MILLISECOND
    init_milliseconds = (result.init_duration or timedelta()) / _ONE_MILLISECOND
    metrics: dict[str, float] = {
        "durationMs": round(duration_milliseconds, 2),
        "billedDurationMs": math.ceil(duration_milliseconds + init_milliseconds),
        "memorySizeMB": function.memory_mb,
        "maxMemoryUsedMB": result.peak_memory_mb,
    }
    return metrics | ({"initDurationMs": round(init_milliseconds, 2)} if result.init_duration else {})


def _format_json_line(kind: str, at: datetime, record: Mapping[str, object]) -> str:
    return json.dumps({"time": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z", "type": kind, "record": record})
