"""Commands, step by step: what each run does in each phase, also after lost writes and interrupted runs."""

from datetime import timedelta

import pytest

from shared.decide.disruption.orchestration.cleanup import clean_up_commands
from shared.decide.disruption.orchestration.command_results import CommandTransition
from shared.decide.disruption.orchestration.command_state import (
    build_command_state,
    compute_command_timeout,
    with_launched_phase,
)
from shared.decide.disruption.orchestration.command_targets import (
    list_command_nodes,
    list_leaving_nodes,
    list_marked_nodes,
)
from shared.decide.disruption.orchestration.command_transitions import VALIDATION_DELAYS, advance_command
from shared.model.core import labels
from shared.model.core.metadata import Problem
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, FollowUp, PatchStatus, PublishEvent, TaintNode
from shared.model.decisions.command import ENDED_PHASES, CommandInvalidation, CommandReason, Phase, build_command
from tests.support.command_cases import (
    approve_command,
    make_command,
    make_command_context,
    make_command_state,
    make_disruption_reason,
    make_emptiness_command,
    make_proposed_pair,
    make_replacement_claim,
    make_target,
    reject_command,
)
from tests.support.lifecycle_cases import (
    NOW,
    STAGES,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    make_true_conditions,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle as keep

SWAP = make_command("a", replacements=("new",))
OPEN: tuple[Phase, ...] = ("PROPOSED", "VALIDATED", "LAUNCHED", "INITIALIZED", "DRAINING")


def get_phase_and_message(step: CommandTransition) -> tuple[str, str]:
    return step.command_state.phase, step.command_state.message


def list_deleted_claims(step: CommandTransition) -> list[tuple[str, str]]:
    return [(action.name, action.uid) for action in filter_actions(DeleteObject, step.actions)]


# A command's name


def test_command_id_does_not_depend_on_savings_message_or_target_order() -> None:
    first_command = build_command(
        reason="Empty", method="Emptiness", targets=(make_target("b"), make_target("a")), message="x"
    )
    second_command = build_command(
        reason="Empty", method="Emptiness", targets=(make_target("a"), make_target("b")), savings_usd_per_hour=1.0
    )
    assert first_command.command_id == second_command.command_id
    assert first_command.targets == second_command.targets


@pytest.mark.parametrize(
    "command",
    [
        make_command("a", replacements=("newer",)),
        make_command("a", "b", replacements=("new",)),
        make_command("a", replacements=("new",), method="MultiNode"),
        build_command(
            reason="Underutilized", method="SingleNode", targets=(replace_fields(make_target(), claim_uid="z"),)
        ),
    ],
)
def test_command_id_depends_on_targets_replacements_and_method(command: Case) -> None:
    assert command.command_id != SWAP.command_id


def test_repeated_command_gets_new_replacement_names_and_updates_its_nominations() -> None:
    command = replace_fields(
        make_command("a", replacements=("default-1a2b",)),
        nominations=(("shop/cart", "default-1a2b"), ("shop/till", "node-b")),
    )
    first, second = build_command_state(command, NOW), build_command_state(command, NOW + timedelta(minutes=5))
    [name] = [replacement.claim.name for replacement in first.command.replacements]
    assert name.startswith("default-")
    assert first.command.nominations == (("shop/cart", name), ("shop/till", "node-b"))
    assert build_command_state(command, NOW) == first
    assert second.command.command_id == first.command.command_id
    assert second.command.replacements != first.command.replacements


# PROPOSED


def test_new_command_taints_its_nodes_and_requeues_after_its_validation_delay() -> None:
    step = advance_command(
        make_command_context((make_claim(), make_node())), build_command_state(SWAP, NOW), approve_command
    )
    assert step.command_state == build_command_state(SWAP, NOW)
    assert [action.name for action in filter_actions(TaintNode, step.actions)] == ["node-a"]
    assert [action.name for action in filter_actions(PatchStatus, step.actions)] == ["a"]
    [wake] = filter_actions(FollowUp, step.actions)
    assert (wake.function, wake.after) == ("disrupt", timedelta(seconds=15))


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        (make_emptiness_command("a"), 5),
        (make_command("a"), 15),
        (make_command("a", method="MultiNode"), 15),
        (make_command("a", method="Drift", reason="Drifted"), 0),
        (make_command("a", method="StaticDrift", reason="Drifted"), 0),
    ],
)
def test_command_is_validated_after_the_delay_of_its_method(command: Case, seconds: int) -> None:
    assert VALIDATION_DELAYS.get(command.method, timedelta()) == timedelta(seconds=seconds)
    for age, decided in ((seconds, True), (seconds - 1, False)):
        since = NOW - timedelta(seconds=age)
        scene = make_command_context(make_proposed_pair("a", command.reason, since=min(since, NOW)))
        step = advance_command(scene, make_command_state(command, since=since), approve_command)
        assert (step.command_state.phase == "INITIALIZED") == decided
        if not decided and seconds:
            assert [wake.after for wake in filter_actions(FollowUp, step.actions)] == [timedelta(seconds=1)]


