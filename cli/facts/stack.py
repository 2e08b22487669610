"""Facts about an installation for `joiner doctor`: the stack, and each of its resources that must work."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from cli.facts.cluster import query_or_unseen
from cli.facts.cluster_group import read_group_of
from cli.facts.model import (
    INVOCATION_WINDOW,
    EventRule,
    FunctionFacts,
    InvocationCounts,
    QueueFacts,
    ReadFailure,
    ScheduleFacts,
    StackFacts,
    TopicFacts,
)
from shared.aws.clients import Clients
from shared.aws.eks import BotoZonalShift
from shared.aws.errors import translate_errors
from shared.aws.s3 import S3Bucket
from shared.errors import Invalid, NotFound
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.settings import Settings
from shared.take.snapshot import read_newest_catalog

StackResources = tuple[tuple[str, str, str], ...]
"""Type, logical id and physical id of each resource."""
_FUNCTION_METRICS: Final = ("Invocations", "Errors")
_NOT_FOUND_MESSAGE: Final = "does not exist"
_HANDLER_PREFIX: Final = "functions."
_INTERRUPTION_RULE_PREFIX: Final = "Events"
"""Prefix of the logical ids of the rules that send events to the interruption queue."""


def read_stack(clients: Clients, name: str, now: datetime) -> StackFacts | None:
    """Return the stack and its resources; None if it does not exist.

    Raises:
        Fault: CloudFormation cannot be queried.
    """
    description = read_stack_description(clients, name)
    if description is None:
        return None
    resources = query_or_unseen(lambda: list_stack_resources(clients, name))
    readers: dict[str, Callable[[StackResources], Any]] = {
        "functions": lambda resources: tuple(_read_functions(clients, resources, now)),
        "schedules": lambda resources: tuple(_list_schedules(clients, resources)),
        "queues": lambda resources: tuple(_read_queues(clients, resources)),
        "rules": lambda resources: tuple(_read_rules(clients, resources)),
        "catalog_times": lambda resources: _read_catalog_times(clients, resources),
    }
    parts: dict[str, Any] = {
        part: resources if isinstance(resources, ReadFailure) else query_or_unseen(partial(read_part, resources))
        for part, read_part in readers.items()
    }
    status, created_at = description["StackStatus"], description["CreationTime"]
    stack = StackFacts(name=name, status=status, created_at=created_at, **parts)
    if isinstance(resources, ReadFailure):
        return stack
    return replace(
        stack,
        topic=query_or_unseen(lambda: _read_topic(clients, stack.settings)),
        zonal_shifts=query_or_unseen(lambda: _read_zonal_shifts(clients, stack.settings)),
        group_usage=read_group_of(clients, stack.settings),
    )


def read_stack_description(clients: Clients, name: str) -> dict[str, Any] | None:
    """Return CloudFormation's description of the stack *name*; None if it does not exist.

    Raises:
        Fault: CloudFormation cannot be queried.
    """
    try:
        with translate_errors(f"cloudformation:DescribeStacks {name}"):
            [description] = clients.get_retrying_client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except (NotFound, Invalid) as fault:
        if isinstance(fault, NotFound) or _NOT_FOUND_MESSAGE in str(fault):
            return None
        raise
    return dict(description)


def list_stack_resources(clients: Clients, name: str) -> StackResources:
    """Return the resources of the stack *name*, sorted.

    Raises:
        Fault: CloudFormation cannot be queried.
    """
    with translate_errors(f"cloudformation:ListStackResources {name}"):
        pages = (
            clients.get_retrying_client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
        )
        summaries = [summary for page in pages for summary in page["StackResourceSummaries"]]
    return tuple(
        sorted(
            (summary["ResourceType"], summary["LogicalResourceId"], summary.get("PhysicalResourceId", ""))
            for summary in summaries
        )
    )


def _select_resources(resource_type: str, resources: StackResources) -> Iterator[tuple[str, str]]:
    yield from (
        (logical, physical) for listed_type, logical, physical in resources if listed_type == resource_type and physical
    )


def _read_functions(clients: Clients, resources: StackResources, now: datetime) -> Iterator[FunctionFacts]:
    configurations = {
        name: _get_function_configuration(clients, name)
        for _, name in _select_resources("AWS::Lambda::Function", resources)
    }
    handlers = {name: configuration.get("Handler", "") for name, configuration in configurations.items()}
    own_configurations = {
        name: configurations[name] for name, handler in handlers.items() if handler.startswith(_HANDLER_PREFIX)
    }
    call_counts = query_or_unseen(lambda: _count_calls(clients, own_configurations, now))
    for name, configuration in own_configurations.items():
        yield FunctionFacts(
            name=configuration["Handler"].split(".")[1],
            role_arn=configuration["Role"],
            state=configuration.get("State", ""),
            last_update_status=configuration.get("LastUpdateStatus", ""),
            is_in_vpc=bool(configuration.get("VpcConfig", {}).get("SubnetIds")),
            log_group=configuration.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}",
            settings=_parse_settings(configuration),
            invocation_counts=call_counts if isinstance(call_counts, ReadFailure) else call_counts[name],
        )


def _get_function_configuration(clients: Clients, name: str) -> dict[str, Any]:
    with translate_errors(f"lambda:GetFunctionConfiguration {name}"):
        return dict(clients.get_retrying_client("lambda").get_function_configuration(FunctionName=name))


def read_function_settings(clients: Clients, name: str) -> Settings | None:
    """Return the settings of the function *name*; None if its environment variables are unreadable.

    Raises:
        Fault: Lambda cannot be queried.
    """
    return _parse_settings(_get_function_configuration(clients, name))


def _parse_settings(configuration: dict[str, Any]) -> Settings | None:
    """Return the settings of a function; None if its environment variables are unreadable.

    The reader may not use their key, or another version of Joiner has written a value that this version does not know.
    """
    try:
        return Settings.from_environment(configuration.get("Environment", {}).get("Variables", {}))
    except (KeyError, ValueError):
        return None


def _count_calls(clients: Clients, names: Iterable[str], now: datetime) -> dict[str, InvocationCounts]:
    minutes_by_function = count_calls_by_minute(clients, names, now - INVOCATION_WINDOW, now)
    return {
        name: InvocationCounts(
            invocations=sum(calls for _, calls, _ in minute_counts), errors=sum(errors for *_, errors in minute_counts)
        )
        for name, minute_counts in minutes_by_function.items()
    }


def count_calls_by_minute(
    clients: Clients, names: Iterable[str], begin: datetime, end: datetime
) -> dict[str, tuple[tuple[datetime, int, int], ...]]:
    """Return, by function name, each minute with calls: its time, the number of calls, and of failed calls.

    Raises:
        Fault: CloudWatch cannot be queried.
    """
    function_names = list(names)
    queries = [
        _build_metric_query(f"{metric}{number}", metric, name)
        for number, name in enumerate(function_names)
        for metric in _FUNCTION_METRICS
    ]
    counts_by_query: dict[str, dict[datetime, int]] = {}
    with translate_errors("cloudwatch:GetMetricData"):
        paginator = clients.get_retrying_client("cloudwatch").get_paginator("get_metric_data")
        for page in paginator.paginate(MetricDataQueries=queries, StartTime=begin, EndTime=end) if queries else ():
            for result in page["MetricDataResults"]:
                count_by_minute = counts_by_query.setdefault(result["Id"], {})
                count_by_minute.update(
                    (when, int(number)) for when, number in zip(result["Timestamps"], result["Values"], strict=True)
                )
    return {name: tuple(_merge_minutes(counts_by_query, number)) for number, name in enumerate(function_names)}


def _merge_minutes(counts_by_query: dict[str, dict[datetime, int]], number: int) -> Iterator[tuple[datetime, int, int]]:
    calls, errors = (counts_by_query.get(f"{metric.lower()}{number}", {}) for metric in _FUNCTION_METRICS)
    yield from ((at, calls.get(at, 0), errors.get(at, 0)) for at in sorted(calls.keys() | errors.keys()))


def _build_metric_query(identity: str, metric: str, function: str) -> dict[str, Any]:
    dimensions = [{"Name": "FunctionName", "Value": function}]
    measured = {"Namespace": "AWS/Lambda", "MetricName": metric, "Dimensions": dimensions}
    stat = {"Metric": measured, "Period": 60, "Stat": "Sum"}
    return {"Id": identity.lower(), "MetricStat": stat, "ReturnData": True}


def _list_schedules(clients: Clients, resources: StackResources) -> Iterator[ScheduleFacts]:
    """Yield the stack's schedules; a schedule group of the stack is listed completely."""
    own_names = {
        name.rpartition("|")[2].rpartition("/")[2]
        for _, name in _select_resources("AWS::Scheduler::Schedule", resources)
    }
    groups = [name for _, name in _select_resources("AWS::Scheduler::ScheduleGroup", resources)]
    with translate_errors("scheduler:ListSchedules"):
        paginator = clients.get_retrying_client("scheduler").get_paginator("list_schedules")
        for group in groups or ["default"]:
            for page in paginator.paginate(GroupName=group):
                for schedule in page["Schedules"]:
                    if groups or schedule["Name"] in own_names:
                        yield ScheduleFacts(name=schedule["Name"], is_enabled=schedule["State"] == "ENABLED")


