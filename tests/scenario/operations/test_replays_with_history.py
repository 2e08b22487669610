"""Decisions that used the workload history are replayed from their records, also if the history has changed since."""

from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any, Final

from msgspec.structs import replace

from cli.replay.differences import compare_decisions
from cli.replay.rerun import build_cluster, build_recorded_decision, replay_decision
from shared.model.decisions.workload_history import HOURS_PER_WEEK, WorkloadHistory
from shared.report.journal.decision_record import DecisionRecord, decode_record
from shared.report.journal.journal import JournalEntry
from shared.store.catalog_format import decode_catalog
from shared.store.table_rows import decode_body_text
from shared.store.workload_history import ROW_KIND, ROW_NAME, encode_workload_history
from sim.cluster.kubelet.pod_stages import RUN_SECONDS_ANNOTATION
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.manifests import build_job
from tests.scenario.disruption.test_disruption import CHEAPER, SIZES, list_command_states
from tests.scenario.operations.test_replays import Judge, judge
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

__all__ = ["judge"]
RUN_SECONDS: Final = 480
FAMILY: Final = "CronJob default/report"


@cache
def synthesize_stack() -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"workload-history": "on", "eviction-price-usd": "0.02"})


def make_report_job(number: int) -> dict[str, Any]:
    """Return the Job of run *number* of a CronJob: one pod that runs for 8 minutes."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}}}
    annotations = {RUN_SECONDS_ANNOTATION: str(RUN_SECONDS)}
    return build_job(f"report-2940000{number}", 1, {"containers": [container]}, {"app": "report"}, annotations)


def read_history(world: World) -> WorkloadHistory:
    row = world.table.read(ROW_KIND, ROW_NAME)
    return WorkloadHistory() if row is None else decode_body_text(row.body, WorkloadHistory)


def count_learned_runs(world: World) -> int:
    return sum(record.run_count for record in read_history(world).run_times if record.family == FAMILY)


def build_learned_world() -> World:
    """Build a world with a node for 8 web pods, on which four runs of the CronJob have ended."""
    pool = make_node_pool(types=SIZES, disruption=CHEAPER)
    world = World(make_node_class(), pool, make_deployment(8), template=synthesize_stack())
    world.wait_until_settled(8)
    world.apply([make_report_job(number) for number in range(4)])
    world.wait_until(lambda: count_learned_runs(world) == 4, 2400)
    return world


def list_records(world: World) -> Iterator[tuple[JournalEntry, DecisionRecord]]:
    for entry in world.entries:
        if entry.function == "disrupt" and entry.snapshot:
            yield entry, decode_record(world.bucket.get(entry.snapshot))


def find_waiting_record(world: World) -> tuple[JournalEntry, DecisionRecord] | None:
    """Return the first decision that keeps a node because its pods are expected to end."""
    return next(
        (
            (entry, record)
            for entry, record in list_records(world)
            if any("expected to end in" in note.reason for note in entry.notes if note.kind == "Node")
        ),
        None,
    )


def test_node_waits_for_the_expected_end_of_its_job_and_the_decision_is_replayed(judge: Judge) -> None:
    world = build_learned_world()
    world.apply([make_report_job(7)])
    world.advance_seconds(180)
    world.scale(0)
    world.wait_until(lambda: find_waiting_record(world) is not None, 300)
    waiting_record = find_waiting_record(world)
    assert waiting_record is not None
    entry, record = waiting_record
    assert [run_times.family for run_times in record.inputs.run_times] == [FAMILY]
    world.wait_until(lambda: not world.list_claims(), 900)
    assert [state.command.method for state in list_command_states(world)] == ["Emptiness"]
    assert judge.replays["disrupt"] > 1

    catalog = decode_catalog(world.bucket.get(record.catalog_key))
    recorded = build_recorded_decision(entry, record)
    assert compare_decisions(recorded, replay_decision(entry, record, build_cluster(record, catalog))).is_same
    forgetful = replace(record, inputs=replace(record.inputs, run_times=()))
    assert not compare_decisions(recorded, replay_decision(entry, forgetful, build_cluster(record, catalog))).is_same


def test_decision_that_used_a_demand_forecast_is_replayed(judge: Judge) -> None:
    """By the forecast, eight replicas are needed again in the next hour, which begins within minutes."""
    pool = make_node_pool(types=SIZES, disruption=CHEAPER)
    world = World(make_node_class(), pool, make_deployment(8), template=synthesize_stack())
    world.wait_until_settled(8)
    world.advance_time(timedelta(minutes=110))
    row, week = world.table.read(ROW_KIND, ROW_NAME), (1,) * HOURS_PER_WEEK
    assert row is not None
    records = [
        replace(workload, means=(80,) * HOURS_PER_WEEK, weeks=week) for workload in read_history(world).workloads
    ]
    body = encode_workload_history(replace(read_history(world), workloads=tuple(records)))
    world.table.write(ROW_KIND, ROW_NAME, body, version=row.version)
    world.scale(2)
    world.advance_time(timedelta(minutes=12))
    forecast_records = [(entry, record) for entry, record in list_records(world) if record.inputs.forecasts]
    changed = 0
    for entry, record in forecast_records:
        catalog = decode_catalog(world.bucket.get(record.catalog_key))
        forgetful = replace(record, inputs=replace(record.inputs, forecasts=()))
        replayed = replay_decision(entry, forgetful, build_cluster(record, catalog))
        changed += not compare_decisions(build_recorded_decision(entry, record), replayed).is_same
    assert forecast_records
    assert changed, "no decision depends on its forecast"
    assert judge.replays["disrupt"] >= len(forecast_records)
