"""The limit of a group holds however functions of several clusters overlap, die and come back, with any clocks."""

from collections.abc import Generator
from datetime import datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cloud_provider.cluster_group import JOIN_DELAY, GroupEntry
from shared.model.karpenter.money_limit import convert_to_micro_usd
from shared.ports.storage import Table
from shared.ports.world import World
from shared.store.cluster_group import ROW_NAME, build_row_kind, read_group_usage
from shared.store.limit_reservations import read_limit_reservations
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

    def count_running(self) -> int:
        return sum(region.count_running() for region in self.regions.values())


def run_function(actor: str, group: Group, region: Region, world: World) -> Generator[None, None, None]:
    """Make claims and launch them, over and over; after each `yield` others may have been at work, or this one dies."""
    while True:
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
            stored_group = region.groups.setdefault(launch.group.name, launch.group)
            yield
            if region.groups[stored_group.name].result is None:
                region.start_instances(stored_group)
            yield
        yield from record_instances(actor, region)
        for unlaunchable in plan.unlaunchable:
            region.claims.pop(unlaunchable.claim.name, None)
        yield


TURNS = st.sampled_from((*ACTORS, *ACTORS, *(f"{actor} dies" for actor in ACTORS)))


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    gives=st.lists(st.integers(0, 3), max_size=6),
    limit_of_y=st.sampled_from((LIMIT_USD_PER_HOUR, 100.0)),
    turns=st.lists(TURNS, min_size=100, max_size=240),
    in_between=st.lists(TURNS, max_size=30),
)
def test_limit_of_a_group_is_never_exceeded(
    counts: list[int], gives: list[int], limit_of_y: float, turns: list[str], in_between: list[str]
) -> None:
    limits = dict.fromkeys(CLUSTERS, LIMIT_USD_PER_HOUR) | {"y": limit_of_y}
    group = Group(counts, gives, limits)
    group.in_between = list(in_between)
    for turn in turns:
        group.second += 1
        if turn.endswith("dies"):
            group.actors[turn[:2]] = group.start(turn[:2])
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
