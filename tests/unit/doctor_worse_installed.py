"""What may be wrong with an installation, and left of one: check, facts, level, words, remedy."""

from datetime import timedelta

from msgspec.structs import replace

from cli.checks.facts import Called, Rule, Schedule
from shared.model.ec2 import LaunchTemplate
from tests.unit.doctor_facts import (
    NOW,
    QUEUE,
    RULE,
    claim,
    facts,
    function,
    policy,
    preflight,
    stack,
    stacked,
)
from tests.unit.doctor_worse_cluster import Worse, settings_of

WORSE: list[Worse] = [
    ("stack", stacked(status="UPDATE_ROLLBACK_COMPLETE"), "fail", "is UPDATE_ROLLBACK_COMPLETE", "events"),
    ("stack", stacked(status="UPDATE_IN_PROGRESS"), "warn", "is UPDATE_IN_PROGRESS", "wait"),
    ("mode", stacked(**settings_of(mode="plan")), "warn", "changes nothing", "joiner:mode=active"),
    (
        "mode",
        stacked(**settings_of(disruption_paused="Drifted")),
        "warn",
        "joiner:disruption-paused is Drifted",
        "deploy",
    ),
    ("functions", stacked(functions=()), "fail", "has no functions", "--stack"),
    ("functions", stacked(functions=(function("disrupt", state="Failed"),)), "fail", "disrupt is Failed", "deploy"),
    ("functions", stacked(functions=(function("disrupt", update="Failed"),)), "fail", "last update Failed", "deploy"),
    (
        "functions",
        stacked(functions=(function("disrupt", called=Called(calls=3, errors=3)),)),
        "fail",
        "disrupt: 3 calls, 3 errors in 15 minutes: none succeeds",
        "aws logs tail /joiner/disrupt",
    ),
    (
        "functions",
        stacked(functions=(function("disrupt", called=Called(calls=3, errors=1)),)),
        "warn",
        "3 calls, 1 error",
        "aws logs tail /joiner/disrupt",
    ),
    (
        "functions",
        stacked(functions=(function("disrupt", called=Called(calls=0, errors=0)),)),
        "fail",
        "nobody calls it",
        "schedule",
    ),
    ("schedules", stacked(schedules=()), "fail", "nothing ticks", "deploy the stack again"),
    (
        "schedules",
        stacked(schedules=(Schedule(name="tick", is_enabled=False),)),
        "fail",
        "disabled: tick",
        "EventBridge Scheduler",
    ),
    ("interruption", stacked(queues=()), "fail", "no interruption queue", "deploy the stack again"),
    ("interruption", stacked(rules=()), "fail", "no rule leads to", "deploy the stack again"),
    (
        "interruption",
        stacked(rules=(Rule(name="spot", arn=RULE, is_enabled=False, targets=(QUEUE,)),)),
        "fail",
        "rule spot is disabled",
        "enable-rule --name spot",
    ),
    (
        "interruption",
        stacked(rules=(Rule(name="spot", arn=RULE, is_enabled=True, targets=()),)),
        "fail",
        "rule spot does not lead to prod-joiner-interruption",
        "deploy the stack again",
    ),
    (
        "interruption",
        stacked(queues=(replace(stack().queues[0], policy=policy("arn:other")),)),  # type: ignore[index]  # it is seen
        "fail",
        "does not let spot in",
        "deploy the stack again",
    ),
    (
        "dead-letters",
        stacked(queues=(replace(stack().queues[1], waiting=2),)),  # type: ignore[index]  # it is seen
        "warn",
        "2 messages in prod-joiner-dead-letters",
        "purge",
    ),
    ("catalogue", stacked(catalogue=None), "fail", "nothing can be launched", "`catalog`"),
    ("catalogue", stacked(catalogue=(NOW - timedelta(hours=5), NOW)), "fail", "is 5 hours old", "`catalog`"),
    ("catalogue", stacked(catalogue=(NOW, NOW - timedelta(days=3))), "warn", "prices are 3 days old", "prices"),
    ("leaks", facts({"node_claims": ()}), "fail", "1 Instance: i-1: no NodeClaim has it", "`joiner audit`"),
    (
        "leaks",
        facts({"node_claims": (claim("c-1", "i-1"), claim("c-2", "i-2"))}),
        "fail",
        "1 NodeClaim: c-2: its instance is not there",
        "`joiner audit`",
    ),
    (
        "launch-templates",
        preflight(
            of_account={
                "templates": (
                    LaunchTemplate(name="joiner/prod/t", image_id="", user_data="", created_at=NOW - timedelta(days=2)),
                )
            }
        ),
        "warn",
        "1 launch template of an earlier installation: joiner/prod/t",
        "delete-launch-template",
    ),
]
