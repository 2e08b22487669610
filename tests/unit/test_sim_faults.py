"""The tap between a caller and a port."""

import msgspec
import pytest

from shared.errors import Gone, Throttled
from sim.faults import PORTS, Call, Killed, tapped, tapped_world
from sim.memory import MemoryBucket, MemoryTopic
from tests.unit.actions_world import Outside


def test_every_call_is_seen_before_and_after_with_what_it_is_about() -> None:
    seen: list[Call] = []
    bucket = tapped(MemoryBucket(), "bucket", seen.append, "me")
    bucket.put("key", b"1")
    assert [(call.method, call.detail, call.when) for call in seen] == [
        ("put", "key", "before"),
        ("put", "key", "after"),
    ]
    assert {(call.port, call.who) for call in seen} == {("bucket", "me")}


def test_a_long_or_missing_argument_is_told_in_short() -> None:
    seen: list[Call] = []
    bucket = tapped(MemoryBucket(), "bucket", seen.append)
    bucket.put("k" * 300, b"1")
    bucket.keys(prefix="")
    assert [len(call.detail) for call in seen] == [200, 200, 0, 0]


@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True)])
@pytest.mark.parametrize("kind", [Throttled, Killed])
def test_a_call_can_be_failed_before_or_after_it_takes_effect(
    when: str,
    written: bool,  # noqa: FBT001 - a table's column
    kind: type[BaseException],
) -> None:
    inner = MemoryBucket()

    def tap(call: Call) -> None:
        if call.when == when:
            raise kind("now")

    with pytest.raises(kind):
        tapped(inner, "bucket", tap).put("key", b"1")
    assert (inner.keys("") == ("key",)) is written


def test_what_the_port_itself_raises_goes_through() -> None:
    seen: list[Call] = []
    with pytest.raises(Gone):
        tapped(MemoryBucket(), "bucket", seen.append).get("key")
    assert [call.when for call in seen] == ["before"]


def test_who_is_killed_cannot_catch_it_as_an_exception() -> None:
    assert not issubclass(Killed, Exception)


def test_every_port_of_a_world_is_tapped() -> None:
    outside = Outside()
    world = msgspec.structs.replace(outside.world(), topic=MemoryTopic())
    world = tapped_world(world, outside.calls.append)
    world.kube.list("/api/v1/nodes")
    world.ec2.offerings()
    world.prices.on_demand("us-east-1")
    world.eks.cluster("joiner")
    world.table.rows("lease")
    world.bucket.keys("")
    with pytest.raises(Gone):
        world.parameters.parameter("/none")
    world.mailbox.send("provision", "", outside.clock.now() - outside.clock.now())
    assert world.topic is not None
    world.topic.publish("a", "b")
    assert {call.port for call in outside.calls} == set(PORTS)
    assert {call.who for call in outside.calls} == {"one"}
