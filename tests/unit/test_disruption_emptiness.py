"""Candidates, and those of them that are empty."""

from datetime import timedelta

import pytest

from shared.disruption.candidates import Blocked, Candidate, assess, field_of
from shared.disruption.decide import decide as decide_all
from shared.disruption.emptiness import decide
from shared.disruption.verdicts import Disrupted, Kept, Sweep
from shared.model import labels
from shared.model.action import DeleteObject, FollowUp, PatchStatus, PublishEvent, TaintNode
from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.nodepools import Budget
from shared.model.objects import Condition, Owner
from shared.model.requirements import ANYTHING
from shared.model.resources import NONE
from shared.model.state import pod_digest
from shared.model.taints import DISRUPTED
from tests.unit.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    ago,
    changed,
    claim,
    cluster,
    guard,
    node,
    of,
    pod,
    statuses,
    true,
)

FREE = changed(POOL, budgets=())
A_MOMENT_AGO = ago(seconds=5)
GRACE = timedelta(minutes=1)


def quiet(name: str = "a", pods: Case = (), **fields: Case) -> Case:
    return claim(name, annotations={labels.POD_DIGEST: pod_digest(pods)}, **fields)


def proposed(name: str = "a", since: Case = A_MOMENT_AGO, reason: str = "Empty", **fields: Case) -> Case:
    why = Condition(type="DisruptionReason", status="True", reason=reason, message=reason, since=since)
    return quiet(name, conditions=(*true(*STAGES), why), **fields)


def world(mine: Case = None, there: Case = None, *pods: Case, **fields: Case) -> Cluster:
    own = {"node_claims": (mine or quiet(pods=pods),), "nodes": (there or node(),), "pods": pods}
    return cluster(**(own | {"node_pools": (FREE,)} | fields))


def verdict(of_world: Cluster, nominated: frozenset[str] = frozenset()) -> tuple[str, str]:
    [only] = decide(of_world, nominated).verdicts
    return only.verdict, only.reason


def without(owner: Case, key: str) -> Case:
    return changed(owner, meta=changed(owner.meta, labels=tuple(pair for pair in owner.meta.labels if pair[0] != key)))


DND = {labels.DO_NOT_DISRUPT: "true"}
AGENT = pod("agent", daemon=True)


@pytest.mark.parametrize(
    ("of_world", "reason", "message"),
    [
        (world(node_claims=()), "NotManaged", "isn't managed"),
        (world(nodes=()), "NoNode", "does not have an associated node"),
        (world(None, node(fit=False)), "NotInitialized", "isn't initialized"),
        (world(quiet(deleted=NOW)), "Deleting", "marked for deletion"),
        (world(None, node(deleted=NOW)), "Deleting", "marked for deletion"),
        (world(None, node(annotations={labels.NOMINATED_UNTIL: "2026-11-21T12:00:01Z"})), "Nominated", "pending pod"),
        (world(None, node(annotations=DND)), "DoNotDisrupt", "do-not-disrupt"),
        (world(None, without(node(), labels.NODEPOOL)), "NoNodePool", "no label"),
        (world(node_pools=()), "NodePoolNotFound", "NodePool=default"),
        (world(None, None, pod("agent", daemon=True, annotations=DND)), "PodBlocksEviction", "shop/agent"),
        (world(None, None, AGENT, budgets=(guard("agent", allowed=0),)), "PodBlocksEviction", "shop/guard"),
        (
            world(None, None, AGENT, budgets=(guard("agent"), guard("agent", "two"))),
            "PodBlocksEviction",
            "supports one",
        ),
    ],
)
def test_a_node_that_may_not_be_touched_says_why(of_world: Cluster, reason: str, message: str) -> None:
    [only] = decide(of_world).verdicts
    assert isinstance(only, Blocked)
    assert only.reason == reason
    assert message in only.why


