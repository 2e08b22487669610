"""Candidates, and which of them are empty."""

from datetime import timedelta

import pytest

from shared.decide.disruption.candidates import Candidate, evaluate_candidate
from shared.decide.disruption.consolidation_policy import explain_emptiness_refusal
from shared.decide.disruption.disruption_controller import DisruptionDecision, decide_node_disruption
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import OwnerReference
from shared.model.core.requirements import ANYTHING
from shared.model.core.resources import NONE
from shared.model.decisions.disruption_verdict import BlockedVerdict, DisruptedVerdict
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.state.cluster_state import ClusterState
from shared.state.state_node import compute_pod_digest
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    make_pod_disruption_budget,
    make_true_conditions,
    replace_fields,
)

FREE = replace_fields(POOL, budgets=())
GRACE_PERIOD = timedelta(minutes=1)


def make_quiet_claim(name: str = "a", pods: Case = (), **fields: Case) -> Case:
    return make_claim(name, annotations={labels.POD_DIGEST: compute_pod_digest(pods)}, **fields)


def build_single_node_cluster(
    node_claim: Case = None, existing_node: Case = None, *pods: Case, **fields: Case
) -> ClusterSnapshot:
    default_fields = {
        "node_claims": (node_claim or make_quiet_claim(pods=pods),),
        "nodes": (existing_node or make_node(),),
        "pods": pods,
    }
    return make_cluster(**(default_fields | {"node_pools": (FREE,)} | fields))


def decide_disruption(of_world: ClusterSnapshot, busy: frozenset[str] = frozenset()) -> DisruptionDecision:
    return decide_node_disruption(ClusterState(of_world), options=SchedulingOptions(), command_nodes=busy)


def get_verdict(of_world: ClusterSnapshot) -> tuple[str, str]:
    [only] = decide_disruption(of_world).verdicts
    return only.verdict, only.reason


def without_label(owner: Case, key: str) -> Case:
    return replace_fields(
        owner, meta=replace_fields(owner.meta, labels=tuple(pair for pair in owner.meta.labels if pair[0] != key))
    )


DO_NOT_DISRUPT_ANNOTATION = {labels.DO_NOT_DISRUPT: "true"}
AGENT = make_pod("agent", daemon=True)


@pytest.mark.parametrize(
    ("of_world", "reason", "message"),
    [
        (build_single_node_cluster(node_claims=()), "NotManaged", "is not managed"),
        (build_single_node_cluster(nodes=()), "NoNode", "does not have an associated node"),
        (build_single_node_cluster(None, make_node(fit=False)), "NotInitialized", "is not initialized"),
        (build_single_node_cluster(make_quiet_claim(deleted=NOW)), "Deleting", "marked for deletion"),
        (build_single_node_cluster(None, make_node(deleted=NOW)), "Deleting", "marked for deletion"),
        (
            build_single_node_cluster(None, make_node(annotations={labels.NOMINATED_UNTIL: "2026-11-21T12:00:01Z"})),
            "Nominated",
            "pending pod",
        ),
        (
            build_single_node_cluster(None, make_node(annotations=DO_NOT_DISRUPT_ANNOTATION)),
            "DoNotDisrupt",
            "do-not-disrupt",
        ),
        (build_single_node_cluster(None, without_label(make_node(), labels.NODEPOOL)), "NoNodePool", "no label"),
        (build_single_node_cluster(node_pools=()), "NodePoolNotFound", "NodePool=default"),
        (
            build_single_node_cluster(
                None, None, make_pod("agent", daemon=True, annotations=DO_NOT_DISRUPT_ANNOTATION)
            ),
            "PodBlocksEviction",
            "shop/agent",
        ),
        (
            build_single_node_cluster(None, None, AGENT, budgets=(make_pod_disruption_budget("agent", allowed=0),)),
            "PodBlocksEviction",
            "shop/guard",
        ),
        (
            build_single_node_cluster(
                None,
                None,
                AGENT,
                budgets=(make_pod_disruption_budget("agent"), make_pod_disruption_budget("agent", "two")),
            ),
            "PodBlocksEviction",
            "supports only one",
        ),
    ],
)
def test_blocked_node_reports_its_reason(of_world: ClusterSnapshot, reason: str, message: str) -> None:
    [only] = decide_disruption(of_world).verdicts
    assert isinstance(only, BlockedVerdict)
    assert only.reason == reason
    assert message in only.summary