@pytest.mark.parametrize(
    "half",
    [
        (make_claim(conditions=(make_disruption_reason(), *make_true_conditions(*STAGES))), make_node()),
        (make_claim(), make_proposed_pair()[1]),
        make_proposed_pair(reason="Empty"),
    ],
)
def test_validation_delay_restarts_when_a_taint_or_condition_is_missing(half: Case) -> None:
    step = advance_command(make_command_context(half), make_command_state(SWAP), approve_command)
    assert step.command_state == make_command_state(SWAP)
    assert filter_actions(PatchStatus, step.actions)
    assert not filter_actions(CreateNodeClaim, step.actions)


@pytest.mark.parametrize(("method", "seconds"), [("Drift", 1), ("SingleNode", 15)])
def test_stale_list_after_tainting_does_not_cause_immediate_requeues(method: Case, seconds: int) -> None:
    step = advance_command(
        make_command_context((make_claim(), make_node())),
        make_command_state(make_command("a", method=method)),
        approve_command,
    )
    assert [wake.after for wake in filter_actions(FollowUp, step.actions)] == [timedelta(seconds=seconds)]


def test_validation_delay_counts_from_the_latest_disruption_condition() -> None:
    scene = make_command_context(make_proposed_pair("a"), make_proposed_pair("b", since=get_time_before(seconds=4)))
    step = advance_command(scene, make_command_state(make_command("a", "b")), approve_command)
    assert step.command_state.phase == "PROPOSED"
    assert [wake.after for wake in filter_actions(FollowUp, step.actions)] == [timedelta(seconds=11)]


def test_disruption_condition_in_the_future_delays_validation() -> None:
    step = advance_command(
        make_command_context(make_proposed_pair(since=NOW + timedelta(minutes=1))),
        make_command_state(SWAP, since=NOW),
        approve_command,
    )
    assert step.command_state.phase == "PROPOSED"
    assert not filter_actions(CreateNodeClaim, step.actions)


def test_valid_command_creates_its_replacements() -> None:
    step = advance_command(make_command_context(make_proposed_pair()), make_command_state(SWAP), approve_command)
    assert get_phase_and_message(step) == ("VALIDATED", "the command is still valid")
    [create_action] = filter_actions(CreateNodeClaim, step.actions)
    assert create_action.claim.meta.get_annotation(labels.COMMAND) == SWAP.command_id
    assert not filter_actions(DeleteObject, step.actions)
    assert [action.function for action in filter_actions(FollowUp, step.actions)] == ["provision"]
    assert {action.reason for action in filter_actions(PublishEvent, step.actions)} == {"DisruptionLaunching"}


def test_valid_command_without_replacements_deletes_its_node_claims_immediately() -> None:
    step = advance_command(
        make_command_context(make_proposed_pair("a"), make_proposed_pair("b")),
        make_command_state(make_command("a", "b")),
        approve_command,
    )
    assert get_phase_and_message(step) == ("INITIALIZED", "its NodeClaims are being deleted")
    assert list_deleted_claims(step) == [("a", "uid-a"), ("b", "uid-b")]
    assert [action.function for action in filter_actions(FollowUp, step.actions)] == ["lifecycle"]
    assert {action.reason for action in filter_actions(PublishEvent, step.actions)} == {"DisruptionTerminating"}


