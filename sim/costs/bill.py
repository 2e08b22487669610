"""A month's bill: the resources of a template, and what they were used for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from sim.costs import prices
from sim.costs.usage import Usage
from sim.lambdas.wiring import Wiring

PUTS = frozenset({"put", "keys"})
WRITES = frozenset({"write", "remove"})


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the bill."""

    what: str
    how_much: str
    usd: float


def bill(template: Mapping[str, Any], usage: Usage) -> tuple[Line, ...]:
    """Answer what a month costs in which everything goes on as it did in *usage*."""
    share = prices.SECONDS / usage.lasted.total_seconds()
    wiring = Wiring.parse(template)
    return (
        *_functions(wiring, usage, share),
        *_messages(wiring, usage, share),
        *_state(usage, share),
        *_kept(template, usage),
        *_seen(usage, share, template, wiring),
    )


def total(lines: tuple[Line, ...]) -> float:
    """Answer the sum, in US dollars."""
    return sum(line.usd for line in lines)


def _functions(wiring: Wiring, usage: Usage, share: float) -> Iterator[Line]:
    for function in wiring.functions:
        used = usage.functions.get(function.name)
        if used is not None and used.invocations:
            seconds = used.billed(function.memory_mb)
            calls = round(used.invocations * share)
            usd = seconds * share * function.memory_mb / 1024 * prices.LAMBDA_GB_SECOND + calls * prices.LAMBDA_REQUEST
            each = f"{1000 * seconds / used.invocations:.0f} ms at {function.memory_mb} MB"
            yield Line(what=f"Lambda: {function.name}", how_much=f"{calls:,} calls of {each}", usd=usd)


def _messages(wiring: Wiring, usage: Usage, share: float) -> Iterator[Line]:
    polls = round(len(wiring.mappings) * prices.POLLS_PER_SECOND * prices.SECONDS)
    sent = round(sum(usage.calls("mailbox").values()) * share)
    yield Line(
        what="SQS",
        how_much=f"{polls:,} polls of {len(wiring.mappings)} queues, {sent:,} messages",
        usd=(polls + 2 * sent) * prices.SQS_REQUEST,
    )


def _state(usage: Usage, share: float) -> Iterator[Line]:
    table, bucket = usage.calls("table"), usage.calls("bucket")
    writes = round(share * sum(times for method, times in table.items() if method in WRITES))
    reads = round(share * sum(times for method, times in table.items() if method not in WRITES))
    usd = writes * prices.TABLE_WRITE + reads * prices.TABLE_READ
    yield Line(what="DynamoDB", how_much=f"{reads:,} reads, {writes:,} writes", usd=usd)
    puts = round(share * sum(times for method, times in bucket.items() if method in PUTS))
    gets = round(share * sum(times for method, times in bucket.items() if method not in PUTS))
    usd = puts * prices.BUCKET_PUT + gets * prices.BUCKET_GET
    yield Line(what="S3", how_much=f"{puts:,} puts and lists, {gets:,} gets", usd=usd)


def _kept(template: Mapping[str, Any], usage: Usage) -> Iterator[Line]:
    """Iterate over what is in the bucket once as much expires as comes."""
    buckets = (one["Properties"] for one in template["Resources"].values() if one["Type"] == "AWS::S3::Bucket")
    rules = [rule for one in buckets for rule in one["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule]
    for prefix, days in sorted((rule["Prefix"], _days(rule)) for rule in rules):
        size = usage.stored_bytes.get(prefix, 0) * (timedelta(days=days) / usage.lasted) / 2**30
        if size:
            usd = size * prices.BUCKET_GB_MONTH
            yield Line(what=f"S3: {prefix[:-1]}", how_much=f"{size:.2f} GB kept, of {days} days", usd=usd)


def _days(rule: Mapping[str, Any]) -> int:
    """Answer for how long *rule* keeps bytes: what expires in a versioned bucket is an older version for some days."""
    days: int = rule["ExpirationInDays"] + rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
    return days


def _seen(usage: Usage, share: float, template: Mapping[str, Any], wiring: Wiring) -> Iterator[Line]:
    kinds = Counter(resource["Type"] for resource in template["Resources"].values())
    invocations = sum(used.invocations for used in usage.functions.values())
    gigabytes = (usage.log_bytes + invocations * _lines_of_lambda(template)) * share / 2**30
    usd = gigabytes * (prices.LOGS_GB + prices.LOGS_GB_MONTH)
    yield Line(what="CloudWatch logs", how_much=f"{gigabytes:.2f} GB", usd=usd)
    yield Line(what="CloudWatch metrics", how_much=f"{usage.metrics}", usd=usage.metrics * prices.METRIC)
    watched = sum(map(_watched, template["Resources"].values()))
    yield Line(what="CloudWatch alarms", how_much=f"{watched} metrics", usd=watched * prices.ALARM)
    fixed = (
        ("AWS::CloudWatch::Dashboard", "CloudWatch dashboards", prices.DASHBOARD),
        ("AWS::SecretsManager::Secret", "Secrets Manager", prices.SECRET),
        ("AWS::KMS::Key", "KMS keys", prices.KEY),
    )
    for kind, what, each in fixed:
        if kinds[kind]:
            yield Line(what=what, how_much=f"{kinds[kind]}", usd=kinds[kind] * each)
    if wiring.functions and dict(wiring.functions[0].environment).get("JOINER_REPORT_TOPIC"):
        yield Line(what="SNS", how_much=f"{prices.DAYS} reports by e-mail", usd=prices.DAYS * prices.TOPIC_MAIL)
    if kinds["AWS::Scheduler::Schedule"]:
        ticks = round(prices.SECONDS / 60 * len(wiring.schedules))
        yield Line(what="EventBridge Scheduler", how_much=f"at most {ticks:,} calls", usd=ticks * prices.SCHEDULER_CALL)


def _lines_of_lambda(template: Mapping[str, Any]) -> int:
    """Answer the most that Lambda logs of one invocation of any of the functions, in bytes."""
    functions = (one["Properties"] for one in template["Resources"].values() if one["Type"] == "AWS::Lambda::Function")
    levels = (one.get("LoggingConfig", {}).get("SystemLogLevel", "INFO") for one in functions)
    return max(prices.LINES_OF_LAMBDA[level] for level in levels)


def _watched(resource: Mapping[str, Any]) -> int:
    """Answer how many metrics an alarm looks at: each is paid for."""
    if resource["Type"] != "AWS::CloudWatch::Alarm":
        return 0
    queries = resource["Properties"].get("Metrics", [])
    return sum("MetricStat" in one for one in queries) or 1
