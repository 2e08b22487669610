"""What `joiner doctor` sees of an installation: a stack, and each thing in it that has to work."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cli.checks.facts import Called, FunctionFacts, QueueFacts, Rule, Schedule, Stack, Topic, Unseen
from cli.checks.installed import LATELY
from cli.doctor_cluster import seen
from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.aws.s3 import S3Bucket
from shared.errors import Gone, Invalid
from shared.settings import Settings
from shared.snapshot.take import newest_catalogue

Resources = tuple[tuple[str, str, str], ...]
"""Type, logical and physical id of each."""
_COUNTED: Final = ("Invocations", "Errors")
_ABSENT: Final = "does not exist"
_OURS: Final = "functions."
_EVENTS: Final = "Events"
"""How the logical ids begin of the rules that lead to the interruption queue."""


def stack_named(clients: Clients, name: str, now: datetime) -> Stack | None:
    """Answer the stack and what is in it, None if there is none of that name.

    Raises:
        Fault: CloudFormation could not be asked.
    """
    said = stack_said(clients, name)
    if said is None:
        return None
    listed = seen(lambda: resources_of(clients, name))
    if isinstance(listed, Unseen):
        return Stack(
            name=name,
            status=said["StackStatus"],
            since=said["CreationTime"],
            functions=listed,
            schedules=listed,
            queues=listed,
            rules=listed,
            catalogue=listed,
        )
    found = Stack(
        name=name,
        status=said["StackStatus"],
        since=said["CreationTime"],
        functions=seen(lambda: tuple(_functions(clients, listed, now))),
        schedules=seen(lambda: tuple(_schedules(clients, listed))),
        queues=seen(lambda: tuple(_queues(clients, listed))),
        rules=seen(lambda: tuple(_rules(clients, listed))),
        catalogue=seen(lambda: _catalogue(clients, listed)),
    )
    return replace(found, topic=seen(lambda: _topic(clients, found.settings)))


def stack_said(clients: Clients, name: str) -> dict[str, Any] | None:
    """Answer what CloudFormation says of stack *name*, None if there is none.

    Raises:
        Fault: it could not be asked.
    """
    try:
        with faults(f"cloudformation:DescribeStacks {name}"):
            [said] = clients.patient("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except (Gone, Invalid) as fault:
        if isinstance(fault, Gone) or _ABSENT in str(fault):
            return None
        raise
    return dict(said)


def resources_of(clients: Clients, name: str) -> Resources:
    """Answer what is in stack *name*, sorted.

    Raises:
        Fault: it could not be asked.
    """
    with faults(f"cloudformation:ListStackResources {name}"):
        pages = clients.patient("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
        found = [one for page in pages for one in page["StackResourceSummaries"]]
    return tuple(
        sorted((one["ResourceType"], one["LogicalResourceId"], one.get("PhysicalResourceId", "")) for one in found)
    )


def _of(kind: str, listed: Resources) -> Iterator[tuple[str, str]]:
    yield from ((logical, physical) for each, logical, physical in listed if each == kind and physical)


def _functions(clients: Clients, listed: Resources, now: datetime) -> Iterator[FunctionFacts]:
    said = {name: _configuration(clients, name) for _, name in _of("AWS::Lambda::Function", listed)}
    ours = {name: one for name, one in said.items() if one.get("Handler", "").startswith(_OURS)}
    called = seen(lambda: _called(clients, ours, now))
    for name, one in ours.items():
        yield FunctionFacts(
            name=one["Handler"].split(".")[1],
            role_arn=one["Role"],
            state=one.get("State", ""),
            update=one.get("LastUpdateStatus", ""),
            is_in_vpc=bool(one.get("VpcConfig", {}).get("SubnetIds")),
            log_group=one.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}",
            settings=_settings(one),
            called=called if isinstance(called, Unseen) else called[name],
        )


def _configuration(clients: Clients, name: str) -> dict[str, Any]:
    with faults(f"lambda:GetFunctionConfiguration {name}"):
        said: dict[str, Any] = clients.patient("lambda").get_function_configuration(FunctionName=name)
        return said


def _settings(said: dict[str, Any]) -> Settings | None:
    """Answer what the function is told; None where its variables cannot be read, for lack of a key."""
    try:
        return Settings.from_environment(said.get("Environment", {}).get("Variables", {}))
    except KeyError:
        return None


def _called(clients: Clients, names: Iterable[str], now: datetime) -> dict[str, Called]:
    minutes = called_by_the_minute(clients, names, now - LATELY, now)
    return {
        name: Called(calls=sum(calls for _, calls, _ in some), errors=sum(errors for *_, errors in some))
        for name, some in minutes.items()
    }


def called_by_the_minute(
    clients: Clients, names: Iterable[str], begin: datetime, end: datetime
) -> dict[str, tuple[tuple[datetime, int, int], ...]]:
    """Answer by the name in Lambda each minute with calls: when, how many, and how many of them failed.

    Raises:
        Fault: CloudWatch could not be asked.
    """
    order = list(names)
    queries = [_query(f"{metric}{number}", metric, name) for number, name in enumerate(order) for metric in _COUNTED]
    counted: dict[str, dict[datetime, int]] = {}
    with faults("cloudwatch:GetMetricData"):
        pager = clients.patient("cloudwatch").get_paginator("get_metric_data")
        for page in pager.paginate(MetricDataQueries=queries, StartTime=begin, EndTime=end) if queries else ():
            for one in page["MetricDataResults"]:
                at = counted.setdefault(one["Id"], {})
                at.update((when, int(number)) for when, number in zip(one["Timestamps"], one["Values"], strict=True))
    return {name: tuple(_minutes(counted, number)) for number, name in enumerate(order)}


def _minutes(counted: dict[str, dict[datetime, int]], number: int) -> Iterator[tuple[datetime, int, int]]:
    calls, errors = (counted.get(f"{metric.lower()}{number}", {}) for metric in _COUNTED)
    yield from ((at, calls.get(at, 0), errors.get(at, 0)) for at in sorted(calls.keys() | errors.keys()))


def _query(identity: str, metric: str, function: str) -> dict[str, Any]:
    dimensions = [{"Name": "FunctionName", "Value": function}]
    measured = {"Namespace": "AWS/Lambda", "MetricName": metric, "Dimensions": dimensions}
    stat = {"Metric": measured, "Period": 60, "Stat": "Sum"}
    return {"Id": identity.lower(), "MetricStat": stat, "ReturnData": True}


def _schedules(clients: Clients, listed: Resources) -> Iterator[Schedule]:
    """Iterate over the stack's schedules; a group that is the stack's own is listed for itself."""
    ours = {name.rpartition("|")[2].rpartition("/")[2] for _, name in _of("AWS::Scheduler::Schedule", listed)}
    groups = [name for _, name in _of("AWS::Scheduler::ScheduleGroup", listed)]
    with faults("scheduler:ListSchedules"):
        pager = clients.patient("scheduler").get_paginator("list_schedules")
        for group in groups or ["default"]:
            for page in pager.paginate(GroupName=group):
                for one in page["Schedules"]:
                    if groups or one["Name"] in ours:
                        yield Schedule(name=one["Name"], is_enabled=one["State"] == "ENABLED")


def _queues(clients: Clients, listed: Resources) -> Iterator[QueueFacts]:
    for _, url in _of("AWS::SQS::Queue", listed):
        with faults(f"sqs:GetQueueAttributes {url}"):
            said = clients.patient("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        yield QueueFacts(
            name=url.rpartition("/")[2],
            arn=said["QueueArn"],
            waiting=int(said.get("ApproximateNumberOfMessages", 0)),
            policy=said.get("Policy", ""),
        )


def _rules(clients: Clients, listed: Resources) -> Iterator[Rule]:
    events = clients.patient("events")
    for logical, physical in _of("AWS::Events::Rule", listed):
        name = physical.rpartition("|")[2]
        if not logical.startswith(_EVENTS):
            continue
        with faults(f"events:DescribeRule {name}"):
            said = events.describe_rule(Name=name)
        with faults(f"events:ListTargetsByRule {name}"):
            targets = events.list_targets_by_rule(Rule=name)["Targets"]
        yield Rule(
            name=name,
            arn=said["Arn"],
            is_enabled=said.get("State") == "ENABLED",
            targets=tuple(sorted(one["Arn"] for one in targets)),
        )


def _topic(clients: Clients, told: Settings | None) -> Topic | None:
    arn = told.report_topic if told is not None else ""
    if not arn:
        return None
    try:
        with faults(f"sns:GetTopicAttributes {arn}"):
            said = clients.patient("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    except Gone:
        return Topic(arn=arn, is_there=False)
    return Topic(
        arn=arn,
        listeners=int(said.get("SubscriptionsConfirmed", 0)),
        unconfirmed=int(said.get("SubscriptionsPending", 0)),
        key=said.get("KmsMasterKeyId", ""),
    )


def _catalogue(clients: Clients, listed: Resources) -> tuple[datetime | None, datetime | None] | None:
    for _, name in _of("AWS::S3::Bucket", listed):
        found = newest_catalogue(S3Bucket(clients, name), [])
        return None if found is None else (found.made_at or found.priced_at, found.priced_at)
    return None
