"""Commands, step by step: what each run does in each phase, also after lost writes and interrupted runs."""

from datetime import timedelta

import pytest

from shared.decide.disruption.orchestration.cleanup import clean_up_commands
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
from shared.decide.disruption.orchestration.command_transitions import (
    VALIDATION_DELAYS,
    CommandTransition,
    advance_command,
)
from shared.model.core import labels
from shared.model.core.metadata import Problem
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, FollowUp, PatchStatus, PublishEvent, TaintNode
from shared.model.decisions.command import ENDED_PHASES, CommandInvalidation, Phase, build_command
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


def test_the_same_decision_is_the_same_command_whatever_it_saves_or_says() -> None:
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
def test_another_decision_is_another_command(command: Case) -> None:
    assert command.command_id != SWAP.command_id


def test_what_comes_again_has_other_replacements_and_knows_them_by_their_names() -> None:
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


def test_a_new_command_marks_its_nodes_and_is_looked_at_again_after_the_delay_of_its_method() -> None:
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
def test_it_is_decided_when_it_has_stood_so_long_and_not_before(command: Case, seconds: int) -> None:
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
def test_where_a_mark_was_lost_time_begins_again(half: Case) -> None:
    step = advance_command(make_command_context(half), make_command_state(SWAP), approve_command)
    assert step.command_state == make_command_state(SWAP)
    assert filter_actions(PatchStatus, step.actions)
    assert not filter_actions(CreateNodeClaim, step.actions)


@pytest.mark.parametrize(("method", "seconds"), [("Drift", 1), ("SingleNode", 15)])
def test_a_list_that_lags_behind_the_marks_keeps_nobody_busy(method: Case, seconds: int) -> None:
    step = advance_command(
        make_command_context((make_claim(), make_node())),
        make_command_state(make_command("a", method=method)),
        approve_command,
    )
    assert [wake.after for wake in filter_actions(FollowUp, step.actions)] == [timedelta(seconds=seconds)]


def test_time_counts_from_the_last_of_the_marks() -> None:
    scene = make_command_context(make_proposed_pair("a"), make_proposed_pair("b", since=get_time_before(seconds=4)))
    step = advance_command(scene, make_command_state(make_command("a", "b")), approve_command)
    assert step.command_state.phase == "PROPOSED"
    assert [wake.after for wake in filter_actions(FollowUp, step.actions)] == [timedelta(seconds=11)]


def test_a_clock_that_was_ahead_is_waited_for() -> None:
    step = advance_command(
        make_command_context(make_proposed_pair(since=NOW + timedelta(minutes=1))),
        make_command_state(SWAP, since=NOW),
        approve_command,
    )
    assert step.command_state.phase == "PROPOSED"
    assert not filter_actions(CreateNodeClaim, step.actions)


def test_what_still_holds_asks_for_its_replacements() -> None:
    step = advance_command(make_command_context(make_proposed_pair()), make_command_state(SWAP), approve_command)
    assert get_phase_and_message(step) == ("VALIDATED", "the command is still valid")
    [create_action] = filter_actions(CreateNodeClaim, step.actions)
    assert create_action.claim.meta.get_annotation(labels.COMMAND) == SWAP.command_id
    assert not filter_actions(DeleteObject, step.actions)
    assert [action.function for action in filter_actions(FollowUp, step.actions)] == ["provision"]
    assert {action.reason for action in filter_actions(PublishEvent, step.actions)} == {"DisruptionLaunching"}


def test_without_replacements_it_is_decided_and_done_at_once() -> None:
    step = advance_command(
        make_command_context(make_proposed_pair("a"), make_proposed_pair("b")),
        make_command_state(make_command("a", "b")),
        approve_command,
    )
    assert get_phase_and_message(step) == ("INITIALIZED", "its NodeClaims are being deleted")
    assert list_deleted_claims(step) == [("a", "uid-a"), ("b", "uid-b")]
    assert [action.function for action in filter_actions(FollowUp, step.actions)] == ["lifecycle"]
    assert {action.reason for action in filter_actions(PublishEvent, step.actions)} == {"DisruptionTerminating"}


def test_what_does_not_hold_any_more_is_rolled_back() -> None:
    step = advance_command(make_command_context(make_proposed_pair()), make_command_state(SWAP), reject_command)
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a has a new pod")
    assert step.actions == ()


def test_an_empty_node_that_filled_up_stays_and_the_others_go() -> None:
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


def test_an_answer_about_no_node_is_about_all() -> None:
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
def test_a_proposal_whose_node_went_by_itself_is_rolled_back(node_pairs: Case) -> None:
    step = advance_command(make_command_context(*node_pairs), make_command_state(SWAP), approve_command)
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a was deleted by another client")


def test_a_proposal_that_cannot_be_made_is_given_up() -> None:
    step = advance_command(
        make_command_context((make_claim(), make_node())),
        make_command_state(SWAP, since=get_time_before(minutes=11)),
        approve_command,
    )
    assert get_phase_and_message(step) == ("ROLLED_BACK", "its nodes could not be tainted in time")


