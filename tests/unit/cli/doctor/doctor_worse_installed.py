"""What may be wrong with an installation, and left of one: check, facts, level, words, remedy."""

from datetime import timedelta

from msgspec.structs import replace

from cli.facts.model import EventRule, InvocationCounts, ScheduleFacts
from shared.model.ec2.launch_template import LaunchTemplate
from tests.support.cli.doctor_facts import (
    NOW,
    QUEUE,
    RULE,
    make_claim,
    make_facts,
    make_facts_with_stack,
    make_function_facts,
    make_preflight_facts,
    make_queue_policy,
    make_stack_facts,
)
from tests.unit.cli.doctor.doctor_worse_cluster import Worse, make_function_parts

WORSE: list[Worse] = [
    (
        "stack",
        make_facts_with_stack(status="UPDATE_ROLLBACK_COMPLETE"),
        "fail",
        "is UPDATE_ROLLBACK_COMPLETE",
        "events",
    ),
    ("stack", make_facts_with_stack(status="UPDATE_IN_PROGRESS"), "warn", "is UPDATE_IN_PROGRESS", "wait"),
    (
        "mode",
        make_facts_with_stack(**make_function_parts(mode="plan")),
        "warn",
        "changes nothing",
        "mode: active",
    ),
    (
        "mode",
        make_facts_with_stack(**make_function_parts(disruption_paused="Drifted")),
        "warn",
        "disruption-paused is Drifted",
        "deploy",
    ),
    ("functions", make_facts_with_stack(functions=()), "fail", "has no functions", "--stack"),
    (
        "functions",
        make_facts_with_stack(functions=(make_function_facts("disrupt", state="Failed"),)),
        "fail",
        "disrupt is Failed",
        "deploy",
    ),
    (
        "functions",
        make_facts_with_stack(functions=(make_function_facts("disrupt", last_update_status="Failed"),)),
        "fail",
        "disrupt is Active; last update: Failed",
        "deploy",
    ),
    (
        "functions",
        make_facts_with_stack(
            functions=(make_function_facts("disrupt", invocation_counts=InvocationCounts(invocations=3, errors=3)),)
        ),
        "fail",
        "disrupt: 3 invocations, 3 errors in 15m: every invocation fails",
        "aws logs tail /joiner/disrupt",
    ),
    (
        "functions",
        make_facts_with_stack(
            functions=(make_function_facts("disrupt", invocation_counts=InvocationCounts(invocations=3, errors=1)),)
        ),
        "warn",
        "disrupt: 3 invocations, 1 error in 15m",
        "aws logs tail /joiner/disrupt",
    ),
    (
        "functions",
        make_facts_with_stack(
            functions=(make_function_facts("disrupt", invocation_counts=InvocationCounts(invocations=0, errors=0)),)
        ),
        "fail",
        "disrupt: 0 invocations, 0 errors in 15m: it is not invoked",
        "schedule",
    ),
    (
        "schedules",
        make_facts_with_stack(schedules=()),
        "fail",
        "the stack has no schedules: the functions do not run",
        "deploy the stack again",
    ),
    (
        "schedules",
        make_facts_with_stack(schedules=(ScheduleFacts(name="tick", is_enabled=False),)),
        "fail",
        "disabled: tick",
        "EventBridge Scheduler",
    ),
    ("interruption", make_facts_with_stack(queues=()), "fail", "no interruption queue", "deploy the stack again"),
    (
        "interruption",
        make_facts_with_stack(rules=()),
        "fail",
        "no rule targets",
        "deploy the stack again",
    ),
    (
        "interruption",
        make_facts_with_stack(rules=(EventRule(name="spot", arn=RULE, is_enabled=False, target_arns=(QUEUE,)),)),
        "fail",
        "rule spot is disabled",
        "enable-rule --name spot",
    ),
    (
        "interruption",
        make_facts_with_stack(rules=(EventRule(name="spot", arn=RULE, is_enabled=True, target_arns=()),)),
        "fail",
        "rule spot does not target prod-joiner-interruption",
        "deploy the stack again",
    ),
    (
        "interruption",
        make_facts_with_stack(queues=(replace(make_stack_facts().queues[0], policy=make_queue_policy("arn:other")),)),  # type: ignore[index]  # it is seen
        "fail",
        "the policy of prod-joiner-interruption does not allow spot",
        "deploy the stack again",
    ),
    (
        "dead-letters",
        make_facts_with_stack(queues=(replace(make_stack_facts().queues[1], message_count=2),)),  # type: ignore[index]  # it is seen
        "warn",
        "2 messages in prod-joiner-dead-letters",
        "purge",
    ),
    (
        "catalog",
        make_facts_with_stack(catalog_times=None),
        "fail",
        "no catalog: nodes cannot be launched",
        "`catalog`",
    ),
    (
        "catalog",
        make_facts_with_stack(catalog_times=(NOW - timedelta(hours=5), NOW)),
        "fail",
        "is 5h old",
        "`catalog`",
    ),
    (
        "catalog",
        make_facts_with_stack(catalog_times=(NOW, NOW - timedelta(days=3))),
        "warn",
        "prices are 3d old",
        "prices",
    ),
    ("leaks", make_facts({"node_claims": ()}), "fail", "1 Instance: i-1: it has no NodeClaim", "`joiner audit`"),
    (
        "leaks",
        make_facts({"node_claims": (make_claim("c-1", "i-1"), make_claim("c-2", "i-2"))}),
        "fail",
        "1 NodeClaim: c-2: its instance does not exist",
        "`joiner audit`",
    ),
    (
        "launch-templates",
        make_preflight_facts(
            of_account={
                "launch_templates": (
                    LaunchTemplate(name="joiner/prod/t", image_id="", user_data="", created_at=NOW - timedelta(days=2)),
                )
            }
        ),
        "warn",
        "1 launch template of an earlier installation: joiner/prod/t",
        "delete-launch-template",
    ),
]
