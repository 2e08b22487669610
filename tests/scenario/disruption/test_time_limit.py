"""Disruption runs that the time limit ends: later runs continue, also after crashes between them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.errors import Unreachable
from shared.model.decisions.action import FollowUp
from shared.ports import world as ports_world
from shared.ports.storage import FencingToken, TableRow
from shared.store.commands import CURSOR_KIND, CURSOR_NAME
from sim.world.memory_ports import MemoryTable
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
NODE_COUNT = 6


class CursorTable:
    """The table, which loses writes of the cursor: the invocation ends with an error, before or after the write."""

    def __init__(self, table: MemoryTable) -> None:
        """Lose nothing yet."""
        self._table = table
        self.crashes: Iterator[str] = iter(())
        self.cursors: list[str] = []

    def write(
        self,
        kind: str,
        name: str,
        body: str,
        *,
        version: int,
        expires_at: datetime | None = None,
        fence: FencingToken | None = None,
    ) -> TableRow:
        crash = next(self.crashes, "") if kind == CURSOR_KIND else ""
        if crash == "before":
            raise Unreachable("cursor")
        row = self._table.write(kind, name, body, version=version, expires_at=expires_at, fence=fence)
        if kind == CURSOR_KIND:
            self.cursors.append(body.split(" ", maxsplit=1)[0])
        if crash == "after":
            raise Unreachable("cursor")
        return row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


class SlowWorld(World):
    """A world in which disrupt reaches its time limit after a number of checks."""

    checks = 1000

    def __init__(self) -> None:
        """Run six pods on one node each, which consolidation can neither delete nor replace."""
        self.cursor_table: CursorTable | None = None
        pool = make_node_pool(types=("m5.large",), disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"})
        super().__init__(make_node_class(), pool, make_deployment(NODE_COUNT, affinity=APART))
        self.wait_until_settled(NODE_COUNT)
        self.advance_seconds(150)
        self.cursor_table = CursorTable(self.table)

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        world = super()._build_world(function, environment)
        if function != "disrupt" or self.cursor_table is None:
            return world
        checks = iter(range(self.checks))

        def get_time_left() -> timedelta:
            return timedelta(seconds=10 if next(checks, None) is None else 60)

        return replace(world, time_left=get_time_left, table=self.cursor_table)

    def run_to_the_end(self) -> list[str]:
        """Run until all candidates are evaluated; return the first name of each stored cursor."""
        assert self.cursor_table is not None
        table = self.cursor_table
        self.wait_until(lambda: "" in table.cursors, 300)
        return table.cursors[: table.cursors.index("") + 1]


def test_runs_continue_within_seconds_until_every_node_is_evaluated() -> None:
    world = SlowWorld()
    world.checks = 8
    world.wait_until(lambda: world.table.read(CURSOR_KIND, CURSOR_NAME) is not None)
    started_at = world.clock.get_time()
    cursors = world.run_to_the_end()
    assert len(set(cursors)) == len(cursors) > 2
    names = sorted(node["metadata"]["name"] for node in world.list_nodes())
    assert set(cursors[:-1]) <= set(names)
    assert world.clock.get_time() - started_at <= timedelta(seconds=15) * len(cursors)
    messages = [follow_up.message for follow_up in world.list_done_actions(FollowUp)]
    assert f"the time limit was reached: evaluation continues at {cursors[0]}" in messages


@pytest.mark.parametrize("crashes", [("before",), ("after",), ("", "before"), ("", "after"), ("before", "before")])
def test_crash_between_two_runs_repeats_at_most_one_of_them(crashes: tuple[str, ...]) -> None:
    world = SlowWorld()
    assert world.cursor_table is not None
    world.cursor_table.crashes = iter(crashes)
    world.checks = 8
    cursors = world.run_to_the_end()
    assert len(cursors) > 2
    assert len(world.list_nodes()) == NODE_COUNT


def test_run_that_cannot_advance_is_not_continued_before_the_next_schedule() -> None:
    world = SlowWorld()
    world.checks = 0
    world.advance_seconds(150)
    world.entries.clear()
    world.advance_seconds(120)
    assert len([entry for entry in world.entries if entry.function == "disrupt" and entry.trigger == "message"]) <= 2
