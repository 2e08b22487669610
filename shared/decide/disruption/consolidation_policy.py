"""Which candidates a disruption method may disrupt, and why it keeps the others; in Karpenter's order."""

from datetime import datetime

from shared.decide.disruption.budgets.node_pool_annotations import DELETE_ONLY, parse_disruption_annotations
from shared.decide.disruption.budgets.utilization import explain_utilization
from shared.decide.disruption.candidates import Candidate
from shared.model.core.formatting import format_count
from shared.model.core.labels import CAPACITY_TYPE, COMMAND, CONSOLIDATION_MODE, POD_DIGEST, SCALE_DOWN_DISABLED, ZONE
from shared.model.core.metadata import is_condition_true
from shared.model.decisions.disruption_verdict import KeptVerdict
from shared.model.kubernetes.do_not_disrupt import is_scale_down_disabled
from shared.model.kubernetes.gangs.gang import find_gang_membership
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import compute_consolidatable_time
from shared.state.state_node import StateNode, compute_pod_digest


def explain_emptiness_refusal(
    candidate: Candidate, cluster_state: ClusterState, buffer_nodes: frozenset[str]
) -> KeptVerdict | None:
    """Return why *candidate* is not disrupted as empty; None if nothing prevents it."""
    pool = candidate.pool
    if exclusion := _explain_exclusion(candidate):
        return exclusion
    is_unused_replacement = was_never_used(candidate)
    if pool.consolidate_after is None and not is_unused_replacement:
        return _keep_disabled(candidate)
    if candidate.name in buffer_nodes:
        return _keep(
            candidate,
            "Headroom",
            "the node is not empty: it has the headroom of a CapacityBuffer or ProvisioningRequest",
        )
    if not candidate.is_empty():
        return _keep(
            candidate, "NotEmpty", (f"{format_count(len(candidate.reschedulable_pods), 'pod')} would have to move")
        )
    return None if is_unused_replacement else explain_consolidate_after_wait(candidate, cluster_state.taken_at)


def was_never_used(candidate: Candidate) -> bool:
    """Return whether *candidate* is a replacement for nodes that stayed, and never had a pod.

    No NodePool owner asked for such a node, so neither consolidateAfter nor its absence keeps it. While its command is
    in progress the node is expected, and not a candidate.
    """
    meta = candidate.claim.meta
    recorded_digest = meta.get_annotation(POD_DIGEST)
    is_unchanged = bool(recorded_digest) and recorded_digest == compute_pod_digest(candidate.state.pods)
    return bool(meta.get_annotation(COMMAND)) and candidate.claim.last_pod_event_at is None and is_unchanged


def explain_consolidation_refusal(candidate: Candidate, cluster_state: ClusterState) -> KeptVerdict | None:
    """Return why *candidate* is not replaced by something cheaper; None if nothing prevents it."""
    pool, meta = candidate.pool, candidate.node.meta
    if exclusion := _explain_exclusion(candidate):
        return exclusion
    if cluster_state.price_list.find_type(meta, pool.node_class.name) is None:
        return _keep(candidate, "InstanceTypeUnknown", f"the catalog has no instance type {candidate.instance_type!r}")
    for key in (CAPACITY_TYPE, ZONE):
        if not meta.get_label(key):
            return _keep(candidate, "LabelMissing", f"the node has no label {key}")
    if pool.consolidate_after is None:
        return _keep_disabled(candidate)
    if pool.consolidation_policy == "WhenEmpty":
        return _keep(candidate, "PolicyWhenEmpty", f"NodePool {pool.name} consolidates only empty nodes")
    return (
        _explain_high_utilization(candidate)
        or _explain_gang(candidate, cluster_state)
        or explain_consolidate_after_wait(candidate, cluster_state.taken_at)
    )


