"""A NodePool's limit holds however functions overlap, die and come back: by the ledger alone, without any lease."""

from collections.abc import Generator

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.launch.fleets.launch_limits import MAX_LIST_AGE
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import CPU, NODES, build_resources, parse_resources
from shared.model.ec2.fleet import FleetInstance, FleetResult
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from shared.ports.world import World
from shared.store.limit_reservations import read_limit_reservations
from tests.support.actions_world import Outside
from tests.support.launch_cases import get_time_after, make_claim, make_cluster, write_limit_reservations
from tests.support.snapshot_decisions import plan_launches

VCPUS_PER_INSTANCE = 4
LIMIT = build_resources({CPU: 5 * VCPUS_PER_INSTANCE * 1000, NODES: 7})
POOL = NodePool(meta=ObjectMeta(name="default"), node_class=NodeClassRef(name="default"), limits=LIMIT)
OLDEST = MAX_LIST_AGE.total_seconds()
XLARGE = parse_resources({"cpu": str(VCPUS_PER_INSTANCE), "memory": "8Gi"})


class Region:
    """Claims and launch groups as everybody sees them, and EC2, which gives what it has."""

    def __init__(self, gives: list[int]) -> None:
        """Begin empty; EC2 starts so many instances each time, the last number first, then all that are requested."""
        self.claims: dict[str, NodeClaim] = {}
        self.born: dict[str, int] = {}
        """By claim: the second in which it was made."""
        self.groups: dict[str, LaunchGroup] = {}
        self.second = 0
        self.decision_count = 0
        self._gives = gives

    def build_snapshot_for(self, actor: str) -> ClusterSnapshot:
        """Build the snapshot of *actor*: it lacks claims of other actors that are newer than the actor's list."""
        visible_claims = [
            node_claim
            for node_claim in self.claims.values()
            if node_claim.provider_id
            or node_claim.name.startswith(actor)
            or self.second - self.born[node_claim.name] >= OLDEST
        ]
        now = get_time_after(self.second)
        return make_cluster(
            *visible_claims, node_pools=(POOL,), launch_groups=tuple(self.groups.values()), taken_at=now
        )

    def start_instances(self, group: LaunchGroup) -> None:
        instance_count = min(len(group.claims), self._gives.pop() if self._gives else len(group.claims))
        started = tuple(
            FleetInstance(
                instance_id=f"i-{group.name}-{number:03}",
                instance_type="m5.xlarge",
                zone="us-east-1a",
                subnet_id="subnet-a",
                image_id="ami-amd64",
                capacity_type="spot",
            )
            for number in range(instance_count)
        )
        self.groups[group.name] = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=started))

    def count_running(self) -> int:
        return sum(len(group.result.instances) for group in self.groups.values() if group.result is not None)


def run_function(actor: str, counts: list[int], region: Region, world: World) -> Generator[None, None, None]:
    """Make claims and launch them, over and over; after each `yield` others may have been at work, or this one dies."""
    while True:
        region.decision_count += 1
        for number in range(counts[region.decision_count % len(counts)]):
            name = f"{actor}-{region.decision_count:03}-{number:03}"
            region.claims[name], region.born[name] = make_claim(name, cpu="3"), region.second
        books = read_limit_reservations(world, region.build_snapshot_for(actor))
        yield
        snapshot = region.build_snapshot_for(actor)
        yield
        plan = write_limit_reservations(
            plan_launches(snapshot, LaunchPolicy(limit_reservations=books)), snapshot, world, None
        )
        yield
        for launch in plan.launches:
            group = region.groups.setdefault(launch.group.name, launch.group)
            yield
            if region.groups[group.name].result is None:
                region.start_instances(group)
            yield
        for group in list(region.groups.values()):
            for name, instance in zip(group.claims, group.result.instances if group.result else (), strict=False):
                node_claim = region.claims.get(name)
                if name.startswith(actor) and node_claim is not None and not node_claim.provider_id:
                    launched_fields = {"provider_id": f"aws:///z/{instance.instance_id}", "capacity": XLARGE}
                    region.claims[name] = msgspec.structs.replace(node_claim, **launched_fields)
                    yield
        for unlaunchable in plan.unlaunchable:
            region.claims.pop(unlaunchable.claim.name, None)
        yield


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    gives=st.lists(st.integers(0, 3), max_size=6),
    turns=st.lists(
        st.sampled_from(("a", "b", "c", "a", "b", "c", "a", "b", "a dies", "b dies")), min_size=60, max_size=120
    ),
)
def test_nodepool_limit_is_never_exceeded_by_overlapping_functions(
    counts: list[int], gives: list[int], turns: list[str]
) -> None:
    region, outside = Region(gives), Outside()
    worlds = {name: outside.build_world(name) for name in "abc"}
    actors = {name: run_function(name, counts, region, world) for name, world in worlds.items()}
    for turn in turns:
        region.second += 1
        if turn.endswith("dies"):
            actors[turn[0]] = run_function(turn[0], counts, region, worlds[turn[0]])
        else:
            next(actors[turn])
        assert region.count_running() * VCPUS_PER_INSTANCE * 1000 <= LIMIT[CPU]


def test_single_function_can_launch_up_to_the_full_limit() -> None:
    region, outside = Region([]), Outside()
    actor = run_function("a", [3], region, outside.build_world("a"))
    for _ in range(60):
        next(actor)
        region.second += 1
    assert region.count_running() * VCPUS_PER_INSTANCE * 1000 == LIMIT[CPU]
