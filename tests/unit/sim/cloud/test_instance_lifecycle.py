"""Tests of the life of an instance and of its subscribers."""

from datetime import timedelta
from ipaddress import IPv4Address

import pytest

from shared.errors import Invalid, NotFound
from shared.model.ec2.instance import Instance
from shared.model.ec2.types import CapacityType
from sim.cloud.cloud import Cloud
from sim.cloud.ec2.instance import build_private_dns_name
from sim.cloud.eventbridge_events import EventBridgeEvent
from sim.time.virtual_clock import Clock
from tests.contract.asking import build_fleet_request
from tests.contract.memory_face import Face, build_memory_face

ONE_MINUTE = timedelta(minutes=1)


@pytest.fixture
def aws() -> Face:
    return build_memory_face(Cloud(Clock()))


def start(aws: Face, capacity_type: CapacityType = "on-demand") -> str:
    fleet_request = build_fleet_request(aws, "m5.large", capacity_type=capacity_type, client_token="")
    return aws.ec2.create_fleet(fleet_request).instances[0].instance_id


def start_running_instance(aws: Face, capacity_type: CapacityType = "on-demand") -> str:
    instance_id = start(aws, capacity_type)
    aws.cloud.clock.advance(ONE_MINUTE)
    return instance_id


def get_state(aws: Face, instance_id: str) -> str:
    return aws.cloud.instances.describe(instance_id).state


def list_states(events: list[EventBridgeEvent]) -> list[str]:
    return [event["detail"]["state"] for event in events if "state" in event["detail"]]


@pytest.fixture
def events(aws: Face) -> list[EventBridgeEvent]:
    received_events: list[EventBridgeEvent] = []
    aws.cloud.events.subscribe(received_events.append)
    return received_events


def test_running_listener_gets_the_instance_and_its_launch_template(aws: Face) -> None:
    starts: list[tuple[str, str, str]] = []
    aws.cloud.instances.running_listeners.append(
        lambda i, template: starts.append((i.instance_id, i.state, template.user_data))
    )
    instance_id = start(aws)
    assert starts == []
    aws.cloud.clock.advance(ONE_MINUTE)
    assert starts == [(instance_id, "running", "YQ==")]


def test_listeners_are_called_when_an_instance_halts_and_terminates(aws: Face) -> None:
    states: list[str] = []
    aws.cloud.instances.halted_listeners.append(lambda instance: states.append(instance.state))
    aws.cloud.instances.terminated_listeners.append(lambda instance: states.append(instance.state))
    aws.cloud.terminate_instances([start_running_instance(aws)])
    assert states == ["shutting-down"]
    aws.cloud.clock.advance(ONE_MINUTE)
    assert states == ["shutting-down", "terminated"]


def test_speed_factor_shortens_termination_but_not_boot(aws: Face) -> None:
    aws.cloud.instances.speed_factor = 10
    instance_id = start(aws)
    aws.cloud.clock.advance(timedelta(seconds=3))
    assert get_state(aws, instance_id) == "pending"
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.clock.advance(timedelta(seconds=6))
    assert get_state(aws, instance_id) == "terminated"


def test_instance_terminated_while_pending_never_runs(aws: Face, events: list[EventBridgeEvent]) -> None:
    aws.cloud.terminate_instances([start(aws)])
    aws.cloud.clock.advance(ONE_MINUTE)
    assert list_states(events) == ["pending", "shutting-down", "terminated"]


