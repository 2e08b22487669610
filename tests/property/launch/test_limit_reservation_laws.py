"""Limits hold however functions overlap, die and come back: by the ledger alone, without any lease."""

from collections.abc import Generator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.launch.fleets.launch_limits import MAX_LIST_AGE
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, LIMIT_USD, ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import CPU, NODES, build_resources, parse_resources
from shared.model.ec2.fleet import FleetInstance, FleetResult
from shared.model.karpenter.money_limit import NO_CLUSTER_LIMIT, MoneyPolicy, convert_to_micro_usd
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from shared.ports.world import World
from shared.store.limits.limit_reservations import read_limit_reservations
from tests.support.actions_world import Outside
from tests.support.launch_cases import get_time_after, make_claim, make_cluster, write_limit_reservations
from tests.support.snapshot_decisions import plan_launches

VCPUS_PER_INSTANCE = 4
MAX_INSTANCES = 5
LIMIT = build_resources({CPU: MAX_INSTANCES * VCPUS_PER_INSTANCE * 1000, NODES: 7})
USD_PER_INSTANCE = 0.4 * 0.2 + 20 * 0.08 / 730
"""The most expensive offering of the requests, m5.xlarge as spot in us-east-1b, and 20 GiB of gp3."""
LIMIT_USD_PER_HOUR = MAX_INSTANCES * USD_PER_INSTANCE + 0.001
POOL = NodePool(meta=ObjectMeta(name="default"), node_class=NodeClassRef(name="default"), limits=LIMIT)
USD_POOL = NodePool(
    meta=ObjectMeta(name="default", annotations=((LIMIT_USD, f"{LIMIT_USD_PER_HOUR:.6f}"),)),
    node_class=NodeClassRef(name="default"),
)
FREE_POOL = NodePool(meta=ObjectMeta(name="default"), node_class=NodeClassRef(name="default"))
CLUSTER_MONEY = MoneyPolicy(cluster_limit=convert_to_micro_usd(LIMIT_USD_PER_HOUR))
LIMITED_SCOPES = ((POOL, NO_CLUSTER_LIMIT), (USD_POOL, NO_CLUSTER_LIMIT), (FREE_POOL, CLUSTER_MONEY))
SCOPE_NAMES = ("cpu of the NodePool", "USD of the NodePool", "USD of the cluster")
OLDEST = MAX_LIST_AGE.total_seconds()
XLARGE = parse_resources({"cpu": str(VCPUS_PER_INSTANCE), "memory": "8Gi"})


class Region:
    """Claims and launch groups as everybody sees them, and EC2, which gives what it has."""

    def __init__(self, gives: list[int], pool: NodePool = POOL, money: MoneyPolicy = NO_CLUSTER_LIMIT) -> None:
        """Begin empty; EC2 starts so many instances each time, the last number first, then all that are requested."""
        self.claims: dict[str, NodeClaim] = {}
        self.born: dict[str, int] = {}
        """By claim: the second in which it was made."""
        self.groups: dict[str, LaunchGroup] = {}
        self.second = 0
        self.decision_count = 0
        self.money = money
        self._gives, self._pool = gives, pool

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
            *visible_claims, node_pools=(self._pool,), launch_groups=tuple(self.groups.values()), taken_at=now
        )

    def start_instances(self, group: LaunchGroup) -> None:
        instance_count = min(len(group.claims), self._gives.pop() if self._gives else len(group.claims))
        started = tuple(
            FleetInstance(
                instance_id=f"i-{group.name}-{number:03}",
                instance_type="m5.xlarge",
                zone="us-east-1b",
                subnet_id="subnet-b",
                image_id="ami-amd64",
                capacity_type="spot",
            )
            for number in range(instance_count)
        )
        self.groups[group.name] = msgspec.structs.replace(group, result=FleetResult(fleet_id="f", instances=started))

    def count_running(self) -> int:
        return sum(len(group.result.instances) for group in self.groups.values() if group.result is not None)


def record_instances(actor: str, region: Region) -> Generator[None, None, None]:
    """Record the instances of the claims of *actor*."""
    for group in list(region.groups.values()):
        for name, instance in zip(group.claims, group.result.instances if group.result else (), strict=False):
            node_claim = region.claims.get(name)
            if name.startswith(actor) and node_claim is not None and not node_claim.provider_id:
                labels = (*node_claim.meta.labels, (INSTANCE_TYPE, "m5.xlarge"), (ZONE, "us-east-1b"))
                launched_fields = {
                    "provider_id": f"aws:///z/{instance.instance_id}",
                    "capacity": XLARGE,
                    "meta": msgspec.structs.replace(
                        node_claim.meta, labels=tuple(sorted((*labels, (CAPACITY_TYPE, "spot"))))
                    ),
                }
                region.claims[name] = msgspec.structs.replace(node_claim, **launched_fields)
                yield


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
            plan_launches(snapshot, LaunchPolicy(limit_reservations=books, money=region.money)), snapshot, world, None
        )
        yield
        for launch in plan.launches:
            group = region.groups.setdefault(launch.group.name, launch.group)
            yield
            if region.groups[group.name].result is None:
                region.start_instances(group)
            yield
        yield from record_instances(actor, region)
        for unlaunchable in plan.unlaunchable:
            region.claims.pop(unlaunchable.claim.name, None)
        yield


@pytest.mark.parametrize(("pool", "money"), LIMITED_SCOPES, ids=SCOPE_NAMES)
@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    gives=st.lists(st.integers(0, 3), max_size=6),
    turns=st.lists(
        st.sampled_from(("a", "b", "c", "a", "b", "c", "a", "b", "a dies", "b dies")), min_size=60, max_size=120
    ),
)
def test_nodepool_limit_is_never_exceeded_by_overlapping_functions(
    pool: NodePool, money: MoneyPolicy, counts: list[int], gives: list[int], turns: list[str]
) -> None:
    region, outside = Region(gives, pool, money), build_outside(money)
    worlds = {name: outside.build_world(name) for name in "abc"}
    actors = {name: run_function(name, counts, region, world) for name, world in worlds.items()}
    for turn in turns:
        region.second += 1
        if turn.endswith("dies"):
            actors[turn[0]] = run_function(turn[0], counts, region, worlds[turn[0]])
        else:
            next(actors[turn])
        assert region.count_running() <= MAX_INSTANCES


def build_outside(money: MoneyPolicy) -> Outside:
    return Outside(limit_usd_per_hour=0.0 if money.cluster_limit is None else LIMIT_USD_PER_HOUR)


@pytest.mark.parametrize(("pool", "money"), LIMITED_SCOPES, ids=SCOPE_NAMES)
def test_single_function_can_launch_up_to_the_full_limit(pool: NodePool, money: MoneyPolicy) -> None:
    region, outside = Region([], pool, money), build_outside(money)
    actor = run_function("a", [3], region, outside.build_world("a"))
    for _ in range(60):
        next(actor)
        region.second += 1
    assert region.count_running() == MAX_INSTANCES