@pytest.mark.parametrize(
    "of_world",
    [
        build_single_node_cluster(None, make_node(annotations={labels.DO_NOT_DISRUPT: "false"})),
        build_single_node_cluster(None, make_node(annotations={labels.NOMINATED_UNTIL: "2026-11-21T12:00:00Z"})),
        build_single_node_cluster(
            None, None, make_pod("agent", daemon=True, annotations=DO_NOT_DISRUPT_ANNOTATION, phase="Succeeded")
        ),
        build_single_node_cluster(None, None, AGENT, budgets=(make_pod_disruption_budget("agent"),)),
        build_single_node_cluster(None, None, AGENT, budgets=(make_pod_disruption_budget("other", allowed=0),)),
    ],
)
def test_inactive_blockers_do_not_prevent_disruption(of_world: ClusterSnapshot) -> None:
    assert get_verdict(of_world) == ("disrupted", "Empty")


def test_eventual_disruption_ignores_pod_blockers_with_a_termination_grace_period() -> None:
    protected_pod = make_pod(annotations=DO_NOT_DISRUPT_ANNOTATION)
    for node_claim, class_, kind in (
        (make_quiet_claim(), "eventual", BlockedVerdict),
        (make_quiet_claim(termination_grace_period=GRACE_PERIOD), "graceful", BlockedVerdict),
        (make_quiet_claim(termination_grace_period=GRACE_PERIOD), "eventual", Candidate),
    ):
        field = ClusterState(build_single_node_cluster(node_claim, None, protected_pod))
        assert isinstance(evaluate_candidate(field.nodes[0], field, frozenset(), class_), kind)  # type: ignore[arg-type]  # one of two words


def make_low_cost_pod(**fields: Case) -> Case:
    return make_pod(annotations={labels.POD_DELETION_COST: "-134217728"}, **fields)


@pytest.mark.parametrize(
    ("of_world", "expected_reason"),
    [
        (build_single_node_cluster(node_pools=(replace_fields(FREE, replicas=1),)), "StaticPool"),
        (
            build_single_node_cluster(node_pools=(replace_fields(FREE, consolidate_after=None),)),
            "ConsolidationDisabled",
        ),
        (build_single_node_cluster(None, None, make_pod()), "NotEmpty"),
        (build_single_node_cluster(None, None, make_pod(deleted=NOW), budgets=()), None),
        (
            build_single_node_cluster(
                None,
                None,
                replace_fields(
                    make_pod(deleted=NOW),
                    meta=replace_fields(
                        make_pod(deleted=NOW).meta,
                        owners=(OwnerReference(api_version="apps/v1", kind="StatefulSet", name="o", uid="o"),),
                    ),
                ),
            ),
            "NotEmpty",
        ),
        (build_single_node_cluster(None, None, make_low_cost_pod()), None),
        (build_single_node_cluster(None, None, AGENT), None),
        (build_single_node_cluster(make_quiet_claim(), None, make_pod(deleted=NOW)), "PodsChanged"),
        (
            build_single_node_cluster(
                make_quiet_claim(last_pod_event_at=NOW),
                node_pools=(replace_fields(FREE, consolidate_after=GRACE_PERIOD),),
            ),
            "NotConsolidatable",
        ),
        (
            build_single_node_cluster(
                make_quiet_claim(last_pod_event_at=get_time_before(minutes=1)),
                node_pools=(replace_fields(FREE, consolidate_after=GRACE_PERIOD),),
            ),
            None,
        ),
        (build_single_node_cluster(make_claim()), "NotConsolidatable"),
        (build_single_node_cluster(make_claim(conditions=make_true_conditions(*STAGES, "Consolidatable"))), None),
        (build_single_node_cluster(node_pools=(replace_fields(FREE, consolidation_policy="WhenEmpty"),)), None),
    ],
)
def test_node_is_empty_when_it_has_no_reschedulable_pods_and_is_consolidatable(
    of_world: ClusterSnapshot, expected_reason: Case
) -> None:
    field = ClusterState(of_world)
    [candidate] = [evaluate_candidate(state, field) for state in field.nodes]
    assert isinstance(candidate, Candidate)
    refusal = explain_emptiness_refusal(candidate, field, frozenset())
    assert (refusal.reason if refusal is not None else None) == expected_reason
    assert (get_verdict(of_world) == ("disrupted", "Empty")) == (expected_reason is None)


def test_zero_budget_keeps_an_empty_node() -> None:
    assert get_verdict(
        build_single_node_cluster(node_pools=(replace_fields(FREE, budgets=(DisruptionBudget(nodes="0"),)),))
    ) == ("blocked", "Budget")


def test_node_nominated_for_pending_pods_is_protected() -> None:
    field = ClusterState(build_single_node_cluster())
    blocked = evaluate_candidate(field.nodes[0], field, frozenset(("node-a",)))
    assert isinstance(blocked, BlockedVerdict)
    assert blocked.reason == "Nominated"


def build_priced_catalog(*prices: float) -> Catalog:
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
    return Catalog(region="us-east-1", instance_types=types)


