"""Checks of the installation: stack, functions, schedules, interruption queue and catalog."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.cluster_group import describe_group
from cli.facts.mode import describe_mode
from cli.facts.model import (
    INVOCATION_WINDOW,
    DoctorFacts,
    EventRule,
    FunctionFacts,
    QueueFacts,
    ReadFailure,
    StackFacts,
)
from shared.model.cloud_provider.cluster_group import describe_different_settings
from shared.model.core.formatting import format_count, format_elapsed
from shared.model.karpenter.money_limit import GROUP_LIMIT_FIX

PRICES_STALE_AFTER: Final = timedelta(hours=24)
CATALOG_STALE_AFTER: Final = timedelta(hours=2)
"""A catalog is built every hour."""
SCHEDULED_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "catalog")
RETRY_FIX: Final = "run doctor again in 15 minutes"
DEPLOY_FIX: Final = "deploy the stack again"
INTERRUPTION_SUFFIX: Final = "-interruption"
DEAD_LETTERS_SUFFIX: Final = "-dead-letters"


def check_stack(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the stack exists and that its last deployment succeeded."""
    if facts.account is None:
        return
    stack, check = facts.account.stack, CheckReporter("stack")
    if isinstance(stack, ReadFailure):
        yield check.skip(
            "the installation", stack, "cloudformation:DescribeStacks; if the stack has another name, add --stack NAME"
        )
    elif stack is None:
        message = f"Joiner is not installed for {facts.account.cluster}"
        deploy = f"npx cdk deploy -c cluster={facts.account.cluster}"
        yield check.defer(message, f"{deploy}; if the stack has another name, add --stack NAME")
    elif stack.status.endswith("_IN_PROGRESS"):
        yield check.warn(f"stack {stack.name} is {stack.status}", "wait until it completes")
    elif "ROLLBACK" in stack.status or stack.status.endswith("FAILED"):
        events = f"aws cloudformation describe-stack-events --stack-name {stack.name}"
        yield check.fail(f"stack {stack.name} is {stack.status}", f"run `{events}` to see the reason")
    else:
        yield check.accept(f"stack {stack.name} is {stack.status}")


