"""Voluntary disruption evicts pods of one workload at most once in its cool-down."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.orchestration.command_state import build_command_state
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.metadata import OwnerReference
from shared.model.decisions.command import CommandState, DisruptionCommand, Phase
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod_workload import get_workload
from tests.support.catalogues import NOW, make_node_pool
from tests.support.disruption_fleet import (
    STAGES,
    Machine,
    decide_disruption,
    get_verdict,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

COOLDOWN = DisruptionSettings(workload_cooldown=timedelta(hours=4))
WORKLOAD = get_workload(make_web_pod("1"))
ROOMY = make_node_with_pods("z", make_web_pod("9", "100m"), cpu=16, annotations={DO_NOT_DISRUPT: "true"})


def make_candidate(name: str = "a", *types: str) -> Machine:
    return make_node_with_pods(name, make_web_pod(f"{name}-1", "1500m"), conditions=make_conditions(*STAGES, *types))


def make_command_state(phase: Phase, hours_ago: float) -> CommandState:
    """Return the state of a command that evicted the workload."""
    [command] = decide_disruption(make_fleet(make_candidate("gone"), ROOMY), COOLDOWN).commands
    state = build_command_state(command, NOW - timedelta(hours=9))
    return replace(state, phase=phase, phase_since=NOW - timedelta(hours=hours_ago))


@pytest.mark.parametrize("types", [(), ("Drifted",)], ids=["consolidation", "drift"])
@pytest.mark.parametrize(
    ("phase", "hours_ago", "goes"),
    [("DONE", 3.9, False), ("DONE", 4, True), ("DRAINING", 8, False), ("PROPOSED", 0, False)],
)
def test_workload_is_disrupted_at_most_once_in_its_cooldown(
    types: tuple[str, ...], phase: Phase, hours_ago: float, *, goes: bool
) -> None:
    cluster, state = make_fleet(make_candidate("a", *types), ROOMY), make_command_state(phase, hours_ago)
    decision = decide_disruption(cluster, COOLDOWN, command_states=(state,))
    assert bool(decision.commands) is goes
    if not goes:
        end = (
            "until 2026-11-21 12:06:00 UTC"
            if phase == "DONE"
            else f"until 4h after the end of command {state.command.command_id}"
        )
        message = f"pods of {WORKLOAD} were evicted by a recent disruption: waits {end}"
        assert get_verdict(decision, "a") == ("kept", "WorkloadCooldown", message)


def test_rolled_back_command_starts_no_cooldown() -> None:
    state = make_command_state("ROLLED_BACK", 0)
    assert decide_disruption(make_fleet(make_candidate(), ROOMY), COOLDOWN, command_states=(state,)).commands


def test_cooldown_counts_commands_of_the_same_run() -> None:
    drifted_nodes = (make_candidate("a", "Drifted"), make_candidate("b", "Drifted"))
    assert len(decide_disruption(make_fleet(*drifted_nodes, ROOMY)).commands) == 2
    decision = decide_disruption(make_fleet(*drifted_nodes, ROOMY), COOLDOWN)
    assert [sorted(command.list_node_names()) for command in decision.commands] == [["a"]]
    assert get_verdict(decision, "b")[1:] == (
        "WorkloadCooldown",
        (
            f"pods of {WORKLOAD} were evicted by a recent disruption: waits until 4h after the end of another command "
            "of this run"
        ),
    )


@pytest.mark.parametrize("drifted_nodes", ["abc", "a"], ids=["drift", "consolidation"])
def test_node_in_its_cooldown_uses_up_no_budget(drifted_nodes: str) -> None:
    """The node *b* waits because *a* is replaced; the budget of two nodes is left for *c*, with another workload."""
    candidates = [make_candidate(name, *(("Drifted",) if name in drifted_nodes else ())) for name in "abc"]
    node, claim, (pod,) = candidates[2]
    owner = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="db", uid="db", controller=True)
    candidates[2] = node, claim, (replace(pod, meta=replace(pod.meta, owners=(owner,))),)
    pool = make_node_pool(budgets=(DisruptionBudget(nodes="2"),))
    decision = decide_disruption(make_fleet(*candidates, ROOMY, pools=(pool,)), COOLDOWN)
    assert sorted(name for command in decision.commands for name in command.list_node_names()) == ["a", "c"]
    assert get_verdict(decision, "b")[:2] == ("kept", "WorkloadCooldown")


def test_empty_nodes_are_removed_during_a_cooldown() -> None:
    state = make_command_state("DONE", 0)
    decision = decide_disruption(make_fleet(make_node_with_pods("a")), COOLDOWN, command_states=(state,))
    assert summarize_commands(decision) == [("Emptiness", ["a"], [])]


def test_commands_record_their_workloads_only_with_a_cooldown() -> None:
    def get_command(settings: DisruptionSettings) -> DisruptionCommand:
        [command] = decide_disruption(make_fleet(make_candidate(), ROOMY), settings).commands
        return command

    assert get_command(DisruptionSettings()).workloads == ()
    assert get_command(COOLDOWN).workloads == (WORKLOAD,)
    assert get_command(COOLDOWN).command_id == get_command(DisruptionSettings()).command_id


@pytest.mark.parametrize(
    ("owners", "labels", "workload"),
    [
        ((("ReplicaSet", "web-5d4f8", True),), {"pod-template-hash": "5d4f8"}, "shop/Deployment/web"),
        ((("ReplicaSet", "web", True),), {}, "shop/ReplicaSet/web"),
        ((("StatefulSet", "db", True),), {}, "shop/StatefulSet/db"),
        ((("Cluster", "kafka", False), ("Job", "import", True)), {}, "shop/Job/import"),
        ((), {}, "shop/Pod/1"),
    ],
    ids=["Deployment", "ReplicaSet", "StatefulSet", "controller", "none"],
)
def test_workload_of_a_pod_is_its_controller_or_the_deployment_of_its_replica_set(
    owners: tuple[tuple[str, str, bool], ...], labels: dict[str, str], workload: str
) -> None:
    pod = make_web_pod("1", labels=labels)
    references = tuple(
        OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=name, controller=is_controller)
        for kind, name, is_controller in owners
    )
    assert get_workload(replace(pod, meta=replace(pod.meta, namespace="shop", owners=references))) == workload
