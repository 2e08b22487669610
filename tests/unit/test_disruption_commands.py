"""Commands, step by step: what each look does, whatever was seen or lost before it."""

from datetime import timedelta

import pytest

from shared.disruption.commands import DELAYS, Step, advance
from shared.disruption.leftovers import tidy
from shared.disruption.scenes import busy, leaving, touched
from shared.disruption.standings import asked_for, proposed, time_for
from shared.lifecycle.decide import decide as keep
from shared.model import labels
from shared.model.action import CreateNodeClaim, DeleteObject, FollowUp, PatchStatus, PublishEvent, TaintNode
from shared.model.commands import ENDED, Invalid, Phase, command
from shared.model.objects import Problem
from tests.unit.command_cases import (
    empty,
    fails,
    holds,
    marked,
    order,
    seen,
    stands,
    substitute,
    target,
    told,
)
from tests.unit.lifecycle_cases import NOW, STAGES, Case, ago, changed, claim, cluster, node, of, pod, true

SWAP = order("a", by=("new",))
OPEN: tuple[Phase, ...] = ("PROPOSED", "VALIDATED", "LAUNCHED", "INITIALIZED", "DRAINING")


def phases(step: Step) -> tuple[str, str]:
    return step.standing.phase, step.standing.why


def deleted(step: Step) -> list[tuple[str, str]]:
    return [(one.name, one.uid) for one in of(DeleteObject, step.actions)]


# A command's name


def test_the_same_decision_is_the_same_command_whatever_it_saves_or_says() -> None:
    one = command(reason="Empty", method="Emptiness", targets=(target("b"), target("a")), why="x")
    other = command(reason="Empty", method="Emptiness", targets=(target("a"), target("b")), savings_usd_per_hour=1.0)
    assert one.command_id == other.command_id
    assert one.targets == other.targets


@pytest.mark.parametrize(
    "other",
    [
        order("a", by=("newer",)),
        order("a", "b", by=("new",)),
        order("a", by=("new",), method="MultiNode"),
        command(reason="Underutilized", method="SingleNode", targets=(changed(target(), claim_uid="z"),)),
    ],
)
def test_another_decision_is_another_command(other: Case) -> None:
    assert other.command_id != SWAP.command_id


def test_what_comes_again_has_other_replacements_and_knows_them_by_their_names() -> None:
    one = changed(order("a", by=("default-1a2b",)), homes=(("shop/cart", "default-1a2b"), ("shop/till", "node-b")))
    first, again = proposed(one, NOW), proposed(one, NOW + timedelta(minutes=5))
    [name] = [made.claim.name for made in first.command.replacements]
    assert name.startswith("default-")
    assert first.command.homes == (("shop/cart", name), ("shop/till", "node-b"))
    assert proposed(one, NOW) == first
    assert again.command.command_id == first.command.command_id
    assert again.command.replacements != first.command.replacements


# PROPOSED


def test_a_new_command_marks_its_nodes_and_is_looked_at_again_after_the_delay_of_its_method() -> None:
    step = advance(seen((claim(), node())), proposed(SWAP, NOW), holds)
    assert step.standing == proposed(SWAP, NOW)
    assert [one.name for one in of(TaintNode, step.actions)] == ["node-a"]
    assert [one.name for one in of(PatchStatus, step.actions)] == ["a"]
    [wake] = of(FollowUp, step.actions)
    assert (wake.function, wake.after) == ("disrupt", timedelta(seconds=15))


@pytest.mark.parametrize(
    ("one", "seconds"),
    [
        (empty("a"), 5),
        (order("a"), 15),
        (order("a", method="MultiNode"), 15),
        (order("a", method="Drift", reason="Drifted"), 0),
        (order("a", method="StaticDrift", reason="Drifted"), 0),
    ],
)
def test_it_is_decided_when_it_has_stood_so_long_and_not_before(one: Case, seconds: int) -> None:
    assert DELAYS.get(one.method, timedelta()) == timedelta(seconds=seconds)
    for age, decided in ((seconds, True), (seconds - 1, False)):
        since = NOW - timedelta(seconds=age)
        scene = seen(marked("a", one.reason, since=min(since, NOW)))
        step = advance(scene, stands(one, since=since), holds)
        assert (step.standing.phase == "INITIALIZED") == decided
        if not decided and seconds:
            assert [wake.after for wake in of(FollowUp, step.actions)] == [timedelta(seconds=1)]


