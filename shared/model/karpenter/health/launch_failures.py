"""Launches of an EC2NodeClass that pause while its nodes do not register.

* joiner.dev/pause-launches-after-failures: "3": the setting of the user
* joiner.dev/launch-failures: the state that Joiner writes, `LaunchFailures` as JSON

While launches are paused, one node at a time is launched as a test. The first node that registers ends the pause.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Final, TypeAlias

import msgspec

from shared.model.core.labels import LAUNCH_FAILURES, PAUSE_AFTER_FAILURES
from shared.model.core.metadata import find_condition
from shared.model.core.units import format_instant
from shared.model.karpenter.health.canary import build_claim_key
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass

MAX_REGISTRATION_TIME: Final = timedelta(minutes=9)
"""How long after its launch a node may be unregistered until it counts as a failure.

Less than the ten minutes after which a disruption command deletes a replacement that does not get ready.
"""
RECORDING_PERIOD: Final = timedelta(minutes=3)
"""How long after that a node is taken for starting, because `lifecycle` may not have recorded its failure yet."""
MIN_TEST_DELAY: Final = timedelta(minutes=5)
MAX_TEST_DELAY: Final = timedelta(minutes=30)
MIN_FAILURE_LIMIT: Final = 2
MAX_FAILURE_LIMIT: Final = 100
"""Also the number of failures that are recorded."""
LAUNCHES_PAUSED_REASON: Final = "LaunchesPaused"
"""Of events, of the condition of the EC2NodeClass, and of pods and NodeClaims that wait."""
_EARLIEST_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST_TIME: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""Delays can be added to valid times, and they can be compared: users may edit the annotation."""

