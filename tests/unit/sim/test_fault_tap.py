"""Tests of the tap between a caller and a port."""

import msgspec
import pytest

from shared.aws.prometheus.remote_write import RemoteWriteEndpoint
from shared.errors import NotFound, Throttled
from shared.ports.messaging import BusEvent
from sim.cloud.in_process_aws import CloudPayerAccount, CloudSavingsPlans, CloudZonalShift
from sim.fault_tap import PORTS, Killed, PortCall, tap_port, tap_world
from sim.remote_write.endpoint import EndpointResponse
from sim.world.memory_ports import MemoryBucket, MemoryEventBus, MemoryTopic
from tests.support.actions_world import Outside


def test_tap_is_called_before_and_after_every_port_call() -> None:
    calls: list[PortCall] = []
    bucket = tap_port(MemoryBucket(), "bucket", calls.append, "me")
    bucket.put("key", b"1")
    assert [(call.method, call.detail, call.phase) for call in calls] == [
        ("put", "key", "before"),
        ("put", "key", "after"),
    ]
    assert {(call.port, call.world_name) for call in calls} == {("bucket", "me")}


def test_call_detail_is_truncated_or_empty() -> None:
    calls: list[PortCall] = []
    bucket = tap_port(MemoryBucket(), "bucket", calls.append)
    bucket.put("k" * 300, b"1")
    bucket.list_keys(prefix="")
    assert [len(call.detail) for call in calls] == [200, 200, 0, 0]


@pytest.mark.parametrize(("when", "is_written"), [("before", False), ("after", True)])
@pytest.mark.parametrize("kind", [Throttled, Killed])
def test_port_call_can_fail_before_or_after_it_takes_effect(
    when: str,
    is_written: bool,  # noqa: FBT001 - a table's column
    kind: type[BaseException],
) -> None:
    inner = MemoryBucket()

    def raise_in_phase(call: PortCall) -> None:
        if call.phase == when:
            raise kind("now")

    with pytest.raises(kind):
        tap_port(inner, "bucket", raise_in_phase).put("key", b"1")
    assert (inner.list_keys("") == ("key",)) is is_written


def test_exceptions_of_the_port_propagate() -> None:
    calls: list[PortCall] = []
    with pytest.raises(NotFound):
        tap_port(MemoryBucket(), "bucket", calls.append).get("key")
    assert [call.phase for call in calls] == ["before"]


def test_killed_is_not_an_exception_subclass() -> None:
    assert not issubclass(Killed, Exception)


def test_all_ports_of_a_world_are_tapped() -> None:
    outside = Outside()
    world = msgspec.structs.replace(
        outside.build_world(),
        topic=MemoryTopic(),
        savings_plans=CloudSavingsPlans(outside.cloud),
        zonal_shifts=CloudZonalShift(outside.cloud),
        payer=CloudPayerAccount(outside.cloud),
        group_table=outside.table,
        event_bus=MemoryEventBus(),
        remote_write=RemoteWriteEndpoint(
            "http://prometheus/", lambda: None, lambda _: EndpointResponse(status_code=200)
        ),
    )
    world = tap_world(world, outside.calls.append)
    world.kube.list("/api/v1/nodes")
    world.ec2.describe_offerings()
    world.prices.get_on_demand_prices("us-east-1")
    world.eks.describe_cluster("joiner")
    world.table.list_rows("lease")
    world.bucket.list_keys("")
    with pytest.raises(NotFound):
        world.parameters.get_parameter("/none")
    world.mailbox.add("provision", "", outside.clock.get_time() - outside.clock.get_time())
    assert world.topic is not None
    world.topic.publish("a", "b")
    assert world.savings_plans is not None
    assert world.payer is not None
    world.payer.describe_commitments("us-east-1")
    world.savings_plans.describe_savings_plans("us-east-1")
    assert world.zonal_shifts is not None
    with pytest.raises(NotFound):
        world.zonal_shifts.get_zonal_shifts("arn")
    assert world.group_table is not None
    world.group_table.list_rows("group/a")
    assert world.event_bus is not None
    world.event_bus.put([BusEvent(event_id="", detail_type="Node Launched", at=outside.clock.get_time(), detail="{}")])
    assert world.remote_write is not None
    world.remote_write.write(b"")
    assert {call.port for call in outside.calls} == set(PORTS)
    assert {call.world_name for call in outside.calls} == {"one"}