def test_invalid_command_is_rolled_back() -> None:
    step = advance_command(make_command_context(make_proposed_pair()), make_command_state(SWAP), reject_command)
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a has a new pod")
    assert step.actions == ()


def test_emptiness_command_drops_a_node_with_new_pods_and_continues_with_the_others() -> None:
    command = make_emptiness_command("a", "b")
    scene = make_command_context(make_proposed_pair("a", "Empty"), make_proposed_pair("b", "Empty"))
    step = advance_command(scene, make_command_state(command), reject_command)
    assert step.command_state.phase == "PROPOSED"
    assert [command_target.node for command_target in step.command_state.command.targets] == ["node-b"]
    assert step.command_state.command.command_id == command.command_id
    assert [action.after for action in filter_actions(FollowUp, step.actions)] == [timedelta()]
    assert {action.name for action in filter_actions(TaintNode, clean_up_commands(scene, [step.command_state]))} == {
        "node-a"
    }
    assert list_deleted_claims(advance_command(scene, step.command_state, approve_command)) == [("b", "uid-b")]


def test_invalidation_without_nodes_rolls_back_the_whole_command() -> None:
    def reject_command(*_: object) -> CommandInvalidation:
        return CommandInvalidation(message="no budget")

    step = advance_command(
        make_command_context(make_proposed_pair("a", "Empty")),
        make_command_state(make_emptiness_command("a")),
        reject_command,
    )
    assert get_phase_and_message(step) == ("ROLLED_BACK", "no budget")


@pytest.mark.parametrize(
    "node_pairs",
    [
        (),
        ((make_claim(deleted=NOW), make_node(deleted=NOW)),),
        ((replace_fields(make_claim(), meta=replace_fields(make_claim().meta, uid="z")), make_node()),),
    ],
)
def test_proposed_command_is_rolled_back_when_its_node_was_deleted_or_replaced(node_pairs: Case) -> None:
    step = advance_command(make_command_context(*node_pairs), make_command_state(SWAP), approve_command)
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a was deleted by another client")


def test_proposed_command_is_rolled_back_when_its_nodes_cannot_be_tainted_in_time() -> None:
    step = advance_command(
        make_command_context((make_claim(), make_node())),
        make_command_state(SWAP, since=get_time_before(minutes=11)),
        approve_command,
    )
    assert get_phase_and_message(step) == ("ROLLED_BACK", "its nodes could not be tainted in time")


# VALIDATED


def test_validated_command_whose_replacements_were_not_created_is_validated_again() -> None:
    scene = make_command_context(make_proposed_pair())
    assert filter_actions(
        CreateNodeClaim, advance_command(scene, make_command_state(SWAP, "VALIDATED"), approve_command).actions
    )
    step = advance_command(scene, make_command_state(SWAP, "VALIDATED"), reject_command)
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a has a new pod")


def test_validated_command_creates_its_missing_replacements() -> None:
    command = make_command("a", replacements=("new", "newer"))
    step = advance_command(
        make_command_context(make_proposed_pair(), (make_replacement_claim(), None)),
        make_command_state(command, "VALIDATED"),
        reject_command,
    )
    assert step.command_state.phase == "VALIDATED"
    assert [action.claim.name for action in filter_actions(CreateNodeClaim, step.actions)] == ["newer"]


def test_validated_command_with_all_replacements_is_launched() -> None:
    step = advance_command(
        make_command_context(make_proposed_pair(), (make_replacement_claim(), None)),
        make_command_state(SWAP, "VALIDATED"),
        reject_command,
    )
    assert step == CommandTransition(command_state=with_launched_phase(make_command_state(SWAP, "VALIDATED"), NOW))
    assert get_phase_and_message(step) == ("LAUNCHED", "waiting for 1 replacement")


def test_validated_command_is_rolled_back_when_its_node_was_deleted() -> None:
    step = advance_command(
        make_command_context((make_claim(deleted=NOW), make_node())),
        make_command_state(SWAP, "VALIDATED"),
        approve_command,
    )
    assert step.command_state.phase == "ROLLED_BACK"
    assert step.actions == ()


