"""`joiner explain`: what the journal knows of a pod, a machine, a NodePool, a command."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli import explain_journals
from cli.explain_answers import explained
from cli.explain_journals import Cycle, Journal, cycles_of
from cli.explain_kinds import KINDS, Kind
from cli.explain_look import Look, looked
from cli.explain_page import page
from cli.explain_told import story
from cli.main import main
from cli.text import Palette
from shared.errors import Forbidden, Gone
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetRequest, LaunchTemplateConfig, Override
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta, Problem
from shared.model.taints import Taint
from shared.report.journal import LAUNCHED, Done, Entry, Note, key_of
from shared.snapshot.documents import cluster_from_documents
from sim import play
from sim.clock import START
from sim.embedded import Embedded
from sim.memory import MemoryBucket
from tests.unit.plays import deployment, narrow
from tests.unit.plays import document as scenario

Out = pytest.CaptureFixture[str]
PLAIN = Palette(enabled=False)
PODS = ("shop/cart", "shop/till")
BOUGHT = ((INSTANCE_TYPE, "c5.xlarge"), (CAPACITY_TYPE, "spot"), (NODEPOOL, "default"), (ZONE, "us-east-1c"))
ASKED = "2 pods fit no node; cheapest of 9 types that hold them: m5.large spot in us-east-1a $0.0500/h"
TURNED_DOWN = "pool gpu: needs toleration nvidia.com/gpu; pool default: no instance type with 512 GiB in us-east-1a"
DRAIN = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")


def entry(minute: float, *actions: Action, function: str = "provision", **fields: Any) -> Entry:
    done = tuple(Done(action=action, result="done") for action in actions)
    at = START + timedelta(minutes=minute)
    return Entry(function=function, trigger="schedule", at=at, cluster="abc", **({"done": done} | fields))


def note(kind: str, name: str, verdict: str, why: str, **fields: Any) -> Note:
    return Note(kind=kind, name=name, verdict=verdict, why=why, **fields)


def claim(name: str = "c1", pods: tuple[str, ...] = PODS) -> CreateNodeClaim:
    made = NodeClaim(meta=Meta(name=name, labels=((NODEPOOL, "default"),)), node_class=NodeClassRef(name="default"))
    return CreateNodeClaim(claim=made, pods=pods, why=ASKED)


def launch(*claims: str) -> LaunchInstances:
    offers = tuple(
        Override(instance_type=name, zone="us-east-1a", subnet_id="subnet-a", priority=0.05)
        for name in ("m5.large", "c5.xlarge")
    )
    asked = FleetRequest(
        client_token="t",  # noqa: S106 - EC2's word
        capacity=len(claims),
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(LaunchTemplateConfig(launch_template_name="lt", overrides=offers),),
    )
    return LaunchInstances(
        group=LaunchGroup(name="g", claims=claims, request=asked, templates=(), created_at=START), why="1 x spot"
    )


def refused(name: str, zone: str = "us-east-1a", capacity_type: str = "spot", **fields: str) -> MarkUnavailable:
    out = UnavailableOffering(capacity_type=capacity_type, instance_type=name, zone=zone, until=START, **fields)
    return MarkUnavailable(offering=out, why="InsufficientInstanceCapacity: none is left")


def launched(name: str = "c1", instance: str = "i-1") -> tuple[Action, ...]:
    status = json.dumps({"providerID": f"aws:///us-east-1c/{instance}"})
    return (
        PatchMetadata(kind="NodeClaim", name=name, labels=BOUGHT, why="launched"),
        PatchStatus(kind="NodeClaim", name=name, status=status, why="it is there"),
    )


def price(name: str = "c1") -> Note:
    return note("NodeClaim", name, LAUNCHED, "c5.xlarge, spot, in us-east-1c, $0.0600 per hour", usd_per_hour=0.06)


def evict(pod: str = "cart", node: str = "n1") -> EvictPod:
    return EvictPod(namespace="shop", name=pod, uid="u", node=node, why="Empty")


JOINS = RegisterNode(
    name="n1",
    resource_version="1",
    taints=(),
    labels=(),
    annotations=(),
    finalizers=(),
    owners=(),
    why="the node of c1",
)
TAGGED = TagInstance(instance_id="i-1", tags=(("Name", "n1"), ("karpenter.sh/nodeclaim", "c1")))
MADE = (
    entry(
        0,
        claim(),
        launch("c1"),
        *launched(),
        notes=(price(), *(note("Pod", one, "nodeclaim/c1", "new m5.large or like it") for one in PODS)),
    ),
    entry(1, JOINS, TAGGED, function="lifecycle"),
    entry(2, notes=(note("Pod", "shop/cart", "node/n1", "fits what is there"),)),
)
ORDER = "emptiness-0123"
SUMMARY = "Emptiness (Empty) of n1: no pod on it"
GOES = ("Node/n1", "NodeClaim/c1")


def step(minute: float, phase: str, why: str, *actions: Action, by: tuple[str, ...] = ()) -> Entry:
    told = (
        note(
            "Command",
            ORDER,
            phase,
            f"{why}; {SUMMARY}" if why != SUMMARY else why,
            links=GOES,
            replaced_by=by,
            usd_per_hour=0.06,
        ),
        note("Node", "n1", phase, f"{ORDER}: {why}", links=(f"Command/{ORDER}",)),
    )
    return entry(minute, *actions, function="disrupt", notes=told)


GONE = (
    step(60, "PROPOSED", SUMMARY, TaintNode(name="n1", resource_version="2", taints=(DRAIN,))),
    step(61, "DRAINING", "its nodes are drained", DeleteObject(kind="NodeClaim", name="c1", why="empty")),
    entry(61.5, evict("cart"), evict("till"), function="lifecycle"),
    entry(
        62,
        TerminateInstances(instance_ids=("i-0", "i-1"), why="its claim is deleted"),
        PatchMetadata(kind="Node", name="n1", finalizers=(), why="its instance is gone"),
        DeleteObject(kind="Node", name="n1", why="its claim is deleted"),
        function="lifecycle",
    ),
    step(63, "DONE", "its nodes are gone"),
)


def look(*entries: Entry, live: Cluster | None = None, minutes: float = 90) -> Look:
    cycles = tuple(Cycle(key=f"{place:03}.json", entry=one) for place, one in enumerate(entries))
    return looked(Journal(source="here", cycles=cycles, now=START + timedelta(minutes=minutes)), live)


def asked(seen: Look, kind: Kind, name: str) -> dict[str, tuple[str, ...]]:
    return {one.question: one.words for one in explained(seen, kind, name).answers}


def lines(seen: Look, kind: Kind, name: str) -> list[str]:
    return [f"{one.what}: {one.why}" for one in explained(seen, kind, name).happened]


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


# Live


def documents() -> list[dict[str, Any]]:
    def made(api: str, kind: str, name: str, spec: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        meta = {"name": name, "uid": name, "creationTimestamp": "2026-11-21T08:00:00Z"} | more.pop("metadata", {})
        return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": dict(spec), **more}

    container = {"containers": [{"name": "main", "image": "x"}]}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    bought = {"labels": dict(BOUGHT)}
    lame = {"type": "Initialized", "status": "Unknown", "reason": "x", "message": "a startup taint is left"}
    return [
        made("v1", "Pod", "on", container | {"nodeName": "n1"}, metadata={"namespace": "shop"}),
        made("v1", "Pod", "off", container, metadata={"namespace": "shop"}, status={"conditions": [waits]}),
        made(
            "v1",
            "Pod",
            "soon",
            container,
            metadata={"namespace": "shop"},
            status={"conditions": [waits], "nominatedNodeName": "n1"},
        ),
        made("v1", "Node", "n1", {"taints": [{"key": "a", "effect": "NoSchedule"}]}, metadata=bought),
        made("v1", "Node", "bare", {}),
        made(
            "karpenter.sh/v1",
            "NodeClaim",
            "c1",
            {"nodeClassRef": reference, "requirements": [], "expireAfter": "3h"},
            metadata=bought,
            status={"providerID": "aws:///us-east-1c/i-1", "nodeName": "n1", "conditions": [lame]},
        ),
        made(
            "karpenter.sh/v1",
            "NodeClaim",
            "c9",
            {"nodeClassRef": reference, "requirements": [], "expireAfter": "1h"},
        ),
        made(
            "karpenter.sh/v1",
            "NodePool",
            "default",
            {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
        ),
    ]


def alive() -> Cluster:
    found = cluster_from_documents(documents(), START + timedelta(minutes=90))
    assert found.problems == ()
    return found


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("pod", "on", ("on node n1",)),
        (
            "pod",
            "off",
            ("pending: Unschedulable: 0/1 nodes", "`joiner plan --context --pod shop/off` plans for it as it is now"),
        ),
        (
            "pod",
            "soon",
            (
                "pending: Unschedulable: 0/1 nodes",
                "nominated for node n1",
                "`joiner plan --context --pod shop/soon` plans for it as it is now",
            ),
        ),
        (
            "node",
            "n1",
            (
                "the Node is not ready, c5.xlarge, spot, us-east-1c, with 1 pod, 1 hour old",
                "tainted: a:NoSchedule",
                "the NodeClaim is launched",
                "Initialized is Unknown: a startup taint is left",
                "expires in 1 hour",
            ),
        ),
        ("node", "bare", ("the Node is not ready, with 0 pods, 1 hour old",)),
        ("nodeclaim", "c9", ("the NodeClaim is not launched yet", "its expireAfter has passed")),
        ("nodepool", "default", ("1 node, 1 claim, node class default",)),
    ],
)
def test_a_live_cluster_says_how_it_is_now(kind: Kind, name: str, said: tuple[str, ...]) -> None:
    assert asked(look(live=alive()), kind, name)["now"] == said


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("pod", "cart", ("it is not in the cluster, or it has ended",)),
        ("node", "n1", ("the Node is not in the cluster", "the NodeClaim is not in the cluster")),
        ("nodepool", "default", ("the NodePool is not in the cluster",)),
    ],
)
def test_what_a_live_cluster_has_no_more_is_said_to_be_gone(kind: Kind, name: str, said: tuple[str, ...]) -> None:
    assert asked(look(*MADE, live=Cluster(taken_at=START)), kind, name)["now"] == said


def test_a_machine_of_the_live_cluster_is_known_without_a_journal() -> None:
    told = asked(look(live=alive()), "node", "n1")
    assert told["is"] == ("node n1, NodeClaim c1, i-1, of NodePool default",)


def test_a_live_cluster_is_looked_at_where_one_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setattr("cli.explain.live_of", lambda *_: alive())
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    assert main(["explain", "pod", "off", "--context"]) == 0
    told = capsys.readouterr().out
    assert "pending: Unschedulable" in told
    assert "no journal was read" in told


# Where the journal is


def written(folder: Path, *entries: Entry) -> str:
    for place, one in enumerate(entries):
        path = folder / key_of(one, f"{place:03}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(one))
    return str(folder)


def run(kind: str, name: str, journal: str, *flags: str) -> int:
    return main(["explain", kind, name, "--journal", journal, *flags])


def test_the_page_has_answers_the_story_and_what_the_journal_covers(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "n1", written(tmp_path, *MADE, *GONE)) == 0
    told = capsys.readouterr().out
    assert told.startswith("node n1\n\nis                node n1, NodeClaim c1")
    assert "WHAT HAPPENED, in UTC and before 2026-11-21 09:03:00" in told
    assert "\n08:00:00  -1:03:00  provision  NodeClaim c1 created: 2 pods" in told
    assert "8 cycles from 2026-11-21 08:00:00 to 2026-11-21 09:03:00 UTC" in told


def test_json_and_yaml_say_the_same_with_stable_keys(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, *MADE, *GONE)
    assert run("node", "n1", journal, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert run("node", "n1", journal, "-o", "yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out) == told
    assert sorted(told) == ["answers", "cost", "happened", "journal", "kind", "name"]
    assert told["cost"] == {"usd": 0.062, "usdPerHour": 0.0, "hours": 1.0333}
    first = told["happened"][0]
    assert (first["at"], first["secondsAgo"], first["times"]) == ("2026-11-21T08:00:00Z", 3780, 1)
    assert first["cycle"] == "journal/provision/2026/11/21/080000-000.json"
    assert (told["journal"]["cycles"], told["journal"]["to"]) == (8, "2026-11-21T09:03:00Z")


def test_since_counts_back_from_the_last_cycle_or_from_now(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, *MADE, *GONE)
    assert run("node", "n1", journal, "--since", "10m", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["journal"]["cycles"] == 5
    flags = ("--since", "10m", "--now", "2026-11-21T09:12:00Z", "-o", "json")
    assert run("node", "n1", journal, *flags) == 0
    assert json.loads(capsys.readouterr().out)["journal"]["cycles"] == 2


def test_an_old_story_has_dates_and_a_long_one_is_cut() -> None:
    many = [entry(at, notes=(note("Node", "n1", "kept", f"reason {at}"),)) for at in range(50)]
    seen = look(*many, minutes=3 * 1440)
    said = explained(seen, "node", "n1")
    short = page(said, seen, PLAIN, 80, is_whole=False)
    assert "… 10 earlier lines (--all shows them)" in short
    assert "2026-11-21 08:10:00   -2d 23h  provision  Node n1 kept: reason 10" in short
    assert "reason 9" not in short
    assert "earlier" not in page(said, seen, PLAIN, None, is_whole=True)
    assert max(map(len, short.splitlines())) <= 80


def test_cycles_that_failed_are_told(tmp_path: Path, capsys: Out) -> None:
    failed = entry(70, error="Unreachable: kube.list /api/v1/pods: outage")
    assert run("node", "n1", written(tmp_path, *MADE, failed)) == 0
    assert "1 cycle failed, last provision: Unreachable: kube.list" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("pod", "shop/carts", "do you mean shop/cart or shop/till?"),
        ("pod", "ill", "do you mean shop/till?"),
        ("pod", "zzz", "known are shop/cart, shop/till"),
        ("node", "zz", "known are c1, i-1, n1"),
        ("pod", "n1", "not known; there is a node of that name"),
        ("command", "x", "nothing is known of it, nor of any other command"),
    ],
)
def test_what_is_not_known_is_said_with_what_is_like_it(
    kind: str, name: str, hint: str, tmp_path: Path, capsys: Out
) -> None:
    assert run(kind, name, written(tmp_path, *MADE)) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert hint in told.err
    assert "3 cycles from 2026-11-21 08:00:00 to 2026-11-21 08:02:00 UTC" in told.err
    assert "--since" not in told.err


def test_who_looked_at_a_part_only_is_told_that_there_may_be_more(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "zzz", written(tmp_path, *MADE), "--since", "1s") == 1
    assert "a longer --since sees more" in capsys.readouterr().err


def test_a_pod_whose_name_is_in_several_namespaces_is_asked_for(tmp_path: Path, capsys: Out) -> None:
    twice = entry(0, notes=(note("Pod", "a/cart", "NotReached", "x"), note("Pod", "b/cart", "NotReached", "x")))
    assert run("pod", "cart", written(tmp_path, twice)) == 1
    assert "there are several: write one of a/cart, b/cart" in capsys.readouterr().err


def test_what_cannot_be_read_is_named_and_the_rest_is_told(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, *MADE)
    for number in range(5):
        (tmp_path / "journal" / f"broken-{number}.json").write_text("{")
    (tmp_path / "journal" / "locked.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "costs.json").write_text("{}")
    assert run("node", "n1", journal) == 1
    told = capsys.readouterr()
    assert told.out.startswith("node n1")
    assert "joiner explain: journal/broken-0.json: no entry of a journal" in told.err
    assert "costs" not in told.err
    assert "and 3 more files" in told.err


def test_a_folder_that_is_not_there_is_named_with_a_remedy(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "n1", str(tmp_path / "nowhere")) == 1
    assert "no such folder: name one that holds a journal (`joiner demo --journal" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run("node", "n1", str(tmp_path / "file")) == 1
    assert "is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--journal", "x", "--since", "soon"],
        ["--journal", "x", "--since", "0s"],
        ["--journal", "x", "--now", "later"],
    ],
)
def test_wrong_usage_is_refused(flags: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "node", "n1", *flags])
    assert "usage: joiner explain" in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["explain", "--help"])
    told = capsys.readouterr().out
    assert "joiner demo --journal" in told
    assert "exit codes: 0 something is known" in told
    assert all(kind in told for kind in KINDS)


# A bucket


class Recorded(MemoryBucket):
    """A bucket that knows which prefixes were listed."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self.listed: list[str] = []

    def keys(self, prefix: str) -> tuple[str, ...]:
        self.listed.append(prefix)
        return super().keys(prefix)