# VALIDATED


def test_who_died_before_a_replacement_was_asked_for_is_followed_by_one_who_looks_again() -> None:
    scene = make_command_context(make_proposed_pair())
    assert filter_actions(
        CreateNodeClaim, advance_command(scene, make_command_state(SWAP, "VALIDATED"), approve_command).actions
    )
    step = advance_command(scene, make_command_state(SWAP, "VALIDATED"), reject_command)
    assert get_phase_and_message(step) == ("ROLLED_BACK", "node-a has a new pod")


def test_who_died_between_two_replacements_is_followed_by_one_who_asks_for_the_rest() -> None:
    command = make_command("a", replacements=("new", "newer"))
    step = advance_command(
        make_command_context(make_proposed_pair(), (make_replacement_claim(), None)),
        make_command_state(command, "VALIDATED"),
        reject_command,
    )
    assert step.command_state.phase == "VALIDATED"
    assert [action.claim.name for action in filter_actions(CreateNodeClaim, step.actions)] == ["newer"]


def test_who_died_when_all_were_asked_for_has_done_enough() -> None:
    step = advance_command(
        make_command_context(make_proposed_pair(), (make_replacement_claim(), None)),
        make_command_state(SWAP, "VALIDATED"),
        reject_command,
    )
    assert step == CommandTransition(command_state=with_launched_phase(make_command_state(SWAP, "VALIDATED"), NOW))
    assert get_phase_and_message(step) == ("LAUNCHED", "waiting for 1 replacement")


def test_nothing_is_asked_for_once_the_node_went_by_itself() -> None:
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


def test_no_node_goes_before_every_replacement_was_seen_fit() -> None:
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
def test_a_replacement_that_comes_to_nothing_takes_the_command_with_it(objects: Case, expected_message: str) -> None:
    step = advance_command(
        make_command_context(make_proposed_pair(), *objects), make_command_state(SWAP, "LAUNCHED"), approve_command
    )
    assert (*get_phase_and_message(step), step.command_state.failures) == ("ROLLED_BACK", expected_message, (NOW,))


def test_a_replacement_that_cannot_be_read_is_not_gone() -> None:
    unread = (Problem(kind="NodeClaim", name="new", message="odd"),)
    step = advance_command(
        make_command_context(make_proposed_pair(), problems=unread),
        make_command_state(SWAP, "LAUNCHED"),
        approve_command,
    )
    assert step.command_state == make_command_state(SWAP, "LAUNCHED")
    assert {reason for _, reason, _ in list_events(step)} == {"DisruptionWaitingReadiness"}


def test_a_replacement_that_takes_too_long_is_given_up() -> None:
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


def test_what_comes_at_the_last_moment_still_counts() -> None:
    scene = make_command_context(make_proposed_pair(), (make_replacement_claim(fit=True), make_node("new")))
    assert (
        advance_command(
            scene, make_command_state(SWAP, "LAUNCHED", since=get_time_before(hours=1)), approve_command
        ).command_state.phase
        == "INITIALIZED"
    )


@pytest.mark.parametrize(("nodes", "minutes"), [(1, 10), (7500, 10), (15000, 20), (100_000, 60)])
def test_the_more_is_disrupted_the_longer_a_command_may_take(nodes: int, minutes: int) -> None:
    states = [
        make_command_state(replace_fields(SWAP, targets=(make_target(),) * nodes)),
        make_command_state(SWAP, "DONE"),
    ]
    assert compute_command_timeout(states) == timedelta(minutes=minutes)


def test_a_node_that_was_protected_since_stays() -> None:
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


def test_drift_with_a_grace_period_does_not_wait_for_pods() -> None:
    drift = make_command("a", reason="Drifted", method="Drift", replacements=("new",))
    node_claim, node = make_proposed_pair(reason="Drifted")
    graced = replace_fields(node_claim, termination_grace_period=timedelta(hours=1))
    pods = (make_pod(annotations={labels.DO_NOT_DISRUPT: "true"}),)
    scene = make_command_context((graced, node), (make_replacement_claim(fit=True), make_node("new")), pods=pods)
    assert (
        advance_command(scene, make_command_state(drift, "LAUNCHED"), approve_command).command_state.phase
        == "INITIALIZED"
    )


def test_a_node_that_went_before_its_replacement_was_fit_needs_no_more_of_us() -> None:
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


def test_who_died_before_all_claims_were_deleted_is_followed_by_one_who_deletes_the_rest() -> None:
    scene = make_command_context((make_claim("a", deleted=NOW), make_node("a")), make_proposed_pair("b"))
    step = advance_command(scene, make_command_state(make_command("a", "b"), "INITIALIZED"), reject_command)
    assert step.command_state.phase == "INITIALIZED"
    assert list_deleted_claims(step) == [("b", "uid-b")]


