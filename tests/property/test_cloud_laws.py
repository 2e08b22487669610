"""What no history of a cloud may break."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Gone, Invalid
from shared.model.ec2 import (
    AllocationStrategy,
    CapacityType,
    FleetRequest,
    LaunchTemplate,
    LaunchTemplateConfig,
    Override,
    Selector,
)
from sim.clock import START, Clock
from sim.cloud.cloud import Cloud
from sim.cloud.events import Event
from sim.cloud.instances import ALIVE
from sim.cloud.prices import SPOT_HIGH, SPOT_LOW, on_demand_prices, spot_share
from sim.cloud.types import instance_types, offered

TYPES = ("c5.large", "m5.large", "m5.xlarge", "m6g.large", "p4d.24xlarge", "no.such")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
EVERYTHING = (Selector(tags=(("karpenter.sh/discovery", "*"),)),)
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


def cloud(seed: int = 0) -> Cloud:
    """One with a template, and a tiny subnet besides the usual ones."""
    made = Cloud(Clock(), seed)
    image_id = made.images.parameter(
        "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    )
    made.create_launch_template(LaunchTemplate(name="template", image_id=image_id, user_data=""))
    made.add_subnet("us-east-1a", (("karpenter.sh/discovery", "tiny"),), TINY)
    return made


@st.composite
def requests(draw: st.DrawFn) -> Callable[[Cloud], FleetRequest]:
    """Draw a request of any shape, sane or not, for a cloud that comes later."""
    spot = draw(st.booleans())
    strategies: list[AllocationStrategy] = ["lowest-price", "prioritized"]
    if spot:
        strategies = ["lowest-price", "price-capacity-optimized", "capacity-optimized-prioritized"]
    capacity_type: CapacityType = "spot" if spot else draw(st.sampled_from(["on-demand", "reserved"]))
    asked, strategy = draw(st.integers(1, 15)), draw(st.sampled_from(strategies))
    pools = draw(
        st.lists(
            st.tuples(st.sampled_from(TYPES), st.integers(0, 4), st.none() | st.floats(0, 9)),
            min_size=1,
            max_size=12,
            unique_by=lambda pool: pool[:2],
        )
    )

    def build(made: Cloud) -> FleetRequest:
        subnets = sorted(made.network.subnets.values(), key=lambda subnet: subnet.subnet_id)
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
            client_token=f"{asked} {strategy}",
            capacity=asked,
            capacity_type=capacity_type,
            allocation_strategy=strategy,
            configs=(LaunchTemplateConfig(launch_template_name="template", overrides=tuple(overrides)),),
        )

    return build


def attempt(made: Cloud, request: FleetRequest) -> object:
    """Answer what CreateFleet answers: a refusal is one, too."""
    try:
        return made.create_fleet(request)
    except Invalid as refused:
        return refused.code


@given(build=requests(), limits=capacities, quota=st.none() | st.integers(0, 40), free=st.integers(0, TINY_SIZE))
def test_a_fleet_starts_no_more_than_was_asked_than_there_is_and_than_there_are_addresses(
    build: Callable[[Cloud], FleetRequest],
    limits: dict[tuple[str, str], int | None],
    quota: int | None,
    free: int,
) -> None:
    made = cloud()
    request = build(made)
    made.set_quota("spot" if request.capacity_type == "spot" else "on-demand", quota)
    for (kind, zone), count in limits.items():
        made.set_capacity(kind, zone, request.capacity_type, count)
    tiny = next(subnet for subnet in made.network.subnets.values() if str(subnet.cidr) == TINY)
    made.set_free_ips(tiny.subnet_id, free)
    attempt(made, request)
    started = made.machines.alive()
    pools = Counter((machine.order.instance_type, machine.subnet.zone) for machine in started)
    assert len(started) <= request.capacity
    assert all(limits[pool] is None or count <= (limits[pool] or 0) for pool, count in pools.items() if pool in limits)
    assert sum(machine.subnet is tiny for machine in started) <= free
    assert quota is None or sum(machine.order.vcpus for machine in started) <= quota
    assert all(machine.order.instance_type in offered("us-east-1")[machine.subnet.zone] for machine in started)
    assert len({machine.address for machine in started}) == len(started)


@given(build=requests(), limits=capacities)
def test_whoever_gets_less_than_was_asked_is_told_why_for_every_offering(
    build: Callable[[Cloud], FleetRequest], limits: dict[tuple[str, str], int | None]
) -> None:
    made = cloud()
    request = build(made)
    for (kind, zone), count in limits.items():
        made.set_capacity(kind, zone, request.capacity_type, count)
    try:
        result = made.create_fleet(request)
    except Invalid:
        return
    offerings = {(o.instance_type, o.zone, o.subnet_id) for config in request.configs for o in config.overrides}
    refused = {(error.instance_type, error.zone, error.subnet_id) for error in result.errors}
    assert refused <= offerings
    assert len(result.instances) == request.capacity or refused == offerings


@given(build=requests(), between=steps)
def test_the_same_request_is_the_same_call_whatever_happens_between(
    build: Callable[[Cloud], FleetRequest], between: list[Step]
) -> None:
    made = cloud()
    request = build(made)
    once = attempt(made, request)
    reduce(apply, between, made)
    known = {machine.instance_id for machine in made.machines.alive()}
    again = attempt(made, request)
    assert again == once
    assert {machine.instance_id for machine in made.machines.alive()} == known


@given(history=steps)
def test_addresses_are_neither_lost_nor_made(history: list[Step]) -> None:
    made = cloud()
    before = {subnet.subnet_id: subnet.free for subnet in made.network.subnets.values()}
    for step in history:
        apply(made, step)
        used = Counter(i.subnet_id for i in made.instances() if i.state != "terminated")
        young = Counter(m.subnet.subnet_id for m in made.machines.alive() if m.launched_at == made.clock.now())
        assert all(
            before[subnet_id] == subnet.free + used[subnet_id] + young[subnet_id]
            for subnet_id, subnet in made.network.subnets.items()
        )
    made.terminate(machine.instance_id for machine in made.machines.alive())
    made.clock.advance(timedelta(minutes=5))
    assert {subnet.subnet_id: subnet.free for subnet in made.network.subnets.values()} == before


@given(seed=st.integers(0, 3), history=steps)
@settings(max_examples=40)
def test_the_same_seed_is_the_same_history(seed: int, history: list[Step]) -> None:
    assert events_of(seed, history) == events_of(seed, history)


def events_of(seed: int, history: list[Step]) -> list[Event]:
    made, heard = cloud(seed), list[Event]()
    made.subscribe_events(heard.append)
    reduce(apply, history, made)
    made.clock.advance(timedelta(hours=2))
    return heard


@given(history=steps)
def test_an_instance_ends_once_and_never_lives_again(history: list[Step]) -> None:
    made, states = cloud(), dict[str, list[str]]()
    made.subscribe_events(
        lambda event: states.setdefault(event["detail"]["instance-id"], []).append(event["detail"].get("state", ""))
    )
    reduce(apply, history, made)
    made.clock.advance(timedelta(hours=2))
    for seen in (list(filter(None, each)) for each in states.values()):
        assert seen[0] == "pending"
        assert len(set(seen)) == len(seen)
        ended = [number for number, state in enumerate(seen) if state not in ALIVE]
        assert [seen[number] for number in ended] in ([], ["shutting-down", "terminated"])
        assert ended == list(range(len(seen) - len(ended), len(seen)))


@given(
    seed=st.integers(0, 100),
    kind=st.sampled_from(sorted(instance_types())),
    zone=st.sampled_from(ZONES),
    minutes=st.integers(-(10**6), 10**6),
)
def test_spot_is_always_cheaper_than_on_demand(seed: int, kind: str, zone: str, minutes: int) -> None:
    share = spot_share(seed, kind, zone, START + timedelta(minutes=minutes))
    assert SPOT_LOW <= share <= SPOT_HIGH < 1
    assert on_demand_prices()[kind] * share < on_demand_prices()[kind]


def apply(made: Cloud, step: Step) -> Cloud:
    """Let one thing happen; what the cloud refuses does not."""
    what, number = step
    ids = sorted(instance.instance_id for instance in made.instances())
    chosen = ids[number % len(ids)] if ids else "i-0"
    try:
        match what:
            case "launch" | "spot":
                made.create_fleet(simple(made, what, number))
            case "terminate":
                made.terminate([chosen])
            case "kill":
                made.kill(chosen)
            case "stop":
                made.stop(chosen)
            case "interrupt":
                made.interrupt_spot(chosen)
            case "wait":
                made.clock.advance(timedelta(seconds=5 * number))
            case "wait long":
                made.clock.advance(timedelta(minutes=10 * number))
            case "limit":
                made.set_capacity("m5.large", ZONES[number % 3], "spot" if number % 2 else "on-demand", number)
            case _:
                made.drain_zone(ZONES[number % 3])
    except (Gone, Invalid):
        pass
    return made


def simple(made: Cloud, what: str, number: int) -> FleetRequest:
    subnets = sorted(made.network.subnets.values(), key=lambda subnet: subnet.subnet_id)
    subnet = subnets[number % len(subnets)]
    spot = what == "spot"
    override = Override(instance_type="m5.large", zone=subnet.zone, subnet_id=subnet.subnet_id)
    return FleetRequest(
        client_token="",
        capacity=number + 1,
        capacity_type="spot" if spot else "on-demand",
        allocation_strategy="price-capacity-optimized" if spot else "lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name="template", overrides=(override,)),),
    )
