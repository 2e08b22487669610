"""Bad pods through the whole cycle: each is reported where its owner looks, and the other pods run."""

from copy import deepcopy

from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool, make_pod
from tests.support.poison import make_node_affinity, make_pod_affinity, make_spread_constraints

UNSCHEDULABLE_PODS = {
    "arch": make_pod("arch", affinity=make_node_affinity("kubernetes.io/arch", "In", "z80")),
    "both": make_pod(
        "both",
        nodeSelector={"kubernetes.io/arch": "amd64"},
        affinity=make_node_affinity("kubernetes.io/arch", "In", "arm64"),
    ),
    "rack": make_pod("rack", topologySpreadConstraints=make_spread_constraints("rack")),
    "ghost": make_pod("ghost", affinity=make_pod_affinity("topology.kubernetes.io/zone", app="ghost")),
}
STORED = {
    "operator": {"affinity": make_node_affinity("a", "Like", "b")},
    "minus": {"containers": [{"name": "app", "image": "x", "resources": {"requests": {"cpu": "-1"}}}]},
    "future": {"resourceClaims": "from the future"},
}
"""What no API server of today lets anybody write; one of tomorrow, or an old etcd, may hold it."""


def test_invalid_pods_are_reported_and_other_pods_are_scheduled() -> None:
    world = World(make_node_class(), make_node_pool(), *deepcopy(list(UNSCHEDULABLE_PODS.values())))
    world.apply([make_pod(name) for name in STORED])
    for name, spec in STORED.items():
        world.store("pods", name, {"spec": spec}, "default")
    world.apply([make_deployment(2)])
    world.wait_until(
        lambda: len([one for one in world.list_running_pods() if one["metadata"]["name"].startswith("web")]) == 2
    )
    world.advance_seconds(130)
    for name in (*UNSCHEDULABLE_PODS, *STORED):
        words = world.list_events(name, "FailedScheduling")
        assert any("Failed to schedule pod, " in event for event in words), (name, words)
    assert set(UNSCHEDULABLE_PODS) <= {waiting_pod["metadata"]["name"] for waiting_pod in world.list_unbound_pods()}
    problem_objects = {problem.partition(": ")[0] for problem in world.list_problems()}
    assert {f"Pod default/{name}" for name in STORED} <= problem_objects
    assert world.list_errors() == []
