"""What wakes whom, and what becomes of what could not be delivered."""

from datetime import timedelta

from sim.lambdas.intrinsics import Resolver
from sim.lambdas.wiring import Wiring
from tests.infra.policies import Template, resources, several, statements
from tests.infra.stacks import ANNOUNCED, FOLLOWED_UP, FUNCTIONS, TICKS


def test_every_function_but_one_ticks(wiring: Wiring) -> None:
    assert {one.target.name: one.expression for one in wiring.schedules} == TICKS


def test_a_tick_says_nothing_and_is_not_repeated(template: Template, wiring: Wiring) -> None:
    assert {one.target.input for one in wiring.schedules} == {'{"source":"schedule"}'}
    assert {function.async_retries for function in wiring.functions} == {0}
    targets = [one["Target"] for one in resources(template, "AWS::Scheduler::Schedule").values()]
    assert {one["Input"] for one in targets} == {'{"source":"schedule"}'}
    for one in targets:
        assert one["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 2}


def test_what_cannot_be_delivered_waits_for_a_person(template: Template) -> None:
    targets = [one["Target"] for one in resources(template, "AWS::Scheduler::Schedule").values()]
    targets += [one for rule in resources(template, "AWS::Events::Rule").values() for one in rule["Targets"]]
    assert len(targets) == len(TICKS) + len(ANNOUNCED)
    assert {one["DeadLetterConfig"]["Arn"].rpartition(":")[2] for one in targets} == {"demo-joiner-dead-letters"}


def test_schedules_ring_on_time_in_a_group_of_their_own_that_goes_with_the_stack(template: Template) -> None:
    [group] = resources(template, "AWS::Scheduler::ScheduleGroup").items()
    schedules = resources(template, "AWS::Scheduler::Schedule")
    assert {one["GroupName"] for one in schedules.values()} == {group[1]["Name"]}
    assert {one["FlexibleTimeWindow"]["Mode"] for one in schedules.values()} == {"OFF"}
    assert {group[0] in template["Resources"][key]["DependsOn"] for key in schedules} == {True}
    assert template["Resources"][group[0]]["DeletionPolicy"] == "Delete"


def test_a_follow_up_finds_the_queue_of_each_function(wiring: Wiring) -> None:
    urls = {queue.url: queue.name for queue in wiring.queues}
    reads = {mapping.queue: mapping.function for mapping in wiring.mappings}
    for name in FOLLOWED_UP:
        queue = urls[f"{wiring.follow_up_prefix()}{name}"]
        assert queue == f"demo-joiner-{name}"
        assert reads[queue] == name


def test_what_waits_is_kept_four_days(wiring: Wiring) -> None:
    kept = {queue.name: queue.retention for queue in wiring.queues if not queue.name.endswith("dead-letters")}
    assert set(kept.values()) == {timedelta(days=4)}
    assert kept.keys() == {f"demo-joiner-{name}" for name in (*FOLLOWED_UP, "interruption")}


def test_a_follow_up_stays_hidden_while_its_function_may_still_run(wiring: Wiring) -> None:
    queues = {queue.name: queue for queue in wiring.queues}
    for name in FOLLOWED_UP:
        assert queues[f"demo-joiner-{name}"].visibility_timeout >= 6 * wiring.function(name).timeout


def test_a_bad_message_does_not_hold_up_its_batch(wiring: Wiring) -> None:
    assert {mapping.partial_failures for mapping in wiring.mappings} == {True}


def test_follow_ups_do_not_multiply_a_function(wiring: Wiring) -> None:
    limits = {mapping.maximum_concurrency for mapping in wiring.mappings if mapping.queue.endswith(mapping.function)}
    assert limits == {2}


def test_what_fails_for_good_waits_for_a_person(wiring: Wiring) -> None:
    queues = {queue.name: queue for queue in wiring.queues}
    dead = queues.pop("demo-joiner-dead-letters")
    assert {queue.dead_letters for queue in queues.values()} == {dead.name}
    assert all(queue.max_receive_count for queue in queues.values())
    assert dead.retention == timedelta(days=14)


def test_every_queue_is_encrypted_and_tls_only(template: Template) -> None:
    queues = resources(template, "AWS::SQS::Queue")
    assert all(properties["SqsManagedSseEnabled"] for properties in queues.values())
    guarded = set()
    for policy in resources(template, "AWS::SQS::QueuePolicy").values():
        for each in policy["PolicyDocument"]["Statement"]:
            if each["Effect"] == "Deny" and each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}:
                guarded.update(several(each["Resource"]))
    assert guarded == {Resolver(template).arn(key) for key in queues}


def test_every_function_may_wake_every_function(template: Template) -> None:
    for name in FUNCTIONS:
        sent = [each for owner, each in statements(template) if owner == name and "sqs:SendMessage" in each["Action"]]
        arns = {arn for each in sent for arn in several(each["Resource"])}
        assert {arn.rpartition(":")[2] for arn in arns} == {f"demo-joiner-{function}" for function in FOLLOWED_UP}


def test_what_ec2_announces_reaches_the_function_that_interrupts(wiring: Wiring) -> None:
    heard = {(*rule.pattern["source"], *rule.pattern["detail-type"]): rule.targets for rule in wiring.rules}
    assert heard.keys() == ANNOUNCED
    assert {target.name for targets in heard.values() for target in targets} == {"demo-joiner-interruption"}
    assert [m.function for m in wiring.mappings if m.queue == "demo-joiner-interruption"] == ["interrupt"]


def test_a_storm_of_notices_is_gathered_for_one_second_and_planned_for_at_once(wiring: Wiring) -> None:
    [mapping] = [one for one in wiring.mappings if one.function == "interrupt" and one.queue.endswith("interruption")]
    assert (mapping.window, mapping.batch_size, mapping.maximum_concurrency) == (timedelta(seconds=1), 100, 5)
    assert {one.window for one in wiring.mappings if one is not mapping} == {timedelta()}
    [queue] = [queue for queue in wiring.queues if queue.name == mapping.queue]
    assert wiring.function("interrupt").timeout + mapping.window < queue.visibility_timeout


def test_an_interruption_is_kept_four_days_and_tried_twice_before_the_instance_is_gone(wiring: Wiring) -> None:
    [queue] = [queue for queue in wiring.queues if queue.name == "demo-joiner-interruption"]
    assert queue.retention == timedelta(days=4)
    assert wiring.function("interrupt").timeout < queue.visibility_timeout < timedelta(minutes=1)
