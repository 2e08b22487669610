"""Events of pods and nodes about evictions."""

from shared.decide.lifecycle.termination.eviction_results import describe_evictions
from shared.model.decisions.action import EvictPod
from shared.model.decisions.action_outcome import Outcome, Result
from tests.support.lifecycle_cases import make_cluster, make_node

NODE = make_node()
CLUSTER = make_cluster(nodes=(NODE,))
EVICTION_ERROR = "EvictionRefused: POST /eviction: Cannot evict pod as it would violate the pod's disruption budget."


def make_outcome(name: str, result: Result = "done", message: str = "", node_name: str = NODE.name) -> Outcome:
    action = EvictPod(namespace="shop", name=name, uid=f"uid-{name}", node=node_name, message="Drifted")
    return Outcome(action=action, result=result, message=message)


def test_evicted_pod_gets_an_event_with_the_disruption_reason() -> None:
    [event] = describe_evictions([make_outcome("cart")], CLUSTER)
    assert (event.kind, event.namespace, event.name, event.uid) == ("Pod", "shop", "cart", "uid-cart")
    assert (event.type, event.reason, event.message, event.at) == (
        "Normal",
        "Evicted",
        "Evicted pod: Drifted",
        CLUSTER.taken_at,
    )


def test_node_gets_one_event_with_the_error_of_the_first_rejected_eviction() -> None:
    outcomes = [make_outcome("cart", "skipped", EVICTION_ERROR), make_outcome("web", "skipped", EVICTION_ERROR)]
    [event] = describe_evictions(outcomes, CLUSTER)
    assert (event.kind, event.name, event.uid) == ("Node", NODE.name, NODE.meta.uid)
    assert (event.type, event.reason) == ("Warning", "FailedDraining")
    assert event.message.startswith("pod shop/cart is not evicted: POST /eviction: Cannot evict pod")
    drain_events = describe_evictions(
        [*outcomes, make_outcome("db", "skipped", EVICTION_ERROR, node_name="gone")], CLUSTER
    )
    assert [(drain_event.name, drain_event.uid) for drain_event in drain_events] == [
        (NODE.name, NODE.meta.uid),
        ("gone", ""),
    ]


def test_failed_evictions_and_evictions_of_missing_pods_get_no_event() -> None:
    outcomes = [
        make_outcome("a", "skipped", "NotFound: a"),
        make_outcome("b", "skipped", "Conflict: b"),
        make_outcome("c", "failed", "down"),
    ]
    assert list(describe_evictions(outcomes, CLUSTER)) == []
