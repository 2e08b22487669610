"""Which pods a rollout of their Deployment replaces before their node drains, and why others are evicted."""

from datetime import timedelta

import pytest

from shared.decide.disruption.candidates import find_blocking_pod
from shared.decide.disruption.input_problems import find_disruption_problems
from shared.model.core.labels import SURGE_DRAIN, SURGE_DRAIN_RESTART
from shared.model.core.metadata import ObjectMeta, OwnerReference, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.volumes import VolumeClaim
from shared.model.kubernetes.workloads import Rollout
from shared.state.cluster_state import ClusterState
from shared.state.surge_drain import Surge
from tests.support.lifecycle_cases import NOW, Case, make_pod, replace_fields
from tests.support.surge_cases import (
    COMPLETE,
    make_surge_cluster,
    make_surge_deployment,
    make_surge_pdb,
    make_surge_pod,
)

POD = make_surge_pod()


def find_surge(pod: Pod = POD, *, restart: str = "", **cluster: Case) -> Surge | None:
    return ClusterState(make_surge_cluster(pod, **cluster)).surge_drains.find_surge(pod, restart)


def get_refusal(pod: Pod = POD, **cluster: Case) -> str:
    surge = find_surge(pod, **cluster)
    assert surge is not None
    return surge.refusal


def own(kind: str, name: str, pod: Pod = POD) -> Pod:
    owners = (OwnerReference(api_version="apps/v1", kind=kind, name=name, uid="o", controller=True),) if kind else ()
    return replace_fields(pod, meta=replace_fields(pod.meta, owners=owners))


def test_last_replica_of_a_deployment_is_replaced_by_a_rollout() -> None:
    surge = find_surge()
    assert surge is not None
    assert (surge.refusal, surge.deployment and surge.deployment.name) == ("", "shop/web")


@pytest.mark.parametrize(
    ("pool", "deployment", "is_requested"),
    [("", "", False), ("true", "", True), ("false", "", False), ("true", "false", False), ("", "true", True)],
)
def test_deployment_annotation_takes_precedence_over_the_node_pool(
    pool: str, deployment: str, *, is_requested: bool
) -> None:
    annotations = {SURGE_DRAIN: deployment} if deployment else {}
    surge = find_surge(pool=pool, deployments=(make_surge_deployment(annotations=annotations),))
    assert (surge is not None) is is_requested


def test_nothing_surges_without_the_setting() -> None:
    assert find_surge(has_surge_drain=False) is None
    state = ClusterState(make_surge_cluster(POD, has_surge_drain=False))
    assert not state.surge_drains.can_surge(POD)
    assert not state.surge_drains.has_successor(POD)
    assert state.surge_drains.list_problems() == ()
    assert not {"_deployments", "_pool_by_node", "_restarts_with_pods"} & vars(state.surge_drains).keys()


@pytest.mark.parametrize(("allowed", "needs_surge"), [(0, True), (1, False)])
def test_one_of_several_replicas_surges_only_if_its_pdb_refuses_the_eviction(
    allowed: int, *, needs_surge: bool
) -> None:
    rollout = replace_fields(COMPLETE, pods=3, updated_pods=3, available_pods=3)
    deployment = make_surge_deployment(replicas=3, rollout=rollout)
    surge = find_surge(deployments=(deployment,), budgets=(make_surge_pdb(allowed=allowed),))
    assert (surge is not None) is needs_surge


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"is_rolling_update": False}, "Deployment shop/web has the strategy Recreate"),
        ({"max_surge": 0}, "has maxSurge 0 and maxUnavailable 0: at least 1 and exactly 0 are necessary"),
        ({"max_unavailable": 1}, "has maxSurge 1 and maxUnavailable 1"),
        ({"is_paused": True}, "Deployment shop/web is paused"),
    ],
)
def test_deployment_that_cannot_surge_is_explained(fields: dict[str, Case], refusal: str) -> None:
    deployment = make_surge_deployment(rollout=replace_fields(COMPLETE, **fields))
    surge = find_surge(deployments=(deployment,))
    assert surge is not None
    assert refusal in surge.refusal
    assert not surge.is_temporary


@pytest.mark.parametrize(
    ("pod", "refusal"),
    [
        (own("StatefulSet", "db"), "StatefulSet db never runs two pods of one name"),
        (own("Job", "night"), "the pod belongs to Job night, not to a Deployment"),
        (own("ReplicaSet", "alone"), "the pod belongs to ReplicaSet alone, not to a Deployment"),
        (own("", ""), "the pod has no controller"),
    ],
)
def test_pod_without_a_deployment_is_explained_if_its_pdb_blocks_it(pod: Pod, refusal: str) -> None:
    assert get_refusal(pod, budgets=(make_surge_pdb(),)) == refusal
    state = ClusterState(make_surge_cluster(pod, budgets=(make_surge_pdb(),)))
    objection = find_blocking_pod((pod,), state.pdb_limits, NOW, state.surge_drains)
    assert objection is not None
    assert objection[1].endswith(f"(0 allowed); surge drain does not apply: {refusal}")


