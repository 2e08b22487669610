"""Triggers of the functions, and the handling of messages that could not be delivered."""

import json
from datetime import timedelta

from moto.iam.aws_managed_policies import aws_managed_policies_data

from sim.authorization.template_policies import Template, get_resources, iterate_statements
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from sim.lambda_runtime.stack_wiring import StackWiring
from tests.infra.policies import as_list
from tests.infra.stacks import ANNOUNCED, FOLLOWED_UP, FUNCTIONS, TICKS


def test_every_function_except_interrupt_has_a_schedule(wiring: StackWiring) -> None:
    assert {schedule.target.name: schedule.expression for schedule in wiring.schedules} == TICKS


def test_schedule_input_has_only_its_source_and_functions_are_not_retried(
    template: Template, wiring: StackWiring
) -> None:
    assert {schedule.target.input for schedule in wiring.schedules} == {'{"source":"schedule"}'}
    assert {function.async_retries for function in wiring.functions} == {0}
    targets = [schedule["Target"] for schedule in get_resources(template, "AWS::Scheduler::Schedule").values()]
    assert {schedule_target["Input"] for schedule_target in targets} == {'{"source":"schedule"}'}
    for target in targets:
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 2}


def test_undeliverable_events_go_to_the_dead_letter_queue(template: Template) -> None:
    targets = [schedule["Target"] for schedule in get_resources(template, "AWS::Scheduler::Schedule").values()]
    targets += [target for rule in get_resources(template, "AWS::Events::Rule").values() for target in rule["Targets"]]
    assert len(targets) == len(TICKS) + len(ANNOUNCED)
    assert {target["DeadLetterConfig"]["Arn"].rpartition(":")[2] for target in targets} == {"demo-joiner-dead-letters"}


def test_schedules_run_on_time_in_a_group_deleted_with_the_stack(template: Template) -> None:
    [group] = get_resources(template, "AWS::Scheduler::ScheduleGroup").items()
    schedules = get_resources(template, "AWS::Scheduler::Schedule")
    assert {schedule["GroupName"] for schedule in schedules.values()} == {group[1]["Name"]}
    assert {schedule["FlexibleTimeWindow"]["Mode"] for schedule in schedules.values()} == {"OFF"}
    assert {group[0] in template["Resources"][key]["DependsOn"] for key in schedules} == {True}
    assert template["Resources"][group[0]]["DeletionPolicy"] == "Delete"


def test_follow_up_queue_of_each_function_is_found_by_prefix(wiring: StackWiring) -> None:
    urls = {queue.url: queue.name for queue in wiring.queues}
    reads = {mapping.queue: mapping.function for mapping in wiring.mappings}
    for name in FOLLOWED_UP:
        queue = urls[f"{wiring.get_follow_up_prefix()}{name}"]
        assert queue == f"demo-joiner-{name}"
        assert reads[queue] == name


def test_queued_messages_are_retained_four_days(wiring: StackWiring) -> None:
    retentions = {queue.name: queue.retention for queue in wiring.queues if not queue.name.endswith("dead-letters")}
    assert set(retentions.values()) == {timedelta(days=4)}
    assert retentions.keys() == {f"demo-joiner-{name}" for name in (*FOLLOWED_UP, "interruption")}


def test_follow_up_visibility_timeout_exceeds_the_function_timeout(wiring: StackWiring) -> None:
    queues = {queue.name: queue for queue in wiring.queues}
    for name in FOLLOWED_UP:
        assert queues[f"demo-joiner-{name}"].visibility_timeout >= 6 * wiring.get_function(name).timeout


def test_failed_message_does_not_fail_its_batch(wiring: StackWiring) -> None:
    assert {mapping.reports_item_failures for mapping in wiring.mappings} == {True}


def test_follow_ups_run_at_most_two_concurrent_invocations(wiring: StackWiring) -> None:
    limits = {mapping.maximum_concurrency for mapping in wiring.mappings if mapping.queue.endswith(mapping.function)}
    assert limits == {2}