@pytest.mark.parametrize(
    "half",
    [
        (claim(conditions=(told(), *true(*STAGES))), node()),
        (claim(), marked()[1]),
        marked(reason="Empty"),
    ],
)
def test_where_a_mark_was_lost_time_begins_again(half: Case) -> None:
    step = advance(seen(half), stands(SWAP), holds)
    assert step.standing == stands(SWAP)
    assert of(PatchStatus, step.actions)
    assert not of(CreateNodeClaim, step.actions)


@pytest.mark.parametrize(("method", "seconds"), [("Drift", 1), ("SingleNode", 15)])
def test_a_list_that_lags_behind_the_marks_keeps_nobody_busy(method: Case, seconds: int) -> None:
    step = advance(seen((claim(), node())), stands(order("a", method=method)), holds)
    assert [wake.after for wake in of(FollowUp, step.actions)] == [timedelta(seconds=seconds)]


def test_time_counts_from_the_last_of_the_marks() -> None:
    scene = seen(marked("a"), marked("b", since=ago(seconds=4)))
    step = advance(scene, stands(order("a", "b")), holds)
    assert step.standing.phase == "PROPOSED"
    assert [wake.after for wake in of(FollowUp, step.actions)] == [timedelta(seconds=11)]


def test_a_clock_that_was_ahead_is_waited_for() -> None:
    step = advance(seen(marked(since=NOW + timedelta(minutes=1))), stands(SWAP, since=NOW), holds)
    assert step.standing.phase == "PROPOSED"
    assert not of(CreateNodeClaim, step.actions)


def test_what_still_holds_asks_for_its_replacements() -> None:
    step = advance(seen(marked()), stands(SWAP), holds)
    assert phases(step) == ("VALIDATED", "it still holds")
    [made] = of(CreateNodeClaim, step.actions)
    assert made.claim.meta.annotation(labels.COMMAND) == SWAP.command_id
    assert not of(DeleteObject, step.actions)
    assert [one.function for one in of(FollowUp, step.actions)] == ["provision"]
    assert {one.reason for one in of(PublishEvent, step.actions)} == {"DisruptionLaunching"}


def test_without_replacements_it_is_decided_and_done_at_once() -> None:
    step = advance(seen(marked("a"), marked("b")), stands(order("a", "b")), holds)
    assert phases(step) == ("INITIALIZED", "its claims are deleted")
    assert deleted(step) == [("a", "uid-a"), ("b", "uid-b")]
    assert [one.function for one in of(FollowUp, step.actions)] == ["lifecycle"]
    assert {one.reason for one in of(PublishEvent, step.actions)} == {"DisruptionTerminating"}


def test_what_does_not_hold_any_more_is_rolled_back() -> None:
    step = advance(seen(marked()), stands(SWAP), fails)
    assert phases(step) == ("ROLLED_BACK", "node-a has a new pod")
    assert step.actions == ()


def test_an_empty_node_that_filled_up_stays_and_the_others_go() -> None:
    both = empty("a", "b")
    scene = seen(marked("a", "Empty"), marked("b", "Empty"))
    step = advance(scene, stands(both), fails)
    assert step.standing.phase == "PROPOSED"
    assert [one.node for one in step.standing.command.targets] == ["node-b"]
    assert step.standing.command.command_id == both.command_id
    assert [one.after for one in of(FollowUp, step.actions)] == [timedelta()]
    assert {one.name for one in of(TaintNode, tidy(scene, [step.standing]))} == {"node-a"}
    assert deleted(advance(scene, step.standing, holds)) == [("b", "uid-b")]


def test_an_answer_about_no_node_is_about_all() -> None:
    def never(*_: object) -> Invalid:
        return Invalid(why="no budget")

    step = advance(seen(marked("a", "Empty")), stands(empty("a")), never)
    assert phases(step) == ("ROLLED_BACK", "no budget")


@pytest.mark.parametrize(
    "rest",
    [
        (),
        ((claim(deleted=NOW), node(deleted=NOW)),),
        ((changed(claim(), meta=changed(claim().meta, uid="z")), node()),),
    ],
)
def test_a_proposal_whose_node_went_by_itself_is_rolled_back(rest: Case) -> None:
    step = advance(seen(*rest), stands(SWAP), holds)
    assert phases(step) == ("ROLLED_BACK", "node-a went by itself")


def test_a_proposal_that_cannot_be_made_is_given_up() -> None:
    step = advance(seen((claim(), node())), stands(SWAP, since=ago(minutes=11)), holds)
    assert phases(step) == ("ROLLED_BACK", "it could not be proposed in time")


# VALIDATED