def test_repeated_termination_has_no_further_effect(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = start_running_instance(aws)
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.cloud.terminate_instances([instance_id])
    assert list_states(events) == ["pending", "running", "shutting-down", "terminated"]


def test_termination_with_an_unknown_instance_terminates_none(aws: Face) -> None:
    instance_id = start_running_instance(aws)
    with pytest.raises(NotFound):
        aws.cloud.terminate_instances([instance_id, "i-0aaaaaaaaaaaaaaaa"])
    assert get_state(aws, instance_id) == "running"


def test_instance_can_be_terminated_before_describe_returns_it(aws: Face) -> None:
    instance_id = start(aws)
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.clock.advance(timedelta(minutes=2))
    assert get_state(aws, instance_id) == "terminated"


def test_immediate_termination_needs_no_delay(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = start_running_instance(aws)
    aws.cloud.instances.terminate_immediately(instance_id)
    aws.cloud.instances.terminate_immediately(instance_id)
    assert get_state(aws, instance_id) == "terminated"
    assert list_states(events) == ["pending", "running", "shutting-down", "terminated"]


def test_instance_that_is_shutting_down_can_be_terminated_immediately(
    aws: Face, events: list[EventBridgeEvent]
) -> None:
    instance_id = start_running_instance(aws)
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.instances.terminate_immediately(instance_id)
    aws.cloud.clock.advance(ONE_MINUTE)
    assert list_states(events).count("terminated") == 1


def test_stopped_instance_keeps_its_address_and_can_be_terminated(aws: Face, events: list[EventBridgeEvent]) -> None:
    halted: list[str] = []
    aws.cloud.instances.halted_listeners.append(lambda instance: halted.append(instance.state))
    free = aws.cloud.network.subnets
    instance_id = start_running_instance(aws)
    before = [subnet.free for subnet in free.values()]
    aws.cloud.instances.stop(instance_id)
    aws.cloud.clock.advance(ONE_MINUTE)
    assert get_state(aws, instance_id) == "stopped"
    assert [subnet.free for subnet in free.values()] == before
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.clock.advance(ONE_MINUTE)
    assert list_states(events) == ["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]
    assert halted == ["stopping"]


def test_stopped_instance_cannot_be_stopped_again(aws: Face) -> None:
    instance_id = start_running_instance(aws)
    aws.cloud.instances.stop(instance_id)
    with pytest.raises(Invalid) as refused:
        aws.cloud.instances.stop(instance_id)
    assert refused.value.code == "IncorrectInstanceState"


def test_interrupted_spot_instance_shuts_down_after_two_minutes(aws: Face) -> None:
    instance_id = start_running_instance(aws, "spot")
    aws.cloud.instances.interrupt(instance_id)
    aws.cloud.clock.advance(timedelta(seconds=119))
    assert get_state(aws, instance_id) == "running"
    aws.cloud.clock.advance(timedelta(seconds=1))
    assert get_state(aws, instance_id) == "shutting-down"


def test_interrupted_instance_may_be_terminated_early(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = start_running_instance(aws, "spot")
    aws.cloud.instances.interrupt(instance_id)
    aws.cloud.terminate_instances([instance_id])
    aws.cloud.clock.advance(timedelta(minutes=5))
    assert list_states(events).count("shutting-down") == 1


def test_only_running_spot_instances_can_be_interrupted(aws: Face) -> None:
    on_demand, ended = start_running_instance(aws), start_running_instance(aws, "spot")
    aws.cloud.terminate_instances([ended])
    for instance_id in (on_demand, ended):
        for call in (aws.cloud.instances.interrupt, aws.cloud.instances.send_rebalance_recommendation):
            with pytest.raises(Invalid, match="no living spot instance"):
                call(instance_id)


def test_capacity_is_returned_after_termination_but_not_after_interruption(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "spot", 2)
    ended, interrupted_id = start_running_instance(aws, "spot"), start_running_instance(aws, "spot")
    pool = aws.cloud.pools.get_pool("m5.large", "us-east-1a", "spot")
    assert pool.free == 0
    aws.cloud.terminate_instances([ended])
    aws.cloud.clock.advance(ONE_MINUTE)
    assert pool.free == 1
    aws.cloud.instances.interrupt(interrupted_id)
    aws.cloud.clock.advance(timedelta(minutes=5))
    assert pool.free == 1


def test_capacity_limit_applies_from_the_time_it_is_set(aws: Face) -> None:
    instance_id = start_running_instance(aws)
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "on-demand", 0)
    aws.cloud.instances.terminate_immediately(instance_id)
    assert aws.cloud.pools.get_pool("m5.large", "us-east-1a", "on-demand").free == 0


def record_booted_instances(aws: Face) -> list[str]:
    instance_ids: list[str] = []
    aws.cloud.instances.running_listeners.append(lambda instance, _: instance_ids.append(instance.instance_id))
    return instance_ids


def test_instance_with_a_boot_failure_runs_but_never_boots(aws: Face) -> None:
    instance_ids = record_booted_instances(aws)
    aws.cloud.instances.boot_failures.fail_next_boot()
    faulty, sound = start_running_instance(aws), start_running_instance(aws)
    assert get_state(aws, faulty) == "running"
    assert instance_ids == [sound]


def test_boot_failure_can_be_set_for_the_next_instance_of_a_type(aws: Face) -> None:
    instance_ids = record_booted_instances(aws)
    aws.cloud.instances.boot_failures.fail_next_boot("m5.xlarge")
    start_running_instance(aws)
    assert len(instance_ids) == 1


def test_boot_failure_can_be_set_for_all_instances_of_a_type(aws: Face) -> None:
    instance_ids = record_booted_instances(aws)
    aws.cloud.instances.boot_failures.set_boot_failure("m5.large")
    start_running_instance(aws)
    start_running_instance(aws)
    assert instance_ids == []
    aws.cloud.instances.boot_failures.set_boot_failure("m5.large", failing=False)
    assert [start_running_instance(aws)] == instance_ids


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ((("aws:mine", "1"),), "InvalidParameterValue"),
        ((("", "1"),), "InvalidParameterValue"),
        (tuple((f"key-{number}", "") for number in range(48)), "TagLimitExceeded"),
    ],
)
def test_invalid_tags_are_rejected(aws: Face, tags: tuple[tuple[str, str], ...], code: str) -> None:
    instance_id = start_running_instance(aws)
    with pytest.raises(Invalid) as refused:
        aws.cloud.instances.tag(instance_id, tags)
    assert refused.value.code == code
    aws.cloud.instances.tag(instance_id, tuple((f"key-{number}", "") for number in range(47)))


def test_instance_not_yet_described_cannot_be_tagged(aws: Face) -> None:
    instance_id = start(aws)
    with pytest.raises(NotFound):
        aws.cloud.instances.tag(instance_id, (("Name", "a"),))


def test_describe_lag_is_configurable() -> None:
    aws = build_memory_face(Cloud(Clock(), describe_lag=timedelta(0)))
    assert get_state(aws, start(aws)) == "pending"


def test_terminated_instances_are_described_for_an_hour(aws: Face) -> None:
    aws.cloud.instances.terminate_immediately(start_running_instance(aws))
    later = start_running_instance(aws)
    aws.cloud.clock.advance(timedelta(minutes=58))
    assert len(aws.cloud.instances.describe_all()) == 2
    aws.cloud.clock.advance(ONE_MINUTE)
    assert [instance.instance_id for instance in aws.cloud.instances.describe_all()] == [later]


@pytest.mark.parametrize(
    ("region", "name"),
    [("us-east-1", "ip-10-0-1-4.ec2.internal"), ("eu-west-1", "ip-10-0-1-4.eu-west-1.compute.internal")],
)
def test_private_dns_name_is_built_from_address_and_region(region: str, name: str) -> None:
    assert build_private_dns_name(IPv4Address("10.0.1.4"), region) == name


def test_private_dns_names_are_unique(aws: Face) -> None:
    aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity=20))
    aws.cloud.clock.advance(ONE_MINUTE)
    instances: tuple[Instance, ...] = aws.cloud.instances.describe_all()
    assert len({instance.private_dns_name for instance in instances}) == 20


def test_instance_boot_times_vary(aws: Face) -> None:
    at: list[float] = []
    began = aws.cloud.clock.get_time()
    aws.cloud.instances.running_listeners.append(
        lambda *_: at.append((aws.cloud.clock.get_time() - began).total_seconds())
    )
    aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity=20))
    aws.cloud.clock.advance(ONE_MINUTE)
    assert len(set(at)) > 10
    assert all(4 <= seconds < 10 for seconds in at)


def test_on_demand_instance_cannot_get_a_reservation_interruption(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = start_running_instance(aws)
    with pytest.raises(Invalid):
        aws.cloud.instances.interrupt_reserved(instance_id)
    assert "EC2 Capacity Reservation Instance Interruption Warning" not in {event["detail-type"] for event in events}
