"""A monthly bill: the resources of a template and their usage."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from shared.aws.sqs import MAX_ENTRIES_PER_BATCH
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.operating_costs import list_prices
from sim.operating_costs.usage import StackUsage

PUT_METHODS = frozenset({"put", "list_keys"})
WRITE_METHODS = frozenset({"write", "remove"})


class BillLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the bill."""

    item: str = msgspec.field(name="what")
    quantity: str = msgspec.field(name="how_much")
    usd: float


def build_bill(template: Mapping[str, Any], usage: StackUsage) -> tuple[BillLine, ...]:
    """Return the cost of a month with the rates of *usage*."""
    monthly_factor = list_prices.SECONDS_PER_MONTH / usage.duration.total_seconds()
    wiring = StackWiring.parse(template)
    return (
        *_bill_functions(wiring, usage, monthly_factor),
        *_bill_messages(wiring, usage, monthly_factor),
        *_bill_storage(usage, monthly_factor),
        *_bill_stored_objects(template, usage),
        *_bill_observability(usage, monthly_factor, template, wiring),
    )


def sum_usd(lines: tuple[BillLine, ...]) -> float:
    """Return the sum in USD."""
    return sum(line.usd for line in lines)


def _bill_functions(wiring: StackWiring, usage: StackUsage, monthly_factor: float) -> Iterator[BillLine]:
    for function in wiring.functions:
        function_usage = usage.functions.get(function.name)
        if function_usage is not None and function_usage.invocations:
            seconds = function_usage.estimate_billed_seconds(function.memory_mb)
            calls = round(function_usage.invocations * monthly_factor)
            usd = (
                seconds * monthly_factor * function.memory_mb / 1024 * list_prices.LAMBDA_USD_PER_GB_SECOND
                + calls * list_prices.LAMBDA_USD_PER_REQUEST
            )
            unit = f"{1000 * seconds / function_usage.invocations:.0f} ms at {function.memory_mb} MB"
            yield BillLine(item=f"Lambda: {function.name}", quantity=f"{calls:,} calls of {unit}", usd=usd)


def _bill_messages(wiring: StackWiring, usage: StackUsage, monthly_factor: float) -> Iterator[BillLine]:
    polls = round(len(wiring.mappings) * list_prices.POLLS_PER_SECOND * list_prices.SECONDS_PER_MONTH)
    sent_messages = round(usage.messages * monthly_factor)
    requests = round(_count_send_requests(usage) * monthly_factor)
    yield BillLine(
        item="SQS",
        quantity=f"{polls:,} polls of {len(wiring.mappings)} queues, {sent_messages:,} messages",
        usd=(polls + requests + sent_messages) * list_prices.SQS_USD_PER_REQUEST,
    )


def _count_send_requests(usage: StackUsage) -> int:
    """Return the number of SendMessage and SendMessageBatch requests; all batches are taken as equally large."""
    calls = usage.count_calls("mailbox")
    batches = calls["add_batch"]
    messages_in_batches = usage.messages - calls["add"]
    return calls["add"] + (batches * math.ceil(messages_in_batches / batches / MAX_ENTRIES_PER_BATCH) if batches else 0)


def _bill_storage(usage: StackUsage, monthly_factor: float) -> Iterator[BillLine]:
    table, bucket = usage.count_calls("table") + usage.count_calls("group_table"), usage.count_calls("bucket")
    writes = round(monthly_factor * sum(times for method, times in table.items() if method in WRITE_METHODS))
    reads = round(monthly_factor * sum(times for method, times in table.items() if method not in WRITE_METHODS))
    usd = writes * list_prices.DYNAMODB_USD_PER_WRITE + reads * list_prices.DYNAMODB_USD_PER_READ
    yield BillLine(item="DynamoDB", quantity=f"{reads:,} reads, {writes:,} writes", usd=usd)
    puts = round(monthly_factor * sum(times for method, times in bucket.items() if method in PUT_METHODS))
    gets = round(monthly_factor * sum(times for method, times in bucket.items() if method not in PUT_METHODS))
    usd = puts * list_prices.S3_USD_PER_PUT + gets * list_prices.S3_USD_PER_GET
    yield BillLine(item="S3", quantity=f"{puts:,} puts and lists, {gets:,} gets", usd=usd)


