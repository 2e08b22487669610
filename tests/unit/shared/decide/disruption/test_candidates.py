"""Disruption rules that the result of a sweep of a whole fleet does not show."""

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.candidates import Candidate, evaluate_candidate
from shared.decide.disruption.consolidation_policy import explain_consolidation_refusal, is_within_consolidate_after
from shared.decide.disruption.savings.balanced_policy import BALANCED_POLICY, BalancedEvaluator
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.model.cloud_provider.instance_type import InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import Condition, build_pairs
from shared.model.core.taints import Taint
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_instance_type, make_node_class, make_node_pool, make_requirements
from tests.support.disruption_fleet import (
    MANY_SPOT,
    STAGES,
    TYPES,
    Machine,
    decide_disruption,
    get_verdict,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

BALANCED_POOLS = tuple(
    make_node_pool(name, budgets=(), consolidation_policy=BALANCED_POLICY) for name in ("one", "two")
)


def find_candidates_by_name(cluster: ClusterSnapshot) -> dict[str, Candidate]:
    field = ClusterState(cluster)
    evaluations = {one.name: evaluate_candidate(one, field) for one in field.nodes}
    return {name: candidate for name, candidate in evaluations.items() if isinstance(candidate, Candidate)}


def build_balanced_evaluator(cluster: ClusterSnapshot) -> BalancedEvaluator:
    return BalancedEvaluator(ClusterState(cluster), find_candidates_by_name(cluster))


def build_two_pool_cluster() -> ClusterSnapshot:
    """Pool `one` has an expensive node with few pods, pool `two` a cheap node with many; each has one more node."""
    small_pods = [make_web_pod(f"m{number}", "100m") for number in range(9)]
    return make_fleet(
        make_node_with_pods("a", make_web_pod("1"), cpu=16, pool="one"),
        make_node_with_pods("b", make_web_pod("2"), cpu=4, pool="one"),
        make_node_with_pods("c", *small_pods, cpu=2, pool="two"),
        make_node_with_pods("d", make_web_pod("3"), cpu=16, pool="two"),
        pools=BALANCED_POOLS,
    )


def test_balanced_policy_is_checked_for_every_node_pool_of_a_command() -> None:
    cluster = build_two_pool_cluster()
    evaluator, candidates = build_balanced_evaluator(cluster), find_candidates_by_name(cluster)
    assert isinstance(evaluator.evaluate((candidates["a"],), 0.8), CommandValue)
    together = evaluator.evaluate((candidates["a"], candidates["c"]), 0.9)
    assert isinstance(together, ReplacementRefusal)
    assert together.reason == "NotBalanced"


def test_savings_of_a_command_are_split_by_the_price_of_its_nodes() -> None:
    cluster = build_two_pool_cluster()
    evaluator, candidates = build_balanced_evaluator(cluster), find_candidates_by_name(cluster)
    targets = (candidates["a"], candidates["c"])
    price = sum(candidate.price_usd_per_hour for candidate in targets)
    assert price == pytest.approx(0.9)
    alone = evaluator.compute_score("one", (candidates["a"],), 0.8, 0.8)
    assert evaluator.compute_score("one", targets, 0.9, price) == pytest.approx(alone)
    assert alone == pytest.approx((0.8 / 1.0) / (2 / 4))


def test_node_labels_are_used_for_prices_when_node_claims_lack_labels() -> None:
    cluster = build_two_pool_cluster()
    mute = tuple(without(node_claim, INSTANCE_TYPE) for node_claim in cluster.node_claims)
    assert build_balanced_evaluator(replace(cluster, node_claims=mute)).compute_score(
        "one", (find_candidates_by_name(cluster)["a"],), 0.8, 0.8
    ) == pytest.approx(1.6)


def without(claim: NodeClaim, label: str) -> NodeClaim:
    other_labels = {key: value for key, value in claim.meta.labels if key != label}
    return replace(claim, meta=replace(claim.meta, labels=build_pairs(other_labels)))


@pytest.mark.parametrize("label", [ZONE, CAPACITY_TYPE])
def test_node_without_a_zone_or_capacity_type_label_is_not_consolidated(label: str) -> None:
    node, claim, pods = make_node_with_pods("a", make_web_pod("1"))
    other_labels = {key: value for key, value in node.meta.labels if key != label}
    cluster = make_fleet((replace(node, meta=replace(node.meta, labels=build_pairs(other_labels))), claim, pods))
    [candidate] = find_candidates_by_name(cluster).values()
    refusal = explain_consolidation_refusal(candidate, ClusterState(cluster))
    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("LabelMissing", f"the node has no label {label}")


@pytest.mark.parametrize(("replicas", "refuses"), [(None, True), (2, False)])
def test_nodes_of_static_node_pools_accept_pods_within_consolidate_after(
    replicas: int | None, *, refuses: bool
) -> None:
    pool = make_node_pool(budgets=(), consolidate_after=NOW - NOW.replace(hour=1), replicas=replicas)
    field = ClusterState(make_fleet(make_node_with_pods("a", make_web_pod("1"), last_pod_event_at=NOW), pools=(pool,)))
    assert is_within_consolidate_after(field.nodes[0], field) is refuses


@pytest.mark.parametrize(
    ("ready", "explanation"),
    [("True", ""), ("False", "node class default is not ready"), (None, "node class default does not exist")],
)
def test_unusable_static_node_pool_blocks_drift_replacements(ready: str | None, explanation: str) -> None:
    pool = make_node_pool(budgets=(), replicas=1)
    conditions = (Condition(type="Ready", status=ready or "", reason="Test"),)
    classes = () if ready is None else (replace(make_node_class(), conditions=conditions),)
    drifted = make_node_with_pods("a", make_web_pod("1"), conditions=make_conditions(*STAGES[:3], "Drifted"))
    decision = decide_disruption(make_fleet(drifted, pools=(pool,), node_classes=classes))
    assert bool(summarize_commands(decision)) is not bool(explanation)
    if explanation:
        kind, reason, message = get_verdict(decision, "a")
        assert (kind, reason) == ("blocked", "Budget")
        assert message.startswith(f"NodePool default cannot launch a replacement: {explanation}")


def make_tainted(base_node: Machine) -> Machine:
    """Return the node and its pods with a taint that keeps out new pods."""
    node, claim, pods = base_node
    return replace(node, taints=(Taint(key="old", effect="NoSchedule"),)), claim, pods


def test_several_nodes_are_not_replaced_by_a_node_of_the_same_instance_type() -> None:
    nodes = [make_tainted(make_node_with_pods(name, make_web_pod(name, "1500m"))) for name in ("a", "b")]
    large = tuple(offered_type for offered_type in TYPES if offered_type.name in ("m.04", "m.08"))
    assert summarize_commands(decide_disruption(make_fleet(*nodes, types=large))) == []
    assert [method for method, _, _ in summarize_commands(decide_disruption(make_fleet(*nodes)))] == [
        "SingleNode",
        "SingleNode",
    ]


def make_priced_instance_type(kind: str, cpu: int, *offerings: tuple[str, str, float]) -> InstanceType:
    sold = tuple(
        Offering(zone=zone, capacity_type=capacity_type, price_usd_per_hour=price)
        for zone, capacity_type, price in offerings
    )
    return replace(make_instance_type(kind, cpu), offerings=sold)


def test_replacement_excludes_zones_that_are_too_expensive() -> None:
    small = make_priced_instance_type("m.02", 2, ("a", "on-demand", 0.1), ("b", "on-demand", 0.5))
    large = make_priced_instance_type("m.08", 8, ("a", "on-demand", 0.4), ("b", "on-demand", 0.4))
    [command] = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1"), cpu=8), types=(small, large))
    ).commands
    requirements = command.replacements[0].claim.requirements
    assert (sorted(requirements[INSTANCE_TYPE].values), sorted(requirements[ZONE].values)) == (["m.02"], ["a"])


