"""Many small pods: the scarce resource of a node is the number of pods, not CPU or memory."""

import pytest

from shared.decide.scheduling.optimization import bin_types
from shared.decide.scheduling.optimization.packing_problem import build_packing_problem, is_pod_limited
from shared.decide.scheduling.packing import plan_completion
from shared.model.decisions.placement import Placement
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import make_cluster_snapshot, make_daemon_set, make_instance_type, make_pod
from tests.support.snapshot_decisions import solve

TYPES = (
    make_instance_type("few-02", 2, 8, price=0.086, pods=29),
    make_instance_type("many-02", 2, 8, price=0.100, pods=58),
    make_instance_type("few-04", 4, 16, price=0.172, pods=58),
    make_instance_type("many-04", 4, 16, price=0.200, pods=110),
    make_instance_type("few-16", 16, 64, price=0.690, pods=234),
    make_instance_type("lean-16", 16, 32, price=0.610, pods=234),
)
CPUS, MEMORIES = (5, 10, 15, 20, 25, 30, 40), (32, 48, 64, 96, 128, 160, 200)


def make_small_pods(count: int) -> list[Pod]:
    """Return pods with a median request of 20 milli-CPU and 100 MiB."""
    return [
        make_pod(f"p-{n:04d}", f"{CPUS[n % 7]}m", f"{MEMORIES[n // 7 % 7]}Mi", labels={"app": str(n % 49)})
        for n in range(count)
    ]


def solve_small_pods(count: int) -> Placement:
    return solve(
        make_cluster_snapshot(
            *make_small_pods(count), types=TYPES, daemon_sets=(make_daemon_set("logs", "100m", "128Mi"),)
        )
    )


def test_pod_capacity_determines_the_instance_type_when_pods_are_small() -> None:
    placement = solve_small_pods(1200)
    assert not placement.unschedulable
    assert placement.price_usd_per_hour <= 1.05 * 1200 / 57 * 0.100


def test_instance_types_with_high_pod_capacity_are_considered_although_others_are_cheaper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = solve_small_pods(1200)
    monkeypatch.setattr(bin_types, "POD_SLOT_WEIGHTS", ())
    assert placement.price_usd_per_hour < 0.95 * solve_small_pods(1200).price_usd_per_hour


@pytest.mark.parametrize(("cpu", "expected"), [("20m", True), ("1", False)])
def test_packing_problem_is_pod_limited_only_when_pods_are_small(
    cpu: str,
    expected: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pod_limited_flags: list[bool] = []
    monkeypatch.setattr(
        plan_completion,
        "fill_reserved_capacity",
        lambda fork, some: pod_limited_flags.append(is_pod_limited(build_packing_problem(fork, some))),
    )
    memory = "64Mi" if expected else "4Gi"
    solve(make_cluster_snapshot(*(make_pod(f"p-{n}", cpu, memory) for n in range(100)), types=TYPES))
    assert set(pod_limited_flags) == {expected}