def _read_queues(clients: Clients, resources: StackResources) -> Iterator[QueueFacts]:
    for _, url in _select_resources("AWS::SQS::Queue", resources):
        with translate_errors(f"sqs:GetQueueAttributes {url}"):
            attributes = clients.get_retrying_client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])[
                "Attributes"
            ]
        yield QueueFacts(
            name=url.rpartition("/")[2],
            arn=attributes["QueueArn"],
            message_count=int(attributes.get("ApproximateNumberOfMessages", 0)),
            policy=attributes.get("Policy", ""),
        )


def _read_rules(clients: Clients, resources: StackResources) -> Iterator[EventRule]:
    events = clients.get_retrying_client("events")
    for logical, physical in _select_resources("AWS::Events::Rule", resources):
        name = physical.rpartition("|")[2]
        if not logical.startswith(_INTERRUPTION_RULE_PREFIX):
            continue
        with translate_errors(f"events:DescribeRule {name}"):
            rule = events.describe_rule(Name=name)
        with translate_errors(f"events:ListTargetsByRule {name}"):
            pages = events.get_paginator("list_targets_by_rule").paginate(Rule=name)
            targets = [target for page in pages for target in page["Targets"]]
        yield EventRule(
            name=name,
            arn=rule["Arn"],
            is_enabled=rule.get("State") == "ENABLED",
            target_arns=tuple(sorted(target["Arn"] for target in targets)),
        )


