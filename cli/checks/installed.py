"""The installation: whether it stands, ticks, hears and works."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from cli.checks.acting import acting
from cli.checks.facts import Facts, FunctionFacts, QueueFacts, Rule, Stack, Unseen
from cli.checks.findings import Finding, Findings
from cli.text import age, count

LATELY: Final = timedelta(minutes=15)
"""What is looked at of the functions' calls."""
STALE_PRICES: Final = timedelta(hours=24)
STALE: Final = timedelta(hours=2)
"""A catalogue is made every hour."""
TICKING: Final = ("provision", "lifecycle", "disrupt", "catalog")
SOON: Final = "look again in a quarter of an hour"
AGAIN: Final = "deploy the stack again"
INTERRUPTION: Final = "-interruption"
DEAD: Final = "-dead-letters"


def stack(facts: Facts) -> Iterator[Finding]:
    """Is it installed, and did the last deployment end well?"""
    if facts.account is None:
        return
    found, say = facts.account.stack, Findings("stack")
    if isinstance(found, Unseen):
        yield say.unseen("the installation", found, "cloudformation:DescribeStacks, and --stack NAME if it has another")
    elif found is None:
        what = f"Joiner is not installed for {facts.account.cluster}"
        deploy = f"npx cdk deploy -c joiner:cluster={facts.account.cluster}"
        yield say.later(what, f"{deploy}; if it is there under another name: --stack NAME")
    elif found.status.endswith("_IN_PROGRESS"):
        yield say.warn(f"stack {found.name} is {found.status}", "wait for its end")
    elif "ROLLBACK" in found.status or found.status.endswith("FAILED"):
        events = f"aws cloudformation describe-stack-events --stack-name {found.name}"
        yield say.fail(f"stack {found.name} is {found.status}", f"{events} says why")
    else:
        yield say.ok(f"stack {found.name} is {found.status}")


def mode(facts: Facts) -> Iterator[Finding]:
    """Does it act?"""
    settings = facts.stack.settings if facts.stack is not None else None
    if settings is None:
        return
    say, does = Findings("mode"), acting(settings)
    # Disruption is planned where nobody chose anything: no reason to call a fresh installation unwell.
    if does.state in ("active", "disruption-planned"):
        yield say.ok(does.what)
    else:
        yield say.warn(does.what, does.remedy)


def functions(facts: Facts) -> Iterator[Finding]:
    """Do all functions work, and did they lately?"""
    if facts.stack is None:
        return
    found, say = facts.stack.functions, Findings("functions")
    if isinstance(found, Unseen):
        yield say.unseen("functions", found, "cloudformation:ListStackResources and lambda:GetFunctionConfiguration")
        return
    if not found:
        yield say.fail(f"stack {facts.stack.name} has no functions", "is it Joiner's? name it with --stack")
    for one in found:
        yield _function(one, say, is_new=_is_new(facts.stack, facts))


def _is_new(found: Stack, facts: Facts) -> bool:
    """Whether it was installed so lately that not all has begun."""
    return facts.now - found.since < LATELY


def _function(one: FunctionFacts, say: Findings, *, is_new: bool) -> Finding:
    if one.state not in ("Active", "Inactive", "") or one.update == "Failed":
        return say.fail(f"{one.name} is {one.state}, its last update {one.update}", AGAIN)
    if isinstance(one.called, Unseen):
        return say.unseen(f"{one.name}: its calls", one.called, "cloudwatch:GetMetricData")
    said = f"{one.name}: {count(one.called.calls, 'call')}, {count(one.called.errors, 'error')} in {age(LATELY)}"
    if one.called.errors:
        why = f"aws logs tail {one.log_group} --since 1h --filter-pattern ERROR says why"
        all_of_them = one.called.errors >= one.called.calls
        return say.fail(f"{said}: none succeeds", why) if all_of_them else say.warn(said, why)
    if one.called.calls or one.name not in TICKING:
        return say.ok(said)
    if is_new:
        return say.later(f"{one.name} was not called yet, as far as CloudWatch has counted", SOON)
    return say.fail(f"{said}: nobody calls it", "see whether its schedule is enabled and may call it")


def schedules(facts: Facts) -> Iterator[Finding]:
    """Are the ticks on?"""
    if facts.stack is None:
        return
    found, say = facts.stack.schedules, Findings("schedules")
    if isinstance(found, Unseen):
        yield say.unseen("schedules", found, "scheduler:ListSchedules")
        return
    off = [one.name for one in found if not one.is_enabled]
    if off:
        yield say.fail(f"disabled: {', '.join(off)}", f"enable them in EventBridge Scheduler, or {AGAIN}")
    elif not found:
        yield say.fail("there is none: nothing ticks", AGAIN)
    else:
        yield say.ok(f"{count(len(found), 'schedule')} on")


