"""Time runs out: what was planned stays valid, what was not reached is left for the next run."""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, FollowUp, PublishEvent
from shared.model.labels import HOSTNAME, ZONE
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.resources import resources
from shared.model.selectors import selector
from shared.scheduling import pack
from shared.scheduling.decide import decide
from shared.scheduling.headroom import plan
from shared.scheduling.placement import Options, Placement
from shared.scheduling.solve import claims, solve
from tests.unit.catalogues import instance_type, node, node_class, placed, pod, pool, sizes, world

WEB = selector({"app": "web"})
APART = (AffinityTerm(topology_key=HOSTNAME, selector=WEB),)
GREEDY = Options(packing="Greedy")
DEAR_LARGE = (instance_type("small", 4, 16, price=0.2), instance_type("large", 64, 256, price=9.6))


def after(looks: int) -> Callable[[], bool]:
    """A clock that says at that look that time is up."""
    ticks = count()
    return lambda: next(ticks) >= looks


def many(number: int, cpu: str = "1", **spec: Any) -> list[Pod]:
    return [pod(f"{cpu}-{one:03d}", cpu, labels={"app": "web"}, **spec) for one in range(number)]


def not_reached(found: Placement) -> list[str]:
    return [one.pod for one in found.unschedulable if one.reason == "NotReached"]


def test_without_a_clock_everything_is_reached() -> None:
    found = solve(world(*many(9)))
    assert not found.unschedulable
    assert found.goes_on_at == ""


@pytest.mark.parametrize("looks", [0, 1, 7, 40])
def test_what_was_planned_in_time_is_kept_and_the_rest_is_named(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    pods = [*many(30, "2", pod_anti_affinity=APART), *many(30, "1", pod_anti_affinity=APART)]
    cluster = world(*pods)
    found = solve(cluster, options=GREEDY, is_over=after(looks))
    left = not_reached(found)
    assert sizes(found) == [1] * (len(pods) - len(left))
    assert left
    assert len(left) == len(found.unschedulable)
    assert found.goes_on_at in left
    assert "next run" in found.unschedulable[0].message


def test_the_next_run_goes_on_where_the_last_one_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    cluster = world(*many(20, "2", pod_anti_affinity=APART))
    first = solve(cluster, is_over=after(8))
    later = solve(replace(cluster, node_claims=claims(first, cluster)))
    assert 0 < len(first.new_nodes) < 20
    assert len(first.new_nodes) + len(later.new_nodes) == 20
    assert not later.unschedulable


def test_a_pod_that_was_tried_in_vain_has_its_own_reason_though_time_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    found = solve(world(pod("huge", "900"), *many(9)), is_over=after(2))
    assert {one.pod: one.reason for one in found.unschedulable}["shop/huge"] == "NoInstanceTypeFits"
    assert len(not_reached(found)) == 9


def test_no_cheaper_plan_is_sought_once_time_is_up() -> None:
    asked: list[None] = []

    def is_over() -> bool:
        asked.append(None)
        return True

    found = solve(world(*many(60), types=DEAR_LARGE), is_over=is_over)
    assert found.price_usd_per_hour == found.greedy_usd_per_hour == 9.6
    assert len(asked) == 1


def test_other_plans_are_tried_as_long_as_there_is_time() -> None:
    found = solve(world(*many(60), types=DEAR_LARGE), is_over=after(3))
    assert round(found.price_usd_per_hour, 6) == 3.0


def test_what_was_not_reached_is_no_failure_and_is_planned_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    cluster = world(*many(20, "2", pod_anti_affinity=APART))
    placement = plan(cluster, options=GREEDY, is_over=after(8)).of_pods()
    actions = decide(cluster, placement)
    assert any(isinstance(one, CreateNodeClaim) for one in actions)
    assert not [one for one in actions if isinstance(one, PublishEvent) and one.reason == "FailedScheduling"]
    again = [one for one in actions if isinstance(one, FollowUp) and one.function == "provision"]
    assert again[0].after == timedelta()
    assert placement.goes_on_at in again[0].why


def test_a_plan_that_is_whole_is_not_repeated_at_once() -> None:
    cluster = world(*many(2), node_classes=(node_class(),))
    actions = decide(cluster, solve(cluster))
    assert all(one.after > timedelta() for one in actions if isinstance(one, FollowUp) and one.function == "provision")


def test_a_preference_is_tried_again_once_a_pod_that_gave_it_up_makes_room_for_it() -> None:
    soft = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB, when_unsatisfiable="ScheduleAnyway")
    only_a = pool("a", weight=9, labels=(("near", "yes"),), limits=resources({"cpu": 4_000}))
    found = solve(world(*many(6, "2", spread=(soft,)), node_pools=(only_a, pool("b"))), options=GREEDY)
    zones: dict[str, int] = {}
    for made in found.new_nodes:
        [zone] = made.requirements[ZONE].values
        zones[zone] = zones.get(zone, 0) + len(made.pods)
    assert set(zones.values()) == {2}


def test_what_stands_is_one_set_whatever_it_is_called() -> None:
    nodes = tuple(node(f"n{number}", "2", labels={ZONE: "abc"[number % 3]}) for number in range(9))
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB),)
    found = solve(world(*many(9, "2", spread=spread), nodes=nodes, node_pools=()))
    assert sorted(placed(found).values()) == [f"n{number}" for number in range(9)]
