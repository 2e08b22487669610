"""Interruptions and rebalance recommendations as events of the history of offerings, with the price of their evictions.

Only the first message about an instance counts: once its NodeClaim is being deleted, later messages are ignored.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.model.cloud_provider.offering_history import OfferingEvent, OfferingEventKind, OfferingKey
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, SPOT, ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import RecordOfferingEvents
from shared.model.decisions.interruption_message import InterruptionMessage
from shared.model.kubernetes.eviction_cost import compute_eviction_cost
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import NodeClaimState


def record_interruptions(
    cluster_state: ClusterState, messages: Iterable[InterruptionMessage], eviction_price_usd: float
) -> tuple[RecordOfferingEvents, ...]:
    """Return the action that adds *messages* to the history; none without a history.

    *eviction_price_usd* applies to NodePools without the annotation.
    """
    if cluster_state.snapshot.offering_history is None:
        return ()
    kind_by_instance: dict[str, OfferingEventKind] = {}
    for message in messages:
        for instance_id in message.instance_ids:
            if message.kind == "spot_interrupted":
                kind_by_instance[instance_id] = "interruption"
            elif message.kind == "rebalance_recommendation":
                kind_by_instance.setdefault(instance_id, "rebalance-recommendation")
    if not kind_by_instance:
        return ()
    events = tuple(sorted(_list_events(cluster_state, kind_by_instance, eviction_price_usd)))
    message_text = "interruption messages of EC2"
    return (RecordOfferingEvents(events=events, message=message_text),) if events else ()


def _list_events(
    cluster_state: ClusterState, kind_by_instance: dict[str, OfferingEventKind], eviction_price_usd: float
) -> Iterator[OfferingEvent]:
    claim_states = [state for state in cluster_state.claim_states if state.claim.provider_id]
    node_counts = Counter(_get_offering(state.claim.meta) for state in claim_states)
    for state in claim_states:
        kind, offering = kind_by_instance.get(state.claim.instance_id), _get_offering(state.claim.meta)
        instance_type, zone, capacity_type = offering
        if kind is None or state.claim.is_deleting() or capacity_type != SPOT or not instance_type or not zone:
            continue
        pod_costs = [max(compute_eviction_cost(pod), 0.0) for pod in state.pods if is_reschedulable(pod)]
        yield OfferingEvent(
            instance_type=instance_type,
            zone=zone,
            capacity_type=capacity_type,
            kind=kind,
            at=cluster_state.taken_at,
            share=1 / node_counts[offering],
            evictions=len(pod_costs),
            evictions_usd=round(_get_eviction_price(state, cluster_state, eviction_price_usd) * sum(pod_costs), 6),
        )


def _get_offering(meta: ObjectMeta) -> OfferingKey:
    return meta.get_label(INSTANCE_TYPE), meta.get_label(ZONE), meta.get_label(CAPACITY_TYPE)


def _get_eviction_price(state: NodeClaimState, cluster_state: ClusterState, default_usd: float) -> float:
    pool = cluster_state.node_pools.get(state.claim.meta.get_label(NODEPOOL))
    annotated_price = None if pool is None else parse_disruption_annotations(pool).eviction_price_usd
    return default_usd if annotated_price is None else annotated_price