# LAUNCHED


def list_events(step: CommandTransition) -> list[tuple[str, str, str]]:
    """Return the events of *step*, and check that it has no other actions."""
    assert all(isinstance(action, PublishEvent) for action in step.actions)
    return [(event.kind, event.reason, event.message) for event in filter_actions(PublishEvent, step.actions)]


def test_node_claims_are_deleted_only_after_every_replacement_was_initialized() -> None:
    command = make_command("a", replacements=("new", "newer"))
    half = make_command_context(
        make_proposed_pair(),
        (make_replacement_claim(fit=True), make_node("new")),
        (make_replacement_claim("newer"), None),
    )
    step = advance_command(half, make_command_state(command, "LAUNCHED"), approve_command)
    assert (step.command_state.phase, step.command_state.initialized) == ("LAUNCHED", ("new",))
    assert list_events(step) == [
        (kind, "DisruptionWaitingReadiness", "Waiting for 1 replacement to be initialized: newer")
        for kind in ("NodeClaim", "Node")
    ]
    second_cluster = make_command_context(
        make_proposed_pair(), (make_replacement_claim("newer", fit=True), make_node("newer"))
    )
    step = advance_command(second_cluster, step.command_state, approve_command)
    assert (step.command_state.phase, step.command_state.initialized) == ("INITIALIZED", ("new", "newer"))
    assert list_deleted_claims(step) == [("a", "uid-a")]


@pytest.mark.parametrize(
    ("objects", "expected_message"),
    [
        ((), "replacement new was deleted"),
        (((make_replacement_claim(deleted=NOW), None),), "replacement new is being deleted"),
    ],
)
def test_command_is_rolled_back_when_a_replacement_was_deleted(objects: Case, expected_message: str) -> None:
    step = advance_command(
        make_command_context(make_proposed_pair(), *objects), make_command_state(SWAP, "LAUNCHED"), approve_command
    )
    assert (*get_phase_and_message(step), step.command_state.failures) == ("ROLLED_BACK", expected_message, (NOW,))


def test_unreadable_replacement_does_not_count_as_deleted() -> None:
    unread = (Problem(kind="NodeClaim", name="new", message="odd"),)
    step = advance_command(
        make_command_context(make_proposed_pair(), problems=unread),
        make_command_state(SWAP, "LAUNCHED"),
        approve_command,
    )
    assert step.command_state == make_command_state(SWAP, "LAUNCHED")
    assert {reason for _, reason, _ in list_events(step)} == {"DisruptionWaitingReadiness"}


def test_command_is_rolled_back_when_a_replacement_is_not_initialized_in_time() -> None:
    scene = make_command_context(make_proposed_pair(), (make_replacement_claim(), None))
    assert (
        advance_command(
            scene, make_command_state(SWAP, "LAUNCHED", since=get_time_before(minutes=10)), approve_command
        ).command_state.phase
        == "LAUNCHED"
    )
    step = advance_command(
        scene, make_command_state(SWAP, "LAUNCHED", since=get_time_before(minutes=10, seconds=1)), approve_command
    )
    assert get_phase_and_message(step) == ("ROLLED_BACK", "replacement new was not initialized in time")


def test_replacement_initialized_after_the_timeout_still_counts() -> None:
    scene = make_command_context(make_proposed_pair(), (make_replacement_claim(fit=True), make_node("new")))
    assert (
        advance_command(
            scene, make_command_state(SWAP, "LAUNCHED", since=get_time_before(hours=1)), approve_command
        ).command_state.phase
        == "INITIALIZED"
    )