def interruption(facts: Facts) -> Iterator[Finding]:
    """Does the queue hear of spot interruptions: is it there, do rules lead to it, does it let them?"""
    if facts.stack is None:
        return
    queues, rules, say = facts.stack.queues, facts.stack.rules, Findings("interruption")
    if isinstance(queues, Unseen):
        yield say.unseen("the interruption queue", queues, "sqs:GetQueueAttributes")
        return
    queue = next((one for one in queues if one.name.endswith(INTERRUPTION)), None)
    if queue is None:
        yield say.fail("there is no interruption queue: spot warnings are lost", AGAIN)
    elif isinstance(rules, Unseen):
        yield say.unseen("the rules of EC2's announcements", rules, "events:DescribeRule, events:ListTargetsByRule")
    else:
        yield from _wired(queue, rules, say)


def _wired(queue: QueueFacts, rules: tuple[Rule, ...], say: Findings) -> Iterator[Finding]:
    leading = [one for one in rules if queue.arn in one.targets]
    wrong = False
    for one in rules:
        if not one.is_enabled:
            wrong = True
            yield say.fail(f"rule {one.name} is disabled", f"aws events enable-rule --name {one.name}")
        elif one not in leading:
            wrong = True
            yield say.fail(f"rule {one.name} does not lead to {queue.name}", AGAIN)
    if not rules:
        yield say.fail(f"no rule leads to {queue.name}: spot warnings are lost", AGAIN)
        return
    shut = [one.name for one in leading if not _lets_in(queue.policy, one.arn)]
    if shut:
        yield say.fail(f"the policy of {queue.name} does not let {', '.join(shut)} in", AGAIN)
    elif not wrong:
        yield say.ok(f"{count(len(leading), 'rule')} lead to {queue.name}, {count(queue.waiting, 'message')} waiting")


def _lets_in(policy: str, rule: str) -> bool:
    """Whether EventBridge may send for *rule*, as far as the statements that we write say."""
    statements: list[dict[str, Any]] = json.loads(policy or "{}").get("Statement", [])
    return any(
        one.get("Effect") == "Allow"
        and "events.amazonaws.com" in json.dumps(one.get("Principal"))
        and (
            rule in json.dumps(one.get("Condition", {})) or "aws:SourceArn" not in json.dumps(one.get("Condition", {}))
        )
        for one in statements
    )


def dead_letters(facts: Facts) -> Iterator[Finding]:
    """Did messages fail for good?"""
    if facts.stack is None or isinstance(facts.stack.queues, Unseen):
        return
    say = Findings("dead-letters")
    for one in facts.stack.queues:
        if one.name.endswith(DEAD) and one.waiting:
            what = f"{count(one.waiting, 'message')} in {one.name}"
            yield say.warn(what, "read them, and the log of their function; purge the queue then")
        elif one.name.endswith(DEAD):
            yield say.ok(f"{one.name} is empty")


def catalogue(facts: Facts) -> Iterator[Finding]:
    """Are decisions made with what is sold now?"""
    if facts.stack is None or facts.stack.catalogue is None:
        yield from _no_catalogue(facts)
        return
    found, say = facts.stack.catalogue, Findings("catalogue")
    if isinstance(found, Unseen):
        yield say.unseen("the catalogue", found, "s3:ListBucket and s3:GetObject on the stack's bucket")
        return
    made, priced = found
    if made is not None and facts.now - made > STALE:
        what = f"the newest catalogue is {age(facts.now - made)} old"
        yield say.fail(what, "see the log of `catalog`: it makes one every hour")
    elif priced is not None and facts.now - priced > STALE_PRICES:
        what = f"prices are {age(facts.now - priced)} old"
        yield say.warn(
            what, "see the log of `catalog`; where no pricing service is reached: a new `joiner catalog prices`"
        )
    else:
        yield say.ok(f"prices are {age(facts.now - priced)} old" if priced is not None else "there is one")


def _no_catalogue(facts: Facts) -> Iterator[Finding]:
    say = Findings("catalogue")
    if facts.stack is None:
        return
    if _is_new(facts.stack, facts):
        yield say.later("`catalog` made none yet", SOON)
    else:
        yield say.fail("there is none: nothing can be launched", "see the log of `catalog`: it makes one every hour")
