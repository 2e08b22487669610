"""The nodes that will have drifted after an upgrade of the control plane, in the order of their replacement."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from cli.plan.upgrade.image_changes import ImageChange
from shared.decide.disruption.candidates import Candidate, evaluate_candidate
from shared.decide.disruption.drift.drift import AMI_DRIFT, DRIFTED, find_drift_reason
from shared.decide.disruption.drift.drifted_condition import ClaimDrift, find_drifts
from shared.decide.disruption.methods.drift_replacement import build_drift_sort_key
from shared.decide.disruption.pauses import count_drifted_nodes
from shared.decide.disruption.savings.disruption_cost import DisruptionPrices, EvictionCosts
from shared.decide.provisioning.pod_nominations import NOMINATION_TTL
from shared.model.cluster import ClusterSnapshot
from shared.model.core.conditions import with_condition
from shared.model.core.metadata import is_condition_true
from shared.state.cluster_state import ClusterState


class DriftingNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that will have drifted."""

    node: str
    node_pool: str
    reason: str
    usd_per_hour: float = 0.0
    blocked_message: str = ""
    """Why Joiner does not replace it now; "" if nothing blocks its replacement."""


class UpgradedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster as it is directly after the upgrade."""

    drifting_nodes: tuple[DriftingNode, ...]
    """In the order of their replacement; blocked nodes last."""
    unknown_nodes: tuple[str, ...]
    """Nodes for which the drift is unknown, sorted."""
    counts_by_pool: Mapping[str, tuple[int, int]] = {}
    """Number of nodes and of drifted nodes, by NodePool, as `drift-pause-percent` counts them."""


def find_drifting_nodes(cluster: ClusterSnapshot, changes: Iterable[ImageChange]) -> UpgradedCluster:
    """Return the nodes of *cluster* that will have drifted after *changes* of the images."""
    class_by_name = {change.before.name: change.after for change in changes}
    upgraded_classes = tuple(class_by_name.get(node_class.name, node_class) for node_class in cluster.node_classes)
    claim_drifts = [
        _follow_canary(claim_drift)
        for claim_drift in find_drifts(ClusterState(replace(cluster, node_classes=upgraded_classes)))
    ]
    reason_by_claim = {claim_drift.inputs.claim.name: claim_drift.reason for claim_drift in claim_drifts}
    claims = tuple(
        replace(
            claim,
            conditions=with_condition(
                claim.conditions, DRIFTED, "True", reason, reason, cluster.taken_at, claim.meta.generation
            ),
        )
        if (reason := reason_by_claim.get(claim.name)) and not is_condition_true(claim.conditions, DRIFTED)
        else claim
        for claim in cluster.node_claims
    )
    # nominations of pods, which block a node only for a short time, have ended by then
    cluster_state = ClusterState(
        replace(cluster, node_classes=upgraded_classes, node_claims=claims, taken_at=cluster.taken_at + NOMINATION_TTL)
    )
    drifting_nodes = list(_evaluate_nodes(cluster_state, {name: text or "" for name, text in reason_by_claim.items()}))
    return UpgradedCluster(
        drifting_nodes=tuple(sorted(drifting_nodes, key=lambda node: bool(node.blocked_message))),
        unknown_nodes=tuple(
            sorted(
                claim_drift.inputs.claim.node_name or claim_drift.inputs.claim.name
                for claim_drift in claim_drifts
                if claim_drift.reason is None
            )
        ),
        counts_by_pool=count_drifted_nodes(cluster_state.nodes),
    )


def _follow_canary(claim_drift: ClaimDrift) -> ClaimDrift:
    """Return the drift without the wait for an image canary: all nodes drift in the end."""
    if not claim_drift.inputs.waits_for_canary:
        return claim_drift
    inputs = replace(claim_drift.inputs, waits_for_canary=False)
    return ClaimDrift(inputs=inputs, reason=find_drift_reason(inputs) or AMI_DRIFT)


def _evaluate_nodes(cluster_state: ClusterState, reason_by_claim: dict[str, str]) -> Iterator[DriftingNode]:
    eviction_costs = EvictionCosts(DisruptionPrices(), cluster_state.taken_at)
    candidates: list[Candidate] = []
    for state in sorted(cluster_state.nodes, key=lambda state: state.name):
        reason = reason_by_claim.get(state.claim.name, "") if state.claim is not None else ""
        if not reason:
            continue
        verdict = evaluate_candidate(state, cluster_state, disruption_class="eventual")
        if isinstance(verdict, Candidate):
            candidates.append(verdict)
        else:
            yield DriftingNode(node=state.name, node_pool=state.pool, reason=reason, blocked_message=verdict.message)
    for candidate in sorted(candidates, key=lambda item: build_drift_sort_key(item, eviction_costs)):
        yield DriftingNode(
            node=candidate.name,
            node_pool=candidate.pool.name,
            reason=reason_by_claim[candidate.claim.name],
            usd_per_hour=candidate.price_usd_per_hour,
        )