@pytest.mark.parametrize(
    "of_world",
    [
        world(None, node(annotations={labels.DO_NOT_DISRUPT: "false"})),
        world(None, node(annotations={labels.NOMINATED_UNTIL: "2026-11-21T12:00:00Z"})),
        world(None, None, pod("agent", daemon=True, annotations=DND, phase="Succeeded")),
        world(None, None, AGENT, budgets=(guard("agent"),)),
        world(None, None, AGENT, budgets=(guard("other", allowed=0),)),
    ],
)
def test_what_does_not_stand_in_the_way_does_not(of_world: Cluster) -> None:
    assert verdict(of_world) == ("disrupted", "Empty")


def test_eventual_disruption_passes_by_pods_if_the_claim_has_a_grace_period() -> None:
    held = pod(annotations=DND)
    for mine, class_, kind in (
        (quiet(), "eventual", Blocked),
        (quiet(termination_grace_period=GRACE), "graceful", Blocked),
        (quiet(termination_grace_period=GRACE), "eventual", Candidate),
    ):
        field = field_of(world(mine, None, held))
        assert isinstance(assess(field.states[0], field, class_), kind)  # type: ignore[arg-type]  # one of two words


def worthless(**fields: Case) -> Case:
    return pod(annotations={labels.POD_DELETION_COST: "-134217728"}, **fields)


@pytest.mark.parametrize(
    ("of_world", "kept"),
    [
        (world(node_pools=(changed(FREE, replicas=1),)), "StaticPool"),
        (world(node_pools=(changed(FREE, consolidate_after=None),)), "ConsolidationDisabled"),
        (world(None, None, pod()), "NotEmpty"),
        (world(None, None, pod(deleted=NOW), budgets=()), None),
        (
            world(
                None,
                None,
                changed(
                    pod(deleted=NOW),
                    meta=changed(
                        pod(deleted=NOW).meta,
                        owners=(Owner(api_version="apps/v1", kind="StatefulSet", name="o", uid="o"),),
                    ),
                ),
            ),
            "NotEmpty",
        ),
        (world(None, None, worthless()), None),
        (world(None, None, AGENT), None),
        (world(quiet(), None, pod(deleted=NOW)), "PodsChanged"),
        (
            world(quiet(last_pod_event_at=NOW), node_pools=(changed(FREE, consolidate_after=GRACE),)),
            "NotConsolidatable",
        ),
        (world(quiet(last_pod_event_at=ago(minutes=1)), node_pools=(changed(FREE, consolidate_after=GRACE),)), None),
        (world(claim()), "NotConsolidatable"),
        (world(claim(conditions=true(*STAGES, "Consolidatable"))), None),
        (world(node_pools=(changed(FREE, consolidation_policy="WhenEmpty"),)), None),
        (world(node_pools=(changed(FREE, budgets=(Budget(nodes="0"),)),)), "Budget"),
    ],
)
def test_a_node_is_empty_when_nothing_on_it_costs_anything_and_it_was_quiet(of_world: Cluster, kept: Case) -> None:
    assert verdict(of_world)[1] == (kept or "Empty")


def test_a_node_that_pending_pods_are_planned_on_is_protected() -> None:
    assert verdict(world(), frozenset(("node-a",))) == ("blocked", "Nominated")


def test_first_a_disruption_is_proposed() -> None:
    actions = decide(world()).actions
    assert [(one.taints, one.resource_version) for one in of(TaintNode, actions)] == [((DISRUPTED,), "8")]
    told = statuses(actions)["conditions"]["DisruptionReason"]
    assert (told["status"], told["reason"], told["lastTransitionTime"]) == ("True", "Empty", "2026-11-21T12:00:00Z")
    assert [(one.function, one.after.total_seconds()) for one in of(FollowUp, actions)] == [("disrupt", 5)]
    assert not of(DeleteObject, actions)


@pytest.mark.parametrize(("seconds", "gone"), [(4.9, False), (5, True)])
def test_a_proposal_is_carried_out_five_seconds_later(seconds: float, gone: bool) -> None:  # noqa: FBT001
    sweep = decide(world(proposed(since=ago(seconds=seconds)), node(going=True)))
    deleted = [(one.kind, one.name, one.uid, one.why) for one in of(DeleteObject, sweep.actions)]
    assert deleted == ([("NodeClaim", "a", "uid-a", "empty")] if gone else [])
    assert [one.function for one in of(FollowUp, sweep.actions)] == ["lifecycle" if gone else "disrupt"]
    assert ("DisruptionTerminating" in [one.reason for one in of(PublishEvent, sweep.actions)]) is gone
    assert not of(PatchStatus, sweep.actions)
    assert sweep.disrupted() == ("node-a",)


