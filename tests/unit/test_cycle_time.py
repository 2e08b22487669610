"""An invocation whose time is nearly up makes what it planned, and wakes the next one at once."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.trigger import counting
from shared.cycle import provision
from shared.model.action import CreateNodeClaim, FollowUp
from shared.ports import World
from shared.scheduling import pack
from sim.bench import prepared


def counted(left: timedelta) -> World:
    return msgspec.structs.replace(prepared(12), time_left=lambda: left)


@pytest.mark.parametrize(("seconds", "is_planned"), [(50, True), (3, False)])
def test_a_plan_is_ended_while_there_is_time_to_act_on_it(
    monkeypatch: pytest.MonkeyPatch, seconds: int, *, is_planned: bool
) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    report = provision(counted(timedelta(seconds=seconds)), "schedule")
    actions = [one.action for one in report.outcomes]
    assert any(isinstance(one, CreateNodeClaim) for one in actions) is is_planned
    at_once = [one for one in actions if isinstance(one, FollowUp) and not one.after and one.function == "provision"]
    assert bool(at_once) is not is_planned
    assert report.counts["PendingPods"] == 12.0
    assert report.counts["UnschedulablePods"] == 0.0
    assert report.counts["PriceAgeSeconds"] == 0.0


def test_what_is_left_is_what_the_trigger_says() -> None:
    context: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 1500)
    left = counting(prepared(1), context).time_left
    assert left is not None
    assert left() == timedelta(seconds=1.5)