@pytest.mark.parametrize(("nodes", "minutes"), [(1, 10), (7500, 10), (15000, 20), (100_000, 60)])
def test_command_timeout_grows_with_the_number_of_disrupted_nodes(nodes: int, minutes: int) -> None:
    states = [
        make_command_state(replace_fields(SWAP, targets=(make_target(),) * nodes)),
        make_command_state(SWAP, "DONE"),
    ]
    assert compute_command_timeout(states) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("reason", "phase"), [("Underutilized", "ROLLED_BACK"), ("Empty", "ROLLED_BACK"), ("Drifted", "INITIALIZED")]
)
def test_scale_down_disabled_rolls_a_consolidation_back(reason: CommandReason, phase: str) -> None:
    node_claim, node = make_proposed_pair()
    guarded_node = replace_fields(node, meta=make_node(annotations={labels.SCALE_DOWN_DISABLED: "true"}).meta)
    context = make_command_context((node_claim, guarded_node), (make_replacement_claim(fit=True), make_node("new")))
    command = replace_fields(SWAP, reason=reason)
    step = advance_command(context, make_command_state(command, "LAUNCHED"), approve_command)
    assert step.command_state.phase == phase


def test_launched_command_is_rolled_back_when_its_node_becomes_protected() -> None:
    protected = {labels.DO_NOT_DISRUPT: "true"}
    fit = (make_replacement_claim(fit=True), make_node("new"))
    node_claim, node = make_proposed_pair()
    guarded = replace_fields(node, meta=make_node(annotations=protected).meta)
    step = advance_command(
        make_command_context((node_claim, guarded), fit), make_command_state(SWAP, "LAUNCHED"), approve_command
    )
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a is now protected from disruption")
    scene = make_command_context((node_claim, node), fit, pods=(make_pod(annotations=protected),))
    assert (
        advance_command(scene, make_command_state(SWAP, "LAUNCHED"), approve_command).command_state.phase
        == "ROLLED_BACK"
    )


def test_drift_command_with_a_termination_grace_period_ignores_do_not_disrupt_pods() -> None:
    drift = make_command("a", reason="Drifted", method="Drift", replacements=("new",))
    node_claim, node = make_proposed_pair(reason="Drifted")
    graced = replace_fields(node_claim, termination_grace_period=timedelta(hours=1))
    pods = (make_pod(annotations={labels.DO_NOT_DISRUPT: "true"}),)
    scene = make_command_context((graced, node), (make_replacement_claim(fit=True), make_node("new")), pods=pods)
    assert (
        advance_command(scene, make_command_state(drift, "LAUNCHED"), approve_command).command_state.phase
        == "INITIALIZED"
    )


def test_launched_command_ends_when_its_node_was_deleted_by_another_client() -> None:
    step = advance_command(
        make_command_context((make_replacement_claim(), None)), make_command_state(SWAP, "LAUNCHED"), approve_command
    )
    assert step == CommandTransition(
        command_state=replace_fields(
            make_command_state(SWAP, "DONE", since=NOW, proposed_at=get_time_before(seconds=30)),
            message=step.command_state.message,
        )
    )
    going = make_command_context((make_claim(deleted=NOW), make_node(deleted=NOW)), (make_replacement_claim(), None))
    assert (
        advance_command(going, make_command_state(SWAP, "LAUNCHED"), approve_command).command_state.phase == "DRAINING"
    )


# INITIALIZED, DRAINING, the end


def test_initialized_command_deletes_its_remaining_node_claims() -> None:
    scene = make_command_context((make_claim("a", deleted=NOW), make_node("a")), make_proposed_pair("b"))
    step = advance_command(scene, make_command_state(make_command("a", "b"), "INITIALIZED"), reject_command)
    assert step.command_state.phase == "INITIALIZED"
    assert list_deleted_claims(step) == [("b", "uid-b")]


def test_stale_list_after_deletion_does_not_cause_immediate_requeues() -> None:
    alone = make_command("a", method="Emptiness")
    first = advance_command(
        make_command_context(make_proposed_pair()),
        make_command_state(alone, since=get_time_before(minutes=1)),
        approve_command,
    )
    assert first.command_state.phase == "INITIALIZED"
    second = advance_command(make_command_context(make_proposed_pair()), first.command_state, approve_command)
    assert list_deleted_claims(first) == list_deleted_claims(second) == [("a", "uid-a")]
    waits = [wake.after for step in (first, second) for wake in filter_actions(FollowUp, step.actions)]
    assert waits == [timedelta(), timedelta(seconds=1)]