def filled(*entries: Entry, under: str = "") -> Recorded:
    bucket = Recorded()
    for one in entries:
        bucket.put(f"{under}{key_of(one, 'x')}", msgspec.json.encode(one))
    return bucket


def test_of_a_bucket_only_the_days_that_count_are_listed_and_read() -> None:
    old, before = entry(-3000), entry(-600)
    bucket = filled(old, before, *MADE)
    found = cycles_of(bucket, "", START + timedelta(minutes=3), timedelta(minutes=2))
    assert {key for key, _ in found} == {key_of(MADE[1], "x"), key_of(MADE[2], "x")}
    assert {prefix.split("/", 2)[2] for prefix in bucket.listed} == {"2026/11/21/"}
    found = cycles_of(bucket, "", START, timedelta(hours=12))
    assert key_of(before, "x") in dict(found)
    assert key_of(old, "x") not in dict(found)


def test_a_bucket_may_have_the_journal_under_another_prefix() -> None:
    bucket = filled(*MADE, under="prod/")
    found = cycles_of(bucket, "prod/journal/", START + timedelta(hours=1), timedelta(days=1))
    assert len(found) == len(MADE)


def test_an_entry_that_expires_meanwhile_is_named() -> None:
    class Expiring(Recorded):
        def get(self, key: str) -> bytes:
            raise Gone(key)

    bucket = Expiring()
    bucket.put(key_of(MADE[0], "x"), b"{}")
    [(_, said)] = cycles_of(bucket, "", START + timedelta(hours=1), timedelta(days=1))
    assert said == "is gone: it became too old meanwhile"