def test_repeatedly_failing_messages_go_to_the_dead_letter_queue(wiring: StackWiring) -> None:
    queues = {queue.name: queue for queue in wiring.queues}
    dead = queues.pop("demo-joiner-dead-letters")
    assert {queue.dead_letter_queue for queue in queues.values()} == {dead.name}
    assert all(queue.max_receive_count for queue in queues.values())
    assert dead.retention == timedelta(days=14)


def test_every_queue_is_encrypted_and_tls_only(template: Template) -> None:
    queues = get_resources(template, "AWS::SQS::Queue")
    assert all(properties["SqsManagedSseEnabled"] for properties in queues.values())
    guarded = set()
    for policy in get_resources(template, "AWS::SQS::QueuePolicy").values():
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}:
                guarded.update(as_list(statement["Resource"]))
    assert guarded == {IntrinsicResolver(template).get_arn(key) for key in queues}


def test_a_function_can_send_only_its_own_follow_ups(template: Template) -> None:
    """tests/infra/stack/test_least_privilege.py has a run that sends each of them."""
    queues_by_function: dict[str, set[str]] = {}
    for function, statement in iterate_statements(template):
        if "sqs:SendMessage" in as_list(statement["Action"]):
            names = {arn.rpartition(":demo-joiner-")[2] for arn in as_list(statement["Resource"])}
            queues_by_function[function] = queues_by_function.get(function, set()) | names
    assert queues_by_function == {
        "catalog": {"catalog", "provision"},
        "disrupt": {"disrupt", "lifecycle", "provision"},
        "interrupt": {"lifecycle", "provision"},
        "lifecycle": {"disrupt", "lifecycle", "provision"},
        "provision": {"catalog", "disrupt", "lifecycle", "provision"},
        "watch": {"provision", "watch"},
    }


def test_lambda_reads_queues_with_the_permissions_of_its_managed_policy(template: Template) -> None:
    managed_policy = json.loads(aws_managed_policies_data)["AWSLambdaSQSQueueExecutionRole"]["Document"]
    [statement] = managed_policy["Statement"]
    managed_actions = {action for action in statement["Action"] if action.startswith("sqs:")}
    for name in FUNCTIONS:
        queue_actions = {
            action
            for function, statement in iterate_statements(template)
            if function == name
            for action in as_list(statement["Action"])
            if action.startswith("sqs:")
        }
        assert queue_actions == managed_actions | {"sqs:SendMessage"}


def test_ec2_events_reach_the_interrupt_function(wiring: StackWiring) -> None:
    targets_by_event = {(*rule.pattern["source"], *rule.pattern["detail-type"]): rule.targets for rule in wiring.rules}
    assert targets_by_event.keys() == ANNOUNCED
    assert {target.name for targets in targets_by_event.values() for target in targets} == {"demo-joiner-interruption"}
    assert [m.function for m in wiring.mappings if m.queue == "demo-joiner-interruption"] == ["interrupt"]


def test_interruption_messages_are_batched_for_one_second(wiring: StackWiring) -> None:
    [mapping] = [
        candidate
        for candidate in wiring.mappings
        if candidate.function == "interrupt" and candidate.queue.endswith("interruption")
    ]
    assert (mapping.batching_window, mapping.batch_size, mapping.maximum_concurrency) == (timedelta(seconds=1), 100, 5)
    assert {candidate.batching_window for candidate in wiring.mappings if candidate is not mapping} == {timedelta()}
    [queue] = [queue for queue in wiring.queues if queue.name == mapping.queue]
    assert wiring.get_function("interrupt").timeout + mapping.batching_window < queue.visibility_timeout


def test_interruption_is_retained_four_days_and_retried_before_the_instance_ends(wiring: StackWiring) -> None:
    [queue] = [queue for queue in wiring.queues if queue.name == "demo-joiner-interruption"]
    assert queue.retention == timedelta(days=4)
    assert wiring.get_function("interrupt").timeout < queue.visibility_timeout < timedelta(minutes=1)
