"""Which NodeClaims have drifted, and their Drifted conditions. On request a canary node tries a new image first.

The canary, for `joiner.dev/image-soak`: as long as no NodeClaim of the NodePool runs one of the required images, a
single NodeClaim drifts because of its image, preferably one with no block on its disruption. After a NodeClaim with a
required image has been initialized for the soak time, the others drift.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec
from msgspec.structs import replace

from shared.decide.common.events import build_event
from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.decide.disruption.drift.canary_preference import CanaryPreference
from shared.decide.disruption.drift.class_canary import with_class_canaries
from shared.decide.disruption.drift.drift import (
    AMI_DRIFT,
    DRIFTED,
    DriftInputs,
    find_drift_reason,
    is_drift_resolved,
    list_matching_images,
)
from shared.model.core.conditions import encode_conditions, with_condition, without_condition
from shared.model.core.formatting import format_count
from shared.model.core.labels import (
    AT_RISK,
    IMAGE_SOAK,
    NODEPOOL,
    REBALANCE_POLICY,
    VOLUNTARY_DISRUPTION,
)
from shared.model.core.metadata import ObjectMeta, find_condition, is_condition_true
from shared.model.core.units import format_instant
from shared.model.decisions.action import Action, PatchStatus
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState


class ClaimDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeClaim and whether it has drifted."""

    inputs: DriftInputs
    reason: str | None
    """"" if it has not drifted; None if that is unknown."""


class ImageCanary(msgspec.Struct, frozen=True, kw_only=True):
    """A new image that not all nodes of a NodePool may get yet."""

    waiting_claims: frozenset[str]
    """Names of the NodeClaims that wait for the canary."""
    message: str


def find_drifts(cluster_state: ClusterState) -> tuple[ClaimDrift, ...]:
    """Compare each managed NodeClaim that is not deleting; sorted by name.

    A NodeClaim that is not launched has not drifted.
    """
    return _find_drifts_and_canaries(cluster_state)[0]


def find_recovered_claims(cluster_state: ClusterState) -> frozenset[str]:
    """Return the names of NodeClaims with a Drifted condition that verifiably match their specification again."""
    if not any(is_condition_true(claim.conditions, DRIFTED) for claim in cluster_state.snapshot.node_claims):
        return frozenset()
    return frozenset(inputs.claim.name for inputs in _build_inputs(cluster_state) if is_drift_resolved(inputs))


def describe_drift(cluster_state: ClusterState) -> tuple[Action, ...]:
    """Write each changed Drifted condition, and emit an event for each NodePool with nodes that wait for a canary."""
    claim_drifts, canaries = _find_drifts_and_canaries(cluster_state)
    patches = (
        _patch_condition(drift.inputs.claim, drift.reason, cluster_state.taken_at)
        for drift in claim_drifts
        if drift.reason is not None
    )
    events = (
        build_event("NodePool", pool.meta, "ImageCanary", canary.message, cluster_state.taken_at)
        for pool, canary in canaries
    )
    return (*(action for patch in patches for action in patch), *events)


def _find_drifts_and_canaries(
    cluster_state: ClusterState,
) -> tuple[tuple[ClaimDrift, ...], tuple[tuple[NodePool, ImageCanary], ...]]:
    claim_inputs = _build_inputs(cluster_state)
    canaries = tuple(_find_canaries(claim_inputs, cluster_state))
    waiting_claims = frozenset(name for _, canary in canaries for name in canary.waiting_claims)
    return tuple(
        _evaluate_drift(
            replace(inputs, waits_for_canary=inputs.waits_for_canary or inputs.claim.name in waiting_claims)
        )
        for inputs in claim_inputs
    ), canaries


def _build_inputs(cluster_state: ClusterState) -> list[DriftInputs]:
    return with_class_canaries(list(_compare_claims(cluster_state)), cluster_state)


def _compare_claims(cluster_state: ClusterState) -> Iterator[DriftInputs]:
    cluster = cluster_state.snapshot
    classes = {node_class.name: node_class for node_class in cluster.node_classes}
    instances = {instance.instance_id: instance for instance in cluster.instances or ()}
    requested_provider_ids = {node.provider_id for node in cluster.nodes if _is_drift_requested(node.meta)}
    risky_provider_ids = {
        node.provider_id for node in cluster.nodes if any(taint.key == AT_RISK for taint in node.taints)
    }
    for claim in sorted(cluster.node_claims, key=lambda claim: claim.name):
        pool = cluster_state.node_pools.get(claim.meta.get_label(NODEPOOL))
        if pool is not None and not claim.is_deleting():
            yield DriftInputs(
                claim=claim,
                pool=pool,
                node_class=classes.get(claim.node_class.name),
                instance=instances.get(claim.instance_id),
                instance_types=cluster_state.price_list.list_types(claim.node_class.name, pool.name),
                now=cluster.taken_at,
                is_drift_requested=_is_drift_requested(claim.meta)
                or (claim.provider_id in requested_provider_ids and bool(claim.provider_id)),
                is_at_risk=pool.meta.get_annotation(REBALANCE_POLICY) == "replace"
                and bool(claim.provider_id)
                and claim.provider_id in risky_provider_ids,
                is_in_shifted_zone=cluster.zonal_shifts is not None
                and cluster.zonal_shifts.drains_zones
                and cluster_state.find_zonal_shift(claim.meta) is not None,
            )