def check_mode(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check whether the installation acts on its decisions."""
    settings = facts.stack.settings if facts.stack is not None else None
    if settings is None:
        return
    check, operating_mode = CheckReporter("mode"), describe_mode(settings)
    # Disruption is planned by default: a new installation that keeps the default passes.
    if operating_mode.state in ("active", "disruption-planned"):
        yield check.accept(operating_mode.message)
    else:
        yield check.warn(operating_mode.message, operating_mode.fix)


def check_zonal_shift(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that zonal shift is enabled for the cluster if the setting `zonal-shift` follows it."""
    settings = facts.stack.settings if facts.stack is not None else None
    if facts.stack is None or settings is None or settings.zonal_shift == "off":
        return
    shifts, check = facts.stack.zonal_shifts, CheckReporter("zonal-shift")
    if isinstance(shifts, ReadFailure):
        yield check.skip("zonal shifts", shifts, "arc-zonal-shift:GetManagedResource on the cluster")
    elif shifts is None:
        command = f"aws eks update-cluster-config --name {settings.cluster_name} --zonal-shift-config enabled=true"
        message = f"zonal-shift is {settings.zonal_shift}, but zonal shift is not enabled for the EKS cluster"
        yield check.fail(message, f"run `{command}`, or set `zonal-shift: off`")
    elif shifts:
        for shift in shifts:
            message = f"zone {shift.zone_id} has a zonal shift {shift.describe_end()}: no nodes are launched there"
            yield check.warn(message, "if the zone is healthy again, cancel the shift: docs/guide/zonal-shift.md")
    else:
        yield check.accept("zonal shift is enabled for the cluster, and no shift is active")


def check_functions(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that all functions are active and that their recent invocations succeeded."""
    if facts.stack is None:
        return
    functions, check = facts.stack.functions, CheckReporter("functions")
    if isinstance(functions, ReadFailure):
        yield check.skip(
            "functions", functions, "cloudformation:ListStackResources and lambda:GetFunctionConfiguration"
        )
        return
    if not functions:
        yield check.fail(
            f"stack {facts.stack.name} has no functions", "if this is not Joiner's stack, add --stack NAME"
        )
    for function in functions:
        yield _check_function(function, check, is_new=_is_new(facts.stack, facts))


def _is_new(stack: StackFacts, facts: DoctorFacts) -> bool:
    """Return whether the stack was created so recently that not every function has been invoked."""
    return facts.now - stack.created_at < INVOCATION_WINDOW


def _check_function(function: FunctionFacts, check: CheckReporter, *, is_new: bool) -> CheckResult:
    if function.state not in ("Active", "Inactive", "") or function.last_update_status == "Failed":
        return check.fail(
            f"{function.name} is {function.state}; last update: {function.last_update_status}", DEPLOY_FIX
        )
    counts = function.invocation_counts
    if isinstance(counts, ReadFailure):
        return check.skip(f"{function.name}: invocations", counts, "cloudwatch:GetMetricData")
    counts_text = f"{format_count(counts.invocations, 'invocation')}, {format_count(counts.errors, 'error')}"
    message = f"{function.name}: {counts_text} in {format_elapsed(INVOCATION_WINDOW)}"
    if counts.errors:
        fix = f"aws logs tail {function.log_group} --since 1h --filter-pattern ERROR"
        is_all_failed = counts.errors >= counts.invocations
        return check.fail(f"{message}: every invocation fails", fix) if is_all_failed else check.warn(message, fix)
    if counts.invocations or function.name not in SCHEDULED_FUNCTIONS:
        return check.accept(message)
    if is_new:
        return check.defer(f"{function.name}: CloudWatch has no invocation yet", RETRY_FIX)
    return check.fail(f"{message}: it is not invoked", "check that its schedule is enabled and may invoke it")


def check_schedules(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the schedules are enabled."""
    if facts.stack is None:
        return
    schedules, check = facts.stack.schedules, CheckReporter("schedules")
    if isinstance(schedules, ReadFailure):
        yield check.skip("schedules", schedules, "scheduler:ListSchedules")
        return
    disabled_names = [schedule.name for schedule in schedules if not schedule.is_enabled]
    if disabled_names:
        yield check.fail(
            f"disabled: {', '.join(disabled_names)}", f"enable them in EventBridge Scheduler, or {DEPLOY_FIX}"
        )
    elif not schedules:
        yield check.fail("the stack has no schedules: the functions do not run", DEPLOY_FIX)
    else:
        yield check.accept(f"{format_count(len(schedules), 'schedule')} enabled")


def check_interruption(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the interruption queue exists, that rules target it, and that its policy allows them."""
    if facts.stack is None:
        return
    queues, rules, check = facts.stack.queues, facts.stack.rules, CheckReporter("interruption")
    if isinstance(queues, ReadFailure):
        yield check.skip("the interruption queue", queues, "sqs:GetQueueAttributes")
        return
    queue = next((queue_facts for queue_facts in queues if queue_facts.name.endswith(INTERRUPTION_SUFFIX)), None)
    if queue is None:
        yield check.fail("no interruption queue: Spot interruption warnings are lost", DEPLOY_FIX)
    elif isinstance(rules, ReadFailure):
        yield check.skip("EventBridge rules for EC2 events", rules, "events:DescribeRule, events:ListTargetsByRule")
    else:
        yield from _check_rules(queue, rules, check)


def _check_rules(queue: QueueFacts, rules: tuple[EventRule, ...], check: CheckReporter) -> Iterator[CheckResult]:
    rules_to_queue = [event_rule for event_rule in rules if queue.arn in event_rule.target_arns]
    has_failures = False
    for rule in rules:
        if not rule.is_enabled:
            has_failures = True
            yield check.fail(f"rule {rule.name} is disabled", f"aws events enable-rule --name {rule.name}")
        elif rule not in rules_to_queue:
            has_failures = True
            yield check.fail(f"rule {rule.name} does not target {queue.name}", DEPLOY_FIX)
    if not rules:
        yield check.fail(f"no rule targets {queue.name}: Spot interruption warnings are lost", DEPLOY_FIX)
        return
    denied_names = [event_rule.name for event_rule in rules_to_queue if not _allows_rule(queue.policy, event_rule.arn)]
    if denied_names:
        yield check.fail(f"the policy of {queue.name} does not allow {', '.join(denied_names)}", DEPLOY_FIX)
    elif not has_failures:
        messages_text = format_count(queue.message_count, "message")
        yield check.accept(
            f"{format_count(len(rules_to_queue), 'rule')} for {queue.name}; {messages_text} in the queue"
        )


def _allows_rule(policy: str, rule: str) -> bool:
    """Return whether EventBridge may send for *rule*, according to the statements that Joiner writes."""
    statements: list[dict[str, Any]] = json.loads(policy or "{}").get("Statement", [])
    return any(
        statement.get("Effect") == "Allow"
        and "events.amazonaws.com" in json.dumps(statement.get("Principal"))
        and (
            rule in json.dumps(statement.get("Condition", {}))
            or "aws:SourceArn" not in json.dumps(statement.get("Condition", {}))
        )
        for statement in statements
    )


def check_dead_letters(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the dead-letter queues are empty."""
    if facts.stack is None or isinstance(facts.stack.queues, ReadFailure):
        return
    check = CheckReporter("dead-letters")
    for queue in facts.stack.queues:
        if queue.name.endswith(DEAD_LETTERS_SUFFIX) and queue.message_count:
            message = f"{format_count(queue.message_count, 'message')} in {queue.name}"
            yield check.warn(message, "read the messages and the function's log, then purge the queue")
        elif queue.name.endswith(DEAD_LETTERS_SUFFIX):
            yield check.accept(f"{queue.name} is empty")


def check_catalog(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the catalog and its prices are recent."""
    if facts.stack is None or facts.stack.catalog_times is None:
        yield from _check_missing_catalog(facts)
        return
    catalog_times, check = facts.stack.catalog_times, CheckReporter("catalog")
    if isinstance(catalog_times, ReadFailure):
        yield check.skip("the catalog", catalog_times, "s3:ListBucket and s3:GetObject on the stack's bucket")
        return
    built_at, priced_at = catalog_times
    if built_at is not None and facts.now - built_at > CATALOG_STALE_AFTER:
        message = f"the newest catalog is {format_elapsed(facts.now - built_at)} old"
        yield check.fail(message, "check the log of `catalog`, which builds a catalog every hour")
    elif priced_at is not None and facts.now - priced_at > PRICES_STALE_AFTER:
        message = f"prices are {format_elapsed(facts.now - priced_at)} old"
        yield check.warn(
            message, "check the log of `catalog`; without access to the pricing API, run `joiner catalog prices`"
        )
    else:
        yield check.accept(
            f"prices are {format_elapsed(facts.now - priced_at)} old" if priced_at is not None else "the catalog exists"
        )


def _check_missing_catalog(facts: DoctorFacts) -> Iterator[CheckResult]:
    check = CheckReporter("catalog")
    if facts.stack is None:
        return
    if _is_new(facts.stack, facts):
        yield check.defer("`catalog` has not built a catalog yet", RETRY_FIX)
    else:
        yield check.fail(
            "no catalog: nodes cannot be launched", "check the log of `catalog`, which builds a catalog every hour"
        )


def check_group(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the group can be read, that its clusters agree about it, and that none of them is silent."""
    usage = facts.stack.group_usage if facts.stack is not None else None
    if usage is None:
        return
    check, (_, text) = CheckReporter("group"), describe_group(usage, facts.now)
    if usage.is_denied:
        failure = ReadFailure(reason=usage.read_error, is_denied=True)
        yield check.skip(f"group {usage.group}", failure, f"dynamodb:GetItem on {usage.table}")
        return
    if usage.read_error:
        yield check.fail(text, "check that group-table exists, and that `provision` may read and write it")
        return
    silent = [member for member, entry in usage.entries if entry.is_silent(facts.now)]
    if silent:
        command = f"joiner group forget {silent[0]} --group {usage.group} --table ARN"
        yield check.warn(text, f"run doctor for the silent cluster, or, if it is gone: {command}")
    elif describe_different_settings(usage.entries):
        yield check.warn(text, "use the same group-limit-usd-per-hour and money-limit-prices in all clusters")
    elif usage.used >= usage.limit:
        yield check.warn(text, f"no cluster of the group launches nodes: increase {GROUP_LIMIT_FIX}")
    else:
        yield check.accept(text)