def _read_topic(clients: Clients, settings: Settings | None) -> TopicFacts | None:
    arn = settings.report_topic if settings is not None else ""
    if not arn:
        return None
    try:
        with translate_errors(f"sns:GetTopicAttributes {arn}"):
            attributes = clients.get_retrying_client("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    except NotFound:
        return TopicFacts(arn=arn, exists=False)
    return TopicFacts(
        arn=arn,
        confirmed_subscriptions=int(attributes.get("SubscriptionsConfirmed", 0)),
        pending_subscriptions=int(attributes.get("SubscriptionsPending", 0)),
        kms_key=attributes.get("KmsMasterKeyId", ""),
    )


def _read_zonal_shifts(clients: Clients, settings: Settings | None) -> tuple[ZonalShift, ...] | None:
    if settings is None or settings.zonal_shift == "off":
        return None
    try:
        return BotoZonalShift(clients).get_zonal_shifts(settings.cluster_arn)
    except NotFound:
        return None


def _read_catalog_times(clients: Clients, resources: StackResources) -> tuple[datetime | None, datetime | None] | None:
    for _, name in _select_resources("AWS::S3::Bucket", resources):
        catalog = read_newest_catalog(S3Bucket(clients, name), [])
        return None if catalog is None else (catalog.built_at or catalog.priced_at, catalog.priced_at)
    return None
