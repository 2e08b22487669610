"""The life of an instance, and who hears of it."""

from datetime import timedelta
from ipaddress import IPv4Address

import pytest

from shared.errors import Gone, Invalid
from shared.model.ec2 import CapacityType, Instance
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.events import Event
from sim.cloud.machine import private_dns_name
from tests.contract.asking import request
from tests.contract.memory_face import Face, in_memory

A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def aws() -> Face:
    return in_memory(Cloud(Clock()))


def start(aws: Face, capacity_type: CapacityType = "on-demand") -> str:
    asked = request(aws, "m5.large", capacity_type=capacity_type, client_token="")
    return aws.ec2.create_fleet(asked).instances[0].instance_id


def running(aws: Face, capacity_type: CapacityType = "on-demand") -> str:
    instance_id = start(aws, capacity_type)
    aws.cloud.clock.advance(A_MINUTE)
    return instance_id


def state(aws: Face, instance_id: str) -> str:
    return aws.cloud.instance(instance_id).state


def states(events: list[Event]) -> list[str]:
    return [event["detail"]["state"] for event in events if "state" in event["detail"]]


@pytest.fixture
def events(aws: Face) -> list[Event]:
    heard: list[Event] = []
    aws.cloud.subscribe_events(heard.append)
    return heard


def test_whoever_listens_is_told_the_template_when_an_instance_runs(aws: Face) -> None:
    heard: list[tuple[str, str, str]] = []
    aws.cloud.on_running(lambda i, template: heard.append((i.instance_id, i.state, template.user_data)))
    instance_id = start(aws)
    assert heard == []
    aws.cloud.clock.advance(A_MINUTE)
    assert heard == [(instance_id, "running", "YQ==")]


def test_whoever_listens_is_told_when_an_instance_halts_and_when_it_is_gone(aws: Face) -> None:
    heard: list[str] = []
    aws.cloud.on_halted(lambda instance: heard.append(instance.state))
    aws.cloud.on_terminated(lambda instance: heard.append(instance.state))
    aws.cloud.terminate([running(aws)])
    assert heard == ["shutting-down"]
    aws.cloud.clock.advance(A_MINUTE)
    assert heard == ["shutting-down", "terminated"]


def test_machines_in_haste_end_sooner_and_boot_as_ever(aws: Face) -> None:
    aws.cloud.machines.haste = 10
    instance_id = start(aws)
    aws.cloud.clock.advance(timedelta(seconds=3))
    assert state(aws, instance_id) == "pending"
    aws.cloud.clock.advance(A_MINUTE)
    aws.cloud.terminate([instance_id])
    aws.cloud.clock.advance(timedelta(seconds=6))
    assert state(aws, instance_id) == "terminated"


def test_an_instance_ended_while_pending_never_runs(aws: Face, events: list[Event]) -> None:
    aws.cloud.terminate([start(aws)])
    aws.cloud.clock.advance(A_MINUTE)
    assert states(events) == ["pending", "shutting-down", "terminated"]


def test_ending_twice_is_ending_once(aws: Face, events: list[Event]) -> None:
    instance_id = running(aws)
    aws.cloud.terminate([instance_id])
    aws.cloud.terminate([instance_id])
    aws.cloud.clock.advance(A_MINUTE)
    aws.cloud.terminate([instance_id])
    assert states(events) == ["pending", "running", "shutting-down", "terminated"]


def test_all_are_ended_or_none(aws: Face) -> None:
    instance_id = running(aws)
    with pytest.raises(Gone):
        aws.cloud.terminate([instance_id, "i-0aaaaaaaaaaaaaaaa"])
    assert state(aws, instance_id) == "running"


def test_one_can_be_ended_before_describe_knows_it(aws: Face) -> None:
    instance_id = start(aws)
    aws.cloud.terminate([instance_id])
    aws.cloud.clock.advance(timedelta(minutes=2))
    assert state(aws, instance_id) == "terminated"