def _explain_gang(candidate: Candidate, cluster_state: ClusterState) -> KeptVerdict | None:
    """Return why *candidate* is not consolidated: evicting one pod of a gang usually stops the work of all its pods."""
    for pod in candidate.reschedulable_pods if cluster_state.snapshot.has_gangs else ():
        membership = find_gang_membership(pod)
        if membership is not None:
            return _keep(candidate, "RunsGang", f"pod {pod.name} is in gang {membership.name}, which runs as a whole")
    return None


def _explain_high_utilization(candidate: Candidate) -> KeptVerdict | None:
    message = explain_utilization(candidate)
    return _keep(candidate, "AboveUtilizationThreshold", message) if message else None


def is_delete_only(candidate: Candidate) -> bool:
    """Return whether consolidation must not launch a replacement for *candidate*."""
    return parse_disruption_annotations(candidate.pool).is_delete_only


def explain_replacement_refusal(candidate: Candidate, cluster_state: ClusterState) -> KeptVerdict | None:
    """Return why consolidation launches no replacement for *candidate*; None if nothing prevents it."""
    return (
        explain_delete_only(candidate)
        if is_delete_only(candidate)
        else explain_consolidation_refusal(candidate, cluster_state)
    )


def explain_delete_only(candidate: Candidate) -> KeptVerdict:
    """Return why *candidate*, whose pods fit on no other nodes, is not replaced."""
    message = (
        f"its pods fit on no other nodes, and NodePool {candidate.pool.name} has {CONSOLIDATION_MODE}: {DELETE_ONLY}"
    )
    return _keep(candidate, "DeleteOnly", message)


def explain_drift_first(candidate: Candidate) -> KeptVerdict:
    """Return why *candidate* is not consolidated in a run that replaces drifted nodes."""
    message = (
        "drifted nodes are replaced first; consolidation, which keeps preferred anti-affinity of pods, follows in the "
        "next run"
    )
    return _keep(candidate, "DriftFirst", message)


def explain_consolidate_after_wait(candidate: Candidate, now: datetime) -> KeptVerdict | None:
    """Return why it is too early to disrupt *candidate*; None if it is not."""
    claim = candidate.claim
    consolidatable_time = compute_consolidatable_time(claim, candidate.pool)
    recorded_digest = claim.meta.get_annotation(POD_DIGEST)
    if recorded_digest and recorded_digest != compute_pod_digest(candidate.state.pods):
        return _keep(
            candidate,
            "PodsChanged",
            ("pods were added, completed or began to terminate since the last check of the node"),
        )
    if (
        (consolidatable_time is None or consolidatable_time > now)
        if recorded_digest
        else not is_condition_true(claim.conditions, "Consolidatable")
    ):
        return _keep(candidate, "NotConsolidatable", "the pods of the node changed within consolidateAfter")
    return None


def is_within_consolidate_after(state: StateNode, cluster_state: ClusterState) -> bool:
    """Return whether *state* is within its consolidateAfter; consolidation then must not move pods to or from it."""
    pool = cluster_state.node_pools.get(state.pool)
    if state.claim is None or pool is None or pool.replicas is not None or not pool.consolidate_after:
        return False
    consolidatable_time = compute_consolidatable_time(state.claim, pool)
    return consolidatable_time is not None and consolidatable_time > cluster_state.taken_at


def _explain_exclusion(candidate: Candidate) -> KeptVerdict | None:
    """Return why neither emptiness nor consolidation ever removes *candidate*; None if nothing prevents it."""
    if candidate.pool.replicas is not None:
        message = f"NodePool {candidate.pool.name} has a fixed number of nodes (spec.replicas)"
        return _keep(candidate, "StaticPool", message)
    if is_scale_down_disabled(candidate.state.meta):
        return _keep(candidate, "ScaleDownDisabled", f"the node has the annotation {SCALE_DOWN_DISABLED}")
    return None


def _keep_disabled(candidate: Candidate) -> KeptVerdict:
    return _keep(candidate, "ConsolidationDisabled", f"NodePool {candidate.pool.name} has consolidateAfter Never")


def _keep(candidate: Candidate, reason: str, message: str) -> KeptVerdict:
    return KeptVerdict(node=candidate.name, reason=reason, message=message)
