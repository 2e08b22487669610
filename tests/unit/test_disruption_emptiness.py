"""Candidates, and those of them that are empty."""

from datetime import timedelta

import pytest

from shared.disruption.candidates import Blocked, Candidate, assess, field_of
from shared.disruption.eligibility import kept_from_emptiness
from shared.disruption.sweep import Sweep, sweep
from shared.disruption.verdicts import Disrupted
from shared.model import labels
from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.nodepools import Budget
from shared.model.objects import Owner
from shared.model.requirements import ANYTHING
from shared.model.resources import NONE
from shared.model.state import pod_digest
from shared.scheduling.placement import Options
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
    pod,
    true,
)

FREE = changed(POOL, budgets=())
GRACE = timedelta(minutes=1)


def quiet(name: str = "a", pods: Case = (), **fields: Case) -> Case:
    return claim(name, annotations={labels.POD_DIGEST: pod_digest(pods)}, **fields)


def world(mine: Case = None, there: Case = None, *pods: Case, **fields: Case) -> Cluster:
    own = {"node_claims": (mine or quiet(pods=pods),), "nodes": (there or node(),), "pods": pods}
    return cluster(**(own | {"node_pools": (FREE,)} | fields))


def look(of_world: Cluster, busy: frozenset[str] = frozenset()) -> Sweep:
    return sweep(of_world, options=Options(), busy=busy)


def verdict(of_world: Cluster) -> tuple[str, str]:
    [only] = look(of_world).verdicts
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
    [only] = look(of_world).verdicts
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
    ],
)
def test_a_node_is_empty_when_nothing_on_it_costs_anything_and_it_was_quiet(of_world: Cluster, kept: Case) -> None:
    field = field_of(of_world)
    [one] = [assess(state, field) for state in field.states]
    assert isinstance(one, Candidate)
    found = kept_from_emptiness(one, field, frozenset())
    assert (found.reason if found is not None else None) == kept
    assert (verdict(of_world) == ("disrupted", "Empty")) == (kept is None)


def test_a_budget_of_none_keeps_an_empty_node() -> None:
    assert verdict(world(node_pools=(changed(FREE, budgets=(Budget(nodes="0"),)),))) == ("blocked", "Budget")


def test_a_node_that_pending_pods_are_planned_on_is_protected() -> None:
    field = field_of(world(), frozenset(("node-a",)))
    blocked = assess(field.states[0], field)
    assert isinstance(blocked, Blocked)
    assert blocked.reason == "Nominated"


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


def verdicts(found: Sweep) -> dict[str, str]:
    return {one.node.removeprefix("node-"): one.reason for one in found.verdicts}


def test_the_best_savings_go_first_as_far_as_the_budget_allows() -> None:
    found = look(fleet("1", quiet("a"), quiet("b"), quiet("c"), catalogue=priced(0.1, 0.3, 0.2)))
    assert verdicts(found) == {"a": "Budget", "b": "Empty", "c": "Budget"}
    [gone] = [one for one in found.verdicts if isinstance(one, Disrupted)]
    assert gone.price_usd_per_hour == 0.3
    assert gone.why.startswith("Empty: ")


def test_equal_savings_go_by_name() -> None:
    assert verdicts(look(fleet("1", quiet("b"), quiet("a")))) == {"a": "Empty", "b": "Budget"}


def test_what_is_proposed_keeps_its_place_in_the_budget() -> None:
    mine = (quiet("a"), quiet("b"), quiet("c"))
    found = look(fleet("1", *mine, catalogue=priced(9.0, 0.1, 0.2)), frozenset({"node-c"}))
    assert verdicts(found) == {"a": "Budget", "b": "Budget"}


def test_whatever_else_goes_takes_from_the_budget() -> None:
    assert verdicts(look(fleet("1", quiet("a"), claim("b", deleted=NOW))))["a"] == "Budget"


def test_a_broken_node_counts_against_itself() -> None:
    assert verdict(world(None, node(ready=False), node_pools=(changed(POOL, budgets=(Budget(nodes="100%"),)),)))[1] == (
        "Budget"
    )


def test_every_node_has_a_verdict() -> None:
    mine = (quiet("a"), quiet("b"), quiet("c"), claim("d", launched=False, conditions=()))
    foreign = node("x", provider_id="aws:///us-east-1a/i-other")
    of_world = fleet("10", *mine[:3], pods=(pod(on="b"),))
    of_world = changed(of_world, node_claims=mine, nodes=(*of_world.nodes, foreign))
    found = look(of_world)
    assert [(one.node, one.verdict) for one in found.verdicts] == [
        ("d", "blocked"),
        ("node-a", "disrupted"),
        ("node-b", "kept"),
        ("node-c", "disrupted"),
        ("node-x", "blocked"),
    ]
    assert [one.nodes() for one in found.commands] == [{"node-a", "node-c"}]
    assert found == look(of_world)


@pytest.mark.parametrize(
    ("note", "event", "reason"),
    [
        ({labels.COMMAND: "drift-1"}, None, "Empty"),
        ({labels.COMMAND: "drift-1"}, ago(minutes=5), "ConsolidationDisabled"),
        ({}, None, "ConsolidationDisabled"),
        ({labels.COMMAND: "drift-1", labels.POD_DIGEST: "another"}, None, "ConsolidationDisabled"),
    ],
    ids=["left over", "pods were there", "not of a command", "pods may have come"],
)
def test_a_replacement_that_was_never_used_goes_though_its_pool_consolidates_nothing(
    note: dict[str, str], event: Case, reason: str
) -> None:
    mine = claim("a", annotations={labels.POD_DIGEST: pod_digest(())} | note, last_pod_event_at=event)
    found = world(mine, node_pools=(changed(FREE, consolidate_after=None),))
    assert verdict(found)[1] == reason