def test_what_dies_is_terminated_at_once(aws: Face, events: list[Event]) -> None:
    instance_id = running(aws)
    aws.cloud.kill(instance_id)
    aws.cloud.kill(instance_id)
    assert state(aws, instance_id) == "terminated"
    assert states(events) == ["pending", "running", "shutting-down", "terminated"]


def test_what_is_shutting_down_can_still_die(aws: Face, events: list[Event]) -> None:
    instance_id = running(aws)
    aws.cloud.terminate([instance_id])
    aws.cloud.kill(instance_id)
    aws.cloud.clock.advance(A_MINUTE)
    assert states(events).count("terminated") == 1


def test_a_stopped_instance_halts_keeps_its_address_and_can_be_ended(aws: Face, events: list[Event]) -> None:
    halted: list[str] = []
    aws.cloud.on_halted(lambda instance: halted.append(instance.state))
    free = aws.cloud.network.subnets
    instance_id = running(aws)
    before = [subnet.free for subnet in free.values()]
    aws.cloud.stop(instance_id)
    aws.cloud.clock.advance(A_MINUTE)
    assert state(aws, instance_id) == "stopped"
    assert [subnet.free for subnet in free.values()] == before
    aws.cloud.terminate([instance_id])
    aws.cloud.clock.advance(A_MINUTE)
    assert states(events) == ["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]
    assert halted == ["stopping"]


def test_what_has_stopped_cannot_be_stopped(aws: Face) -> None:
    instance_id = running(aws)
    aws.cloud.stop(instance_id)
    with pytest.raises(Invalid) as refused:
        aws.cloud.stop(instance_id)
    assert refused.value.code == "IncorrectInstanceState"


def test_an_interrupted_spot_instance_has_two_minutes(aws: Face) -> None:
    instance_id = running(aws, "spot")
    aws.cloud.interrupt_spot(instance_id)
    aws.cloud.clock.advance(timedelta(seconds=119))
    assert state(aws, instance_id) == "running"
    aws.cloud.clock.advance(timedelta(seconds=1))
    assert state(aws, instance_id) == "shutting-down"


def test_an_interrupted_instance_may_be_ended_before(aws: Face, events: list[Event]) -> None:
    instance_id = running(aws, "spot")
    aws.cloud.interrupt_spot(instance_id)
    aws.cloud.terminate([instance_id])
    aws.cloud.clock.advance(timedelta(minutes=5))
    assert states(events).count("shutting-down") == 1


def test_only_living_spot_instances_are_interrupted(aws: Face) -> None:
    on_demand, ended = running(aws), running(aws, "spot")
    aws.cloud.terminate([ended])
    for instance_id in (on_demand, ended):
        for call in (aws.cloud.interrupt_spot, aws.cloud.recommend_rebalance):
            with pytest.raises(Invalid, match="no living spot instance"):
                call(instance_id)


def test_a_slot_comes_back_unless_ec2_wanted_it(aws: Face) -> None:
    aws.cloud.set_capacity("m5.large", "us-east-1a", "spot", 2)
    ended, taken = running(aws, "spot"), running(aws, "spot")
    pool = aws.cloud.pools.pool("m5.large", "us-east-1a", "spot")
    assert pool.free == 0
    aws.cloud.terminate([ended])
    aws.cloud.clock.advance(A_MINUTE)
    assert pool.free == 1
    aws.cloud.interrupt_spot(taken)
    aws.cloud.clock.advance(timedelta(minutes=5))
    assert pool.free == 1


def test_a_new_limit_counts_from_now_on(aws: Face) -> None:
    instance_id = running(aws)
    aws.cloud.set_capacity("m5.large", "us-east-1a", "on-demand", 0)
    aws.cloud.kill(instance_id)
    assert aws.cloud.pools.pool("m5.large", "us-east-1a", "on-demand").free == 0


def booted(aws: Face) -> list[str]:
    heard: list[str] = []
    aws.cloud.on_running(lambda instance, _: heard.append(instance.instance_id))
    return heard


def test_a_faulty_machine_runs_and_is_not_heard_of(aws: Face) -> None:
    heard = booted(aws)
    aws.cloud.next_boot_fails()
    faulty, sound = running(aws), running(aws)
    assert state(aws, faulty) == "running"
    assert heard == [sound]


def test_a_fault_can_wait_for_its_type(aws: Face) -> None:
    heard = booted(aws)
    aws.cloud.next_boot_fails("m5.xlarge")
    running(aws)
    assert len(heard) == 1


def test_all_of_a_type_can_be_faulty_for_a_while(aws: Face) -> None:
    heard = booted(aws)
    aws.cloud.boots_fail("m5.large")
    running(aws)
    running(aws)
    assert heard == []
    aws.cloud.boots_fail("m5.large", failing=False)
    assert [running(aws)] == heard


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ((("aws:mine", "1"),), "InvalidParameterValue"),
        ((("", "1"),), "InvalidParameterValue"),
        (tuple((f"key-{number}", "") for number in range(48)), "TagLimitExceeded"),
    ],
)
def test_tags_have_rules(aws: Face, tags: tuple[tuple[str, str], ...], code: str) -> None:
    instance_id = running(aws)
    with pytest.raises(Invalid) as refused:
        aws.cloud.tag(instance_id, tags)
    assert refused.value.code == code
    aws.cloud.tag(instance_id, tuple((f"key-{number}", "") for number in range(47)))