def test_spot_price_is_compared_when_the_replacement_is_spot() -> None:
    small = make_priced_instance_type("m.02", 2, ("a", "spot", 0.05), ("b", "spot", 0.06), ("a", "on-demand", 0.9))
    large = make_priced_instance_type("m.08", 8, ("a", "on-demand", 0.4))
    [command] = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1"), cpu=8), types=(small, large))
    ).commands
    requirements = command.replacements[0].claim.requirements
    assert requirements[CAPACITY_TYPE].values == {"spot"}
    assert ZONE not in requirements


@pytest.mark.parametrize(("min_types", "goes"), [(16, True), (17, False)])
def test_spot_to_spot_replacement_respects_min_values(min_types: int, *, goes: bool) -> None:
    """Sixteen types are cheaper: those with two and with four CPUs."""
    various = make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: min_types})
    pool = make_node_pool(budgets=(), requirements=various)
    spot = make_node_with_pods("a", make_web_pod("1", "100m"), cpu=8, kind="ma.08", capacity_type="spot")
    decision = decide_disruption(
        make_fleet(spot, pools=(pool,), types=MANY_SPOT), DisruptionSettings(spot_to_spot=True)
    )
    assert bool(decision.commands) is goes
    if goes:
        assert len(decision.commands[0].replacements[0].claim.requirements[INSTANCE_TYPE].values) == min_types
    else:
        assert get_verdict(decision, "a")[1] == "MinValuesNotMet"