def test_who_died_before_a_replacement_was_asked_for_is_followed_by_one_who_looks_again() -> None:
    scene = seen(marked())
    assert of(CreateNodeClaim, advance(scene, stands(SWAP, "VALIDATED"), holds).actions)
    step = advance(scene, stands(SWAP, "VALIDATED"), fails)
    assert phases(step) == ("ROLLED_BACK", "node-a has a new pod")


def test_who_died_between_two_replacements_is_followed_by_one_who_asks_for_the_rest() -> None:
    both = order("a", by=("new", "newer"))
    step = advance(seen(marked(), (substitute(), None)), stands(both, "VALIDATED"), fails)
    assert step.standing.phase == "VALIDATED"
    assert [one.claim.name for one in of(CreateNodeClaim, step.actions)] == ["newer"]


def test_who_died_when_all_were_asked_for_has_done_enough() -> None:
    step = advance(seen(marked(), (substitute(), None)), stands(SWAP, "VALIDATED"), fails)
    assert step == Step(standing=asked_for(stands(SWAP, "VALIDATED"), NOW))
    assert phases(step) == ("LAUNCHED", "waits for 1 replacement")


def test_nothing_is_asked_for_once_the_node_went_by_itself() -> None:
    step = advance(seen((claim(deleted=NOW), node())), stands(SWAP, "VALIDATED"), holds)
    assert step.standing.phase == "ROLLED_BACK"
    assert step.actions == ()


# LAUNCHED


def told_of(step: Step) -> list[tuple[str, str, str]]:
    """Answer the events, of a step that does nothing else."""
    assert all(isinstance(one, PublishEvent) for one in step.actions)
    return [(one.kind, one.reason, one.message) for one in of(PublishEvent, step.actions)]


def test_no_node_goes_before_every_replacement_was_seen_fit() -> None:
    both = order("a", by=("new", "newer"))
    half = seen(marked(), (substitute(fit=True), node("new")), (substitute("newer"), None))
    step = advance(half, stands(both, "LAUNCHED"), holds)
    assert (step.standing.phase, step.standing.initialized) == ("LAUNCHED", ("new",))
    assert told_of(step) == [
        (kind, "DisruptionWaitingReadiness", "Waiting for 1 replacements to be initialized, newer among them")
        for kind in ("NodeClaim", "Node")
    ]
    rest = seen(marked(), (substitute("newer", fit=True), node("newer")))
    step = advance(rest, step.standing, holds)
    assert (step.standing.phase, step.standing.initialized) == ("INITIALIZED", ("new", "newer"))
    assert deleted(step) == [("a", "uid-a")]


@pytest.mark.parametrize(
    ("there", "why"),
    [((), "replacement new is gone"), (((substitute(deleted=NOW), None),), "replacement new is being deleted")],
)
def test_a_replacement_that_comes_to_nothing_takes_the_command_with_it(there: Case, why: str) -> None:
    step = advance(seen(marked(), *there), stands(SWAP, "LAUNCHED"), holds)
    assert (*phases(step), step.standing.failures) == ("ROLLED_BACK", why, (NOW,))


def test_a_replacement_that_cannot_be_read_is_not_gone() -> None:
    unread = (Problem(kind="NodeClaim", name="new", message="odd"),)
    step = advance(seen(marked(), problems=unread), stands(SWAP, "LAUNCHED"), holds)
    assert step.standing == stands(SWAP, "LAUNCHED")
    assert {reason for _, reason, _ in told_of(step)} == {"DisruptionWaitingReadiness"}


def test_a_replacement_that_takes_too_long_is_given_up() -> None:
    scene = seen(marked(), (substitute(), None))
    assert advance(scene, stands(SWAP, "LAUNCHED", since=ago(minutes=10)), holds).standing.phase == "LAUNCHED"
    step = advance(scene, stands(SWAP, "LAUNCHED", since=ago(minutes=10, seconds=1)), holds)
    assert phases(step) == ("ROLLED_BACK", "replacement new was not fit for use in time")


def test_what_comes_at_the_last_moment_still_counts() -> None:
    scene = seen(marked(), (substitute(fit=True), node("new")))
    assert advance(scene, stands(SWAP, "LAUNCHED", since=ago(hours=1)), holds).standing.phase == "INITIALIZED"


@pytest.mark.parametrize(("nodes", "minutes"), [(1, 10), (7500, 10), (15000, 20), (100_000, 60)])
def test_the_more_is_disrupted_the_longer_a_command_may_take(nodes: int, minutes: int) -> None:
    many = [stands(changed(SWAP, targets=(target(),) * nodes)), stands(SWAP, "DONE")]
    assert time_for(many) == timedelta(minutes=minutes)


