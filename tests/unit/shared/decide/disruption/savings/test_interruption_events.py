"""Interruption messages as events of the history of offerings."""

import pytest

from shared.decide.disruption.savings.interruption_events import record_interruptions
from shared.model.cloud_provider.offering_history import OfferingEvent, OfferingHistory
from shared.model.core.labels import CAPACITY_TYPE, EVICTION_PRICE
from shared.model.decisions.interruption_message import InterruptionMessage
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import NOW, POOL, Case, make_claim, make_cluster, make_node, make_pod, replace_fields

CLUSTER = make_cluster(
    node_claims=(make_claim(), make_claim("b")),
    nodes=(make_node(), make_node("b")),
    pods=(make_pod("1"), make_pod("2")),
    offering_history=OfferingHistory(),
)


def make_message(kind: Case = "spot_interrupted", instance_id: str = "i-a") -> InterruptionMessage:
    return InterruptionMessage(kind=kind, instance_ids=(instance_id,))


def list_events(cluster: Case, *messages: InterruptionMessage, usd: float = 0.02) -> list[OfferingEvent]:
    actions = record_interruptions(ClusterState(cluster), messages, usd)
    return [event for action in actions for event in action.events]


def test_interruption_is_recorded_with_its_share_of_the_nodes_and_the_price_of_its_evictions() -> None:
    [event] = list_events(CLUSTER, make_message())
    assert (event.key, event.kind) == (("m7i.large", "us-east-1a", "spot"), "interruption")
    assert (event.share, event.evictions, event.evictions_usd) == (0.5, 2, 0.04)


def test_eviction_price_of_the_node_pool_overrides_the_setting() -> None:
    pool = replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=((EVICTION_PRICE, "0.5"),)))
    [event] = list_events(replace_fields(CLUSTER, node_pools=(pool,)), make_message())
    assert event.evictions_usd == 1.0


@pytest.mark.parametrize("is_first", [True, False])
def test_recommendation_beside_an_interruption_counts_once(*, is_first: bool) -> None:
    recommendation = make_message("rebalance_recommendation")
    messages = (recommendation, make_message()) if is_first else (make_message(), recommendation)
    assert [event.kind for event in list_events(CLUSTER, *messages)] == ["interruption"]
    assert [event.kind for event in list_events(CLUSTER, recommendation)] == ["rebalance-recommendation"]


def test_nothing_is_recorded_without_a_history() -> None:
    assert list_events(replace_fields(CLUSTER, offering_history=None), make_message()) == []


def test_other_messages_other_capacity_types_and_leaving_nodes_are_not_recorded() -> None:
    assert list_events(CLUSTER, make_message("scheduled_change"), make_message("instance_stopped", "i-b")) == []
    on_demand = make_claim(extra={CAPACITY_TYPE: "on-demand"})
    assert list_events(replace_fields(CLUSTER, node_claims=(on_demand,)), make_message()) == []
    assert list_events(replace_fields(CLUSTER, node_claims=(make_claim(deleted=NOW),)), make_message()) == []
    assert list_events(CLUSTER, make_message(instance_id="i-foreign")) == []