def test_what_describe_does_not_know_yet_cannot_be_tagged(aws: Face) -> None:
    instance_id = start(aws)
    with pytest.raises(Gone):
        aws.cloud.tag(instance_id, (("Name", "a"),))


def test_the_lag_can_be_set() -> None:
    aws = in_memory(Cloud(Clock(), describe_lag=timedelta(0)))
    assert state(aws, start(aws)) == "pending"


def test_terminated_instances_are_described_for_an_hour(aws: Face) -> None:
    aws.cloud.kill(running(aws))
    later = running(aws)
    aws.cloud.clock.advance(timedelta(minutes=58))
    assert len(aws.cloud.instances()) == 2
    aws.cloud.clock.advance(A_MINUTE)
    assert [instance.instance_id for instance in aws.cloud.instances()] == [later]


@pytest.mark.parametrize(
    ("region", "name"),
    [("us-east-1", "ip-10-0-1-4.ec2.internal"), ("eu-west-1", "ip-10-0-1-4.eu-west-1.compute.internal")],
)
def test_a_name_is_made_of_the_address(region: str, name: str) -> None:
    assert private_dns_name(IPv4Address("10.0.1.4"), region) == name


def test_no_two_living_instances_share_a_name(aws: Face) -> None:
    aws.ec2.create_fleet(request(aws, "m5.large", capacity=20))
    aws.cloud.clock.advance(A_MINUTE)
    instances: tuple[Instance, ...] = aws.cloud.instances()
    assert len({instance.private_dns_name for instance in instances}) == 20


def test_machines_take_different_times_to_boot(aws: Face) -> None:
    at: list[float] = []
    began = aws.cloud.clock.now()
    aws.cloud.on_running(lambda *_: at.append((aws.cloud.clock.now() - began).total_seconds()))
    aws.ec2.create_fleet(request(aws, "m5.large", capacity=20))
    aws.cloud.clock.advance(A_MINUTE)
    assert len(set(at)) > 10
    assert all(4 <= seconds < 10 for seconds in at)


def test_only_reserved_capacity_that_lives_is_wanted_back(aws: Face, events: list[Event]) -> None:
    instance_id = running(aws)
    with pytest.raises(Invalid):
        aws.cloud.reclaim_reserved(instance_id)
    assert "EC2 Capacity Reservation Instance Interruption Warning" not in {one["detail-type"] for one in events}