def test_a_node_that_was_protected_since_stays() -> None:
    protected = {labels.DO_NOT_DISRUPT: "true"}
    fit = (substitute(fit=True), node("new"))
    mine, there = marked()
    guarded = changed(there, meta=node(annotations=protected).meta)
    step = advance(seen((mine, guarded), fit), stands(SWAP, "LAUNCHED"), holds)
    assert phases(step) == ("ROLLED_BACK", "node-a must not be disrupted any more")
    scene = seen((mine, there), fit, pods=(pod(annotations=protected),))
    assert advance(scene, stands(SWAP, "LAUNCHED"), holds).standing.phase == "ROLLED_BACK"


def test_drift_with_a_grace_period_does_not_wait_for_pods() -> None:
    drift = order("a", reason="Drifted", method="Drift", by=("new",))
    mine, there = marked(reason="Drifted")
    graced = changed(mine, termination_grace_period=timedelta(hours=1))
    pods = (pod(annotations={labels.DO_NOT_DISRUPT: "true"}),)
    scene = seen((graced, there), (substitute(fit=True), node("new")), pods=pods)
    assert advance(scene, stands(drift, "LAUNCHED"), holds).standing.phase == "INITIALIZED"


def test_a_node_that_went_before_its_replacement_was_fit_needs_no_more_of_us() -> None:
    step = advance(seen((substitute(), None)), stands(SWAP, "LAUNCHED"), holds)
    assert step == Step(
        standing=changed(stands(SWAP, "DONE", since=NOW, proposed_at=ago(seconds=30)), why=step.standing.why)
    )
    going = seen((claim(deleted=NOW), node(deleted=NOW)), (substitute(), None))
    assert advance(going, stands(SWAP, "LAUNCHED"), holds).standing.phase == "DRAINING"


# INITIALIZED, DRAINING, the end


def test_who_died_before_all_claims_were_deleted_is_followed_by_one_who_deletes_the_rest() -> None:
    scene = seen((claim("a", deleted=NOW), node("a")), marked("b"))
    step = advance(scene, stands(order("a", "b"), "INITIALIZED"), fails)
    assert step.standing.phase == "INITIALIZED"
    assert deleted(step) == [("b", "uid-b")]


def test_a_list_that_lags_behind_a_deletion_keeps_nobody_busy() -> None:
    alone = order("a", method="Emptiness")
    first = advance(seen(marked()), stands(alone, since=ago(minutes=1)), holds)
    assert first.standing.phase == "INITIALIZED"
    again = advance(seen(marked()), first.standing, holds)
    assert deleted(first) == deleted(again) == [("a", "uid-a")]
    waits = [wake.after for step in (first, again) for wake in of(FollowUp, step.actions)]
    assert waits == [timedelta(), timedelta(seconds=1)]


def test_it_is_done_when_its_nodes_are_gone() -> None:
    going = seen((claim(deleted=NOW), node(deleted=NOW)))
    draining = advance(going, stands(SWAP, "INITIALIZED"), holds)
    assert draining == Step(standing=draining.standing)
    assert phases(draining) == ("DRAINING", "its nodes are drained")
    assert advance(going, draining.standing, holds) == draining
    assert phases(advance(seen(), draining.standing, holds)) == ("DONE", "its nodes are gone")


def test_a_claim_that_cannot_be_read_is_not_gone() -> None:
    unread = (Problem(kind="NodeClaim", name="a", message="odd"),)
    step = advance(seen(problems=unread), stands(SWAP, "DRAINING"), holds)
    assert step.standing.phase == "DRAINING"


@pytest.mark.parametrize("phase", sorted(ENDED))
def test_what_has_ended_stays_as_it_is(phase: Phase) -> None:
    assert advance(seen(marked()), stands(SWAP, phase), fails) == Step(standing=stands(SWAP, phase))


@pytest.mark.parametrize("phase", OPEN)
def test_where_claims_cannot_be_seen_nothing_is_concluded(phase: Phase) -> None:
    blind = (Problem(kind="CustomResourceDefinition", name="nodeclaims.karpenter.sh", message="not served"),)
    scene = seen(problems=blind)
    assert advance(scene, stands(SWAP, phase), fails) == Step(standing=stands(SWAP, phase))
    assert tidy(scene, [stands(SWAP, "ROLLED_BACK")]) == ()


# What is taken back


def test_marks_that_no_open_command_accounts_for_are_taken_back() -> None:
    scene = seen(marked("a"), marked("b", "Empty"), marked("c", "Drifted"), (claim("d"), node("d")))
    actions = tidy(scene, [stands(order("a")), stands(empty("b"), "ROLLED_BACK")])
    assert [(one.name, one.taints) for one in of(TaintNode, actions)] == [("node-b", ()), ("node-c", ())]
    assert [one.name for one in of(PatchStatus, actions)] == ["b", "c"]
    assert all("DisruptionReason" not in one.status for one in of(PatchStatus, actions))


