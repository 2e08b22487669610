"""Check of the SNS topic of the daily cost notification."""

from collections.abc import Iterator
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts, ReadFailure, TopicFacts
from shared.model.core.formatting import format_count

AWS_MANAGED_KEY: Final = "alias/aws/sns"
"""AWS's own key, which allows all principals of the account that may publish."""
_OPTION: Final = "report-topic"


def check_report_topic(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the topic of the cost notification exists and has a subscription."""
    topic, check = facts.stack.topic if facts.stack is not None else None, CheckReporter("report-topic")
    if isinstance(topic, ReadFailure):
        yield check.skip(f"the topic of {_OPTION}", topic, "sns:GetTopicAttributes on it")
    elif topic is not None:
        yield _check_topic(topic, check)


def _check_topic(topic: TopicFacts, check: CheckReporter) -> CheckResult:
    name = topic.arn.rpartition(":")[2]
    if not topic.exists:
        fix = f'aws sns create-topic --name {name}, or set {_OPTION} to an existing topic or to "", and deploy'
        return check.fail(f"{_OPTION}: topic {topic.arn} does not exist: cost reports are not delivered", fix)
    if not topic.confirmed_subscriptions:
        waiting = (
            f", {format_count(topic.pending_subscriptions, 'subscription')} not confirmed"
            if topic.pending_subscriptions
            else ""
        )
        subscribe = f"aws sns subscribe --topic-arn {topic.arn} --protocol email --notification-endpoint ADDRESS"
        fix = "confirm the subscription with the link that SNS has sent" if topic.pending_subscriptions else subscribe
        return check.warn(f"topic {name} has no confirmed subscription{waiting}", fix)
    key = (
        f"; its key {topic.kms_key} must allow the role of `catalog` (docs/cost.md)"
        if topic.kms_key not in ("", AWS_MANAGED_KEY)
        else ""
    )
    return check.accept(f"{format_count(topic.confirmed_subscriptions, 'subscription')} to topic {name}{key}")
