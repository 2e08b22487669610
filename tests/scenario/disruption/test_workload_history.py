"""The workload history in the whole world: recorded, bounded in its writes, and harmless if it is missing."""

from datetime import timedelta
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from shared.cycles.interactions.workload_history import update_forecasts
from shared.cycles.setup.run_cycle import PLANNER_LEASE
from shared.model.core.metadata import Problem
from shared.model.decisions.workload_history import HOURS_PER_WEEK, WorkloadHistory
from shared.ports.storage import TableRow
from shared.report.journal.decision_record import decode_record
from shared.store.lease import hold_lease
from shared.store.table_rows import decode_body_text
from shared.store.workload_history import ROW_KIND, ROW_NAME, encode_workload_history
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool
from tests.support.actions_world import Outside
from tests.support.disruption_fleet import make_fleet, make_node_with_pods, make_web_pod


@cache
def synthesize_stack() -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"workload-history": "on"})


def build_world() -> World:
    world = World(make_node_class(), make_node_pool(), make_deployment(4), template=synthesize_stack())
    world.wait_until_settled(4)
    return world


def read_row(world: World) -> TableRow:
    row = world.table.read(ROW_KIND, ROW_NAME)
    assert row is not None
    return row


def read_history(world: World) -> WorkloadHistory:
    return decode_body_text(read_row(world).body, WorkloadHistory)


def _write_full_week(world: World) -> None:
    """Replace the history by one that knows all hours of the week."""
    row, history = read_row(world), read_history(world)
    week = (1,) * HOURS_PER_WEEK
    records = tuple(replace(record, means=(40,) * HOURS_PER_WEEK, weeks=week) for record in history.workloads)
    body = encode_workload_history(replace(history, workloads=records))
    world.table.write(ROW_KIND, ROW_NAME, body, version=row.version)


def test_history_is_updated_every_ten_minutes_and_forecasts_are_recorded() -> None:
    world = build_world()
    world.wait_until(lambda: world.table.read(ROW_KIND, ROW_NAME) is not None)
    version = read_row(world).version
    world.advance_time(timedelta(minutes=65))
    assert 6 <= read_row(world).version - version <= 7
    [record] = [record for record in read_history(world).workloads if record.name == "Deployment default/web"]
    assert (record.pool, max(record.means)) == ("default", 40)
    _write_full_week(world)
    world.scale(0)
    world.advance_seconds(400)
    keys = [entry.snapshot for entry in world.entries if entry.function == "disrupt" and entry.snapshot]
    [forecast] = decode_record(world.bucket.get(keys[-1])).inputs.forecasts
    assert (forecast.pool, len(forecast.hours)) == ("default", 24)


def test_history_does_not_count_unreadable_pods_as_gone() -> None:
    outside = Outside()
    world = outside.build_world()
    world = replace(world, settings=replace(world.settings, workload_history="on"))
    problems: list[Problem] = []
    with hold_lease(world, PLANNER_LEASE) as fence:
        assert fence is not None
        cluster = make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m")))
        unreadable = replace(cluster, problems=(Problem(kind="Pod", name="shop/cart", message="spec: not readable"),))
        update_forecasts(world, unreadable, fence, problems)
        assert world.table.read(ROW_KIND, ROW_NAME) is None
        update_forecasts(world, cluster, fence, problems)
        assert world.table.read(ROW_KIND, ROW_NAME) is not None
    assert problems == []


def test_history_that_cannot_be_read_causes_no_forecast() -> None:
    world = build_world()
    world.advance_seconds(120)
    row = read_row(world)
    world.table.write(ROW_KIND, ROW_NAME, msgspec.json.encode({"workloads": 7}).decode(), version=row.version)
    world.advance_seconds(700)
    assert [problem for problem in world.list_problems() if "the history starts again" in problem]
    assert read_history(world).workloads
    assert world.list_errors() == []
