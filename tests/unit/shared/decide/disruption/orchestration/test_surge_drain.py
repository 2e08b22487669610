"""The surge drain of a command, step by step: restart once, wait, continue; or time out and keep the nodes."""

from datetime import timedelta

import pytest

from shared.decide.disruption.orchestration.command_targets import list_leaving_nodes
from shared.decide.disruption.orchestration.command_transitions import advance_command
from shared.decide.disruption.orchestration.surge_drain import build_restart
from shared.decide.disruption.pauses import PauseSettings, find_pauses
from shared.model.core import labels
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.action import DeleteObject, FollowUp, PublishEvent, RestartDeployment, TaintNode
from shared.model.decisions.command import DisruptionPause, DisruptionPauses
from shared.state.cluster_state import ClusterState
from tests.support.command_cases import (
    approve_command,
    make_command,
    make_command_state,
    make_disruption_reason,
    make_proposed_pair,
    make_replacement_claim,
)
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_node,
    make_true_conditions,
    replace_fields,
)
from tests.support.surge_cases import (
    COMPLETE,
    make_surge_cluster,
    make_surge_deployment,
    make_surge_pdb,
    make_surge_pod,
)

POD = make_surge_pod()
DELETION = make_command("a")
SWAP = make_command("a", replacements=("new",))
SURGING = make_command_state(DELETION, "SURGING")
RESTART = build_restart(SURGING)


def build_state(*pods: Case, **fields: Case) -> ClusterState:
    claim, node = make_proposed_pair("a")
    usual_fields: dict[str, Case] = {"node_claims": (claim,), "nodes": (node,)}
    return ClusterState(make_surge_cluster(*(pods or (POD,)), **(usual_fields | fields)))


def make_restarted(**rollout: Case) -> Case:
    fields = {"surge_drain": RESTART, "pods": 2, "available_pods": 1} | rollout
    return make_surge_deployment(rollout=replace_fields(COMPLETE, **fields))


def test_command_without_replacements_restarts_the_deployment_before_it_deletes_the_node() -> None:
    step = advance_command(build_state(), make_command_state(DELETION), approve_command)
    assert step.command_state.phase == "SURGING"
    [restart] = filter_actions(RestartDeployment, step.actions)
    assert (restart.namespace, restart.name, restart.resource_version) == ("shop", "web", "9")
    assert restart.restart == RESTART == f"{DELETION.command_id} 2026-11-21T11:59:30Z"
    assert not filter_actions(DeleteObject, step.actions)
    assert {event.kind for event in filter_actions(PublishEvent, step.actions)} == {"NodeClaim", "Node", "Deployment"}


def test_command_waits_for_its_replacement_before_it_restarts_the_deployment() -> None:
    claim, node = make_proposed_pair("a")
    state = make_command_state(SWAP, "LAUNCHED")
    unfit = make_replacement_claim("new", SWAP.command_id)
    waiting = advance_command(build_state(node_claims=(claim, unfit), nodes=(node,)), state, approve_command)
    assert waiting.command_state.phase == "LAUNCHED"
    fit = make_claim("new", conditions=make_true_conditions(*STAGES), annotations={labels.COMMAND: SWAP.command_id})
    ready = build_state(node_claims=(claim, fit), nodes=(node, make_node("new")))
    step = advance_command(ready, state, approve_command)
    assert step.command_state.phase == "SURGING"
    assert len(filter_actions(RestartDeployment, step.actions)) == 1


def test_command_without_pods_that_surge_continues_at_once() -> None:
    step = advance_command(build_state(pool="false"), make_command_state(DELETION), approve_command)
    assert step.command_state.phase == "INITIALIZED"


def test_restart_is_repeated_until_the_deployment_shows_it_and_then_only_awaited() -> None:
    first_step = advance_command(build_state(), SURGING, approve_command)
    assert [restart.restart for restart in filter_actions(RestartDeployment, first_step.actions)] == [RESTART]
    second_step = advance_command(build_state(deployments=(make_restarted(),)), SURGING, approve_command)
    assert not filter_actions(RestartDeployment, second_step.actions)
    assert second_step.command_state == SURGING
    [follow_up] = filter_actions(FollowUp, second_step.actions)
    assert follow_up.function == "disrupt"


def test_command_is_committed_when_no_old_pod_is_left_on_its_nodes() -> None:
    new_pod = make_surge_pod("web-def-1", template_hash="def", on="b")
    leaving = replace_fields(POD, meta=replace_fields(POD.meta, deleted_at=NOW))
    for pods in ((new_pod,), (new_pod, leaving)):
        step = advance_command(build_state(*pods, deployments=(make_restarted(),)), SURGING, approve_command)
        assert step.command_state.phase == "INITIALIZED"
        assert [action.name for action in filter_actions(DeleteObject, step.actions)] == ["a"]


def test_two_pods_of_one_deployment_cause_one_restart() -> None:
    rollout = replace_fields(COMPLETE, pods=2, updated_pods=2, available_pods=2)
    deployment = make_surge_deployment(replicas=2, rollout=rollout)
    pods = (POD, make_surge_pod("web-abc-2"))
    state = build_state(*pods, deployments=(deployment,), budgets=(make_surge_pdb(),))
    assert len(filter_actions(RestartDeployment, advance_command(state, SURGING, approve_command).actions)) == 1


def test_rollout_of_another_command_or_person_is_awaited_and_not_restarted() -> None:
    foreign_rollout = make_surge_deployment(
        rollout=replace_fields(COMPLETE, surge_drain="other", pods=2, updated_pods=1)
    )
    step = advance_command(build_state(deployments=(foreign_rollout,)), SURGING, approve_command)
    assert step.command_state.phase == "SURGING"
    assert not filter_actions(RestartDeployment, step.actions)


