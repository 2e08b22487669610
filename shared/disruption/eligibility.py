"""Which candidates a method may take, and for the others why not; in Karpenter's order."""

from datetime import datetime

from shared.disruption.candidates import Candidate, Field
from shared.disruption.verdicts import Kept
from shared.lifecycle.podevents import consolidatable_at
from shared.model.labels import CAPACITY_TYPE, COMMAND, POD_DIGEST, ZONE
from shared.model.objects import is_true
from shared.model.state import StateNode, pod_digest


def kept_from_emptiness(one: Candidate, field: Field, headroom: frozenset[str]) -> Kept | None:
    """Say why *one* does not go as empty; None: nothing speaks against it."""
    pool = one.pool
    if pool.replicas is not None:
        return _static(one)
    left_over = was_never_used(one)
    if pool.consolidate_after is None and not left_over:
        return _disabled(one)
    if one.name in headroom:
        return _kept(one, "Headroom", "a CapacityBuffer keeps room there: it is not empty")
    if not one.is_empty():
        return _kept(one, "NotEmpty", f"{len(one.reschedulable)} pods would need another place")
    return None if left_over else unquiet(one, field.now)


def was_never_used(one: Candidate) -> bool:
    """Whether *one* came for nodes that stayed after all: a replacement that no pod has ever come to.

    It is nobody's by choice, so neither consolidateAfter nor its absence keeps it. While its command goes on it is
    expected, and no candidate.
    """
    meta = one.claim.meta
    known = meta.annotation(POD_DIGEST)
    is_as_seen = bool(known) and known == pod_digest(one.state.pods)
    return bool(meta.annotation(COMMAND)) and one.claim.last_pod_event_at is None and is_as_seen


def kept_from_consolidation(one: Candidate, field: Field) -> Kept | None:
    """Say why *one* does not go for something cheaper; None: nothing speaks against it."""
    pool, meta = one.pool, one.node.meta
    if pool.replicas is not None:
        return _static(one)
    if field.prices.type_of(meta, pool.node_class.name) is None:
        return _kept(one, "InstanceTypeUnknown", f"the catalogue has no instance type {one.instance_type!r}")
    for key in (CAPACITY_TYPE, ZONE):
        if not meta.label(key):
            return _kept(one, "LabelMissing", f"the node has no label {key}")
    if pool.consolidate_after is None:
        return _disabled(one)
    if pool.consolidation_policy == "WhenEmpty":
        return _kept(one, "PolicyWhenEmpty", f"NodePool {pool.name} consolidates only empty nodes")
    return unquiet(one, field.now)


def unquiet(one: Candidate, now: datetime) -> Kept | None:
    """Say why it is too soon for *one*, None if it is not."""
    claim = one.claim
    due = consolidatable_at(claim, one.pool)
    known = claim.meta.annotation(POD_DIGEST)
    if known and known != pod_digest(one.state.pods):
        return _kept(one, "PodsChanged", "pods came, ended or began to go since the node was last looked at")
    if (due is None or due > now) if known else not is_true(claim.conditions, "Consolidatable"):
        return _kept(one, "NotConsolidatable", "the node has not been quiet for consolidateAfter yet")
    return None


def refuses_pods(state: StateNode, field: Field) -> bool:
    """Whether consolidation must leave the pods on *state* alone for now: it is inside its own consolidateAfter."""
    pool = field.pools.get(state.pool)
    if state.claim is None or pool is None or pool.replicas is not None or not pool.consolidate_after:
        return False
    due = consolidatable_at(state.claim, pool)
    return due is not None and due > field.now


def _static(one: Candidate) -> Kept:
    return _kept(one, "StaticPool", f"NodePool {one.pool.name} keeps a fixed number of nodes")


def _disabled(one: Candidate) -> Kept:
    return _kept(one, "ConsolidationDisabled", f"NodePool {one.pool.name} has consolidateAfter Never")


def _kept(one: Candidate, reason: str, message: str) -> Kept:
    return Kept(node=one.name, reason=reason, message=message)