def _is_drift_requested(meta: ObjectMeta) -> bool:
    return meta.get_annotation(VOLUNTARY_DISRUPTION) == "drifted"


def _evaluate_drift(inputs: DriftInputs) -> ClaimDrift:
    return ClaimDrift(
        inputs=inputs,
        reason=find_drift_reason(inputs) if is_condition_true(inputs.claim.conditions, "Launched") else "",
    )


def _find_canaries(
    claim_inputs: Iterable[DriftInputs], cluster_state: ClusterState
) -> Iterator[tuple[NodePool, ImageCanary]]:
    inputs_by_pool: dict[str, list[DriftInputs]] = {}
    for inputs in claim_inputs:
        if parse_disruption_annotations(inputs.pool).image_soak:
            inputs_by_pool.setdefault(inputs.pool.name, []).append(inputs)
    for _, pool_inputs in sorted(inputs_by_pool.items()):
        outdated_claims: dict[frozenset[str], list[NodeClaim]] = {}
        for inputs in pool_inputs:
            if _evaluate_drift(inputs).reason == AMI_DRIFT:
                outdated_claims.setdefault(frozenset(list_matching_images(inputs)), []).append(inputs.claim)
        for images, claims in sorted(outdated_claims.items(), key=lambda item: sorted(item[0])):
            canary = _decide_canary(
                images, claims, [pool_input.claim for pool_input in pool_inputs], pool_inputs[0].pool, cluster_state
            )
            if canary is not None:
                yield pool_inputs[0].pool, canary


def _decide_canary(
    images: frozenset[str],
    outdated: list[NodeClaim],
    pool_claims: list[NodeClaim],
    pool: NodePool,
    cluster_state: ClusterState,
) -> ImageCanary | None:
    """Return which *outdated* NodeClaims wait until *images* are proven; None if the soak time is over."""
    soak_time, names = parse_disruption_annotations(pool).image_soak, frozenset(claim.name for claim in outdated)
    claims_with_image = [claim for claim in pool_claims if claim.image_id in images]
    initialized_at = min(
        (at for claim in claims_with_image if (at := _find_initialized_time(claim)) is not None), default=None
    )
    if initialized_at is not None and initialized_at + soak_time <= cluster_state.taken_at:
        return None
    image_text = f"image {min(images)} (annotation {IMAGE_SOAK})"
    if initialized_at is not None:
        until = format_instant(initialized_at + soak_time)
        return ImageCanary(
            waiting_claims=names,
            message=(
                f"{format_count(len(outdated), 'node')} with the old image until {until}: one node tests {image_text}"
            ),
        )
    if claims_with_image:
        return ImageCanary(
            waiting_claims=names,
            message=(
                f"{format_count(len(outdated), 'node')} with the old image until one node is initialized "
                f"with {image_text}"
            ),
        )
    canary_claim = min(outdated, key=CanaryPreference(cluster_state))
    waiting_claims = names - {canary_claim.name}
    message = (
        f"{canary_claim.name} is replaced first, {format_count(len(waiting_claims), 'node')} with the old image wait: "
        f"one node tests {image_text}"
    )
    return ImageCanary(waiting_claims=waiting_claims, message=message)


def _find_initialized_time(claim: NodeClaim) -> datetime | None:
    initialized_condition = find_condition(claim.conditions, "Initialized")
    return (
        initialized_condition.since
        if initialized_condition is not None and initialized_condition.status == "True"
        else None
    )


def _patch_condition(claim: NodeClaim, reason: str, now: datetime) -> Iterator[Action]:
    old_condition = find_condition(claim.conditions, DRIFTED)
    if (old_condition.reason if old_condition is not None and old_condition.status == "True" else "") == reason and (
        reason or old_condition is None
    ):
        return
    conditions = without_condition(claim.conditions, DRIFTED)
    if reason:
        conditions = with_condition(claim.conditions, DRIFTED, "True", reason, reason, now, claim.meta.generation)
    yield PatchStatus(
        kind="NodeClaim",
        name=claim.name,
        resource_version=claim.meta.resource_version,
        status=msgspec.json.encode({"conditions": encode_conditions(conditions)}).decode(),
        message=f"the node has drifted: {reason}" if reason else "the node is no longer drifted",
    )