def test_the_bucket_of_the_environment_is_read_and_one_that_does_not_answer_is_named(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOINER_BUCKET_NAME", "b")
    monkeypatch.setattr("cli.explain_journals.region_here", lambda: "us-east-1")
    bucket = filled(*MADE)
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda _, name: bucket if name == "b" else None)
    assert main(["explain", "node", "n1", "--now", "2026-11-21T09:00:00Z"]) == 0
    assert "s3://b: 3 cycles" in capsys.readouterr().out

    def forbidden(*_: object) -> None:
        raise Forbidden("s3:ListObjectsV2")

    monkeypatch.setattr(explain_journals, "cycles_of", forbidden)
    assert main(["explain", "node", "n1"]) == 1
    assert "--journal s3://b: Forbidden: s3:ListObjectsV2: see that" in capsys.readouterr().err
    assert run("node", "n1", "s3://") == 1
    assert "names no bucket: write s3://BUCKET" in capsys.readouterr().err


# The whole way


def test_the_journal_of_a_demo_can_be_asked(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(seed: int) -> Embedded:
        world = Embedded(seed)
        narrow(world)
        return world

    monkeypatch.setattr(play, "Embedded", small)
    act = {"name": "one", "do": [{"apply": deployment(2)}], "within": "4m", "expect": {"running": 2}}
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(scenario(act)), encoding="utf-8")
    kept = str(tmp_path / "kept")
    arguments = ["demo", "--scenario", str(tmp_path / "play.yaml"), "--page", "none", "--journal", kept]
    assert main(arguments) == 0
    assert f"journal: {kept}" in capsys.readouterr().out
    assert main(arguments) == 1
    assert "holds a journal already: remove it, or name another folder" in capsys.readouterr().err
    assert run("nodepool", "default", kept, "-o", "json") == 0
    pool = json.loads(capsys.readouterr().out)
    words = {one["question"]: one["words"] for one in pool["answers"]}
    assert words["machines"] == ["1 known, 1 there at the end"]
    assert pool["cost"]["usdPerHour"] > 0
    [made] = [one for one in pool["happened"] if one["what"].endswith("created")]
    assert run("nodeclaim", made["what"].split()[1], kept) == 0
    told = capsys.readouterr().out
    assert "made for          2 pods: default/web-" in told
    assert "registered: the node of" in told
    (tmp_path / "taken").write_text("")
    assert main([*arguments[:-1], str(tmp_path / "taken")]) == 1
    assert "taken" in capsys.readouterr().err
