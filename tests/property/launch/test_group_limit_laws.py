"""The limit of a group holds however functions of several clusters overlap, die and come back, with any clocks."""

from collections.abc import Generator
from datetime import datetime, timedelta
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cloud_provider.cluster_group import JOIN_DELAY, GroupEntry
from shared.model.karpenter.money_limit import convert_to_micro_usd
from shared.ports.storage import Table
from shared.ports.world import World
from shared.store.limits.cluster_group import ROW_NAME, build_row_kind, read_group_usage
from shared.store.limits.limit_reservations import read_limit_reservations
from sim.fault_tap import Killed, PortCall
from tests.property.launch.test_limit_reservation_laws import (
    FREE_POOL,
    LIMIT_USD_PER_HOUR,
    MAX_INSTANCES,
    Region,
    record_instances,
)
from tests.support.actions_world import Outside
from tests.support.launch_cases import get_time_after, make_claim, write_limit_reservations
from tests.support.snapshot_decisions import plan_launches

CLUSTERS = ("x", "y", "z")
CLOCK_OFFSETS = {"x": 0, "y": 7200, "z": -86400}
"""Seconds that the clock of each cluster differs."""
TABLE_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/groups"
LEASE_SECONDS = 20
"""Shorter than a slow function takes: its lease is taken over while it goes on."""
ACTORS = tuple(f"{cluster}{function}" for cluster in CLUSTERS for function in "ab")


class Group:
    """Clusters with a shared table; each has two functions, an account of its own, and a clock of its own."""

    def __init__(self, counts: list[int], gives: list[int], limits: dict[str, float]) -> None:
        """All clusters joined long ago, with the *limits* that they have in their settings."""
        self.second, self.counts = 0, counts
        self.regions = {cluster: Region(list(gives), FREE_POOL) for cluster in CLUSTERS}
        self.outsides = {
            cluster: Outside(
                group="g", group_member=cluster, group_limit_usd_per_hour=limits[cluster], group_table=TABLE_ARN
            )
            for cluster in CLUSTERS
        }
        self.table: Table = self.outsides[CLUSTERS[0]].group_table
        entries = {
            cluster: GroupEntry(
                used=0,
                limit=convert_to_micro_usd(limits[cluster]),
                joined_at=self.get_time(cluster) - JOIN_DELAY,
                written_at=self.get_time(cluster),
            )
            for cluster in CLUSTERS
        }
        self.table.write(build_row_kind("g"), ROW_NAME, msgspec.json.encode({"entries": entries}).decode(), version=0)
        for outside in self.outsides.values():
            outside.group_table = self.outsides[CLUSTERS[0]].group_table
        self.in_between: list[str] = []
        """Actors that act between the read and the write of another one, the last first."""
        self.worlds = {actor: self._build_world(actor) for actor in ACTORS}
        self.actors = {actor: self.start(actor) for actor in ACTORS}
        self.running: set[str] = set()
        self.leases = dict.fromkeys(CLUSTERS, (0, 0))
        """By cluster: the version of its lease, and until when it is held. Only its holder records launches."""
        self.ended: set[str] = set()
        """NodeClaims whose instances ended."""

    def get_time(self, cluster: str) -> datetime:
        return get_time_after(self.second) + timedelta(seconds=CLOCK_OFFSETS[cluster])

    def _build_world(self, actor: str) -> World:
        world = self.outsides[actor[0]].build_world(actor, tap=self._intercept)
        return msgspec.structs.replace(world, clock=lambda: self.get_time(actor[0]))

    def _intercept(self, call: PortCall) -> None:
        if (call.port, call.method) != ("group_table", "write") or not self.in_between:
            return
        turn = self.in_between.pop()
        if turn.endswith("dies"):
            raise Killed
        self.act(turn)

    def start(self, actor: str) -> Generator[None, None, None]:
        return run_function(actor, self, self.regions[actor[0]], self.worlds[actor])

    def act(self, actor: str) -> None:
        if actor in self.running:
            return
        self.running.add(actor)
        try:
            next(self.actors[actor])
        except Killed:
            self.actors[actor] = self.start(actor)
        finally:
            self.running.discard(actor)

    def acquire_lease(self, cluster: str) -> int | None:
        """Return a new version of the lease of *cluster*; None if another function holds it."""
        version, held_until = self.leases[cluster]
        if self.second < held_until:
            return None
        self.leases[cluster] = (version + 1, self.second + LEASE_SECONDS)
        return version + 1

    def release_lease(self, cluster: str, version: int) -> None:
        if self.leases[cluster][0] == version:
            self.leases[cluster] = (version, 0)

    def end_instance(self, cluster: str) -> None:
        """End the first instance of *cluster* that its NodeClaim knows, with the NodeClaim."""
        claims = self.regions[cluster].claims
        launched_names = sorted(name for name, claim in claims.items() if claim.provider_id)
        for name in launched_names[:1]:
            del claims[name]
            self.ended.add(name)

    def count_running(self) -> int:
        """Return the number of instances that were started and did not end."""
        return sum(
            name not in self.ended
            for region in self.regions.values()
            for group in region.groups.values()
            for name, _ in zip(group.claims, group.result.instances if group.result else (), strict=False)
        )