def test_command_is_done_when_its_nodes_are_terminated() -> None:
    going = make_command_context((make_claim(deleted=NOW), make_node(deleted=NOW)))
    draining = advance_command(going, make_command_state(SWAP, "INITIALIZED"), approve_command)
    assert draining == CommandTransition(command_state=draining.command_state)
    assert get_phase_and_message(draining) == ("DRAINING", "its nodes are drained")
    assert advance_command(going, draining.command_state, approve_command) == draining
    assert get_phase_and_message(advance_command(make_command_context(), draining.command_state, approve_command)) == (
        "DONE",
        "its nodes are terminated",
    )


def test_unreadable_node_claim_does_not_count_as_terminated() -> None:
    unread = (Problem(kind="NodeClaim", name="a", message="odd"),)
    step = advance_command(make_command_context(problems=unread), make_command_state(SWAP, "DRAINING"), approve_command)
    assert step.command_state.phase == "DRAINING"


@pytest.mark.parametrize("phase", sorted(ENDED_PHASES))
def test_ended_command_is_not_changed(phase: Phase) -> None:
    assert advance_command(
        make_command_context(make_proposed_pair()), make_command_state(SWAP, phase), reject_command
    ) == CommandTransition(command_state=make_command_state(SWAP, phase))


@pytest.mark.parametrize("phase", OPEN)
def test_command_is_not_changed_while_the_node_claim_crd_is_not_served(phase: Phase) -> None:
    blind = (Problem(kind="CustomResourceDefinition", name="nodeclaims.karpenter.sh", message="not served"),)
    scene = make_command_context(problems=blind)
    assert advance_command(scene, make_command_state(SWAP, phase), reject_command) == CommandTransition(
        command_state=make_command_state(SWAP, phase)
    )
    assert clean_up_commands(scene, [make_command_state(SWAP, "ROLLED_BACK")]) == ()


# Cleanup


def test_disruption_taints_and_conditions_without_an_open_command_are_removed() -> None:
    scene = make_command_context(
        make_proposed_pair("a"),
        make_proposed_pair("b", "Empty"),
        make_proposed_pair("c", "Drifted"),
        (make_claim("d"), make_node("d")),
    )
    actions = clean_up_commands(
        scene, [make_command_state(make_command("a")), make_command_state(make_emptiness_command("b"), "ROLLED_BACK")]
    )
    assert [(action.name, action.taints) for action in filter_actions(TaintNode, actions)] == [
        ("node-b", ()),
        ("node-c", ()),
    ]
    assert [action.name for action in filter_actions(PatchStatus, actions)] == ["b", "c"]
    assert all("DisruptionReason" not in action.status for action in filter_actions(PatchStatus, actions))


def test_taint_of_a_recreated_node_claim_with_the_same_name_is_removed() -> None:
    node_claim, node = make_proposed_pair()
    successor = replace_fields(node_claim, meta=replace_fields(node_claim.meta, uid="z"))
    assert filter_actions(
        TaintNode, clean_up_commands(make_command_context((successor, node)), [make_command_state(SWAP)])
    )


def test_deleting_node_keeps_its_disruption_taint() -> None:
    node_claim, node = make_proposed_pair()
    deleted_claim = replace_fields(node_claim, meta=replace_fields(node_claim.meta, deleted_at=NOW))
    assert clean_up_commands(make_command_context((deleted_claim, node)), []) == ()


USED_REPLACEMENTS = {
    "initialized": ((make_replacement_claim(command_id=SWAP.command_id, fit=True), make_node("new")), ()),
    "runs a pod": ((make_replacement_claim(command_id=SWAP.command_id), make_node("new")), (make_pod(on="new"),)),
    "being deleted": ((make_replacement_claim(command_id=SWAP.command_id, deleted=NOW), None), ()),
    "of another command": ((make_replacement_claim(command_id="another"), None), ()),
}