def test_a_proposal_without_its_taint_begins_again() -> None:
    actions = decide(world(proposed())).actions
    assert not of(DeleteObject, actions)
    assert of(TaintNode, actions)
    assert statuses(actions)["conditions"]["DisruptionReason"]["lastTransitionTime"] == "2026-11-21T12:00:00Z"


def test_a_taint_without_its_reason_is_half_a_proposal() -> None:
    actions = decide(world(None, node(going=True))).actions
    assert not of(TaintNode, actions)
    assert "DisruptionReason" in statuses(actions)["conditions"]


@pytest.mark.parametrize(
    "fields",
    [
        {"pods": (pod(),)},
        {"node_pools": (changed(POOL, budgets=(Budget(nodes="0"),)),)},
        {"node_pools": ()},
    ],
)
def test_a_proposal_that_no_longer_holds_is_taken_back(fields: Case) -> None:
    mine = proposed(pods=fields.get("pods", ()))
    actions = decide(world(mine, node(going=True), **fields)).actions
    assert [one.taints for one in of(TaintNode, actions)] == [()]
    assert set(statuses(actions)["conditions"]) == set(STAGES)
    assert not of(DeleteObject, actions)


@pytest.mark.parametrize(
    ("mine", "there"),
    [
        (proposed(reason="Drifted", pods=(pod(),)), node(going=True)),
        (proposed(pods=(pod(),), deleted=NOW), node(going=True)),
        (proposed(pods=(pod(),)), node(going=True, deleted=NOW)),
        (None, node()),
    ],
)
def test_what_is_not_ours_to_take_back_stays(mine: Case, there: Case) -> None:
    actions = decide(world(mine, there, pod())).actions
    assert not of(TaintNode, actions)
    assert not of(PatchStatus, actions)


def test_a_taint_that_nobody_explains_is_taken_away() -> None:
    actions = decide(world(None, node(going=True), pod())).actions
    assert [one.taints for one in of(TaintNode, actions)] == [()]
    assert not of(PatchStatus, actions)


def priced(*prices: float) -> Catalogue:
    """One instance type for each price, offered on demand at ten times as much."""
    types = tuple(
        InstanceType(
            name=f"t{number}",
            requirements=ANYTHING,
            capacity=NONE,
            overhead=NONE,
            offerings=(
                Offering(zone="us-east-1a", capacity_type="on-demand", price_usd_per_hour=10 * price),
                Offering(zone="us-east-1a", capacity_type="spot", price_usd_per_hour=price, available=False),
            ),
        )
        for number, price in enumerate(prices)
    )
    return Catalogue(region="us-east-1", instance_types=types)


def fleet(allowed: str, *mine: Case, **fields: Case) -> Cluster:
    names = [one.name for one in mine]
    going = {one.name for one in mine if len(one.conditions) > len(STAGES)}
    nodes = tuple(
        node(name, extra={labels.INSTANCE_TYPE: f"t{number}"}, going=name in going) for number, name in enumerate(names)
    )
    pool = changed(POOL, budgets=(Budget(nodes=allowed),))
    return cluster(**({"node_claims": mine, "nodes": nodes, "node_pools": (pool,)} | fields))


def verdicts(sweep: Sweep) -> dict[str, str]:
    return {one.node.removeprefix("node-"): one.reason for one in sweep.verdicts}


def test_the_best_savings_go_first_as_far_as_the_budget_allows() -> None:
    sweep = decide(fleet("1", quiet("a"), quiet("b"), quiet("c"), catalogue=priced(0.1, 0.3, 0.2)))
    assert verdicts(sweep) == {"a": "Budget", "b": "Empty", "c": "Budget"}
    [gone] = [one for one in sweep.verdicts if isinstance(one, Disrupted)]
    assert gone.price_usd_per_hour == 0.3
    assert gone.why.startswith("Empty: ")