def test_pod_with_a_host_port_is_not_started_twice() -> None:
    spec = PodSpec(
        requests=parse_resources({"cpu": 1}), host_ports=(HostPort(port=8080, protocol="TCP", ip="10.0.0.1"),)
    )
    assert get_refusal(replace_fields(POD, spec=spec)) == "both pods would need the host port 8080"


@pytest.mark.parametrize(
    ("modes", "owner", "is_refused"),
    [
        (("ReadWriteOnce",), "", True),
        ((), "", True),
        (("ReadWriteMany", "ReadWriteOnce"), "", False),
        (("ReadWriteOnce",), "Pod", False),
    ],
)
def test_volume_must_be_usable_on_two_nodes_or_belong_to_the_pod(
    modes: tuple[str, ...], owner: str, *, is_refused: bool
) -> None:
    owners = (OwnerReference(api_version="v1", kind=owner, name="web", uid="w"),) if owner else ()
    claim = VolumeClaim(meta=ObjectMeta(name="data", namespace="shop", owners=owners), access_modes=modes)
    pod = replace_fields(POD, spec=PodSpec(volume_claims=("data",)))
    assert bool(get_refusal(pod, volume_claims=(claim,))) is is_refused


@pytest.mark.parametrize(
    "fields",
    [
        {"is_observed": False},
        {"pods": 2},
        {"updated_pods": 0},
        {"available_pods": 0},
    ],
)
def test_rollout_that_is_not_complete_keeps_the_node_for_now(fields: dict[str, Case]) -> None:
    deployment = make_surge_deployment(rollout=replace_fields(COMPLETE, **fields))
    state = ClusterState(make_surge_cluster(POD, deployments=(deployment,)))
    surge = state.surge_drains.find_surge(POD)
    assert surge is not None
    assert surge.is_temporary
    objection = find_blocking_pod((POD,), state.pdb_limits, NOW, state.surge_drains)
    assert objection is not None
    assert objection[1].startswith("surge drain of pod shop/web-abc-1 waits: a rollout of Deployment shop/web is not")


def test_own_rollout_is_no_reason_to_wait_and_keeps_all_its_pods() -> None:
    rollout = replace_fields(COMPLETE, pods=4, available_pods=4, updated_pods=1, surge_drain="me")
    deployment = make_surge_deployment(replicas=3, rollout=rollout)
    assert find_surge(deployments=(deployment,), restart="other") is None
    surge = find_surge(deployments=(deployment,), restart="me")
    assert surge is not None
    assert surge.refusal == ""


def test_pdb_does_not_block_a_pod_that_a_rollout_replaces() -> None:
    state = ClusterState(make_surge_cluster(POD, budgets=(make_surge_pdb(),)))
    assert find_blocking_pod((POD,), state.pdb_limits, NOW, state.surge_drains) is None
    assert find_blocking_pod((POD,), state.pdb_limits, NOW) is not None


def test_do_not_disrupt_protects_a_pod_from_a_surge_drain() -> None:
    pod = make_surge_pod(annotations={"karpenter.sh/do-not-disrupt": "true"})
    state = ClusterState(make_surge_cluster(pod))
    assert state.surge_drains.find_surge(pod) is None
    assert find_blocking_pod((pod,), state.pdb_limits, NOW, state.surge_drains) is not None


def test_old_pod_is_not_planned_again_once_its_successor_exists() -> None:
    successor = make_surge_pod("web-def-1", template_hash="def", on="", annotations={SURGE_DRAIN_RESTART: "me"})
    deployment = make_surge_deployment(rollout=replace_fields(COMPLETE, surge_drain="me", updated_pods=0))
    drains = ClusterState(make_surge_cluster(POD, successor, deployments=(deployment,))).surge_drains
    assert (drains.has_successor(POD), drains.has_successor(successor)) == (True, False)
    ended = replace_fields(successor, phase="Failed")
    assert not ClusterState(make_surge_cluster(POD, ended, deployments=(deployment,))).surge_drains.has_successor(POD)


@pytest.mark.parametrize(
    "change",
    [{"labels": build_pairs({"app": "web", "pod-template-hash": "xyz"})}, {"labels": (("app", "other"),)}],
)
def test_deployment_is_found_by_template_hash_and_selector_only(change: dict[str, Case]) -> None:
    pod = replace_fields(POD, meta=replace_fields(POD.meta, **change))
    assert ClusterState(make_surge_cluster(pod)).surge_drains.find_deployment(pod) is None


def test_invalid_annotation_of_a_deployment_is_reported_and_has_no_effect() -> None:
    deployment = make_surge_deployment(annotations={SURGE_DRAIN: "yes"})
    state = ClusterState(make_surge_cluster(POD, pool="", deployments=(deployment,)))
    assert state.surge_drains.find_surge(POD) is None
    [problem] = find_disruption_problems(state)
    assert (problem.kind, problem.name) == ("Deployment", "shop/web")
    assert "'yes' has no effect: write true or false" in problem.message


def test_pod_of_another_kind_is_not_waited_for() -> None:
    assert find_surge(make_pod("cart", daemon=True)) is None


def test_default_progress_deadline_is_ten_minutes() -> None:
    assert Rollout().progress_deadline == timedelta(minutes=10)
