"""List prices of the resources of the stack: us-east-1, USD, without free tiers, November 2026."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from shared.model.core.units import HOURS_PER_MONTH

SECONDS_PER_MONTH: Final = 3600 * HOURS_PER_MONTH

LAMBDA_USD_PER_GB_SECOND: Final = 0.0000133334
"""On arm64."""
LAMBDA_USD_PER_REQUEST: Final = 0.20e-6
SQS_USD_PER_REQUEST: Final = 0.40e-6
SNS_USD_PER_EMAIL: Final = 0.50e-6 + 2.00 / 100_000
"""A message published to SNS and delivered to one e-mail address."""
EVENTS_USD_PER_EVENT: Final = 1e-6
"""A custom event on an event bus, per 64 KB."""
EVENTS_PER_REQUEST: Final = 10
"""At most."""
PROMETHEUS_USD_PER_SAMPLE: Final = 0.90 / 10_000_000
"""A sample written to Amazon Managed Service for Prometheus, of the first 2 billion of a month."""
DAYS_PER_MONTH: Final = 31
"""For daily tasks."""
DYNAMODB_USD_PER_READ: Final = 0.125e-6
"""A read request unit: 4 KB, strongly consistent."""
DYNAMODB_USD_PER_WRITE: Final = 0.625e-6
"""A write request unit: 1 KB."""
S3_USD_PER_PUT: Final = 5e-6
"""A PUT or a LIST."""
S3_USD_PER_GET: Final = 0.4e-6
S3_USD_PER_GB_MONTH: Final = 0.023
LOGS_USD_PER_GB: Final = 0.50
"""Ingestion, including the lines of Lambda itself."""
LOGS_USD_PER_GB_MONTH: Final = 0.03
ALARM_USD_PER_METRIC_MONTH: Final = 0.10
"""Per metric of the alarm."""
METRIC_USD_PER_MONTH: Final = 0.30
"""One name with one set of dimensions that is published for the whole month."""
DASHBOARD_USD_PER_MONTH: Final = 3.00
SCHEDULER_USD_PER_CALL: Final = 1e-6
"""EventBridge Scheduler; scheduled rules of the default bus are free."""
SECRET_USD_PER_MONTH: Final = 0.40
KMS_KEY_USD_PER_MONTH: Final = 1.00

POLLS_PER_SECOND: Final = 5 / 20
"""Lambda polls an empty standard queue with five connections, each of which waits twenty seconds."""
SYSTEM_LOG_BYTES_PER_INVOCATION: Final[Mapping[str, int]] = MappingProxyType({"INFO": 900, "DEBUG": 900, "WARN": 0})
"""Bytes that Lambda itself logs for a successful invocation (start, end, report), by system log level."""

LATENCY_BY_PORT: Final[Mapping[str, timedelta]] = MappingProxyType(
    {
        "kube": timedelta(milliseconds=10),
        "table": timedelta(milliseconds=6),
        "group_table": timedelta(milliseconds=6),
        "bucket": timedelta(milliseconds=30),
        "mailbox": timedelta(milliseconds=10),
        "topic": timedelta(milliseconds=30),
        "event_bus": timedelta(milliseconds=30),
        "remote_write": timedelta(milliseconds=50),
        "parameters": timedelta(milliseconds=40),
        "eks": timedelta(milliseconds=150),
        "prices": timedelta(milliseconds=200),
        "ec2": timedelta(milliseconds=200),
    }
)
"""Latency of one call of a port within a region. Assumed, not measured: nothing here ever called AWS."""
CREATE_FLEET_LATENCY: Final = timedelta(seconds=2)
"""Latency of CreateFleet."""
CPU_TIME_PER_CALL: Final = timedelta(milliseconds=1)
"""Additional processor time of one call: TLS, HTTP, signature."""
