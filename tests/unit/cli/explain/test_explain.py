"""`joiner explain`: what the journal records about a pod, a node, a NodePool and a command."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cli.explain.answers import explain_object
from cli.explain.history import build_history
from cli.explain.kinds import ExplainKind
from shared.model.core.metadata import Problem
from shared.model.decisions.action import (
    DeleteObject,
    DeletePod,
    FollowUp,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    TaintNode,
)
from shared.report.journal.journal import ActionResult, JournalEntry
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.unit.cli.explain.explained_journals import (
    CLAIM_MESSAGE,
    LAUNCH_ENTRIES,
    ORDER,
    SUMMARY,
    TERMINATION_ENTRIES,
    TURNED_DOWN,
    build_journal_evidence,
    list_history_lines,
    make_claim_creation,
    make_command_step,
    make_entry,
    make_eviction,
    make_launch,
    make_launched_patches,
    make_note,
    make_price_note,
    make_unavailable_mark,
    map_answers,
    run,
    write_journal,
)

Out = pytest.CaptureFixture[str]


# Pods


def test_unschedulable_pod_lists_the_reason_of_each_nodepool() -> None:
    evidence = build_journal_evidence(
        *(make_entry(at, notes=(make_note("Pod", "shop/cart", "RequirementsNotMet", TURNED_DOWN),)) for at in (0, 1, 2))
    )
    assert map_answers(evidence, "pod", "cart") == {
        "unschedulable": (
            "RequirementsNotMet at 2026-11-21 08:02:00",
            "NodePool gpu: needs toleration nvidia.com/gpu",
            "NodePool default: no instance type with 512 GiB in us-east-1a",
        )
    }
    [line] = explain_object(evidence, "pod", "cart").history
    assert (line.times, line.at, line.last_at) == (3, DEFAULT_START_TIME, DEFAULT_START_TIME + timedelta(minutes=2))


def test_pod_of_a_gang_explains_which_pods_of_the_gang_do_not_fit_and_why() -> None:
    message = (
        "gang shop/train needs nodes for all its 8 pods or none: train-6 and 1 more do not fit: NodePool gpu: every "
        "instance type that fits would exceed its limit of cpu (24 left): increase spec.limits"
    )
    note = make_note("Pod", "shop/train-0", "GangNotPlaced", message, cause="LimitExceeded")
    answers = map_answers(build_journal_evidence(make_entry(0, notes=(note,))), "pod", "train-0")
    assert answers == {"unschedulable": ("GangNotPlaced at 2026-11-21 08:00:00", message)}


def test_pod_of_a_gang_that_waits_explains_how_many_pods_are_missing() -> None:
    message = "gang shop/train needs nodes for all its 4 pods or none: 3 of its 4 pods exist: waiting for the others"
    evidence = build_journal_evidence(
        make_entry(0, notes=(make_note("Pod", "shop/train-0", "GangIncomplete", message),))
    )
    assert map_answers(evidence, "pod", "train-0")["unschedulable"] == (
        "GangIncomplete at 2026-11-21 08:00:00",
        message,
    )


def test_scheduled_pod_explains_its_node_instance_type_and_cost() -> None:
    answers = map_answers(build_journal_evidence(*LAUNCH_ENTRIES), "pod", "shop/cart")
    assert answers["node"] == ("node n1, NodeClaim c1, instance i-1, NodePool default",)
    assert answers["instance"] == ("c5.xlarge, spot, in us-east-1c, $0.0600/h; EC2 chose from 2 offerings",)
    assert answers["also created for"] == ("1 other pod: shop/till",)
    assert answers["reason"] == (f"the node was created for this pod: {CLAIM_MESSAGE}",)


def test_pod_on_an_existing_node_is_not_listed_as_its_launch_reason() -> None:
    later = make_entry(5, notes=(make_note("Pod", "shop/late", "node/n1", "fits an existing node"),))
    answers = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, later), "pod", "shop/late")
    assert answers["reason"] == ("fits an existing node",)
    assert "also created for" not in answers


def test_pod_on_a_node_missing_from_the_journal_shows_the_node_name() -> None:
    evidence = build_journal_evidence(
        make_entry(0, notes=(make_note("Pod", "shop/cart", "node/old", "fits an existing node"),))
    )
    assert map_answers(evidence, "pod", "cart") == {"node": ("node old: fits an existing node",)}


def test_evicted_pod_shows_the_reason_for_its_eviction() -> None:
    answers = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, *TERMINATION_ENTRIES), "pod", "cart")
    assert answers["node"] == (
        "node n1, NodeClaim c1, instance i-1, NodePool default; terminated at 2026-11-21 09:02:00",
    )
    assert answers["evicted"] == ("2026-11-21 09:01:30 from n1: Empty (NodeClaim c1: empty)",)
    deleted = DeletePod(namespace="shop", name="cart", uid="u", node="n0", grace_seconds=5, message="time is up")
    assert map_answers(build_journal_evidence(make_entry(0, deleted)), "pod", "cart")["evicted"] == (
        "2026-11-21 08:00:00 from n0: time is up",
    )


def test_pod_never_planned_by_joiner_is_attributed_to_kube_scheduler() -> None:
    answers = map_answers(build_journal_evidence(make_entry(0, make_eviction())), "pod", "cart")
    assert answers["scheduled by"][0].startswith("kube-scheduler: ")


def test_pod_history_shows_failed_nodeclaims_created_for_it() -> None:
    entry = make_entry(
        0,
        make_claim_creation(),
        make_launch("c1"),
        make_unavailable_mark("m5.large"),
        make_unavailable_mark("c5.xlarge", subnet_id="subnet-a"),
        make_unavailable_mark("m5.large", "us-east-1b"),
        make_unavailable_mark("m5.large", capacity_type="on-demand"),
        DeleteObject(kind="NodeClaim", name="c1", message="insufficient_capacity"),
    )
    assert list_history_lines(build_journal_evidence(entry), "pod", "cart") == [
        f"NodeClaim c1 created: {CLAIM_MESSAGE}",
        (
            "EC2 refused 2 offerings: InsufficientInstanceCapacity: spot m5.large in us-east-1a, "
            "spot c5.xlarge in us-east-1a subnet-a"
        ),
        "NodeClaim c1 deleted: insufficient_capacity",
    ]


def test_history_omits_offerings_that_ec2_refused_to_other_nodeclaims() -> None:
    unrelated_entry = make_entry(0, make_claim_creation("c2", ()), make_launch("c2"), make_unavailable_mark("m5.large"))
    assert not [
        line
        for line in list_history_lines(build_journal_evidence(*LAUNCH_ENTRIES, unrelated_entry), "nodeclaim", "c1")
        if "refused" in line
    ]


# Machines


@pytest.mark.parametrize("name", ["n1", "c1", "i-1"])
@pytest.mark.parametrize("kind", ["node", "nodeclaim"])
def test_node_is_found_by_node_nodeclaim_or_instance_name(kind: ExplainKind, name: str) -> None:
    answers = map_answers(build_journal_evidence(*LAUNCH_ENTRIES), kind, name)
    assert answers["names"] == ("node n1, NodeClaim c1, instance i-1, NodePool default",)
    assert answers["created for"] == ("2 pods: shop/cart, shop/till",)
    assert answers["reason"] == (CLAIM_MESSAGE,)


def test_node_is_found_without_its_domain_name() -> None:
    evidence = build_journal_evidence(
        make_entry(0, notes=(make_note("Node", "ip-10-0-0-1.ec2.internal", "kept", "x"),))
    )
    assert explain_object(evidence, "node", "ip-10-0-0-1").name == "ip-10-0-0-1.ec2.internal"


def test_node_shows_its_latest_disruption_verdict_with_start_time() -> None:
    def make_kept_entry(minute: float, reason: str) -> JournalEntry:
        return make_entry(minute, function="disrupt", notes=(make_note("Node", "n1", "kept", reason),))

    savings_reason, pdb = (
        ("Savings: would save 3%, less than the threshold of 10 %"),
        "Pdb: blocked by pdb default/web (0 allowed)",
    )
    evidence = build_journal_evidence(
        *LAUNCH_ENTRIES,
        make_kept_entry(10, savings_reason),
        make_kept_entry(20, pdb),
        make_kept_entry(70, savings_reason),
        make_kept_entry(80, savings_reason),
    )
    assert map_answers(evidence, "node", "n1")["not disrupted"] == (
        f"kept: {savings_reason} (since 2026-11-21 09:10:00)",
    )
    verdicts = [
        (line.reason, line.times) for line in explain_object(evidence, "node", "n1").history if "kept" in line.text
    ]
    assert verdicts == [(savings_reason, 1), (pdb, 1), (savings_reason, 2)]


def test_disrupted_node_shows_the_reason_and_command() -> None:
    verdict = make_entry(59, function="disrupt", notes=(make_note("Node", "n1", "disrupted", "Empty: no pod on it"),))
    answers_during = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, verdict, TERMINATION_ENTRIES[0]), "node", "n1")
    assert answers_during["disrupted"] == (
        "disrupted: Empty: no pod on it (since 2026-11-21 08:59:00)",
        f"command {ORDER}: PROPOSED since 2026-11-21 09:00:00",
    )
    answers_after = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, *TERMINATION_ENTRIES), "node", "n1")
    assert answers_after["removed"] == ("empty", f"command {ORDER}: DONE since 2026-11-21 09:03:00")


def test_node_cost_is_counted_from_launch_to_termination_or_now() -> None:
    cost = explain_object(build_journal_evidence(*LAUNCH_ENTRIES, *TERMINATION_ENTRIES), "node", "n1").cost
    assert cost is not None
    assert (round(cost.usd, 6), cost.usd_per_hour, round(cost.hours, 4)) == (round(0.06 * 62 / 60, 6), 0.0, 1.0333)
    current_cost = explain_object(build_journal_evidence(*LAUNCH_ENTRIES, minutes=120), "node", "n1").cost
    assert current_cost is not None
    assert (round(current_cost.usd, 6), current_cost.usd_per_hour) == (0.12, 0.06)
    assert explain_object(build_journal_evidence(make_entry(0, make_claim_creation())), "nodeclaim", "c1").cost is None


def test_nodeclaim_without_instance_is_shown_as_not_launched() -> None:
    answers = map_answers(build_journal_evidence(make_entry(0, make_claim_creation())), "nodeclaim", "c1")
    assert answers["instance"] == ("not launched yet",)
    assert answers["names"] == ("no Node yet, NodeClaim c1, NodePool default",)


def test_recreated_nodeclaim_is_a_separate_node_record() -> None:
    given_up = DeleteObject(kind="NodeClaim", name="c1", message="insufficient_capacity")
    evidence = build_journal_evidence(
        make_entry(0, make_claim_creation(), given_up),
        make_entry(3, make_claim_creation(), *make_launched_patches(), notes=(make_price_note(),)),
    )
    answers = map_answers(evidence, "nodeclaim", "c1")
    assert "removed" not in answers
    assert len(evidence.node_records) == 2


def test_nodeclaim_creation_precedes_its_launch_at_the_same_time(tmp_path: Path, capsys: Out) -> None:
    journal = write_journal(
        tmp_path,
        make_entry(0, *make_launched_patches(), notes=(make_price_note(),)),
        make_entry(0, make_claim_creation(), function="disrupt"),
    )
    assert run("nodepool", "default", journal, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["answers"][0]["sentences"] == ["1 in this period, 1 still running"]
    assert [line["function"] for line in document["history"]] == ["disrupt", "provision"]


def test_disruption_verdict_of_an_earlier_node_with_the_same_name_is_ignored() -> None:
    before = make_entry(-5, function="disrupt", notes=(make_note("Node", "n1", "kept", "x"),))
    assert "not disrupted" not in map_answers(build_journal_evidence(before, *LAUNCH_ENTRIES), "node", "n1")


def test_invalid_nodeclaim_status_patch_is_ignored() -> None:
    broken = PatchStatus(kind="NodeClaim", name="c1", status="{")
    assert map_answers(build_journal_evidence(make_entry(0, make_claim_creation(), broken)), "nodeclaim", "c1")[
        "instance"
    ] == ("not launched yet",)


def test_node_history_is_chronological_and_readable() -> None:
    assert list_history_lines(build_journal_evidence(*LAUNCH_ENTRIES, *TERMINATION_ENTRIES), "node", "n1") == [
        f"NodeClaim c1 created: {CLAIM_MESSAGE}",
        "CreateFleet for c1: 1 x spot; 2 offerings: 2 instance types in us-east-1a",
        "NodeClaim c1 launched: c5.xlarge, spot, in us-east-1c, $0.0600 per hour",
        "Node n1 registered: the node of c1",
        "Node n1 tainted: karpenter.sh/disrupted: ",
        f"Node n1 PROPOSED: {ORDER}: {SUMMARY}",
        "NodeClaim c1 deleted: empty",
        f"Node n1 DRAINING: {ORDER}: its nodes are drained",
        "2 pods evicted from n1: Empty: shop/cart, shop/till",
        "i-1 terminated: its NodeClaim is being deleted",
        "Node n1 finalizers removed: its instance was terminated",
        "Node n1 deleted: its NodeClaim is being deleted",
        f"Node n1 DONE: {ORDER}: its nodes are terminated",
    ]


def test_failed_and_skipped_actions_show_their_result() -> None:
    failed = (ActionResult(action=make_claim_creation(), result="failed", message="Throttled: later"),)
    skipped = (ActionResult(action=make_eviction(), result="skipped", message="EvictionRefused: web"),)
    evidence = build_journal_evidence(
        make_entry(0, results=failed), make_entry(1, results=skipped, function="lifecycle")
    )
    [created_line] = build_history(evidence.cycles, frozenset((("NodeClaim", "c1"),)))
    assert (created_line.is_failed, created_line.reason) == (True, f"{CLAIM_MESSAGE}; failed: Throttled: later")
    [skipped_line] = build_history(evidence.cycles, frozenset((("Node", "n1"),)))
    assert skipped_line.reason == "Empty: shop/cart; skipped: EvictionRefused: web"
    assert "evicted" not in map_answers(evidence, "pod", "cart")
    assert evidence.node_records == ()


def make_event(reason: str, message: str, kind: str = "Node", name: str = "n1", namespace: str = "") -> PublishEvent:
    return PublishEvent(
        kind=kind, name=name, namespace=namespace, reason=reason, message=message, at=DEFAULT_START_TIME
    )


def test_repeated_event_with_changing_message_is_one_history_line() -> None:
    def make_draining_entry(minute: float, pod_count: int) -> JournalEntry:
        waits = make_event("FailedDraining", f"{pod_count} pods")
        return make_entry(minute, make_event("Waiting", "so"), waits, function="lifecycle")

    happened = explain_object(
        build_journal_evidence(
            make_draining_entry(0, 3), make_draining_entry(1, 2), make_draining_entry(2, 1), *LAUNCH_ENTRIES
        ),
        "node",
        "n1",
    ).history
    lines_by_text = {line.text: (line.reason, line.times) for line in happened}
    assert lines_by_text["event FailedDraining"] == ("1 pods", 3)
    assert lines_by_text["event Waiting"] == ("so", 3)


def test_event_that_repeats_a_note_is_omitted() -> None:
    evidence = build_journal_evidence(
        make_entry(0, make_event("DisruptionBlocked", "x"), notes=(make_note("Node", "n1", "blocked", "x"),))
    )
    assert list_history_lines(evidence, "node", "n1") == ["Node n1 blocked: x"]


def test_every_action_type_has_a_history_text() -> None:
    happened = make_entry(
        0,
        NominatePod(namespace="shop", name="cart", uid="u", node="n1", message="it was made for it"),
        DeletePod(namespace="shop", name="cart", uid="u", node="n1", grace_seconds=5, message="time is up"),
        FollowUp(function="provision", after=timedelta(), message="soon"),
        make_event("Odd", "x", "Pod", "cart", "shop"),
        TaintNode(name="n1", resource_version="1", taints=(), message="rolled back"),
        PatchMetadata(kind="Node", name="n1", annotations=(("a", "b"),), message="nominated pods are expected"),
    )
    assert list_history_lines(build_journal_evidence(happened), "pod", "cart") == [
        "Pod shop/cart nominated for n1: it was made for it",
        "Pod shop/cart deleted on n1: time is up; grace period 5s",
        "event Odd: x",
    ]
    assert [
        f"{line.text}: {line.reason}"
        for line in build_history(build_journal_evidence(happened).cycles, frozenset((("Node", "n1"),)))
    ] == [
        "1 pod deleted on n1: time is up: shop/cart",
        "Node n1 taints removed: rolled back",
    ]


# NodePools and commands


def test_nodepool_shows_its_nodes_and_rejected_pods() -> None:
    waits = make_entry(
        64, notes=tuple(make_note("Pod", f"shop/{pod_name}", "RequirementsNotMet", TURNED_DOWN) for pod_name in "abc")
    )
    kept_entry = make_entry(65, function="disrupt", notes=(make_note("Node", "n2", "kept", "Policy: x"),))
    two = make_entry(
        50, make_claim_creation("c2", ()), *make_launched_patches("c2", "i-2"), notes=(make_price_note("c2"),)
    )
    joined_entry = make_entry(
        51, PatchStatus(kind="NodeClaim", name="c2", status='{"nodeName": "n2"}'), function="lifecycle"
    )
    answers = map_answers(
        build_journal_evidence(*LAUNCH_ENTRIES, two, joined_entry, *TERMINATION_ENTRIES, waits, kept_entry),
        "nodepool",
        "default",
    )
    assert answers["nodes"] == ("2 in this period, 1 still running",)
    assert answers["instances"] == ("2 x c5.xlarge, spot, in us-east-1c",)
    assert answers["removed"] == ("1 x empty",)
    assert answers["not disrupted"] == ("1 x kept: Policy: x",)
    assert answers["rejected pods"] == ("3 x no instance type with 512 GiB in us-east-1a",)
    assert answers["cost"][1] == "$0.0600/h for the running nodes"


def test_long_rejection_list_ends_with_a_count() -> None:
    reasons = [
        make_note("Pod", f"shop/{letter}", "RequirementsNotMet", f"pool default: too {letter}") for letter in "abcdefg"
    ]
    answers = map_answers(
        build_journal_evidence(*LAUNCH_ENTRIES, make_entry(4, notes=tuple(reasons))), "nodepool", "default"
    )
    assert answers["rejected pods"][-2:] == ("1 x too e", "… and 2 others")


def test_nodepool_history_includes_its_problems() -> None:
    problem = Problem(kind="NodePool", name="default", message="its node class does not exist")
    assert list_history_lines(build_journal_evidence(make_entry(0, problems=(problem,))), "nodepool", "default") == [
        "problem with NodePool default: its node class does not exist"
    ]


def test_disruption_command_shows_its_state_nodes_and_savings() -> None:
    two = make_entry(
        60.5,
        make_claim_creation("c2", ()),
        make_launch("c2"),
        *make_launched_patches("c2", "i-2"),
        notes=(make_price_note("c2"),),
    )
    first = make_command_step(60, "PROPOSED", SUMMARY, replacements=("c2",))
    evidence = build_journal_evidence(*LAUNCH_ENTRIES, first, two, *TERMINATION_ENTRIES[1:])
    answers = map_answers(evidence, "command", ORDER)
    assert answers["state"] == ("DONE since 2026-11-21 09:03:00, 3m after the proposal",)
    assert answers["reason"] == (SUMMARY, "its nodes are terminated")
    assert answers["saves"] == ("$0.0600/h",)
    assert answers["removes"][0].startswith("node n1, NodeClaim c1, instance i-1")
    assert answers["launches"] == (
        (
            "no Node yet, NodeClaim c2, instance i-2, NodePool default: "
            "c5.xlarge, spot, in us-east-1c, $0.0600/h; EC2 chose from 2 offerings"
        ),
    )
    assert answers["progress"][0].startswith("PROPOSED 2026-11-21 09:00:00, DRAINING")
    happened = list_history_lines(evidence, "command", ORDER)
    assert f"Command {ORDER} DONE: its nodes are terminated" in happened
    assert not [line for line in happened if line.startswith("Node n1 DONE")], "its nodes' notes say the same"
    assert not [line for line in happened if "c1 created" in line], "that was before it"


def test_disruption_command_names_otherwise_unknown_nodes() -> None:
    assert map_answers(build_journal_evidence(TERMINATION_ENTRIES[0]), "command", ORDER)["removes"] == ("n1, c1",)
