"""Surge drain: which pods a rollout of their Deployment replaces before their node drains, and why others are evicted.

An eviction deletes a pod before its successor exists. A rollout of a Deployment with maxUnavailable 0 does the
opposite. Surge drain is used where it is requested and where an eviction would end the last replica, or where a
PodDisruptionBudget refuses it.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODEPOOL, SURGE_DRAIN, SURGE_DRAIN_RESTART
from shared.model.core.metadata import Problem
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_evictable, is_reschedulable
from shared.model.kubernetes.pod_workload import find_controlling_owner, find_deployment_name
from shared.model.kubernetes.workloads import Rollout, Workload
from shared.state.pdb_limits import PdbLimits

_SHARED_ACCESS_MODES: Final = frozenset(("ReadWriteMany", "ReadOnlyMany"))
_SWITCH_VALUES: Final = ("true", "false")


class Surge(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that needs a surge drain; without *refusal*, a rollout of *deployment* replaces it."""

    pod: Pod
    deployment: Workload | None
    refusal: str = ""
    """Why the Deployment is not restarted now."""
    is_temporary: bool = False
    """Whether the refusal ends without a change by a person."""
    pdb_refusal: str = ""
    """Why an eviction would be refused."""


class DeploymentRestart(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout that a surge drain of a node starts: it replaces all pods of its Deployment, also on other nodes."""

    deployment: str
    """Namespace and name."""
    replicas: int
    pods: tuple[Pod, ...]
    """The pods of the Deployment that would need another node, on the drained node; at least one."""


class SurgeDrains:
    """The surge drains that the NodePools and Deployments of a snapshot request."""

    def __init__(self, snapshot: ClusterSnapshot, pdb_limits: PdbLimits) -> None:
        """Index nothing yet: without the setting, nothing is ever indexed."""
        self._snapshot, self._pdb_limits = snapshot, pdb_limits

    def find_surge(self, pod: Pod, restart: str = "") -> Surge | None:
        """Return the surge drain of *pod*; None if none is requested, or if the pod can simply be evicted.

        *restart*: the value with which a command has already restarted Deployments; a rollout with that value is its
        own and no reason to wait.
        """
        now = self._snapshot.taken_at
        if not self._snapshot.has_surge_drain or not is_reschedulable(pod) or not is_evictable(pod, now):
            return None
        deployment = self.find_deployment(pod)
        if not self._is_requested(pod, deployment):
            return None
        pdb_refusal = self._pdb_limits.find_refusal(pod, now)
        rollout = deployment.rollout if deployment is not None else None
        is_restarted = bool(restart) and rollout is not None and rollout.surge_drain == restart
        if not (pdb_refusal or is_restarted or _is_last_replica(pod, deployment)):
            return None
        if lasting_refusal := self._find_lasting_refusal(pod, deployment):
            return Surge(pod=pod, deployment=deployment, refusal=lasting_refusal, pdb_refusal=pdb_refusal)
        temporary_refusal = "" if deployment is None or is_restarted else _explain_rollout_wait(deployment)
        return Surge(
            pod=pod,
            deployment=deployment,
            refusal=temporary_refusal,
            is_temporary=bool(temporary_refusal),
            pdb_refusal=pdb_refusal,
        )

    def can_surge(self, pod: Pod) -> bool:
        """Return whether a rollout moves *pod*, although its eviction may be refused."""
        surge = self.find_surge(pod)
        return surge is not None and (not surge.refusal or surge.is_temporary)

    def list_restarts(self, pods: Iterable[Pod]) -> tuple[DeploymentRestart, ...]:
        """Return the rollouts that draining the node of *pods* would start, sorted by Deployment."""
        if not self._snapshot.has_surge_drain:
            return ()
        pods_by_deployment: dict[str, list[Pod]] = {}
        restarted_names: set[str] = set()
        for pod in pods:
            deployment = self.find_deployment(pod)
            if deployment is None or not is_reschedulable(pod):
                continue
            pods_by_deployment.setdefault(deployment.name, []).append(pod)
            surge = self.find_surge(pod)
            if surge is not None and not surge.refusal:
                restarted_names.add(deployment.name)
        return tuple(
            DeploymentRestart(
                deployment=name, replicas=self._deployments[name].replicas, pods=tuple(pods_by_deployment[name])
            )
            for name in sorted(restarted_names)
        )

    def has_successor(self, pod: Pod) -> bool:
        """Return whether a surge drain has already created the pod that replaces *pod*."""
        if not self._snapshot.has_surge_drain:
            return False
        deployment = self.find_deployment(pod)
        restart = deployment.rollout.surge_drain if deployment is not None and deployment.rollout is not None else ""
        return (
            deployment is not None
            and bool(restart)
            and pod.meta.get_annotation(SURGE_DRAIN_RESTART) != restart
            and (deployment.name, restart) in self._restarts_with_pods
        )

    def find_deployment(self, pod: Pod) -> Workload | None:
        """Return the Deployment of *pod*: the name of its ReplicaSet ends with the hash of the pod template."""
        owner = find_controlling_owner(pod)
        deployment_name = find_deployment_name(owner, pod) if owner is not None else ""
        if not deployment_name:
            return None
        deployment = self._deployments.get(f"{pod.meta.namespace}/{deployment_name}")
        is_selected = (
            deployment is not None
            and deployment.rollout is not None
            and deployment.selector is not None
            and deployment.selector.is_match(dict(pod.meta.labels))
        )
        return deployment if is_selected else None

    def list_problems(self) -> tuple[Problem, ...]:
        """Return the Deployments whose annotation has no effect."""
        if not self._snapshot.has_surge_drain:
            return ()
        return tuple(
            Problem(
                kind="Deployment",
                name=deployment.name,
                message=f"metadata.annotations[{SURGE_DRAIN}]: {text!r} has no effect: write true or false",
            )
            for deployment in self._snapshot.deployments
            if (text := deployment.meta.get_annotation(SURGE_DRAIN)) and text not in _SWITCH_VALUES
        )

    @cached_property
    def _deployments(self) -> Mapping[str, Workload]:
        return {deployment.name: deployment for deployment in self._snapshot.deployments}

    @cached_property
    def _pool_by_node(self) -> Mapping[str, NodePool]:
        pools = {pool.name: pool for pool in self._snapshot.node_pools}
        pool_names = ((node.name, node.meta.get_label(NODEPOOL)) for node in self._snapshot.nodes)
        return {name: pools[pool] for name, pool in pool_names if pool in pools}

    @cached_property
    def _restarts_with_pods(self) -> frozenset[tuple[str, str]]:
        """The Deployments, with the restart, of which there is a new pod."""
        restarted_pods = (pod for pod in self._snapshot.pods if pod.meta.get_annotation(SURGE_DRAIN_RESTART))
        return frozenset(
            (deployment.name, pod.meta.get_annotation(SURGE_DRAIN_RESTART))
            for pod in restarted_pods
            if pod.is_active() and (deployment := self.find_deployment(pod)) is not None
        )

    def _is_requested(self, pod: Pod, deployment: Workload | None) -> bool:
        """Return whether surge drain is requested; the Deployment's annotation takes precedence."""
        pool = self._pool_by_node.get(pod.node_name)
        texts = [owner.meta.get_annotation(SURGE_DRAIN) for owner in (deployment, pool) if owner is not None]
        return next((text for text in texts if text in _SWITCH_VALUES), "") == "true"

    def _find_lasting_refusal(self, pod: Pod, deployment: Workload | None) -> str:
        if deployment is None or deployment.rollout is None:
            return _explain_owner(pod)
        if problem := _explain_strategy(deployment, deployment.rollout):
            return problem
        if pod.spec.host_ports:
            port = pod.spec.host_ports[0].port
            return f"both pods would need the host port {port}"
        return self._explain_volumes(pod)

    def _explain_volumes(self, pod: Pod) -> str:
        """Return which volume of *pod* cannot be used on two nodes; "" if there is none."""
        if not pod.spec.volume_claims:
            return ""
        claims = {
            claim.meta.name: claim
            for claim in self._snapshot.volume_claims
            if claim.meta.namespace == pod.meta.namespace
        }
        for name in pod.spec.volume_claims:
            claim = claims.get(name)
            is_ephemeral = claim is not None and claim.meta.is_owned_by("v1", "Pod")
            is_shared = claim is not None and not _SHARED_ACCESS_MODES.isdisjoint(claim.access_modes)
            if not is_ephemeral and not is_shared:
                return f"PersistentVolumeClaim {name} is not ReadWriteMany, so both pods cannot use it on two nodes"
        return ""


def is_rollout_complete(deployment: Workload) -> bool:
    """Return whether all pods of *deployment* are available and of its current template."""
    rollout, replicas = deployment.rollout, deployment.replicas
    return (
        rollout is not None
        and rollout.is_observed
        and rollout.pods == rollout.updated_pods == replicas
        and rollout.available_pods >= replicas
    )


def _is_last_replica(pod: Pod, deployment: Workload | None) -> bool:
    """Return whether nothing runs if *pod* is evicted; unknown for pods without a Deployment, except bare pods."""
    return deployment.replicas == 1 if deployment is not None else not pod.meta.owners


def _explain_rollout_wait(deployment: Workload) -> str:
    rollout = deployment.rollout
    if rollout is None or is_rollout_complete(deployment):
        return ""
    return (
        f"a rollout of Deployment {deployment.name} is not complete: {rollout.updated_pods} of {deployment.replicas} "
        f"pods are updated, {rollout.available_pods} available"
    )


def _explain_strategy(deployment: Workload, rollout: Rollout) -> str:
    if not rollout.is_rolling_update:
        return f"Deployment {deployment.name} has the strategy Recreate"
    if rollout.max_surge < 1 or rollout.max_unavailable > 0:
        return (
            f"Deployment {deployment.name} has maxSurge {rollout.max_surge} and maxUnavailable "
            f"{rollout.max_unavailable}: at least 1 and exactly 0 are necessary"
        )
    return f"Deployment {deployment.name} is paused" if rollout.is_paused else ""


def _explain_owner(pod: Pod) -> str:
    owner = find_controlling_owner(pod)
    if owner is None:
        return "the pod has no controller"
    if owner.kind == "StatefulSet":
        return f"StatefulSet {owner.name} never runs two pods of one name"
    return f"the pod belongs to {owner.kind} {owner.name}, not to a Deployment"
