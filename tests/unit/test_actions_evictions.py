"""What pods and nodes are told of evictions."""

from shared.actions.apply import Outcome, Result
from shared.actions.evictions import tell_evictions
from shared.model.action import EvictPod
from tests.unit.lifecycle_cases import cluster, node

NODE = node()
WORLD = cluster(nodes=(NODE,))
SAID = "EvictionRefused: POST /eviction: Cannot evict pod as it would violate the pod's disruption budget."


def outcome(name: str, result: Result = "done", message: str = "", on: str = NODE.name) -> Outcome:
    action = EvictPod(namespace="shop", name=name, uid=f"uid-{name}", node=on, why="Drifted")
    return Outcome(action=action, result=result, message=message)


def test_a_pod_that_leaves_is_told_why() -> None:
    [said] = tell_evictions([outcome("cart")], WORLD)
    assert (said.kind, said.namespace, said.name, said.uid) == ("Pod", "shop", "cart", "uid-cart")
    assert (said.type, said.reason, said.message, said.at) == (
        "Normal",
        "Evicted",
        "Evicted pod: Drifted",
        WORLD.taken_at,
    )


def test_a_node_that_waits_says_once_what_the_api_said_of_its_first_pod() -> None:
    some = [outcome("cart", "skipped", SAID), outcome("web", "skipped", SAID)]
    [said] = tell_evictions(some, WORLD)
    assert (said.kind, said.name, said.uid) == ("Node", NODE.name, NODE.meta.uid)
    assert (said.type, said.reason) == ("Warning", "FailedDraining")
    assert said.message.startswith("pod shop/cart stays: POST /eviction: Cannot evict pod")
    elsewhere = tell_evictions([*some, outcome("db", "skipped", SAID, on="gone")], WORLD)
    assert [(one.name, one.uid) for one in elsewhere] == [(NODE.name, NODE.meta.uid), ("gone", "")]


def test_of_pods_that_went_before_and_of_failures_nothing_is_said() -> None:
    some = [outcome("a", "skipped", "Gone: a"), outcome("b", "skipped", "Conflict: b"), outcome("c", "failed", "down")]
    assert list(tell_evictions(some, WORLD)) == []
