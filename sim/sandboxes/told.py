"""What Lambda itself writes into a function's log: where a call began, and what it took."""

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from sim.account.contract import Function
from sim.sandboxes.environment import Ended

_MILLISECOND: Final = timedelta(milliseconds=1)


def began(function: Function, request_id: str, at: datetime) -> str:
    """Answer the line before what the handler writes."""
    if function.log_format == "JSON":
        return _json("platform.start", at, {"requestId": request_id, "version": function.version})
    return f"START RequestId: {request_id} Version: {function.version}"


def ended(function: Function, request_id: str, at: datetime, how: Ended) -> tuple[str, ...]:
    """Answer the lines after it."""
    metrics = _metrics(function, how)
    if function.log_format == "JSON":
        failed = {"errorType": how.error_type} if how.error_type else {}
        record = {"requestId": request_id, "metrics": metrics, "status": how.status, **failed}
        return (_json("platform.report", at, record),)
    said = [
        f"REPORT RequestId: {request_id}",
        f"Duration: {metrics['durationMs']} ms",
        f"Billed Duration: {metrics['billedDurationMs']} ms",
        f"Memory Size: {function.memory_mb} MB",
        f"Max Memory Used: {how.memory_mb} MB",
    ]
    said += [f"Init Duration: {metrics['initDurationMs']} ms"] if how.init else []
    said += [f"Status: {how.status}"] if how.error_type else []
    said += [f"Error Type: {how.error_type}"] if how.error_type and how.status == "error" else []
    return (f"END RequestId: {request_id}", "\t".join(said))


def _metrics(function: Function, how: Ended) -> dict[str, float]:
    duration, init = how.duration / _MILLISECOND, (how.init or timedelta()) / _MILLISECOND
    metrics: dict[str, float] = {
        "durationMs": round(duration, 2),
        "billedDurationMs": math.ceil(duration + init),
        "memorySizeMB": function.memory_mb,
        "maxMemoryUsedMB": how.memory_mb,
    }
    return metrics | ({"initDurationMs": round(init, 2)} if how.init else {})


def _json(kind: str, at: datetime, record: Mapping[str, object]) -> str:
    return json.dumps({"time": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z", "type": kind, "record": record})
