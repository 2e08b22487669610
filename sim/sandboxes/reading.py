"""What of an account wakes functions, asked of its APIs as the deployer sees them."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

from sim.account.contract import Credentials
from sim.sandboxes.bus import Rule
from sim.sandboxes.deliveries import Target
from sim.sandboxes.queues import Mapping
from sim.sandboxes.schedules import Schedule

FRESH: Final = timedelta(seconds=4)
"""So long an answer is good; an account that changes is asked anew, by `forget`."""
UTC_NAMES: Final = ("", "UTC", "Etc/UTC")


class Clients(Protocol):
    """Who makes clients of an account."""

    def client(self, service: str, credentials: Credentials = ...) -> Any:  # noqa: ANN401 - boto3's
        """Answer a client of *service* for whoever has *credentials*; without: for the deployer."""


class Unsupported(Exception):
    """The account has something that the embedded world does not do; the message names it."""


class Reading:
    """Mappings, schedules and rules, each asked for again when the answer is old."""

    def __init__(self, clients: Clients, clock: Callable[[], datetime]) -> None:
        """Ask nothing yet."""
        self._clients, self._clock = clients, clock
        self._kept: dict[str, tuple[datetime, tuple[Any, ...]]] = {}

    def forget(self) -> None:
        """Ask anew the next time; what another thread is being told just now is not kept."""
        self._kept = {}

    def mappings(self) -> tuple[Mapping, ...]:
        """Answer the event source mappings of queues that are switched on."""
        return self._fresh("mappings", self._mappings)

    def schedules(self) -> tuple[Schedule, ...]:
        """Answer what rings by the clock and is switched on: of Scheduler, and of rules.

        Raises:
            Unsupported: one is not in UTC.
        """
        return self._fresh("schedules", self._scheduled) + self._fresh("ticks", self._ticks)

    def rules(self) -> tuple[Rule, ...]:
        """Answer the rules that wait for events and are switched on."""
        return self._fresh("rules", self._waiting)

    def _fresh(self, what: str, ask: Callable[[], Iterator[Any]]) -> tuple[Any, ...]:
        now, known = self._clock(), self._kept
        kept = known.get(what)
        if kept is None or now - kept[0] > FRESH:
            before = kept[1] if kept is not None else ()
            try:
                kept = (now, tuple(ask()))
            except ClientError:
                kept = (now, before)  # something was deleted between two questions
            known[what] = kept
        return kept[1]

    def _mappings(self) -> Iterator[Mapping]:
        for one in self._pages("lambda", "list_event_source_mappings", "EventSourceMappings"):
            if one["State"] in ("Enabled", "Enabling", "Creating") and ":sqs:" in one["EventSourceArn"]:
                yield Mapping(
                    uuid=one["UUID"],
                    queue_arn=one["EventSourceArn"],
                    function_arn=one["FunctionArn"],
                    batch_size=one["BatchSize"],
                    window=timedelta(seconds=one.get("MaximumBatchingWindowInSeconds") or 0),
                    partial_failures="ReportBatchItemFailures" in (one.get("FunctionResponseTypes") or ()),
                    maximum_concurrency=(one.get("ScalingConfig") or {}).get("MaximumConcurrency", 1000),
                )

    def _scheduled(self) -> Iterator[Schedule]:
        scheduler = self._clients.client("scheduler")
        for short in self._pages("scheduler", "list_schedules", "Schedules"):
            one = scheduler.get_schedule(Name=short["Name"], GroupName=short["GroupName"])
            if one.get("ScheduleExpressionTimezone", "") not in UTC_NAMES:
                raise Unsupported(f"schedule {one['Name']} is in {one['ScheduleExpressionTimezone']}")
            if one["State"] == "ENABLED":
                group = one["Arn"].replace(":schedule/", ":schedule-group/").rpartition("/")[0]
                target = _target(one["Target"], group)
                yield Schedule(name=one["Name"], expression=one["ScheduleExpression"], targets=(target,))

    def _ticks(self) -> Iterator[Schedule]:
        for one, targets in self._all_rules():
            if one.get("ScheduleExpression"):
                yield Schedule(name=one["Name"], expression=one["ScheduleExpression"], targets=targets)

    def _waiting(self) -> Iterator[Rule]:
        for one, targets in self._all_rules():
            if one.get("EventPattern"):
                yield Rule(name=one["Name"], pattern=one["EventPattern"], targets=targets)

    def _all_rules(self) -> Iterator[tuple[dict[str, Any], tuple[Target, ...]]]:
        events = self._clients.client("events")
        for one in self._pages("events", "list_rules", "Rules"):
            if one["State"] == "ENABLED":
                targets = events.list_targets_by_rule(Rule=one["Name"])["Targets"]
                yield one, tuple(_target(each) for each in targets)

    def _pages(self, service: str, call: str, key: str) -> Iterator[dict[str, Any]]:
        for page in self._clients.client(service).get_paginator(call).paginate():
            yield from page[key]


def _target(said: dict[str, Any], source_arn: str = "") -> Target:
    policy = said.get("RetryPolicy") or {}
    return Target(
        arn=said["Arn"],
        role_arn=said.get("RoleArn") or "",
        source_arn=source_arn,
        input=said.get("Input") or "",
        attempts=1 + policy.get("MaximumRetryAttempts", 185),
        max_age=timedelta(seconds=policy.get("MaximumEventAgeInSeconds", 86_400)),
        dead_letters_arn=(said.get("DeadLetterConfig") or {}).get("Arn") or "",
    )
