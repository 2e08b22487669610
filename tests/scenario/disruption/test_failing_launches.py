"""Launches of an EC2NodeClass pause while its nodes do not register, and resume by themselves."""

from datetime import timedelta
from functools import partial

from shared.model.core.labels import LAUNCH_FAILURES, PAUSE_AFTER_FAILURES
from shared.model.decisions.action import CreateNodeClaim
from tests.scenario.worlds import CLASSES, World, make_deployment, make_node_class, make_node_pool


def build_world(annotations: dict[str, str], *, is_broken: bool = True) -> World:
    """Return a world with pods for three nodes; *is_broken*: no node registers."""
    node_class = make_node_class()
    node_class["metadata"]["annotations"] = annotations
    world = World(node_class, make_node_pool(types=("m5.xlarge",)))
    world.instance_booter.is_image_broken = lambda _: is_broken
    world.apply([make_deployment(12)])
    return world


def has_launched(world: World, count: int) -> bool:
    return len(world.launched) == count


def measure_test_delays(world: World, count: int) -> list[timedelta]:
    """Return the time before each of the next *count* launches, which are of one node each."""
    delays = []
    for _ in range(count):
        started_at, launched_count = world.clock.get_time(), len(world.launched)
        world.wait_until(partial(has_launched, world, launched_count + 1), 7200)
        delays.append(world.clock.get_time() - started_at)
    return delays


def test_launches_pause_after_failures_and_resume_with_the_first_node_that_registers() -> None:
    world = build_world({PAUSE_AFTER_FAILURES: "3"})
    world.wait_until(lambda: world.list_events("default", "LaunchesPaused"), 900)
    [message, *_] = world.list_events("default", "LaunchesPaused")
    assert "the last 3 nodes of EC2NodeClass default did not register" in message
    assert len(world.launched) == 3
    delays = measure_test_delays(world, 5)
    assert delays == sorted(delays)
    assert delays[-1] >= 2 * delays[0]
    assert delays[-1] <= timedelta(minutes=45)
    world.wait_until(lambda: world.get_condition(CLASSES, "default", "NodeRegistrationHealthy")[0] == "False", 360)
    world.instance_booter.is_image_broken = lambda _: False
    world.wait_until_settled(12, 7200)
    world.scale(20)
    world.wait_until_settled(20)
    assert world.list_events("default", "LaunchesResumed")
    world.wait_until(lambda: world.get_condition(CLASSES, "default", "NodeRegistrationHealthy")[0] == "True", 360)
    assert not world.list_errors()


def test_one_claim_is_created_for_a_test() -> None:
    world = build_world({PAUSE_AFTER_FAILURES: "3"})
    world.wait_until(lambda: world.list_events("default", "LaunchesPaused"), 900)
    before = {claim["metadata"]["uid"] for claim in world.list_claims()}
    world.wait_until(lambda: len(world.launched) == 4, 600)
    world.advance_time(timedelta(minutes=8))
    created = {action.claim.name for action in world.list_done_actions(CreateNodeClaim)}
    assert len(before) == 3
    assert len(created) == 4
    assert len(world.launched) == 4


def test_change_of_the_class_resumes_launches() -> None:
    world = build_world({PAUSE_AFTER_FAILURES: "3"})
    world.wait_until(lambda: world.list_events("default", "LaunchesPaused"), 900)
    world.instance_booter.is_image_broken = lambda _: False
    world.cluster.api.patch(CLASSES, "default", {"spec": {"userData": "echo fixed"}})
    world.wait_until_settled(12, 900)


def test_class_without_the_annotation_keeps_launching() -> None:
    world = build_world({})
    world.advance_time(timedelta(minutes=50))
    assert len(world.launched) >= 9
    assert LAUNCH_FAILURES not in world.cluster.api.get(CLASSES, "default")["metadata"].get("annotations", {})
    assert not world.list_events("default", "LaunchesPaused")
