"""What no history of a cloud may break."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Invalid, NotFound
from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import AllocationStrategy, CapacityType
from sim.cloud.catalog.instance_types import load_instance_types, load_types_by_zone
from sim.cloud.catalog.synthetic_prices import (
    MAX_SPOT_PRICE_RATIO,
    MIN_SPOT_PRICE_RATIO,
    compute_on_demand_prices,
    compute_spot_price_ratio,
)
from sim.cloud.cloud import Cloud
from sim.cloud.ec2.fleet import REPLAY_ANSWERS, ReplayAnswer
from sim.cloud.ec2.instance_lifecycle import ALIVE_STATES
from sim.cloud.eventbridge_events import EventBridgeEvent
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from tests.support.hypothesis_profiles import limit_examples

TYPES = ("c5.large", "m5.large", "m5.xlarge", "m6g.large", "p4d.24xlarge", "no.such")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
EVERYTHING = (SelectorTerm(tags=(("karpenter.sh/discovery", "*"),)),)
TINY = "10.0.255.0/28"
TINY_SIZE = 11
Step = tuple[str, int]

capacities = st.dictionaries(
    st.tuples(st.sampled_from(TYPES), st.sampled_from(ZONES)), st.none() | st.integers(0, 4), max_size=8
)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["launch", "spot", "terminate", "kill", "stop", "interrupt", "wait", "wait long", "limit", "full"]
        ),
        st.integers(0, 9),
    ),
    max_size=25,
)


def make_cloud(seed: int = 0) -> Cloud:
    """Build a cloud with a launch template and a tiny subnet in addition to the usual ones."""
    cloud = Cloud(Clock(), seed)
    image_id = cloud.images.get_parameter(
        "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    )
    cloud.create_launch_template(LaunchTemplate(name="template", image_id=image_id, user_data=""))
    cloud.network.add_subnet("us-east-1a", (("karpenter.sh/discovery", "tiny"),), TINY)
    return cloud


@st.composite
def generate_request(draw: st.DrawFn) -> Callable[[Cloud], FleetRequest]:
    """Draw a request of any shape, sane or not, for a cloud that comes later."""
    spot = draw(st.booleans())
    strategies: list[AllocationStrategy] = ["lowest-price", "prioritized"]
    if spot:
        strategies = ["lowest-price", "price-capacity-optimized", "capacity-optimized-prioritized"]
    capacity_type: CapacityType = "spot" if spot else draw(st.sampled_from(["on-demand", "reserved"]))
    capacity, strategy = draw(st.integers(1, 15)), draw(st.sampled_from(strategies))
    pools = draw(
        st.lists(
            st.tuples(st.sampled_from(TYPES), st.integers(0, 4), st.none() | st.floats(0, 9)),
            min_size=1,
            max_size=12,
            unique_by=lambda pool: pool[:2],
        )
    )

    def build(cloud: Cloud) -> FleetRequest:
        subnets = sorted(cloud.network.subnets.values(), key=lambda subnet: subnet.subnet_id)
        overrides = [
            Override(
                instance_type=kind,
                zone=subnets[where % len(subnets)].zone,
                subnet_id=subnets[where % len(subnets)].subnet_id if where < 4 else "subnet-0",
                priority=priority,
            )
            for kind, where, priority in pools
        ]
        return FleetRequest(
            client_token=f"{capacity} {strategy}",
            capacity=capacity,
            capacity_type=capacity_type,
            allocation_strategy=strategy,
            configs=(LaunchTemplateConfig(launch_template_name="template", overrides=tuple(overrides)),),
        )

    return build


def try_create_fleet(cloud: Cloud, request: FleetRequest) -> object:
    """Return the result of CreateFleet, or the code if the request is refused."""
    try:
        return cloud.fleets.create(request)
    except Invalid as refused:
        return refused.code


@given(
    build=generate_request(), limits=capacities, quota=st.none() | st.integers(0, 40), free=st.integers(0, TINY_SIZE)
)
def test_fleet_never_exceeds_requested_capacity_pool_limits_quota_or_free_addresses(
    build: Callable[[Cloud], FleetRequest],
    limits: dict[tuple[str, str], int | None],
    quota: int | None,
    free: int,
) -> None:
    cloud = make_cloud()
    request = build(cloud)
    cloud.pools.set_quota("spot" if request.capacity_type == "spot" else "on-demand", quota)
    for (kind, zone), count in limits.items():
        cloud.pools.set_limit(kind, zone, request.capacity_type, count)
    tiny = next(subnet for subnet in cloud.network.subnets.values() if str(subnet.cidr) == TINY)
    cloud.network.get_subnet(tiny.subnet_id).set_free(free)
    try_create_fleet(cloud, request)
    started = cloud.instances.list_alive()
    pools = Counter((machine.launch_spec.instance_type, machine.subnet.zone) for machine in started)
    assert len(started) <= request.capacity
    assert all(limits[pool] is None or count <= (limits[pool] or 0) for pool, count in pools.items() if pool in limits)
    assert sum(machine.subnet is tiny for machine in started) <= free
    assert quota is None or sum(machine.launch_spec.vcpus for machine in started) <= quota
    assert all(
        machine.launch_spec.instance_type in load_types_by_zone("us-east-1")[machine.subnet.zone] for machine in started
    )
    assert len({machine.address for machine in started}) == len(started)


@given(build=generate_request(), limits=capacities)
def test_partial_fleet_result_has_an_error_for_every_offering(
    build: Callable[[Cloud], FleetRequest], limits: dict[tuple[str, str], int | None]
) -> None:
    cloud = make_cloud()
    request = build(cloud)
    for (kind, zone), count in limits.items():
        cloud.pools.set_limit(kind, zone, request.capacity_type, count)
    try:
        result = cloud.fleets.create(request)
    except Invalid:
        return
    offerings = {(o.instance_type, o.zone, o.subnet_id) for config in request.configs for o in config.overrides}
    refused = {(error.instance_type, error.zone, error.subnet_id) for error in result.errors}
    assert refused <= offerings
    assert len(result.instances) == request.capacity or refused == offerings


@given(build=generate_request(), between=steps, answer=st.sampled_from(REPLAY_ANSWERS))
def test_repeated_fleet_request_launches_no_second_instance_with_any_replay_answer(
    build: Callable[[Cloud], FleetRequest], between: list[Step], answer: ReplayAnswer
) -> None:
    cloud = make_cloud()
    cloud.fleets.replay_answer = answer
    request = build(cloud)
    once = try_create_fleet(cloud, request)
    reduce(apply, between, cloud)
    instance_ids = {instance.instance_id for instance in cloud.instances.list_alive()}
    repeated_result = try_create_fleet(cloud, request)
    assert answer != "original" or repeated_result == once
    assert {instance.instance_id for instance in cloud.instances.list_alive()} == instance_ids


@given(history=steps)
def test_ip_address_counts_stay_consistent(history: list[Step]) -> None:
    cloud = make_cloud()
    before = {subnet.subnet_id: subnet.free for subnet in cloud.network.subnets.values()}
    for step in history:
        apply(cloud, step)
        used = Counter(i.subnet_id for i in cloud.instances.describe_all() if i.state != "terminated")
        young = Counter(
            m.subnet.subnet_id for m in cloud.instances.list_alive() if m.launched_at == cloud.clock.get_time()
        )
        assert all(
            before[subnet_id] == subnet.free + used[subnet_id] + young[subnet_id]
            for subnet_id, subnet in cloud.network.subnets.items()
        )
    cloud.terminate_instances(machine.instance_id for machine in cloud.instances.list_alive())
    cloud.clock.advance(timedelta(minutes=5))
    assert {subnet.subnet_id: subnet.free for subnet in cloud.network.subnets.values()} == before


@given(seed=st.integers(0, 3), history=steps)
@limit_examples(40)
def test_same_seed_produces_the_same_events(seed: int, history: list[Step]) -> None:
    assert list_events(seed, history) == list_events(seed, history)


def list_events(seed: int, history: list[Step]) -> list[EventBridgeEvent]:
    cloud, events = make_cloud(seed), list[EventBridgeEvent]()
    cloud.events.subscribe(events.append)
    reduce(apply, history, cloud)
    cloud.clock.advance(timedelta(hours=2))
    return events


@given(history=steps)
def test_instance_terminates_once_and_never_returns(history: list[Step]) -> None:
    cloud, states = make_cloud(), dict[str, list[str]]()
    cloud.events.subscribe(
        lambda event: states.setdefault(event["detail"]["instance-id"], []).append(event["detail"].get("state", ""))
    )
    reduce(apply, history, cloud)
    cloud.clock.advance(timedelta(hours=2))
    for instance_states in (list(filter(None, reported_states)) for reported_states in states.values()):
        assert instance_states[0] == "pending"
        assert len(set(instance_states)) == len(instance_states)
        ended = [number for number, state in enumerate(instance_states) if state not in ALIVE_STATES]
        assert [instance_states[number] for number in ended] in ([], ["shutting-down", "terminated"])
        assert ended == list(range(len(instance_states) - len(ended), len(instance_states)))


@given(
    seed=st.integers(0, 100),
    kind=st.sampled_from(sorted(load_instance_types())),
    zone=st.sampled_from(ZONES),
    minutes=st.integers(-(10**6), 10**6),
)
def test_spot_is_always_cheaper_than_on_demand(seed: int, kind: str, zone: str, minutes: int) -> None:
    share = compute_spot_price_ratio(seed, kind, zone, DEFAULT_START_TIME + timedelta(minutes=minutes))
    assert MIN_SPOT_PRICE_RATIO <= share <= MAX_SPOT_PRICE_RATIO < 1
    assert compute_on_demand_prices()[kind] * share < compute_on_demand_prices()[kind]


def apply(cloud: Cloud, step: Step) -> Cloud:
    """Let one thing happen; what the cloud refuses does not."""
    action, number = step
    ids = sorted(instance.instance_id for instance in cloud.instances.describe_all())
    instance_id = ids[number % len(ids)] if ids else "i-0"
    try:
        match action:
            case "launch" | "spot":
                cloud.fleets.create(make_simple_request(cloud, action, number))
            case "terminate":
                cloud.terminate_instances([instance_id])
            case "kill":
                cloud.instances.terminate_immediately(instance_id)
            case "stop":
                cloud.instances.stop(instance_id)
            case "interrupt":
                cloud.instances.interrupt(instance_id)
            case "wait":
                cloud.clock.advance(timedelta(seconds=5 * number))
            case "wait long":
                cloud.clock.advance(timedelta(minutes=10 * number))
            case "limit":
                cloud.pools.set_limit("m5.large", ZONES[number % 3], "spot" if number % 2 else "on-demand", number)
            case _:
                cloud.drain_zone(ZONES[number % 3])
    except (NotFound, Invalid):
        pass
    return cloud


def make_simple_request(cloud: Cloud, action: str, number: int) -> FleetRequest:
    subnets = sorted(cloud.network.subnets.values(), key=lambda subnet: subnet.subnet_id)
    subnet = subnets[number % len(subnets)]
    spot = action == "spot"
    override = Override(instance_type="m5.large", zone=subnet.zone, subnet_id=subnet.subnet_id)
    return FleetRequest(
        client_token="",
        capacity=number + 1,
        capacity_type="spot" if spot else "on-demand",
        allocation_strategy="price-capacity-optimized" if spot else "lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name="template", overrides=(override,)),),
    )
