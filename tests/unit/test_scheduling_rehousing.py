"""Small plans made cheaper: nodes taken down, their pods housed anew."""

from itertools import islice
from typing import Any

import pytest

from shared.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.pods import AffinityTerm, Pod
from shared.model.resources import resources
from shared.model.selectors import selector
from shared.scheduling import attempts, rehousing
from shared.scheduling.rehousing import coins
from shared.scheduling.solve import solve
from tests.unit.catalogues import instance_type, needs, node, pod, pool, world

BOTH = ("on-demand", "spot")
TYPES = tuple(
    instance_type(f"{kind}-{cpu:03d}", cpu, cpu * gib, price=cpu * price, capacity_types=BOTH)
    for cpu in (2, 4, 8, 16)
    for kind, gib, price in (("lean", 2, 0.4), ("fat", 8, 0.6))
)
APPS = (
    (("a", 2, "2", "14Gi"), ("b", 1, "5", "1Gi"), ("c", 4, "2", "4Gi")),
    (("a", 1, "3", "9Gi"), ("b", 1, "500m", "4Gi"), ("c", 4, "2", "9Gi"), ("d", 1, "2", "14Gi"), ("e", 2, "3", "1Gi")),
    (("a", 3, "3", "1Gi"), ("b", 2, "1", "14Gi"), ("c", 1, "2", "9Gi")),
)


def kept_together(app: str, count: int, cpu: str, memory: str = "1Gi", **spec: Any) -> list[Pod]:
    """Pods that want to be in the zone of their like: the market gives no advice on them."""
    near = (AffinityTerm(selector=selector({"app": app}), topology_key=ZONE),)
    return [pod(f"{app}-{n}", cpu, memory, labels={"app": app}, pod_affinity=near, **spec) for n in range(count)]


def mixed(apps: tuple[tuple[str, int, str, str], ...], **spec: Any) -> list[Pod]:
    """Several such apps."""
    return [one for app in apps for one in kept_together(*app, **spec)]


def as_first_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no plan be bettered."""
    monkeypatch.setattr(attempts, "bettered", lambda _outset, _plans, _least, _floor: [])


@pytest.mark.parametrize("apps", APPS)
def test_pods_that_no_advice_is_given_for_are_not_left_on_dear_nodes(
    apps: tuple[tuple[str, int, str, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = world(*mixed(apps), types=TYPES)
    found = solve(cluster)
    as_first_found(monkeypatch)
    assert not found.unschedulable
    assert found.price_usd_per_hour < 0.95 * solve(cluster).price_usd_per_hour


def test_who_wants_to_be_together_still_is() -> None:
    found = solve(world(*mixed(APPS[1]), types=TYPES))
    for app, *_ in APPS[1]:
        nodes = [made for made in found.new_nodes if any(name.startswith(f"shop/{app}-") for name in made.pods)]
        assert len({made.requirements[ZONE].values for made in nodes}) == 1


def test_a_node_keeps_the_capacity_type_that_a_pod_which_came_late_asks_for() -> None:
    spot = needs((CAPACITY_TYPE, "In", ("spot",)))
    plain = [pod(f"p-{n:03d}", f"{300 + 7 * n}m", "1Gi") for n in range(60)]
    found = solve(world(*plain, *kept_together("late", 6, "500m", required_terms=(spot,)), types=TYPES))
    nodes = [made for made in found.new_nodes if any("late" in name for name in made.pods)]
    assert nodes
    assert {made.requirements[CAPACITY_TYPE].values for made in nodes} == {frozenset(("spot",))}
    others = [made for made in found.new_nodes if made not in nodes]
    assert {made.requirements[CAPACITY_TYPE].values for made in others} == {frozenset(BOTH)}


def test_what_is_preferred_is_not_given_up_to_save() -> None:
    apart = (AffinityTerm(selector=selector({"app": "x"}), topology_key=HOSTNAME, weight=10),)
    some = [pod(f"x-{n}", "500m", "1Gi", labels={"app": "x"}, preferred_pod_anti_affinity=apart) for n in range(4)]
    found = solve(world(*some, *mixed(APPS[2][:2]), types=TYPES))
    assert all(sum(name.startswith("shop/x-") for name in made.pods) <= 1 for made in found.new_nodes)


def test_what_has_room_on_a_standing_node_stays_there() -> None:
    cluster = world(*mixed(APPS[0]), types=TYPES, nodes=(node("old", cpu="4", memory="30Gi"),))
    found = solve(cluster)
    assert found.existing
    assert found.price_usd_per_hour <= solve(world(*mixed(APPS[0]), types=TYPES)).price_usd_per_hour


def test_limits_hold_for_nodes_that_are_bought_instead() -> None:
    limit = pool(limits=resources({"cpu": 16_000}))
    found = solve(world(*mixed(APPS[2]), types=TYPES, node_pools=(limit,)))
    cores = {one.name: one.capacity["cpu"] for one in TYPES}
    assert sum(max(cores[name] for name in made.instance_types) for made in found.new_nodes) <= 16_000


def test_large_plans_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = world(*mixed(APPS[0]), types=TYPES)
    monkeypatch.setattr(rehousing, "FEW", 6)
    found = solve(cluster)
    as_first_found(monkeypatch)
    assert found == solve(cluster)


def test_no_effort_is_spent_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, asked = world(*mixed(APPS[0]), types=TYPES), iter(range(1_000_000))
    monkeypatch.setattr(rehousing, "EFFORT", 10**9)
    monkeypatch.setattr(rehousing, "PATIENCE", 10**9)
    found = solve(cluster, is_over=lambda: next(asked) > 100)
    assert not found.unschedulable


def test_coins_fall_the_same_way_every_time_and_not_always_on_one_side() -> None:
    first, second = list(islice(coins(), 64)), list(islice(coins(), 64))
    assert first == second
    assert 20 < sum(first) < 44
