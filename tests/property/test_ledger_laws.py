"""A NodePool's limit holds however functions overlap, die and come back: by the ledger alone, without any lease."""

from collections.abc import Generator

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.actions.ledger import promise, read_books
from shared.launch.groups import Terms, plan_launches
from shared.launch.ledger import UNSEEN_FOR
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetInstance, FleetResult
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.resources import CPU, NODES, parse_resources, resources
from shared.ports import World
from tests.unit.actions_world import Outside
from tests.unit.launch_cases import claim, cluster, later

VCPUS = 4
LIMIT = resources({CPU: 5 * VCPUS * 1000, NODES: 7})
POOL = NodePool(meta=Meta(name="default"), node_class=NodeClassRef(name="default"), limits=LIMIT)
OLDEST = UNSEEN_FOR.total_seconds()
XLARGE = parse_resources({"cpu": str(VCPUS), "memory": "8Gi"})


class Region:
    """Claims and launch groups as everybody sees them, and EC2, which gives what it has."""

    def __init__(self, gives: list[int]) -> None:
        """Begin empty; EC2 gives so many machines each time, the last number first, then all that are wanted."""
        self.claims: dict[str, NodeClaim] = {}
        self.born: dict[str, int] = {}
        """By claim: the second in which it was made."""
        self.groups: dict[str, LaunchGroup] = {}
        self.second = 0
        self.made = 0
        self._gives = gives

    def seen_by(self, actor: str) -> Cluster:
        """Answer what *actor* sees; the claims that others have just made are younger than its list, which is young."""
        some = [
            one
            for one in self.claims.values()
            if one.provider_id or one.name.startswith(actor) or self.second - self.born[one.name] >= OLDEST
        ]
        now = later(self.second)
        return cluster(*some, node_pools=(POOL,), launch_groups=tuple(self.groups.values()), taken_at=now)

    def answer(self, group: LaunchGroup) -> None:
        given = min(len(group.claims), self._gives.pop() if self._gives else len(group.claims))
        started = tuple(
            FleetInstance(
                instance_id=f"i-{group.name}-{number:03}",
                instance_type="m5.xlarge",
                zone="us-east-1a",
                subnet_id="subnet-a",
                image_id="ami-amd64",
                capacity_type="spot",
            )
            for number in range(given)
        )
        self.groups[group.name] = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=started))

    def running(self) -> int:
        return sum(len(one.result.instances) for one in self.groups.values() if one.result is not None)


def function(actor: str, counts: list[int], region: Region, world: World) -> Generator[None, None, None]:
    """Make claims and launch them, over and over; after each `yield` others may have been at work, or this one dies."""
    while True:
        region.made += 1
        for number in range(counts[region.made % len(counts)]):
            name = f"{actor}-{region.made:03}-{number:03}"
            region.claims[name], region.born[name] = claim(name, cpu="3"), region.second
        books = read_books(world, region.seen_by(actor))
        yield
        seen = region.seen_by(actor)
        yield
        plan = promise(plan_launches(seen, Terms(books=books)), seen, world, None)
        yield
        for launch in plan.launches:
            group = region.groups.setdefault(launch.group.name, launch.group)
            yield
            if region.groups[group.name].result is None:
                region.answer(group)
            yield
        for group in list(region.groups.values()):
            for name, instance in zip(group.claims, group.result.instances if group.result else (), strict=False):
                known = region.claims.get(name)
                if name.startswith(actor) and known is not None and not known.provider_id:
                    told = {"provider_id": f"aws:///z/{instance.instance_id}", "capacity": XLARGE}
                    region.claims[name] = msgspec.structs.replace(known, **told)
                    yield
        for one in plan.unlaunchable:
            region.claims.pop(one.claim.name, None)
        yield


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    gives=st.lists(st.integers(0, 3), max_size=6),
    turns=st.lists(
        st.sampled_from(("a", "b", "c", "a", "b", "c", "a", "b", "a dies", "b dies")), min_size=60, max_size=120
    ),
)
def test_a_limit_is_never_passed(counts: list[int], gives: list[int], turns: list[str]) -> None:
    region, outside = Region(gives), Outside()
    worlds = {name: outside.world(name) for name in "abc"}
    actors = {name: function(name, counts, region, world) for name, world in worlds.items()}
    for turn in turns:
        region.second += 1
        if turn.endswith("dies"):
            actors[turn[0]] = function(turn[0], counts, region, worlds[turn[0]])
        else:
            next(actors[turn])
        assert region.running() * VCPUS * 1000 <= LIMIT[CPU]


def test_what_one_function_may_launch_alone_it_does_launch() -> None:
    region, outside = Region([]), Outside()
    actor = function("a", [3], region, outside.world("a"))
    for _ in range(60):
        next(actor)
        region.second += 1
    assert region.running() * VCPUS * 1000 == LIMIT[CPU]
