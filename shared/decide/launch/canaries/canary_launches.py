"""Which launches use a new image: as many as the canary of their EC2NodeClass still needs. All others use the good one.

A claim that could not be launched with a new image is launched with the good one: the image may be the reason.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.ec2.fleet import FleetRequest
from shared.model.karpenter.health.canary import (
    CanaryTrial,
    build_claim_key,
    list_running_trials,
    parse_canary_settings,
    with_trial_images,
)
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass


class CanaryLaunches:
    """How many launches may still use each new image, while launches are planned."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Count the nodes and open launches of each new image."""
        self._cluster = cluster
        self._trials_by_class: dict[str, tuple[EC2NodeClass, tuple[CanaryTrial, ...]]] = {}
        self._free_by_image: dict[tuple[str, str], int] = {}
        """By EC2NodeClass and image: several classes can test the same image, each on its own nodes."""
        self._images_by_claim: dict[str, frozenset[str]] = {}
        for node_class in cluster.node_classes:
            trials = list_running_trials(node_class)
            if trials:
                self._trials_by_class[node_class.name] = (node_class, trials)
                node_count = parse_canary_settings(node_class).node_count
                for trial in trials:
                    free_count = node_count - len(self._list_users(trial, node_class))
                    self._free_by_image[node_class.name, trial.identity] = free_count

    def choose_images(self, claim: NodeClaim) -> frozenset[str]:
        """Return the new images that *claim* may be launched with; empty: only the good ones."""
        trials = self._trials_by_class.get(claim.node_class.name)
        if trials is None:
            return frozenset()
        images = frozenset(
            trial.identity
            for trial in trials[1]
            if self._free_by_image[claim.node_class.name, trial.identity] > 0
            and not self._was_tried(claim, trial.identity)
        )
        self._images_by_claim[claim.name] = images
        return images

    def count_launch(self, claim: NodeClaim, request: FleetRequest) -> None:
        """Count the planned launch of *claim*: it uses any new image of *request*, whichever EC2 chooses."""
        if self._trials_by_class:
            for image_id in _list_images(request):
                if (claim.node_class.name, image_id) in self._free_by_image:
                    self._free_by_image[claim.node_class.name, image_id] -= 1

    def apply_images(self, claim: NodeClaim, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """Return *cluster* in which the node class of *claim* has the new images that were chosen for *claim*."""
        images = self._images_by_claim.get(claim.name)
        if not images:
            return cluster
        node_class, trials = self._trials_by_class[claim.node_class.name]
        tested_class = with_trial_images(node_class, (trial for trial in trials if trial.identity in images))
        classes = (tested_class if item.name == tested_class.name else item for item in cluster.node_classes)
        return replace(cluster, node_classes=tuple(classes))

    def _list_users(self, trial: CanaryTrial, node_class: EC2NodeClass) -> set[str]:
        """Return the keys of claims that use the image of *trial*, may get it from an open launch, or have passed."""
        own_claims = [
            claim
            for claim in self._cluster.node_claims
            if claim.node_class.name == node_class.name and not claim.is_deleting()
        ]
        return {
            build_claim_key(claim)
            for claim in own_claims
            if claim.image_id == trial.identity
            or (not claim.is_launched() and self._is_being_launched(claim, trial.identity))
        }.union(trial.passed)

    def _is_being_launched(self, claim: NodeClaim, image_id: str) -> bool:
        return any(
            group.result is None or claim.name in group.list_served_claims()
            for group in self._find_groups(claim, image_id)
        )

    def _was_tried(self, claim: NodeClaim, image_id: str) -> bool:
        return any(
            group.result is not None and claim.name not in group.list_served_claims()
            for group in self._find_groups(claim, image_id)
        )

    def _find_groups(self, claim: NodeClaim, image_id: str) -> Iterable[LaunchGroup]:
        return (
            group
            for group in self._cluster.launch_groups
            if group.is_for(claim) and image_id in _list_images(group.request)
        )


def _list_images(request: FleetRequest) -> frozenset[str]:
    return frozenset(override.image_id for config in request.configs for override in config.overrides)
