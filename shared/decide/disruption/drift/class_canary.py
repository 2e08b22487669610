"""Drift while the canary of an EC2NodeClass runs: its first nodes drift, the others wait.

The canary needs `nodes` nodes with the new image. Nodes that are launched for pods count; as long as they are fewer,
existing nodes drift, preferably those that nothing blocks. A node whose image is neither the new nor the last good one
always drifts: so do the nodes of a rejected image.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from shared.decide.disruption.drift.canary_preference import CanaryPreference
from shared.decide.disruption.drift.drift import DriftInputs, list_matching_images
from shared.model.karpenter.health.canary import (
    CanaryTrial,
    build_claim_key,
    find_running_configuration_trial,
    get_launch_hash,
    is_configuration_held,
    list_running_trials,
    parse_canary_settings,
    with_trial_images,
)
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass
from shared.state.cluster_state import ClusterState


def with_class_canaries(claim_inputs: list[DriftInputs], cluster_state: ClusterState) -> list[DriftInputs]:
    """Return *claim_inputs* with the images of running trials, and which NodeClaims wait for them."""
    for node_class in cluster_state.snapshot.node_classes:
        trials, is_held = list_running_trials(node_class), is_configuration_held(node_class)
        if trials or is_held:
            claim_inputs = _apply_canary(node_class, trials, claim_inputs, cluster_state, is_held=is_held)
    return claim_inputs


def _apply_canary(
    node_class: EC2NodeClass,
    trials: tuple[CanaryTrial, ...],
    claim_inputs: list[DriftInputs],
    cluster_state: ClusterState,
    *,
    is_held: bool,
) -> list[DriftInputs]:
    own_inputs = [inputs for inputs in claim_inputs if inputs.claim.node_class.name == node_class.name]
    tested_class = with_trial_images(node_class, trials)
    waiting_by_image: dict[str, set[str]] = {}
    for inputs in own_inputs:
        tested_images = list_matching_images(replace(inputs, node_class=tested_class))
        if inputs.claim.image_id in list_matching_images(inputs) - tested_images:
            waiting_by_image[inputs.claim.name] = tested_images
    waiting_for_image, waiting_for_configuration = set(waiting_by_image), set[str]()
    claims = [inputs.claim for inputs in own_inputs]
    for trial in trials:
        users = [claim for claim in claims if claim.image_id == trial.identity]
        waiting = [claim for claim in claims if trial.identity in waiting_by_image.get(claim.name, ())]
        waiting_for_image -= _choose_canaries(node_class, trial, users, waiting, cluster_state)
    if is_held:
        waiting = [claim for claim in claims if get_launch_hash(claim) not in ("", node_class.spec_hash)]
        waiting_for_configuration.update(claim.name for claim in waiting)
        configuration_trial = find_running_configuration_trial(node_class)
        if configuration_trial is not None:
            users = [
                claim for claim in claims if get_launch_hash(claim) == node_class.spec_hash and claim.is_launched()
            ]
            waiting_for_configuration -= _choose_canaries(
                node_class, configuration_trial, users, waiting, cluster_state
            )
    return [
        replace(
            inputs,
            node_class=tested_class if inputs.node_class is not None else None,
            waits_for_canary=inputs.claim.name in waiting_for_image,
            waits_for_configuration=inputs.claim.name in waiting_for_configuration,
        )
        if inputs.claim.node_class.name == node_class.name
        else inputs
        for inputs in claim_inputs
    ]


def _choose_canaries(
    node_class: EC2NodeClass,
    trial: CanaryTrial,
    users: Iterable[NodeClaim],
    waiting: list[NodeClaim],
    cluster_state: ClusterState,
) -> set[str]:
    """Return the names of the *waiting* NodeClaims that are replaced now; *users* are the nodes of *trial*."""
    in_flight = sum(
        not claim.is_launched() and not claim.is_deleting() and claim.node_class.name == node_class.name
        for claim in cluster_state.snapshot.node_claims
    )
    tested_count = len({build_claim_key(claim) for claim in users}.union(trial.passed))
    missing = parse_canary_settings(node_class).node_count - tested_count - in_flight
    return {claim.name for claim in sorted(waiting, key=CanaryPreference(cluster_state))[: max(0, missing)]}