def run_function(actor: str, group: Group, region: Region, world: World) -> Generator[None, None, None]:
    """Make claims and launch them, over and over; after each `yield` others may have been at work, or this one dies."""
    while True:
        lease = group.acquire_lease(actor[0])
        if lease is None:
            yield
            continue
        region.decision_count += 1
        for number in range(group.counts[region.decision_count % len(group.counts)]):
            name = f"{actor}-{region.decision_count:03}-{number:03}"
            region.claims[name], region.born[name] = make_claim(name, cpu="3"), group.second
        yield
        usage = read_group_usage(world)
        yield
        books = read_limit_reservations(world, region.build_snapshot_for(actor))
        yield
        region.second = group.second
        snapshot = msgspec.structs.replace(
            region.build_snapshot_for(actor), group_usage=usage, taken_at=group.get_time(actor[0])
        )
        yield
        plan = write_limit_reservations(
            plan_launches(snapshot, LaunchPolicy(limit_reservations=books)), snapshot, world, None
        )
        yield
        for launch in plan.launches:
            if group.leases[actor[0]][0] != lease:
                break
            stored_group = region.groups.setdefault(launch.group.name, launch.group)
            yield
            if region.groups[stored_group.name].result is None:
                region.start_instances(stored_group)
            yield
        yield from record_instances(actor, region)
        for unlaunchable in plan.unlaunchable:
            region.claims.pop(unlaunchable.claim.name, None)
        group.release_lease(actor[0], lease)
        yield


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), limit_of_y=st.sampled_from((LIMIT_USD_PER_HOUR, 100.0)))
def test_limit_of_a_group_is_never_exceeded(seed: int, limit_of_y: float) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    counts = [chance.randint(1, 4) for _ in range(2)]
    gives = [chance.randint(0, 3) for _ in range(chance.randint(0, 2))]
    group = Group(counts, gives, dict.fromkeys(CLUSTERS, LIMIT_USD_PER_HOUR) | {"y": limit_of_y})
    group.in_between = chance.choices((*ACTORS, f"{ACTORS[0]} dies"), k=10)
    for _ in range(300):
        group.second += 1
        turn = chance.choice((*ACTORS, *ACTORS, *ACTORS, *ACTORS, "dies", "ends"))
        if turn == "dies":
            actor = chance.choice(ACTORS)
            group.actors[actor] = group.start(actor)
        elif turn == "ends":
            group.end_instance(chance.choice(CLUSTERS))
        else:
            group.act(turn)
        assert group.count_running() <= MAX_INSTANCES


def test_clusters_use_the_whole_limit_of_their_group() -> None:
    group = Group([1], [], dict.fromkeys(CLUSTERS, LIMIT_USD_PER_HOUR))
    for _ in range(40):
        for actor in ("xa", "ya", "za"):
            group.second += 1
            group.act(actor)
    assert group.count_running() == MAX_INSTANCES
    assert min(region.count_running() for region in group.regions.values()) >= 1