def test_a_successor_of_the_same_name_is_not_the_node_that_was_meant() -> None:
    mine, there = marked()
    other = changed(mine, meta=changed(mine.meta, uid="z"))
    assert of(TaintNode, tidy(seen((other, there)), [stands(SWAP)]))


def test_a_node_that_is_going_keeps_its_taint() -> None:
    mine, there = marked()
    gone = changed(mine, meta=changed(mine.meta, deleted_at=NOW))
    assert tidy(seen((gone, there)), []) == ()


USED = {
    "it is fit for use": ((substitute(of=SWAP.command_id, fit=True), node("new")), ()),
    "a pod runs there": ((substitute(of=SWAP.command_id), node("new")), (pod(on="new"),)),
    "it is going": ((substitute(of=SWAP.command_id, deleted=NOW), None), ()),
    "it is somebody else's": ((substitute(of="another"), None), ()),
}


def test_a_replacement_that_nobody_uses_is_taken_back_and_no_other() -> None:
    past = stands(SWAP, "ROLLED_BACK")
    unused = seen((substitute(of=SWAP.command_id), None), (claim("x"), node("x")))
    assert [(one.name, one.uid) for one in of(DeleteObject, tidy(unused, [past]))] == [("new", "uid-new")]
    assert tidy(seen(), [past]) == ()
    assert tidy(unused, [changed(past, phase_since=ago(hours=1))]) == ()
    assert tidy(unused, [stands(SWAP, "DONE"), stands(SWAP, "LAUNCHED")]) == ()
    daemon = seen((substitute(of=SWAP.command_id), node("new")), pods=(pod(on="new", daemon=True),))
    assert of(DeleteObject, tidy(daemon, [past]))


@pytest.mark.parametrize("why", USED)
def test_a_replacement_that_is_of_use_is_a_node_like_any_other(why: str) -> None:
    machine, pods = USED[why]
    assert not of(DeleteObject, tidy(seen(machine, pods=pods), [stands(SWAP, "ROLLED_BACK")]))


def test_a_replacement_that_pods_are_expected_on_is_kept() -> None:
    annotations = {labels.COMMAND: SWAP.command_id, labels.NOMINATED_UNTIL: "2026-11-21T12:00:01Z"}
    expected = claim("new", conditions=true("Launched"), annotations=annotations)
    assert not of(DeleteObject, tidy(seen((expected, None)), [stands(SWAP, "ROLLED_BACK")]))


# What others are told


def test_nodes_of_open_commands_are_busy_and_from_their_launch_on_as_good_as_gone() -> None:
    names = ("a", "b", "c", "d", "e", "f", "g")
    all_phases = (*OPEN, *sorted(ENDED))
    known = [stands(order(name), phase) for name, phase in zip(names, all_phases, strict=True)]
    assert busy(known) == {"node-a", "node-b", "node-c", "node-d", "node-e"}
    assert leaving(known) == {"node-c", "node-d", "node-e"}


def test_a_node_that_bears_a_mark_is_known() -> None:
    tainted = node("b", going=True)
    scene = seen(marked("a"), (claim("b"), tainted), (claim("c"), node("c")), (claim("d", deleted=NOW), marked("d")[1]))
    assert touched(scene) == {"node-a", "node-b"}


def woken(mine: Case, there: Case) -> list[str]:
    nodes = () if there is None else (there,)
    return [one.function for one in of(FollowUp, keep(cluster(node_claims=(mine,), nodes=nodes)))]


def test_disruption_is_woken_when_a_replacement_is_fit_for_use_or_comes_to_nothing() -> None:
    known = {labels.COMMAND: "x"}
    joined = claim(conditions=true("Launched", "Registered"), annotations=known)
    ready = node(fit=False, extra={labels.REGISTERED: "true"})
    assert "disrupt" in woken(joined, ready)
    assert "disrupt" not in woken(changed(joined, meta=changed(joined.meta, annotations=())), ready)
    assert "disrupt" not in woken(claim(annotations=known), node())
    failed = claim(conditions=true("Launched"), annotations=known, deleted=NOW)
    assert "disrupt" in woken(failed, None)
    assert "disrupt" not in woken(claim(conditions=true("Launched"), deleted=NOW), None)
    assert "disrupt" not in woken(claim(annotations=known, deleted=NOW), node())
