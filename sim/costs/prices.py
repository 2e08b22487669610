"""List prices of what the stack is made of: us-east-1, US dollars, without any free tier, November 2026."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

HOURS: Final = 730
"""Of a month, as AWS counts."""
SECONDS: Final = 3600 * HOURS

LAMBDA_GB_SECOND: Final = 0.0000133334
"""On arm64."""
LAMBDA_REQUEST: Final = 0.20e-6
SQS_REQUEST: Final = 0.40e-6
TOPIC_MAIL: Final = 0.50e-6 + 2.00 / 100_000
"""A message that SNS takes, and sends to one address by e-mail."""
DAYS: Final = 31
"""Of a month, for what is done once a day."""
TABLE_READ: Final = 0.125e-6
"""A read request unit: 4 KB, strongly consistent."""
TABLE_WRITE: Final = 0.625e-6
"""A write request unit: 1 KB."""
BUCKET_PUT: Final = 5e-6
"""A PUT or a LIST."""
BUCKET_GET: Final = 0.4e-6
BUCKET_GB_MONTH: Final = 0.023
LOGS_GB: Final = 0.50
"""Taken in; Lambda's own lines too."""
LOGS_GB_MONTH: Final = 0.03
ALARM: Final = 0.10
"""Each metric that one looks at."""
METRIC: Final = 0.30
"""One name with one set of dimensions, for a month in which it is sent all the time."""
DASHBOARD: Final = 3.00
SCHEDULER_CALL: Final = 1e-6
"""EventBridge Scheduler; rules of the default bus that ring on a schedule cost nothing."""
SECRET: Final = 0.40
KEY: Final = 1.00

POLLS_PER_SECOND: Final = 5 / 20
"""Lambda asks a standard queue that is empty with five connections, each waits twenty seconds."""
LINES_OF_LAMBDA: Final[Mapping[str, int]] = MappingProxyType({"INFO": 900, "DEBUG": 900, "WARN": 0})
"""Bytes that Lambda itself logs of one invocation that goes well, by the system log level: start, end, report."""

LATENCY: Final[Mapping[str, timedelta]] = MappingProxyType(
    {
        "kube": timedelta(milliseconds=10),
        "table": timedelta(milliseconds=6),
        "bucket": timedelta(milliseconds=30),
        "mailbox": timedelta(milliseconds=10),
        "topic": timedelta(milliseconds=30),
        "parameters": timedelta(milliseconds=40),
        "eks": timedelta(milliseconds=150),
        "prices": timedelta(milliseconds=200),
        "ec2": timedelta(milliseconds=200),
    }
)
"""How long one call of a port waits inside a region. Assumed, not measured: nothing here ever called AWS."""
LAUNCHING: Final = timedelta(seconds=2)
"""The same for CreateFleet."""
CALL_PROCESSOR: Final = timedelta(milliseconds=1)
"""What one call costs our processor besides: TLS, HTTP, signature."""
