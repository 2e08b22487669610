"""Who is told each day what nodes cost."""

from collections.abc import Iterator
from typing import Final

from cli.checks.facts import Facts, Topic, Unseen
from cli.checks.findings import Finding, Findings
from cli.text import count

MANAGED: Final = "alias/aws/sns"
"""AWS's own key, which lets all of the account in who may publish."""
_KNOB: Final = "joiner:report-topic"


def report_topic(facts: Facts) -> Iterator[Finding]:
    """Is the topic there that hears what nodes cost, and does somebody listen?"""
    found, say = facts.stack.topic if facts.stack is not None else None, Findings("report-topic")
    if isinstance(found, Unseen):
        yield say.unseen(f"the topic of {_KNOB}", found, "sns:GetTopicAttributes on it")
    elif found is not None:
        yield _judged(found, say)


def _judged(one: Topic, say: Findings) -> Finding:
    name = one.arn.rpartition(":")[2]
    if not one.is_there:
        remedy = f"aws sns create-topic --name {name}, or deploy with -c {_KNOB}= and one that is there, or none"
        return say.fail(f"{_KNOB}: there is no topic {one.arn}: nobody is told what nodes cost", remedy)
    if not one.listeners:
        waiting = f", {count(one.unconfirmed, 'subscription')} not confirmed yet" if one.unconfirmed else ""
        subscribe = f"aws sns subscribe --topic-arn {one.arn} --protocol email --notification-endpoint ADDRESS"
        remedy = "confirm: SNS has sent a link to whoever subscribed" if one.unconfirmed else subscribe
        return say.warn(f"nobody listens to topic {name}{waiting}", remedy)
    key = (
        f"; its key {one.key} must let the role of `catalog` in (docs/cost.md)" if one.key not in ("", MANAGED) else ""
    )
    return say.ok(f"{count(one.listeners, 'subscription')} to topic {name}{key}")