RecordedTime: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class LaunchFailures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of the annotation joiner.dev/launch-failures."""

    generation: int = msgspec.field(name="of")
    """The generation of the EC2NodeClass: a change of its spec may fix the cause, and starts a new history."""
    since: RecordedTime
    """Nodes that were launched earlier do not count."""
    failed: dict[str, RecordedTime] = {}
    """When the nodes were launched that did not register, by `build_claim_key`: names recur."""
    registered_at: RecordedTime | None = msgspec.field(default=None, name="registered")
    """When the last node registered, as far as it matters for nodes that start."""


class LaunchPause(msgspec.Struct, frozen=True, kw_only=True):
    """Launches of an EC2NodeClass are paused."""

    node_class: str
    failure_count: int
    since: datetime
    """When the first of the failed nodes was overdue."""
    test_at: datetime
    """When the next node may be launched as a test."""
    starting_claim: str = ""
    """The NodeClaim that was launched and may still register: the test, or an earlier launch."""

    def is_test_due(self, now: datetime) -> bool:
        """Return whether one node may be launched now."""
        return not self.starting_claim and self.test_at <= now

    def describe(self, now: datetime) -> str:
        """Return the reason, the next test, and how to resume now."""
        if self.starting_claim:
            return self._describe(f"NodeClaim {self.starting_claim} is starting")
        if self.is_test_due(now):
            return self._describe("one node is launched now as a test")
        return self._describe(f"one node is launched as a test at {format_instant(self.test_at)}")

    def describe_cause(self) -> str:
        """Return the same with the rule of the tests, for a reader that cannot know what is starting."""
        return self._describe("launches are paused, but one node at a time is launched as a test")

    def _describe(self, next_step: str) -> str:
        return (
            f"the last {self.failure_count} nodes of EC2NodeClass {self.node_class} did not register; {next_step}, and "
            f"launches resume when a node registers; to resume now: correct the EC2NodeClass, or remove its annotation "
            f"{LAUNCH_FAILURES}"
        )


def parse_failure_limit(node_class: EC2NodeClass) -> int:
    """Return after how many failures launches pause; 0: never.

    Raises:
        ValueError: the annotation is invalid; the message names the field and the fix.
    """
    text = node_class.meta.get_annotation(PAUSE_AFTER_FAILURES)
    if not text:
        return 0
    if not text.isdecimal() or not MIN_FAILURE_LIMIT <= int(text) <= MAX_FAILURE_LIMIT:
        field = f"metadata.annotations[{PAUSE_AFTER_FAILURES}]"
        bounds = f"from {MIN_FAILURE_LIMIT} to {MAX_FAILURE_LIMIT}"
        raise ValueError(f'{field}: {text!r} is not a number {bounds}: write one, like "3"')
    return int(text)


def find_failure_limit(node_class: EC2NodeClass) -> int:
    """Return after how many failures launches pause; 0: never, or the annotation is invalid."""
    try:
        return parse_failure_limit(node_class)
    except ValueError:
        return 0


def parse_launch_failures(node_class: EC2NodeClass) -> LaunchFailures | None:
    """Return the history of the current spec; None if there is none, or it is invalid."""
    failures = _parse_failures(node_class.meta.get_annotation(LAUNCH_FAILURES))
    is_current = failures is not None and failures.generation == node_class.meta.generation
    return failures if is_current else None


def find_history_problem(node_class: EC2NodeClass) -> str:
    """Return why the history of *node_class* is invalid, with field and fix; "" if it is valid or there is none."""
    text = node_class.meta.get_annotation(LAUNCH_FAILURES)
    if not text or _parse_failures(text) is not None:
        return ""
    return f"metadata.annotations[{LAUNCH_FAILURES}]: is not a history of Joiner, and counts as none: remove it"


def find_launch_pause(node_class: EC2NodeClass, node_claims: Iterable[NodeClaim], now: datetime) -> LaunchPause | None:
    """Return the pause of the launches of *node_class*; None if they are not paused. *node_claims*: of the cluster."""
    limit = find_failure_limit(node_class)
    failures = parse_launch_failures(node_class) if limit else None
    if failures is None or len(failures.failed) < limit:
        return None
    first, last = (at + MAX_REGISTRATION_TIME for at in (min(failures.failed.values()), max(failures.failed.values())))
    # Each test waits as long as nodes have failed so far, so the delay doubles.
    delay = min(max(last - first, MIN_TEST_DELAY), MAX_TEST_DELAY)
    starting = [
        claim.name
        for claim in node_claims
        if claim.node_class.name == node_class.name
        and build_claim_key(claim) not in failures.failed
        and _is_starting(claim, now)
    ]
    return LaunchPause(
        node_class=node_class.name,
        failure_count=len(failures.failed),
        since=first,
        test_at=last + delay,
        starting_claim=min(starting, default=""),
    )


def find_launch_time(claim: NodeClaim) -> datetime | None:
    """Return when the instance of *claim* was launched; None if it is not launched."""
    return _find_true_since(claim, "Launched")


def find_registration_time(claim: NodeClaim) -> datetime | None:
    """Return when the node of *claim* registered; None if it has not."""
    return _find_true_since(claim, "Registered")


def _is_starting(claim: NodeClaim, now: datetime) -> bool:
    """Return whether the instance of *claim* is launched, and the result is not known yet."""
    launched_at = find_launch_time(claim)
    if launched_at is None or claim.is_registered() or claim.is_deleting():
        return False
    return now < launched_at + MAX_REGISTRATION_TIME + RECORDING_PERIOD


def _find_true_since(claim: NodeClaim, type_: str) -> datetime | None:
    condition = find_condition(claim.conditions, type_)
    return condition.since if condition is not None and condition.status == "True" else None


@lru_cache(maxsize=256)
def _parse_failures(text: str) -> LaunchFailures | None:
    """Return the history *text*; None if it is invalid, also if a time of it has no time zone or is out of range."""
    try:
        failures = msgspec.json.decode(text, type=LaunchFailures)
    except (ValueError, RecursionError):
        return None
    times = (failures.since, *failures.failed.values(), failures.registered_at or failures.since)
    return failures if all(_EARLIEST_TIME <= at < _LATEST_TIME for at in times) else None
