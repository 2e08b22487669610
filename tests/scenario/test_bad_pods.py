"""Bad pods through the whole cycle: each is named where its owner looks, and the others run."""

from copy import deepcopy

from tests.scenario.worlds import World, deployment, node_class, pod, pool
from tests.unit.poison import near, spread, term

WRITTEN = {
    "arch": pod("arch", affinity=term("kubernetes.io/arch", "In", "z80")),
    "both": pod(
        "both", nodeSelector={"kubernetes.io/arch": "amd64"}, affinity=term("kubernetes.io/arch", "In", "arm64")
    ),
    "rack": pod("rack", topologySpreadConstraints=spread("rack")),
    "ghost": pod("ghost", affinity=near("topology.kubernetes.io/zone", app="ghost")),
}
STORED = {
    "operator": {"affinity": term("a", "Like", "b")},
    "minus": {"containers": [{"name": "app", "image": "x", "resources": {"requests": {"cpu": "-1"}}}]},
    "future": {"resourceClaims": "from the future"},
}
"""What no API server of today lets anybody write; one of tomorrow, or an old etcd, may hold it."""


def test_bad_pods_are_named_and_the_others_run() -> None:
    world = World(node_class(), pool(), *deepcopy(list(WRITTEN.values())))
    world.apply([pod(name) for name in STORED])
    for name, spec in STORED.items():
        world.store("pods", name, {"spec": spec}, "default")
    world.apply([deployment(2)])
    world.until(lambda: len([one for one in world.running() if one["metadata"]["name"].startswith("web")]) == 2)
    world.seconds(130)
    for name in (*WRITTEN, *STORED):
        words = world.events(name, "FailedScheduling")
        assert any("Failed to schedule pod, " in one for one in words), (name, words)
    assert set(WRITTEN) <= {one["metadata"]["name"] for one in world.waiting()}
    named = {one.partition(": ")[0] for one in world.problems()}
    assert {f"Pod default/{name}" for name in STORED} <= named
    assert world.errors() == []