def build_fleet(allowed: str, *node_claims: Case, **fields: Case) -> ClusterSnapshot:
    names = [node_claim.name for node_claim in node_claims]
    going = {node_claim.name for node_claim in node_claims if len(node_claim.conditions) > len(STAGES)}
    nodes = tuple(
        make_node(name, extra={labels.INSTANCE_TYPE: f"t{number}"}, going=name in going)
        for number, name in enumerate(names)
    )
    pool = replace_fields(POOL, budgets=(DisruptionBudget(nodes=allowed),))
    return make_cluster(**({"node_claims": node_claims, "nodes": nodes, "node_pools": (pool,)} | fields))


def get_reasons_by_node(decision: DisruptionDecision) -> dict[str, str]:
    return {node_verdict.node.removeprefix("node-"): node_verdict.reason for node_verdict in decision.verdicts}


def test_empty_nodes_with_the_highest_price_are_deleted_first_within_the_budget() -> None:
    decision = decide_disruption(
        build_fleet(
            "1",
            make_quiet_claim("a"),
            make_quiet_claim("b"),
            make_quiet_claim("c"),
            catalog=build_priced_catalog(0.1, 0.3, 0.2),
        )
    )
    assert get_reasons_by_node(decision) == {"a": "Budget", "b": "Empty", "c": "Budget"}
    [disrupted_verdict] = [
        node_verdict for node_verdict in decision.verdicts if isinstance(node_verdict, DisruptedVerdict)
    ]
    assert disrupted_verdict.price_usd_per_hour == 0.3
    assert disrupted_verdict.summary.startswith("Empty: ")


def test_empty_nodes_of_equal_price_are_deleted_by_name() -> None:
    assert get_reasons_by_node(decide_disruption(build_fleet("1", make_quiet_claim("b"), make_quiet_claim("a")))) == {
        "a": "Empty",
        "b": "Budget",
    }


def test_nodes_of_proposed_commands_count_against_the_budget() -> None:
    node_claims = (make_quiet_claim("a"), make_quiet_claim("b"), make_quiet_claim("c"))
    decision = decide_disruption(
        build_fleet("1", *node_claims, catalog=build_priced_catalog(9.0, 0.1, 0.2)), frozenset({"node-c"})
    )
    assert get_reasons_by_node(decision) == {"a": "Budget", "b": "Budget"}


def test_deleting_nodes_count_against_the_budget() -> None:
    assert (
        get_reasons_by_node(decide_disruption(build_fleet("1", make_quiet_claim("a"), make_claim("b", deleted=NOW))))[
            "a"
        ]
        == "Budget"
    )


def test_not_ready_node_counts_against_its_own_budget() -> None:
    assert get_verdict(
        build_single_node_cluster(
            None, make_node(ready=False), node_pools=(replace_fields(POOL, budgets=(DisruptionBudget(nodes="100%"),)),)
        )
    )[1] == ("Budget")


def test_emptiness_decision_has_a_verdict_for_every_node() -> None:
    node_claims = (
        make_quiet_claim("a"),
        make_quiet_claim("b"),
        make_quiet_claim("c"),
        make_claim("d", launched=False, conditions=()),
    )
    foreign = make_node("x", provider_id="aws:///us-east-1a/i-other")
    of_world = build_fleet("10", *node_claims[:3], pods=(make_pod(on="b"),))
    of_world = replace_fields(of_world, node_claims=node_claims, nodes=(*of_world.nodes, foreign))
    decision = decide_disruption(of_world)
    assert [(node_verdict.node, node_verdict.verdict) for node_verdict in decision.verdicts] == [
        ("d", "blocked"),
        ("node-a", "disrupted"),
        ("node-b", "kept"),
        ("node-c", "disrupted"),
        ("node-x", "blocked"),
    ]
    assert [command.list_node_names() for command in decision.commands] == [{"node-a", "node-c"}]
    assert decision == decide_disruption(of_world)


@pytest.mark.parametrize(
    ("note", "event", "reason"),
    [
        ({labels.COMMAND: "drift-1"}, None, "Empty"),
        ({labels.COMMAND: "drift-1"}, get_time_before(minutes=5), "ConsolidationDisabled"),
        ({}, None, "ConsolidationDisabled"),
        ({labels.COMMAND: "drift-1", labels.POD_DIGEST: "another"}, None, "ConsolidationDisabled"),
    ],
    ids=["unused replacement", "had pods before", "not created by a command", "pod digest changed"],
)
def test_unused_replacement_is_deleted_although_its_node_pool_disables_consolidation(
    note: dict[str, str], event: Case, reason: str
) -> None:
    node_claim = make_claim(
        "a", annotations={labels.POD_DIGEST: compute_pod_digest(())} | note, last_pod_event_at=event
    )
    cluster_snapshot = build_single_node_cluster(node_claim, node_pools=(replace_fields(FREE, consolidate_after=None),))
    assert get_verdict(cluster_snapshot)[1] == reason
