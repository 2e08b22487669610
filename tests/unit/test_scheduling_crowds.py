"""Many small pods: what is scarce on a node is neither cpu nor memory but how many pods it takes."""

import pytest

from shared.model.pods import Pod
from shared.scheduling import outset, stalls
from shared.scheduling.market import is_crowded, market
from shared.scheduling.placement import Placement
from shared.scheduling.solve import solve
from tests.unit.catalogues import daemon, instance_type, pod, world

TYPES = (
    instance_type("few-02", 2, 8, price=0.086, pods=29),
    instance_type("many-02", 2, 8, price=0.100, pods=58),
    instance_type("few-04", 4, 16, price=0.172, pods=58),
    instance_type("many-04", 4, 16, price=0.200, pods=110),
    instance_type("few-16", 16, 64, price=0.690, pods=234),
    instance_type("lean-16", 16, 32, price=0.610, pods=234),
)
CPUS, MEMORIES = (5, 10, 15, 20, 25, 30, 40), (32, 48, 64, 96, 128, 160, 200)


def tiny(count: int) -> list[Pod]:
    """Pods of 20 milli cpu and 100 MiB in the middle."""
    return [
        pod(f"p-{n:04d}", f"{CPUS[n % 7]}m", f"{MEMORIES[n // 7 % 7]}Mi", labels={"app": str(n % 49)})
        for n in range(count)
    ]


def planned(count: int) -> Placement:
    return solve(world(*tiny(count), types=TYPES, daemon_sets=(daemon("logs", "100m", "128Mi"),)))


def test_nodes_are_bought_for_the_pods_they_take_where_pods_are_small() -> None:
    found = planned(1200)
    assert not found.unschedulable
    assert found.price_usd_per_hour <= 1.05 * 1200 / 57 * 0.100


def test_types_that_take_many_pods_are_looked_at_though_others_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned(1200)
    monkeypatch.setattr(stalls, "CROWDED", ())
    assert found.price_usd_per_hour < 0.95 * planned(1200).price_usd_per_hour


@pytest.mark.parametrize(("cpu", "expected"), [("20m", True), ("1", False)])
def test_usual_pods_are_no_crowd(cpu: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    seen: list[bool] = []
    monkeypatch.setattr(outset, "fill_reserved", lambda fork, some: seen.append(is_crowded(market(fork, some))))
    memory = "64Mi" if expected else "4Gi"
    solve(world(*(pod(f"p-{n}", cpu, memory) for n in range(100)), types=TYPES))
    assert set(seen) == {expected}