def _bill_stored_objects(template: Mapping[str, Any], usage: StackUsage) -> Iterator[BillLine]:
    """Yield the cost of stored objects in the steady state, when as much expires as is written."""
    buckets = (bucket["Properties"] for bucket in template["Resources"].values() if bucket["Type"] == "AWS::S3::Bucket")
    rules = [
        rule
        for resource in buckets
        for rule in resource["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" in rule
    ]
    # Expired objects of a versioned bucket remain as noncurrent versions for some days.
    retention_days = [
        (rule["Prefix"], rule["ExpirationInDays"] + rule["NoncurrentVersionExpiration"]["NoncurrentDays"])
        for rule in rules
    ]
    for prefix, days in sorted(retention_days):
        size = usage.stored_bytes.get(prefix, 0) * (timedelta(days=days) / usage.duration) / 2**30
        if size:
            usd = size * list_prices.S3_USD_PER_GB_MONTH
            yield BillLine(item=f"S3: {prefix[:-1]}", quantity=f"{size:.2f} GB kept, of {days} days", usd=usd)


def _bill_observability(
    usage: StackUsage, monthly_factor: float, template: Mapping[str, Any], wiring: StackWiring
) -> Iterator[BillLine]:
    resource_types = Counter(resource["Type"] for resource in template["Resources"].values())
    invocations = sum(function_usage.invocations for function_usage in usage.functions.values())
    gigabytes = (usage.log_bytes + invocations * _get_max_system_log_bytes(template)) * monthly_factor / 2**30
    usd = gigabytes * (list_prices.LOGS_USD_PER_GB + list_prices.LOGS_USD_PER_GB_MONTH)
    yield BillLine(item="CloudWatch logs", quantity=f"{gigabytes:.2f} GB", usd=usd)
    yield BillLine(
        item="CloudWatch metrics", quantity=f"{usage.metrics}", usd=usage.metrics * list_prices.METRIC_USD_PER_MONTH
    )
    alarm_metrics = sum(map(_count_alarm_metrics, template["Resources"].values()))
    yield BillLine(
        item="CloudWatch alarms",
        quantity=f"{alarm_metrics} metrics",
        usd=alarm_metrics * list_prices.ALARM_USD_PER_METRIC_MONTH,
    )
    fixed_prices = (
        ("AWS::CloudWatch::Dashboard", "CloudWatch dashboards", list_prices.DASHBOARD_USD_PER_MONTH),
        ("AWS::SecretsManager::Secret", "Secrets Manager", list_prices.SECRET_USD_PER_MONTH),
        ("AWS::KMS::Key", "KMS keys", list_prices.KMS_KEY_USD_PER_MONTH),
    )
    for resource_type, item, unit_price in fixed_prices:
        if resource_types[resource_type]:
            yield BillLine(
                item=item, quantity=f"{resource_types[resource_type]}", usd=resource_types[resource_type] * unit_price
            )
    if wiring.functions and dict(wiring.functions[0].environment).get("JOINER_REPORT_TOPIC"):
        yield BillLine(
            item="SNS",
            quantity=f"{list_prices.DAYS_PER_MONTH} reports by e-mail",
            usd=list_prices.DAYS_PER_MONTH * list_prices.SNS_USD_PER_EMAIL,
        )
    requests = usage.count_calls("event_bus")["put"] * monthly_factor
    if requests:
        events = round(requests * list_prices.EVENTS_PER_REQUEST)
        yield BillLine(
            item="EventBridge events",
            quantity=f"at most {events:,}",
            usd=events * list_prices.EVENTS_USD_PER_EVENT,
        )
    if usage.written_samples:
        samples = round(usage.written_samples * monthly_factor)
        yield BillLine(
            item="Managed Prometheus",
            quantity=f"{samples:,} samples",
            usd=samples * list_prices.PROMETHEUS_USD_PER_SAMPLE,
        )
    if resource_types["AWS::Scheduler::Schedule"]:
        ticks = round(list_prices.SECONDS_PER_MONTH / 60 * len(wiring.schedules))
        yield BillLine(
            item="EventBridge Scheduler",
            quantity=f"at most {ticks:,} calls",
            usd=ticks * list_prices.SCHEDULER_USD_PER_CALL,
        )


def _get_max_system_log_bytes(template: Mapping[str, Any]) -> int:
    """Return the most that Lambda itself logs per invocation of any of the functions, in bytes."""
    functions = (
        function["Properties"]
        for function in template["Resources"].values()
        if function["Type"] == "AWS::Lambda::Function"
    )
    levels = (function.get("LoggingConfig", {}).get("SystemLogLevel", "INFO") for function in functions)
    return max(list_prices.SYSTEM_LOG_BYTES_PER_INVOCATION[level] for level in levels)


def _count_alarm_metrics(resource: Mapping[str, Any]) -> int:
    """Return the number of metrics of an alarm, each of which is charged; 0 for other resources."""
    if resource["Type"] != "AWS::CloudWatch::Alarm":
        return 0
    queries = resource["Properties"].get("Metrics", [])
    return sum("MetricStat" in query for query in queries) or 1
