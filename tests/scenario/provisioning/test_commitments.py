"""Commitments in a simulated account: what is paid for is used first, and without the setting nothing changes."""

from collections import Counter

from shared.model.ec2.instance import Instance
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

TYPES = ("m5.large", "m5.xlarge")


def build_world(source: str) -> World:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"commitments": source})
    return World(template=template, types=TYPES)


def run_deployment(world: World, replicas: int) -> tuple[Counter[str], list[Instance]]:
    """Run *replicas* pods; return the calls of `provision` by method, and the instances."""
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.apply([make_node_class(), make_node_pool(capacity=("spot", "on-demand"), types=TYPES)])
        world.advance_seconds(60)
        world.apply([make_deployment(replicas)])
        world.wait_until_settled(replicas)
    methods = Counter(
        f"{call.port}.{call.method}"
        for call in calls
        if call.world_name.startswith("provision") and call.phase == "before"
    )
    return methods, list(world.list_active_instances())


def count_kinds(instances: list[Instance]) -> Counter[tuple[str, str]]:
    return Counter((instance.instance_type, instance.capacity_type) for instance in instances)


def test_reserved_instances_are_used_before_spot_and_only_once() -> None:
    world = build_world("account")
    world.cloud.commitments.add_reserved("m5.xlarge", 1, world.clock.get_time())
    _, instances = run_deployment(world, 9)
    kinds = count_kinds(instances)
    assert sum(count for (_, capacity_type), count in kinds.items() if capacity_type == "on-demand") == 1
    assert sum(count for (_, capacity_type), count in kinds.items() if capacity_type == "spot") >= 1
    assert not world.list_errors()


def test_provision_makes_the_same_requests_and_launches_the_same_nodes_without_commitments() -> None:
    requests, instances = run_deployment(build_world("off"), 5)
    world = build_world("off")
    world.cloud.commitments.add_plan(5.0, world.clock.get_time())
    assert run_deployment(world, 5)[0] == requests
    account_requests, account_instances = run_deployment(build_world("account"), 5)
    assert account_requests == requests
    assert count_kinds(account_instances) == count_kinds(instances)