def test_unused_replacement_of_a_rolled_back_command_is_deleted() -> None:
    past = make_command_state(SWAP, "ROLLED_BACK")
    unused = make_command_context(
        (make_replacement_claim(command_id=SWAP.command_id), None), (make_claim("x"), make_node("x"))
    )
    assert [
        (action.name, action.uid) for action in filter_actions(DeleteObject, clean_up_commands(unused, [past]))
    ] == [("new", "uid-new")]
    assert clean_up_commands(make_command_context(), [past]) == ()
    assert clean_up_commands(unused, [replace_fields(past, phase_since=get_time_before(hours=1))]) == ()
    assert clean_up_commands(unused, [make_command_state(SWAP, "DONE"), make_command_state(SWAP, "LAUNCHED")]) == ()
    daemon = make_command_context(
        (make_replacement_claim(command_id=SWAP.command_id), make_node("new")), pods=(make_pod(on="new", daemon=True),)
    )
    assert filter_actions(DeleteObject, clean_up_commands(daemon, [past]))


@pytest.mark.parametrize("use_case", USED_REPLACEMENTS)
def test_used_replacement_of_a_rolled_back_command_is_kept(use_case: str) -> None:
    machine, pods = USED_REPLACEMENTS[use_case]
    assert not filter_actions(
        DeleteObject,
        clean_up_commands(make_command_context(machine, pods=pods), [make_command_state(SWAP, "ROLLED_BACK")]),
    )


def test_replacement_nominated_for_pods_is_kept() -> None:
    annotations = {labels.COMMAND: SWAP.command_id, labels.NOMINATED_UNTIL: "2026-11-21T12:00:01Z"}
    expected = make_claim("new", conditions=make_true_conditions("Launched"), annotations=annotations)
    assert not filter_actions(
        DeleteObject,
        clean_up_commands(make_command_context((expected, None)), [make_command_state(SWAP, "ROLLED_BACK")]),
    )


# What other controllers see


def test_nodes_of_open_commands_are_reserved_and_counted_as_leaving_after_launch() -> None:
    names = ("a", "b", "c", "d", "e", "f", "g")
    all_phases = (*OPEN, *sorted(ENDED_PHASES))
    command_states = [
        make_command_state(make_command(name), phase) for name, phase in zip(names, all_phases, strict=True)
    ]
    assert list_command_nodes(command_states) == {"node-a", "node-b", "node-c", "node-d", "node-e"}
    assert list_leaving_nodes(command_states) == {"node-c", "node-d", "node-e"}


def test_nodes_with_a_disruption_taint_or_condition_are_listed() -> None:
    tainted = make_node("b", going=True)
    scene = make_command_context(
        make_proposed_pair("a"),
        (make_claim("b"), tainted),
        (make_claim("c"), make_node("c")),
        (make_claim("d", deleted=NOW), make_proposed_pair("d")[1]),
    )
    assert list_marked_nodes(scene) == {"node-a", "node-b"}


def list_woken_functions(node_claim: Case, node: Case) -> list[str]:
    nodes = () if node is None else (node,)
    return [
        action.function
        for action in filter_actions(FollowUp, keep(make_cluster(node_claims=(node_claim,), nodes=nodes)))
    ]


def test_disruption_is_requeued_when_a_replacement_is_initialized_or_deleted() -> None:
    annotations = {labels.COMMAND: "x"}
    registered_claim = make_claim(conditions=make_true_conditions("Launched", "Registered"), annotations=annotations)
    ready = make_node(fit=False, extra={labels.REGISTERED: "true"})
    assert "disrupt" in list_woken_functions(registered_claim, ready)
    assert "disrupt" not in list_woken_functions(
        replace_fields(registered_claim, meta=replace_fields(registered_claim.meta, annotations=())), ready
    )
    assert "disrupt" not in list_woken_functions(make_claim(annotations=annotations), make_node())
    failed = make_claim(conditions=make_true_conditions("Launched"), annotations=annotations, deleted=NOW)
    assert "disrupt" in list_woken_functions(failed, None)
    assert "disrupt" not in list_woken_functions(
        make_claim(conditions=make_true_conditions("Launched"), deleted=NOW), None
    )
    assert "disrupt" not in list_woken_functions(make_claim(annotations=annotations, deleted=NOW), make_node())