def test_a_list_that_lags_behind_a_deletion_keeps_nobody_busy() -> None:
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


def test_it_is_done_when_its_nodes_are_gone() -> None:
    going = make_command_context((make_claim(deleted=NOW), make_node(deleted=NOW)))
    draining = advance_command(going, make_command_state(SWAP, "INITIALIZED"), approve_command)
    assert draining == CommandTransition(command_state=draining.command_state)
    assert get_phase_and_message(draining) == ("DRAINING", "its nodes are drained")
    assert advance_command(going, draining.command_state, approve_command) == draining
    assert get_phase_and_message(advance_command(make_command_context(), draining.command_state, approve_command)) == (
        "DONE",
        "its nodes are terminated",
    )


def test_a_claim_that_cannot_be_read_is_not_gone() -> None:
    unread = (Problem(kind="NodeClaim", name="a", message="odd"),)
    step = advance_command(make_command_context(problems=unread), make_command_state(SWAP, "DRAINING"), approve_command)
    assert step.command_state.phase == "DRAINING"


@pytest.mark.parametrize("phase", sorted(ENDED_PHASES))
def test_what_has_ended_stays_as_it_is(phase: Phase) -> None:
    assert advance_command(
        make_command_context(make_proposed_pair()), make_command_state(SWAP, phase), reject_command
    ) == CommandTransition(command_state=make_command_state(SWAP, phase))


@pytest.mark.parametrize("phase", OPEN)
def test_where_claims_cannot_be_seen_nothing_is_concluded(phase: Phase) -> None:
    blind = (Problem(kind="CustomResourceDefinition", name="nodeclaims.karpenter.sh", message="not served"),)
    scene = make_command_context(problems=blind)
    assert advance_command(scene, make_command_state(SWAP, phase), reject_command) == CommandTransition(
        command_state=make_command_state(SWAP, phase)
    )
    assert clean_up_commands(scene, [make_command_state(SWAP, "ROLLED_BACK")]) == ()


# Cleanup


def test_marks_that_no_open_command_accounts_for_are_taken_back() -> None:
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


def test_a_successor_of_the_same_name_is_not_the_node_that_was_meant() -> None:
    node_claim, node = make_proposed_pair()
    successor = replace_fields(node_claim, meta=replace_fields(node_claim.meta, uid="z"))
    assert filter_actions(
        TaintNode, clean_up_commands(make_command_context((successor, node)), [make_command_state(SWAP)])
    )


def test_a_node_that_is_going_keeps_its_taint() -> None:
    node_claim, node = make_proposed_pair()
    deleted_claim = replace_fields(node_claim, meta=replace_fields(node_claim.meta, deleted_at=NOW))
    assert clean_up_commands(make_command_context((deleted_claim, node)), []) == ()


USED_REPLACEMENTS = {
    "it is initialized": ((make_replacement_claim(command_id=SWAP.command_id, fit=True), make_node("new")), ()),
    "a pod runs there": ((make_replacement_claim(command_id=SWAP.command_id), make_node("new")), (make_pod(on="new"),)),
    "it is going": ((make_replacement_claim(command_id=SWAP.command_id, deleted=NOW), None), ()),
    "it is somebody else's": ((make_replacement_claim(command_id="another"), None), ()),
}


def test_a_replacement_that_nobody_uses_is_taken_back_and_no_other() -> None:
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
def test_a_replacement_that_is_of_use_is_a_node_like_any_other(use_case: str) -> None:
    machine, pods = USED_REPLACEMENTS[use_case]
    assert not filter_actions(
        DeleteObject,
        clean_up_commands(make_command_context(machine, pods=pods), [make_command_state(SWAP, "ROLLED_BACK")]),
    )


def test_a_replacement_that_pods_are_expected_on_is_kept() -> None:
    annotations = {labels.COMMAND: SWAP.command_id, labels.NOMINATED_UNTIL: "2026-11-21T12:00:01Z"}
    expected = make_claim("new", conditions=make_true_conditions("Launched"), annotations=annotations)
    assert not filter_actions(
        DeleteObject,
        clean_up_commands(make_command_context((expected, None)), [make_command_state(SWAP, "ROLLED_BACK")]),
    )


# What other controllers see


def test_nodes_of_open_commands_are_busy_and_from_their_launch_on_as_good_as_gone() -> None:
    names = ("a", "b", "c", "d", "e", "f", "g")
    all_phases = (*OPEN, *sorted(ENDED_PHASES))
    command_states = [
        make_command_state(make_command(name), phase) for name, phase in zip(names, all_phases, strict=True)
    ]
    assert list_command_nodes(command_states) == {"node-a", "node-b", "node-c", "node-d", "node-e"}
    assert list_leaving_nodes(command_states) == {"node-c", "node-d", "node-e"}


def test_a_node_that_bears_a_mark_is_known() -> None:
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


def test_disruption_is_woken_when_a_replacement_is_fit_for_use_or_comes_to_nothing() -> None:
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
