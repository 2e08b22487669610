"""Whatever stands in one pod: the planner does not fall, every other pod gets its place, and no pod is lost."""

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.eviction_cost import compute_eviction_cost
from shared.model.kubernetes.pod_classes import is_disruptable
from tests.support.hypothesis_profiles import limit_examples
from tests.support.poison import (
    NOW,
    build_cluster,
    iterate_paths,
    make_complete_pod,
    make_pod_manifest,
    make_poisoned_pod,
)
from tests.support.snapshot_decisions import solve

POISON: Final[tuple[Any, ...]] = (
    *(10**400, -(10**400), 2**63, -1, 0, 1e308, float("nan"), float("inf"), True, None),
    *(
        "",
        "9" * 5000,
        "-" + "9" * 5000,
        "2026-11-21T00:00:00",
        "\0",
        "\ud800",
        "é" * 300,
        "1e99999",
        "0x10",
        "١٢",
        "Lt",
    ),
    *([], {}, [[]], [{}], {"": ""}, ["9" * 5000]),
)
PLACES: Final = tuple(
    path for path in iterate_paths(make_complete_pod()) if path not in ((), ("apiVersion",), ("kind",), ("metadata",))
)


@limit_examples(120)
@given(st.sampled_from(PLACES), st.sampled_from(POISON))
def test_malformed_pod_does_not_affect_other_pods(path: tuple[str | int, ...], poison: object) -> None:
    good = [make_pod_manifest(name, {"app": "x"}, requests={"cpu": "1101m"}) for name in ("good-1", "good-2")]
    good[0]["metadata"]["creationTimestamp"] = "2026-11-20T00:00:00Z"
    cluster = build_cluster(*good, make_poisoned_pod(path, poison))
    placement = solve(cluster, options=SchedulingOptions(readiness="Assumed"))
    placed = {name for node in placement.new_nodes for name in node.pods}
    assert {"shop/good-1", "shop/good-2"} <= placed
    assert len(cluster.pods) + len(cluster.problems) == 3
    for pod in cluster.pods:
        assert -10 <= compute_eviction_cost(pod) <= 10
        assert is_disruptable(pod, NOW) in (True, False)
