"""`joiner explain`: what the journal knows of a pod, a machine, a NodePool, a command."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cli.explain_answers import explained
from cli.explain_kinds import Kind
from cli.explain_told import story
from shared.model.action import (
    DeleteObject,
    DeletePod,
    FollowUp,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    TaintNode,
)
from shared.model.objects import Problem
from shared.report.journal import Done, Entry
from sim.clock import START
from tests.unit.explained_journals import (
    ASKED,
    GONE,
    MADE,
    ORDER,
    SUMMARY,
    TURNED_DOWN,
    asked,
    claim,
    entry,
    evict,
    launch,
    launched,
    lines,
    look,
    note,
    price,
    refused,
    run,
    step,
    written,
)

Out = pytest.CaptureFixture[str]


# Pods


def test_a_pod_without_a_place_is_told_what_each_pool_has_against_it() -> None:
    seen = look(*(entry(at, notes=(note("Pod", "shop/cart", "RequirementsNotMet", TURNED_DOWN),)) for at in (0, 1, 2)))
    assert asked(seen, "pod", "cart") == {
        "goes nowhere": (
            "RequirementsNotMet, as of 2026-11-21 08:02:00",
            "pool gpu: needs toleration nvidia.com/gpu",
            "pool default: no instance type with 512 GiB in us-east-1a",
        )
    }
    [line] = explained(seen, "pod", "cart").happened
    assert (line.times, line.at, line.until) == (3, START, START + timedelta(minutes=2))


def test_a_pod_is_told_why_there_why_that_type_and_what_it_costs() -> None:
    told = asked(look(*MADE), "pod", "shop/cart")
    assert told["goes to"] == ("node n1, NodeClaim c1, i-1, of NodePool default",)
    assert told["bought as"] == ("c5.xlarge, spot, in us-east-1c, $0.0600 per hour: EC2's choice among 2 offerings",)
    assert told["beside"] == ("1 other pod: shop/till",)
    assert told["costs"] == ("the node $0.0600 per hour",)
    assert told["why there"] == (f"it was made for it: {ASKED}",)


def test_a_pod_on_a_node_that_was_there_is_not_told_that_the_node_was_made_for_it() -> None:
    later = entry(5, notes=(note("Pod", "shop/late", "node/n1", "fits what is there"),))
    told = asked(look(*MADE, later), "pod", "shop/late")
    assert told["why there"] == ("fits what is there",)
    assert "beside" not in told


def test_a_pod_on_a_node_that_the_journal_does_not_know_is_told_its_name() -> None:
    seen = look(entry(0, notes=(note("Pod", "shop/cart", "node/old", "fits what is there"),)))
    assert asked(seen, "pod", "cart") == {"goes to": ("node old: fits what is there",)}


def test_a_pod_is_told_who_moved_it_and_why() -> None:
    told = asked(look(*MADE, *GONE), "pod", "cart")
    assert told["went to"] == ("node n1, NodeClaim c1, i-1, of NodePool default, gone since 2026-11-21 09:02:00",)
    assert told["moved"] == ("2026-11-21 09:01:30: from n1: Empty (c1: empty)",)
    deleted = DeletePod(namespace="shop", name="cart", uid="u", node="n0", grace_seconds=5, why="time is up")
    assert asked(look(entry(0, deleted)), "pod", "cart")["moved"] == ("2026-11-21 08:00:00: from n0: time is up",)


def test_a_pod_that_was_never_planned_for_is_told_so() -> None:
    told = asked(look(entry(0, evict())), "pod", "cart")
    assert told["placed by"][0].startswith("kube-scheduler alone")


def test_a_pod_hears_what_became_of_the_claims_that_were_made_for_it() -> None:
    tried = entry(
        0,
        claim(),
        launch("c1"),
        refused("m5.large"),
        refused("c5.xlarge", subnet_id="subnet-a"),
        refused("m5.large", "us-east-1b"),
        refused("m5.large", capacity_type="on-demand"),
        DeleteObject(kind="NodeClaim", name="c1", why="insufficient_capacity"),
    )
    assert lines(look(tried), "pod", "cart") == [
        f"NodeClaim c1 created: {ASKED}",
        (
            "EC2 refused 2 offerings: InsufficientInstanceCapacity: spot m5.large in us-east-1a, "
            "spot c5.xlarge in us-east-1a subnet-a"
        ),
        "NodeClaim c1 deleted: insufficient_capacity",
    ]


def test_what_ec2_refused_to_others_is_not_told() -> None:
    other = entry(0, claim("c2", ()), launch("c2"), refused("m5.large"))
    assert not [one for one in lines(look(*MADE, other), "nodeclaim", "c1") if "refused" in one]


# Machines


@pytest.mark.parametrize("name", ["n1", "c1", "i-1"])
@pytest.mark.parametrize("kind", ["node", "nodeclaim"])
def test_a_machine_is_found_by_any_of_its_names(kind: Kind, name: str) -> None:
    told = asked(look(*MADE), kind, name)
    assert told["is"] == ("node n1, NodeClaim c1, i-1, of NodePool default",)
    assert told["made for"] == ("2 pods: shop/cart, shop/till",)
    assert told["why"] == (ASKED,)


def test_a_node_is_found_without_its_domain() -> None:
    seen = look(entry(0, notes=(note("Node", "ip-10-0-0-1.ec2.internal", "kept", "x"),)))
    assert explained(seen, "node", "ip-10-0-0-1").name == "ip-10-0-0-1.ec2.internal"


def test_a_node_is_told_the_verdict_that_stands_and_since_when() -> None:
    def said(minute: float, why: str) -> Entry:
        return entry(minute, function="disrupt", notes=(note("Node", "n1", "kept", why),))

    few, pdb = "Savings: would save 3 %, threshold 10 %", "Pdb: blocked by pdb default/web (0 allowed)"
    seen = look(*MADE, said(10, few), said(20, pdb), said(70, few), said(80, few))
    assert asked(seen, "node", "n1")["why not removed"] == (f"kept: {few} (so since 2026-11-21 09:10:00)",)
    told = [(one.why, one.times) for one in explained(seen, "node", "n1").happened if "kept" in one.what]
    assert told == [(few, 1), (pdb, 1), (few, 2)]


def test_a_node_that_goes_is_told_for_what_and_by_which_command() -> None:
    verdict = entry(59, function="disrupt", notes=(note("Node", "n1", "disrupted", "Empty: no pod on it"),))
    going = asked(look(*MADE, verdict, GONE[0]), "node", "n1")
    assert going["goes because"] == (
        "disrupted: Empty: no pod on it (so since 2026-11-21 08:59:00)",
        f"command {ORDER} is PROPOSED since 2026-11-21 09:00:00",
    )
    gone = asked(look(*MADE, *GONE), "node", "n1")
    assert gone["removed because"] == ("empty", f"command {ORDER} is DONE since 2026-11-21 09:03:00")


def test_a_machine_costs_its_price_from_launch_to_its_end_or_until_now() -> None:
    cost = explained(look(*MADE, *GONE), "node", "n1").cost
    assert cost is not None
    assert (round(cost.usd, 6), cost.usd_per_hour, round(cost.hours, 4)) == (round(0.06 * 62 / 60, 6), 0.0, 1.0333)
    still = explained(look(*MADE, minutes=120), "node", "n1").cost
    assert still is not None
    assert (round(still.usd, 6), still.usd_per_hour) == (0.12, 0.06)
    assert explained(look(entry(0, claim())), "nodeclaim", "c1").cost is None


def test_a_claim_without_an_instance_says_so() -> None:
    told = asked(look(entry(0, claim())), "nodeclaim", "c1")
    assert told["bought as"] == ("nothing yet",)
    assert told["is"] == ("a node that has not joined yet, NodeClaim c1, of NodePool default",)


def test_a_claim_that_is_made_again_is_another_machine() -> None:
    given_up = DeleteObject(kind="NodeClaim", name="c1", why="insufficient_capacity")
    seen = look(entry(0, claim(), given_up), entry(3, claim(), *launched(), notes=(price(),)))
    told = asked(seen, "nodeclaim", "c1")
    assert "removed because" not in told
    assert len(seen.machines) == 2


def test_who_asks_for_a_claim_is_told_before_who_launches_it_at_the_same_instant(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, entry(0, *launched(), notes=(price(),)), entry(0, claim(), function="disrupt"))
    assert run("nodepool", "default", journal, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answers"][0]["words"] == ["1 known, 1 there at the end"]
    assert [one["function"] for one in told["happened"]] == ["disrupt", "provision"]


def test_a_verdict_on_an_earlier_machine_of_the_same_name_is_not_its_own() -> None:
    before = entry(-5, function="disrupt", notes=(note("Node", "n1", "kept", "x"),))
    assert "why not removed" not in asked(look(before, *MADE), "node", "n1")


def test_a_status_that_is_none_tells_nothing() -> None:
    broken = PatchStatus(kind="NodeClaim", name="c1", status="{")
    assert asked(look(entry(0, claim(), broken)), "nodeclaim", "c1")["bought as"] == ("nothing yet",)


def test_the_story_of_a_machine_is_in_order_and_in_words() -> None:
    assert lines(look(*MADE, *GONE), "node", "n1") == [
        f"NodeClaim c1 created: {ASKED}",
        "CreateFleet: 1 x spot",
        "NodeClaim c1 launched: c5.xlarge, spot, in us-east-1c, $0.0600 per hour",
        "Node n1 registered: the node of c1",
        "Node n1 tainted: karpenter.sh/disrupted: ",
        f"Node n1 PROPOSED: {ORDER}: {SUMMARY}",
        "NodeClaim c1 deleted: empty",
        f"Node n1 DRAINING: {ORDER}: its nodes are drained",
        "2 pods evicted from n1: Empty: shop/cart, shop/till",
        "i-1 terminated: its claim is deleted",
        "Node n1 released: its instance is gone",
        "Node n1 deleted: its claim is deleted",
        f"Node n1 DONE: {ORDER}: its nodes are gone",
    ]


def test_what_was_not_done_says_what_became_of_it() -> None:
    failed = (Done(action=claim(), result="failed", message="Throttled: later"),)
    skipped = (Done(action=evict(), result="skipped", message="EvictionRefused: web"),)
    seen = look(entry(0, done=failed), entry(1, done=skipped, function="lifecycle"))
    [made] = story(seen.cycles, frozenset((("NodeClaim", "c1"),)))
    assert (made.is_failed, made.why) == (True, f"{ASKED}; failed: Throttled: later")
    [stayed] = story(seen.cycles, frozenset((("Node", "n1"),)))
    assert stayed.why == "Empty: shop/cart; skipped: EvictionRefused: web"
    assert "moved" not in asked(seen, "pod", "cart")
    assert seen.machines == ()


def event(reason: str, message: str, kind: str = "Node", name: str = "n1", namespace: str = "") -> PublishEvent:
    return PublishEvent(kind=kind, name=name, namespace=namespace, reason=reason, message=message, at=START)


def test_an_event_whose_words_go_on_changing_is_one_line_with_its_last_words() -> None:
    def cycle(minute: float, left: int) -> Entry:
        waits = event("FailedDraining", f"{left} pods")
        return entry(minute, event("Waiting", "so"), waits, function="lifecycle")

    happened = explained(look(cycle(0, 3), cycle(1, 2), cycle(2, 1), *MADE), "node", "n1").happened
    told = {one.what: (one.why, one.times) for one in happened}
    assert told["FailedDraining"] == ("1 pods", 3)
    assert told["Waiting"] == ("so", 3)


def test_what_a_note_says_is_not_said_again_by_its_event() -> None:
    seen = look(entry(0, event("DisruptionBlocked", "x"), notes=(note("Node", "n1", "blocked", "x"),)))
    assert lines(seen, "node", "n1") == ["Node n1 blocked: x"]


def test_other_actions_have_their_words() -> None:
    happened = entry(
        0,
        NominatePod(namespace="shop", name="cart", uid="u", node="n1", why="it was made for it"),
        DeletePod(namespace="shop", name="cart", uid="u", node="n1", grace_seconds=5, why="time is up"),
        FollowUp(function="provision", after=timedelta(), why="soon"),
        event("Odd", "x", "Pod", "cart", "shop"),
        TaintNode(name="n1", resource_version="1", taints=(), why="rolled back"),
        PatchMetadata(kind="Node", name="n1", annotations=(("a", "b"),), why="pods are expected there"),
    )
    assert lines(look(happened), "pod", "cart") == [
        "kube-scheduler told of n1: it was made for it",
        "deleted on n1: time is up; 5 s of grace",
        "Odd: x",
    ]
    assert [f"{one.what}: {one.why}" for one in story(look(happened).cycles, frozenset((("Node", "n1"),)))] == [
        "1 pod deleted on n1: time is up: shop/cart",
        "Node n1: taints removed: rolled back",
    ]


# NodePools and commands


def test_a_pool_is_told_of_its_machines_and_of_the_pods_that_it_turns_down() -> None:
    waits = entry(64, notes=tuple(note("Pod", f"shop/{one}", "RequirementsNotMet", TURNED_DOWN) for one in "abc"))
    kept = entry(65, function="disrupt", notes=(note("Node", "n2", "kept", "Policy: x"),))
    two = entry(50, claim("c2", ()), *launched("c2", "i-2"), notes=(price("c2"),))
    joined = entry(51, PatchStatus(kind="NodeClaim", name="c2", status='{"nodeName": "n2"}'), function="lifecycle")
    told = asked(look(*MADE, two, joined, *GONE, waits, kept), "nodepool", "default")
    assert told["machines"] == ("2 known, 1 there at the end",)
    assert told["bought as"] == ("2 x c5.xlarge, spot, in us-east-1c",)
    assert told["removed because"] == ("1 x empty",)
    assert told["why not removed"] == ("1 x kept: Policy: x",)
    assert told["turned down"] == ("3 x no instance type with 512 GiB in us-east-1a",)
    assert told["cost"][1] == "$0.0600 per hour at the end"


def test_a_long_tally_ends_with_a_count() -> None:
    reasons = [note("Pod", f"shop/{one}", "RequirementsNotMet", f"pool default: too {one}") for one in "abcdefg"]
    told = asked(look(*MADE, entry(4, notes=tuple(reasons))), "nodepool", "default")
    assert told["turned down"][-2:] == ("1 x too e", "… and 2 others")


def test_a_pool_has_its_problems_in_its_story() -> None:
    problem = Problem(kind="NodePool", name="default", message="its node class does not exist")
    assert lines(look(entry(0, problems=(problem,))), "nodepool", "default") == [
        "problem with NodePool default: its node class does not exist"
    ]


def test_a_command_is_told_with_its_steps_its_machines_and_what_it_saves() -> None:
    two = entry(60.5, claim("c2", ()), launch("c2"), *launched("c2", "i-2"), notes=(price("c2"),))
    first = step(60, "PROPOSED", SUMMARY, by=("c2",))
    seen = look(*MADE, first, two, *GONE[1:])
    told = asked(seen, "command", ORDER)
    assert told["is"] == ("DONE since 2026-11-21 09:03:00, 0:03:00 after it was proposed",)
    assert told["why"] == (SUMMARY, "its nodes are gone")
    assert told["saves"] == ("$0.0600 per hour",)
    assert told["nodes that go"][0].startswith("node n1, NodeClaim c1, i-1")
    assert told["in their place"] == (
        (
            "a node that has not joined yet, NodeClaim c2, i-2, of NodePool default: "
            "c5.xlarge, spot, in us-east-1c, $0.0600 per hour: EC2's choice among 2 offerings"
        ),
    )
    assert told["steps"][0].startswith("PROPOSED 2026-11-21 09:00:00, DRAINING")
    happened = lines(seen, "command", ORDER)
    assert f"Command {ORDER} DONE: its nodes are gone" in happened
    assert not [one for one in happened if one.startswith("Node n1 DONE")], "its nodes' notes say the same"
    assert not [one for one in happened if "c1 created" in one], "that was before it"


def test_a_command_names_nodes_of_which_nothing_else_is_known() -> None:
    assert asked(look(GONE[0]), "command", ORDER)["nodes that go"] == ("n1, c1",)