def test_repeated_proposal_restarts_the_deployment_again() -> None:
    repeated_state = make_command_state(DELETION, "SURGING", proposed_at=NOW - timedelta(seconds=5))
    finished = make_surge_deployment(rollout=replace_fields(COMPLETE, surge_drain=RESTART))
    step = advance_command(build_state(deployments=(finished,)), repeated_state, approve_command)
    [restart] = filter_actions(RestartDeployment, step.actions)
    assert restart.restart != RESTART


def test_deployment_is_restarted_only_on_tainted_nodes() -> None:
    claim = make_claim("a", conditions=(make_disruption_reason(), *make_true_conditions(*STAGES)))
    step = advance_command(build_state(node_claims=(claim,), nodes=(make_node("a"),)), SURGING, approve_command)
    assert not filter_actions(RestartDeployment, step.actions)
    [taint] = filter_actions(TaintNode, step.actions)
    assert DISRUPTED in taint.taints


@pytest.mark.parametrize(
    ("deadline", "minutes", "phase"),
    [
        (None, 9, "SURGING"),
        (None, 11, "ROLLED_BACK"),
        (20, 11, "SURGING"),
        (20, 21, "ROLLED_BACK"),
        (9999, 61, "ROLLED_BACK"),
    ],
)
def test_surge_drain_times_out_after_the_progress_deadline_and_at_most_an_hour(
    deadline: int | None, minutes: int, phase: str
) -> None:
    fields = {} if deadline is None else {"progress_deadline": timedelta(minutes=deadline)}
    late = make_command_state(DELETION, "SURGING", get_time_before(minutes=minutes))
    restart = {"surge_drain": build_restart(late)}
    step = advance_command(build_state(deployments=(make_restarted(**fields, **restart),)), late, approve_command)
    assert step.command_state.phase == phase
    if phase == "ROLLED_BACK":
        assert step.command_state.failures == (NOW,)
        assert step.command_state.message.startswith("surge drain timed out: waiting for new pods in place of 1 pod")
        [event] = filter_actions(PublishEvent, step.actions)
        assert (event.kind, event.name, event.reason) == ("Deployment", "web", "SurgeDrainTimedOut")


def test_surge_drain_is_rolled_back_if_a_pod_can_be_neither_replaced_nor_evicted() -> None:
    paused = make_surge_deployment(rollout=replace_fields(COMPLETE, is_paused=True))
    blocked = build_state(deployments=(paused,), budgets=(make_surge_pdb(),))
    step = advance_command(blocked, SURGING, approve_command)
    assert step.command_state.phase == "ROLLED_BACK"
    assert "surge drain does not apply: Deployment shop/web is paused" in step.command_state.message
    evictable = advance_command(build_state(deployments=(paused,)), SURGING, approve_command)
    assert evictable.command_state.phase == "INITIALIZED"


def test_drift_with_a_termination_grace_period_ignores_pods_that_cannot_be_replaced() -> None:
    paused = make_surge_deployment(rollout=replace_fields(COMPLETE, is_paused=True))
    claim, node = make_proposed_pair("a", reason="Drifted")
    drifting = make_command_state(make_command("a", reason="Drifted", method="Drift"), "SURGING")
    for grace, phase in ((timedelta(hours=1), "INITIALIZED"), (None, "ROLLED_BACK")):
        claims = (replace_fields(claim, termination_grace_period=grace),)
        state = build_state(node_claims=claims, nodes=(node,), deployments=(paused,), budgets=(make_surge_pdb(),))
        assert advance_command(state, drifting, approve_command).command_state.phase == phase


def test_pause_or_protection_rolls_a_surge_drain_back() -> None:
    pauses = DisruptionPauses(items=(DisruptionPause(message="audit", pauses_open_commands=True),))
    paused = advance_command(build_state(), SURGING, approve_command, pauses=pauses)
    assert paused.command_state.message == "disruption is paused: audit"
    claim, node = make_proposed_pair("a")
    protected_node = replace_fields(
        node, meta=replace_fields(node.meta, annotations=((labels.DO_NOT_DISRUPT, "true"),))
    )
    protected = advance_command(build_state(node_claims=(claim,), nodes=(protected_node,)), SURGING, approve_command)
    assert protected.command_state.message == "node-a is now protected from disruption"


def test_node_that_another_client_deleted_is_drained_without_a_surge_drain() -> None:
    claim, node = make_proposed_pair("a")
    deleting = replace_fields(claim, meta=replace_fields(claim.meta, deleted_at=NOW))
    step = advance_command(build_state(node_claims=(deleting,), nodes=(node,)), SURGING, approve_command)
    assert step.command_state.phase in ("INITIALIZED", "DRAINING")
    assert not filter_actions(RestartDeployment, step.actions)


def test_pods_of_surging_nodes_are_planned_as_leaving() -> None:
    assert list_leaving_nodes((SURGING,)) == {"node-a"}


def test_three_timeouts_in_a_row_pause_the_node_pool() -> None:
    failures = tuple(get_time_before(minutes=minutes) for minutes in (30, 20, 10))
    rolled_back = make_command_state(DELETION, "ROLLED_BACK", failures=failures, message="surge drain timed out")
    state = build_state()
    active_pauses, _ = find_pauses(state.snapshot, state.nodes, (rolled_back,), PauseSettings())
    assert "surge drain timed out" in active_pauses.find_pause_message(POOL.name, "Underutilized")
