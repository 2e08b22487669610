"""The cost ledger of an embedded hour against what the cloud itself saw of every instance."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Unreachable
from shared.report.costs import HOUR, Ledger, day_of
from shared.report.days import day
from shared.report.ledger import TODAY, read_ledger
from sim.embedded import Embedded
from sim.faults import Call, Killed
from sim.lambdas.template import ACTIVE, synthesised
from tests.scenario.worlds import deployment, node_class, pool

MINUTE = timedelta(minutes=1)


class Watched(Embedded):
    """A world that notes when instances begin and end."""

    def __init__(self) -> None:
        """Begin with a NodePool of two capacity types, told apart by team."""
        super().__init__(template=synthesised(context={**ACTIVE, "joiner:cost-label": "team"}))
        self.began: dict[str, datetime] = {}
        self.ended: dict[str, datetime] = {}
        self.cloud.subscribe_events(self._note)
        self.apply([node_class(), pool(labels={"team": "search"}, capacity=("spot",))])

    def _note(self, event: dict[str, Any]) -> None:
        state = event.get("detail", {}).get("state")
        if state == "pending":
            self.began[event["detail"]["instance-id"]] = self.clock.now()
        if state == "shutting-down":
            self.ended[event["detail"]["instance-id"]] = self.clock.now()

    def hours(self, begin: datetime, end: datetime) -> float:
        """Answer the machine hours between two instants, as EC2 would bill them."""
        lived = (min(self.ended.get(one, end), end) - max(at, begin) for one, at in self.began.items() if at < end)
        return sum((max(one, timedelta()) for one in lived), timedelta()) / HOUR

    def ledger(self) -> Ledger:
        """Answer what is billed."""
        found = read_ledger(self.bucket)
        assert found is not None
        return found


def busy(world: Watched) -> None:
    """Let pods come and go for an hour, and an instance be taken back."""
    for replicas, minutes in ((6, 12), (1, 8), (9, 15)):
        world.apply([deployment(replicas)])
        world.run(minutes * MINUTE)
    [instance, *_] = world.living()
    warning = "EC2 Spot Instance Interruption Warning"
    detail = {"instance-id": instance.instance_id}
    world.runtime.put_event({"source": "aws.ec2", "detail-type": warning, "detail": detail})
    world.run(10 * MINUTE)
    world.apply([deployment(0)])
    world.run(22 * MINUTE)


def test_an_hour_is_billed_to_the_second() -> None:
    world = Watched()
    busy(world)
    ledger = world.ledger()
    begin = ledger.since
    assert (ledger.until - begin, len(world.ended) > 3) == (HOUR, True)
    assert sum(one.hours for one in ledger.lives) == pytest.approx(world.hours(begin, ledger.until), abs=2 / 60)
    report = day(ledger, "demo", "team")
    assert {(share.pool, share.capacity_type, share.label) for share in report.shares} == {
        ("default", "spot", "search")
    }
    assert 0 < report.usd < report.usd + report.saved_by_spot_usd
    assert report.commands > 0


def test_what_the_journal_lost_is_seen_an_hour_later() -> None:
    world = Watched()
    world.apply([deployment(3)])
    world.run(30 * MINUTE)
    world.apply([deployment(0)])
    world.tap = _lifecycle_writes_nothing
    world.run(180 * MINUTE)
    assert world.living() == ()
    ledger = world.ledger()
    assert all(one.ended is not None for one in ledger.lives)
    truth = world.hours(ledger.since, ledger.until)
    assert truth <= sum(one.hours for one in ledger.lives) <= truth + len(world.ended)


def _lifecycle_writes_nothing(call: Call) -> None:
    if (call.port, call.method) == ("bucket", "put") and call.who.startswith("lifecycle"):
        raise Unreachable("s3")


def test_a_catalog_that_is_ended_while_it_bills_leaves_it_to_the_next() -> None:
    world, deaths = Watched(), [0]

    def tap(call: Call) -> None:
        if (call.port, call.method) == ("bucket", "put") and call.detail.startswith("costs/") and deaths[0] < 3:
            deaths[0] += 1
            raise Killed

    world.tap = tap
    world.apply([deployment(3)])
    world.run(90 * MINUTE)
    assert deaths == [3]
    ledger = world.ledger()
    assert ledger.until - ledger.since == HOUR
    assert sum(one.hours for one in ledger.lives) == pytest.approx(world.hours(ledger.since, ledger.until), abs=2 / 60)
    assert json.loads(world.bucket.get("costs/today.json"))["until"] == "2026-11-21T09:00:00Z"


def late(world: Embedded) -> None:
    """Leave the last hour of yesterday, and what there is of today, to be billed."""
    until = day_of(world.clock.now()) - HOUR
    ledger = Ledger(since=until - 23 * HOUR, until=until)
    world.bucket.put(TODAY, msgspec.json.encode(ledger))


def test_once_a_day_is_over_people_are_told_of_it_once() -> None:
    told = {"joiner:report-topic": "arn:aws:sns:us-east-1:111122223333:costs"}
    world = Embedded(template=synthesised(context={**ACTIVE, **told}))
    late(world)
    world.apply([node_class(), pool(), deployment(1)])
    world.run(20 * MINUTE)
    assert [subject for subject, _ in world.topic.said] == ["Joiner: demo cost $0.00 on 2026-11-20"]
    assert json.loads(world.bucket.get(TODAY))["since"] == "2026-11-21T00:00:00Z"


def test_unless_somebody_wants_to_hear_nobody_is_told() -> None:
    world = Embedded(template=synthesised(context=ACTIVE))
    late(world)
    world.run(20 * MINUTE)
    assert "costs/2026-11-20.json" in world.bucket.keys("costs/")
    assert (world.topic.said, world.table.rows("costs")) == ([], ())
