"""Read the triggers of functions from the APIs of an account, as the deployer sees them.

Triggers are event source mappings, schedules and rules.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from sim.aws_account.function_runtime import ClientFactory
from sim.lambda_processes.event_sources.event_bus import EventBusRule
from sim.lambda_processes.event_sources.event_deliveries import DeliveryTarget
from sim.lambda_processes.event_sources.queue_pollers import QueueMapping
from sim.lambda_processes.event_sources.schedules import EventSchedule

CACHE_TTL: Final = timedelta(seconds=4)
"""How long a response is cached; after a change of the account, call `invalidate`."""
UTC_NAMES: Final = ("", "UTC", "Etc/UTC")


class Unsupported(Exception):
    """The account has something that the embedded world does not support; the message names it."""


class TriggerReader:
    """Mappings, schedules and rules of an account, cached for `CACHE_TTL`."""

    def __init__(self, clients: ClientFactory, clock: Callable[[], datetime]) -> None:
        """Start with an empty cache."""
        self._clients, self._clock = clients, clock
        self._cache: dict[str, tuple[datetime, tuple[Any, ...]]] = {}

    def invalidate(self) -> None:
        """Clear the cache; a response that another thread is reading now is not cached."""
        self._cache = {}

    def list_mappings(self) -> tuple[QueueMapping, ...]:
        """Return the enabled event source mappings of queues."""
        return self._get_cached("mappings", self._fetch_mappings)

    def list_schedules(self) -> tuple[EventSchedule, ...]:
        """Return the enabled schedules: of EventBridge Scheduler, and of rules.

        Raises:
            Unsupported: a schedule is not in UTC.
        """
        return self._get_cached("schedules", self._fetch_schedules) + self._get_cached(
            "ticks", self._fetch_rule_schedules
        )

    def list_rules(self) -> tuple[EventBusRule, ...]:
        """Return the enabled rules with an event pattern."""
        return self._get_cached("rules", self._fetch_event_rules)

    def _get_cached(self, cache_key: str, fetch: Callable[[], Iterator[Any]]) -> tuple[Any, ...]:
        now, cache = self._clock(), self._cache
        cached_entry = cache.get(cache_key)
        if cached_entry is None or now - cached_entry[0] > CACHE_TTL:
            previous_values = cached_entry[1] if cached_entry is not None else ()
            try:
                cached_entry = (now, tuple(fetch()))
            except ClientError:
                cached_entry = (now, previous_values)  # something was deleted between two requests
            cache[cache_key] = cached_entry
        return cached_entry[1]

    def _fetch_mappings(self) -> Iterator[QueueMapping]:
        for mapping in self._paginate("lambda", "list_event_source_mappings", "EventSourceMappings"):
            if mapping["State"] in ("Enabled", "Enabling", "Creating") and ":sqs:" in mapping["EventSourceArn"]:
                yield QueueMapping(
                    uuid=mapping["UUID"],
                    queue_arn=mapping["EventSourceArn"],
                    function_arn=mapping["FunctionArn"],
                    batch_size=mapping["BatchSize"],
                    batching_window=timedelta(seconds=mapping.get("MaximumBatchingWindowInSeconds") or 0),
                    reports_item_failures="ReportBatchItemFailures" in (mapping.get("FunctionResponseTypes") or ()),
                    maximum_concurrency=(mapping.get("ScalingConfig") or {}).get("MaximumConcurrency", 1000),
                )

    def _fetch_schedules(self) -> Iterator[EventSchedule]:
        scheduler = self._clients.get_client("scheduler")
        for schedule_summary in self._paginate("scheduler", "list_schedules", "Schedules"):
            schedule = scheduler.get_schedule(Name=schedule_summary["Name"], GroupName=schedule_summary["GroupName"])
            if schedule.get("ScheduleExpressionTimezone", "") not in UTC_NAMES:
                raise Unsupported(f"schedule {schedule['Name']} is in {schedule['ScheduleExpressionTimezone']}")
            if schedule["State"] == "ENABLED":
                group_arn = schedule["Arn"].replace(":schedule/", ":schedule-group/").rpartition("/")[0]
                target = _parse_target(schedule["Target"], group_arn)
                yield EventSchedule(name=schedule["Name"], expression=schedule["ScheduleExpression"], targets=(target,))

    def _fetch_rule_schedules(self) -> Iterator[EventSchedule]:
        for rule, targets in self._fetch_rules_with_targets():
            if rule.get("ScheduleExpression"):
                yield EventSchedule(name=rule["Name"], expression=rule["ScheduleExpression"], targets=targets)

    def _fetch_event_rules(self) -> Iterator[EventBusRule]:
        for rule, targets in self._fetch_rules_with_targets():
            if rule.get("EventPattern"):
                yield EventBusRule(name=rule["Name"], pattern=rule["EventPattern"], targets=targets)

    def _fetch_rules_with_targets(self) -> Iterator[tuple[dict[str, Any], tuple[DeliveryTarget, ...]]]:
        events = self._clients.get_client("events")
        for rule in self._paginate("events", "list_rules", "Rules"):
            if rule["State"] == "ENABLED":
                targets = events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
                yield rule, tuple(_parse_target(target) for target in targets)

    def _paginate(self, service: str, operation: str, key: str) -> Iterator[dict[str, Any]]:
        for page in self._clients.get_client(service).get_paginator(operation).paginate():
            yield from page[key]


def _parse_target(response_target: dict[str, Any], source_arn: str = "") -> DeliveryTarget:
    retry_policy = response_target.get("RetryPolicy") or {}
    return DeliveryTarget(
        arn=response_target["Arn"],
        role_arn=response_target.get("RoleArn") or "",
        source_arn=source_arn,
        input=response_target.get("Input") or "",
        max_attempts=1 + retry_policy.get("MaximumRetryAttempts", 185),
        max_age=timedelta(seconds=retry_policy.get("MaximumEventAgeInSeconds", 86_400)),
        dead_letter_arn=(response_target.get("DeadLetterConfig") or {}).get("Arn") or "",
    )
