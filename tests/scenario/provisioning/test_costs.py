"""The cost ledger of an embedded hour against what the cloud itself saw of every instance."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Unreachable
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger, get_day_start
from shared.report.costs.daily_report import build_daily_report
from shared.report.costs.ledger_store import LEDGER_KEY, read_ledger
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.scenario.worlds import make_deployment, make_node_class, make_node_pool

ONE_MINUTE = timedelta(minutes=1)


class Watched(EmbeddedWorld):
    """A world that records when instances start and end."""

    def __init__(self) -> None:
        """Start with a NodePool that has the cost label `team`."""
        super().__init__(template=synthesize_template(settings={**ACTIVE_SETTINGS, "cost-label": "team"}))
        self.began: dict[str, datetime] = {}
        self.ended: dict[str, datetime] = {}
        self.cloud.events.subscribe(self._record_event)
        self.apply([make_node_class(), make_node_pool(labels={"team": "search"}, capacity=("spot",))])

    def _record_event(self, event: dict[str, Any]) -> None:
        state = event.get("detail", {}).get("state")
        if state == "pending":
            self.began[event["detail"]["instance-id"]] = self.clock.get_time()
        if state == "shutting-down":
            self.ended[event["detail"]["instance-id"]] = self.clock.get_time()

    def compute_hours(self, begin: datetime, end: datetime) -> float:
        """Return the instance hours between two instants, as EC2 bills them."""
        lived = (
            min(self.ended.get(instance_id, end), end) - max(at, begin)
            for instance_id, at in self.began.items()
            if at < end
        )
        return sum((max(duration, timedelta()) for duration in lived), timedelta()) / ONE_HOUR

    def get_ledger(self) -> CostLedger:
        """Return the stored cost ledger."""
        ledger = read_ledger(self.bucket)
        assert ledger is not None
        return ledger


def run_busy_hour(world: Watched) -> None:
    """Scale a workload up and down for an hour and interrupt one instance."""
    for replicas, minutes in ((6, 12), (1, 8), (9, 15)):
        world.apply([make_deployment(replicas)])
        world.run(minutes * ONE_MINUTE)
    [instance, *_] = world.list_active_instances()
    warning = "EC2 Spot Instance Interruption Warning"
    detail = {"instance-id": instance.instance_id}
    world.runtime.put_event({"source": "aws.ec2", "detail-type": warning, "detail": detail})
    world.run(10 * ONE_MINUTE)
    world.apply([make_deployment(0)])
    world.run(22 * ONE_MINUTE)


def test_one_hour_of_instance_time_is_billed_within_two_minutes() -> None:
    world = Watched()
    run_busy_hour(world)
    ledger = world.get_ledger()
    begin = ledger.since
    assert (ledger.until - begin, len(world.ended) > 3) == (ONE_HOUR, True)
    assert sum(lifetime.hours for lifetime in ledger.lives) == pytest.approx(
        world.compute_hours(begin, ledger.until), abs=2 / 60
    )
    report = build_daily_report(ledger, "demo", "team")
    assert {(share.pool, share.capacity_type, share.label) for share in report.shares} == {
        ("default", "spot", "search")
    }
    assert 0 < report.usd < report.usd + report.saved_by_spot_usd
    assert report.commands > 0


def test_instance_termination_missing_from_the_journal_is_found_an_hour_later() -> None:
    world = Watched()
    world.apply([make_deployment(3)])
    world.run(30 * ONE_MINUTE)
    world.apply([make_deployment(0)])
    world.tap = _fail_lifecycle_writes
    world.run(180 * ONE_MINUTE)
    assert world.list_active_instances() == ()
    ledger = world.get_ledger()
    assert all(lifetime.ended is not None for lifetime in ledger.lives)
    truth = world.compute_hours(ledger.since, ledger.until)
    assert truth <= sum(lifetime.hours for lifetime in ledger.lives) <= truth + len(world.ended)


def _fail_lifecycle_writes(call: PortCall) -> None:
    if (call.port, call.method) == ("bucket", "put") and call.world_name.startswith("lifecycle"):
        raise Unreachable("s3")


def test_catalog_run_killed_while_writing_costs_is_completed_by_the_next_run() -> None:
    world, deaths = Watched(), [0]

    def kill_on_cost_write(call: PortCall) -> None:
        if (call.port, call.method) == ("bucket", "put") and call.detail.startswith("costs/") and deaths[0] < 3:
            deaths[0] += 1
            raise Killed

    world.tap = kill_on_cost_write
    world.apply([make_deployment(3)])
    world.run(90 * ONE_MINUTE)
    assert deaths == [3]
    ledger = world.get_ledger()
    assert ledger.until - ledger.since == ONE_HOUR
    assert sum(lifetime.hours for lifetime in ledger.lives) == pytest.approx(
        world.compute_hours(ledger.since, ledger.until), abs=2 / 60
    )
    assert json.loads(world.bucket.get("costs/today.json"))["until"] == "2026-11-21T09:00:00Z"


def store_late_ledger(world: EmbeddedWorld) -> None:
    """Leave the last hour of yesterday, and today so far, unbilled."""
    until = get_day_start(world.clock.get_time()) - ONE_HOUR
    ledger = CostLedger(since=until - 23 * ONE_HOUR, until=until)
    world.bucket.put(LEDGER_KEY, msgspec.json.encode(ledger))


def test_daily_cost_report_is_published_once() -> None:
    topic_settings = {"report-topic": "arn:aws:sns:us-east-1:111122223333:costs"}
    world = EmbeddedWorld(template=synthesize_template(settings={**ACTIVE_SETTINGS, **topic_settings}))
    store_late_ledger(world)
    world.apply([make_node_class(), make_node_pool(), make_deployment(1)])
    world.run(20 * ONE_MINUTE)
    assert [subject for subject, _ in world.topic.published_messages] == ["Joiner: demo cost $0.00 on 2026-11-20"]
    assert json.loads(world.bucket.get(LEDGER_KEY))["since"] == "2026-11-21T00:00:00Z"


def test_cost_report_is_not_published_without_a_report_topic() -> None:
    world = EmbeddedWorld(template=synthesize_template(settings=ACTIVE_SETTINGS))
    store_late_ledger(world)
    world.run(20 * ONE_MINUTE)
    assert "costs/2026-11-20.json" in world.bucket.list_keys("costs/")
    assert (world.topic.published_messages, world.table.list_rows("costs")) == ([], ())