def test_equal_savings_go_by_name() -> None:
    assert verdicts(decide(fleet("1", quiet("b"), quiet("a")))) == {"a": "Empty", "b": "Budget"}


def test_what_is_proposed_keeps_its_place_in_the_budget() -> None:
    mine = (quiet("a"), proposed("b", NOW), proposed("c", NOW))
    sweep = decide(fleet("1", *mine, catalogue=priced(9.0, 0.1, 0.2)))
    assert verdicts(sweep) == {"a": "Budget", "b": "Budget", "c": "Empty"}
    assert [one.name for one in of(TaintNode, sweep.actions)] == ["node-b"]


@pytest.mark.parametrize(
    "other",
    [claim("b", deleted=NOW), proposed("b", NOW, "Drifted")],
)
def test_whatever_else_goes_takes_from_the_budget(other: Case) -> None:
    assert verdicts(decide(fleet("1", quiet("a"), other)))["a"] == "Budget"


def test_a_broken_node_counts_against_itself() -> None:
    assert verdict(world(None, node(ready=False), node_pools=(changed(POOL, budgets=(Budget(nodes="100%"),)),)))[1] == (
        "Budget"
    )


@pytest.mark.parametrize(
    ("budget", "type_", "words"),
    [
        (Budget(nodes="0"), "Normal", "No allowed disruptions for disruption reason Empty due to blocking budget"),
        (Budget(nodes="x"), "Warning", "budgets[0]"),
    ],
)
def test_a_budget_that_blocks_everything_is_told(budget: Budget, type_: str, words: str) -> None:
    events = of(PublishEvent, decide(world(node_pools=(changed(POOL, budgets=(budget,)),))).actions)
    assert [(one.kind, one.reason, one.type) for one in events] == [("NodePool", "DisruptionBlocked", type_)]
    assert words in events[0].message
    idle = decide(cluster(node_pools=(changed(POOL, budgets=(Budget(nodes="0"),)),)))
    assert not of(PublishEvent, idle.actions)


def test_an_empty_node_that_may_not_go_says_so_and_a_busy_one_does_not() -> None:
    shy = node(annotations=DND)
    assert [one.kind for one in of(PublishEvent, decide(world(None, shy)).actions)] == ["NodeClaim", "Node"]
    assert not of(PublishEvent, decide(world(None, shy, pod())).actions)


@pytest.mark.parametrize(
    ("after", "wake"), [(timedelta(minutes=61), 60), (timedelta(minutes=75), 900), (timedelta(minutes=76), None)]
)
def test_an_empty_node_is_looked_at_again_when_it_will_have_been_quiet(after: timedelta, wake: int | None) -> None:
    actions = decide(world(node_pools=(changed(FREE, consolidate_after=after),))).actions
    assert [(one.function, one.after.total_seconds()) for one in of(FollowUp, actions)] == (
        [("disrupt", wake)] if wake else []
    )


def test_a_node_whose_pods_have_just_gone_is_looked_at_by_both() -> None:
    actions = decide(world(quiet(pods=(pod(),)))).actions
    assert [(one.function, one.after.total_seconds()) for one in of(FollowUp, actions)] == [
        ("disrupt", 10),
        ("lifecycle", 5),
    ]


def test_every_node_has_a_verdict() -> None:
    mine = (quiet("a"), quiet("b"), proposed("c"), claim("d", launched=False, conditions=()))
    foreign = node("x", provider_id="aws:///us-east-1a/i-other")
    of_world = fleet("10", *mine[:3], pods=(pod(on="b"),))
    of_world = changed(of_world, node_claims=mine, nodes=(*of_world.nodes, foreign))
    sweep = decide_all(of_world)
    assert [(one.node, one.verdict) for one in sweep.verdicts] == [
        ("d", "blocked"),
        ("node-a", "disrupted"),
        ("node-b", "kept"),
        ("node-c", "disrupted"),
        ("node-x", "blocked"),
    ]
    assert isinstance(sweep.verdicts[2], Kept)
    assert sweep.verdicts[2].why == "NotEmpty: 1 pods would need another place"
    assert sweep == decide(of_world)
