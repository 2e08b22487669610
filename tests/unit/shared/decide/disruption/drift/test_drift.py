"""Drift: which nodes count as drifted, and how they are replaced."""

import json
from datetime import timedelta
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from shared.decide.disruption.drift.drift import DriftInputs, find_drift_reason
from shared.decide.disruption.drift.drifted_condition import describe_drift
from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.decisions.action import PatchStatus
from shared.model.ec2.account import CapacityReservation, PlacementGroup, SecurityGroup, Subnet
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_class import ResolvedImage
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_node_class, make_node_pool, make_requirements
from tests.support.disruption_fleet import (
    FREE,
    STAGES,
    TYPES,
    Machine,
    decide_disruption,
    get_verdict,
    make_budgeted_pool,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_pod_disruption_budget,
    make_web_pod,
    summarize_commands,
)


def make_drifted_node(name: str, *pods: object, hours: int = 1, reason: str = "AMIDrift", **fields: object) -> Machine:
    drifted_condition = Condition(type="Drifted", status="True", reason=reason, since=NOW - timedelta(hours=hours))
    stages = make_conditions(*STAGES[:3])
    return make_node_with_pods(name, *pods, conditions=(*stages, drifted_condition), **fields)  # type: ignore[arg-type]


def test_drifted_node_is_replaced_regardless_of_cost() -> None:
    decision = decide_disruption(make_fleet(make_drifted_node("a", make_web_pod("1", "1500m"), cpu=2)))
    [command] = decision.commands
    assert (command.method, command.reason, len(command.replacements)) == ("Drift", "Drifted", 1)
    assert "AMIDrift" in command.message


def test_drifted_node_is_deleted_without_replacement_when_its_pods_fit_elsewhere() -> None:
    decision = decide_disruption(
        make_fleet(
            make_drifted_node("a", make_web_pod("1")),
            make_node_with_pods("b", make_web_pod("2", "2"), cpu=8, conditions=make_conditions(*STAGES[:3])),
        )
    )
    assert summarize_commands(decision) == [("Drift", ["a"], [])]


def test_drifted_node_can_be_replaced_by_several_nodes() -> None:
    small = tuple(instance_type for instance_type in TYPES if instance_type.name == "m.02")
    decision = decide_disruption(
        make_fleet(make_drifted_node("a", make_web_pod("1", "1500m"), make_web_pod("2", "1500m"), cpu=4), types=small)
    )
    assert len(decision.commands[0].replacements) == 2


def test_empty_drifted_nodes_are_replaced_first_then_nodes_by_drift_time() -> None:
    nodes = [
        make_drifted_node("a", make_web_pod("1", "3")),
        make_drifted_node("b", make_web_pod("2", "3"), hours=5),
        make_drifted_node("c", hours=1),
    ]
    decision = decide_disruption(make_fleet(*nodes, pools=(make_node_pool(budgets=(), consolidate_after=None),)))
    assert [sorted(command.list_node_names()) for command in decision.commands] == [["c"], ["b"], ["a"]]


def test_drift_respects_budgets() -> None:
    nodes = [make_drifted_node(f"n{number}", make_web_pod(str(number), "3")) for number in range(5)]
    decision = decide_disruption(make_fleet(*nodes, pools=(make_budgeted_pool("40%"),)))
    assert len(decision.commands) == 2
    assert [node_verdict.reason for node_verdict in decision.verdicts].count("Budget") == 3


def test_budget_of_10_percent_disrupts_5_of_50_drifted_nodes_at_a_time() -> None:
    nodes = [
        make_drifted_node(f"n{number:02d}", make_web_pod(str(number), "3"), hours=50 - number) for number in range(50)
    ]
    cluster = make_fleet(*nodes, pools=(make_budgeted_pool("10%"),))
    decision = decide_disruption(cluster)
    going = frozenset(name for command in decision.commands for name in command.list_node_names())
    assert sorted(going) == ["n00", "n01", "n02", "n03", "n04"]
    assert decide_disruption(cluster, command_nodes=going).commands == ()
    assert len(decide_disruption(cluster, command_nodes=going - {"n04"}).commands) == 1


def test_pods_of_drifted_nodes_move_to_nodes_that_are_not_drifted() -> None:
    nodes = [
        make_drifted_node("a", make_web_pod("1")),
        make_drifted_node("b", make_web_pod("2"), cpu=16),
        make_node_with_pods("z", make_web_pod("3"), conditions=make_conditions(*STAGES[:3])),
    ]
    decision = decide_disruption(make_fleet(*nodes, pools=(make_budgeted_pool("1"),)))
    assert decision.commands[0].nominations[0][1] == "z"


def test_drifted_node_with_an_unschedulable_pod_is_blocked() -> None:
    odd = make_web_pod("1", "1500m", node_selector=(("disk", "ssd"),))
    decision = decide_disruption(make_fleet(make_drifted_node("a", odd)))
    assert summarize_commands(decision) == []
    assert get_verdict(decision, "a")[:2] == ("blocked", "PodsHaveNoPlace")


@pytest.mark.parametrize(("grace", "goes"), [(None, False), (timedelta(), True), (timedelta(hours=1), True)])
def test_termination_grace_period_overrides_pdbs_for_drift(grace: object, *, goes: bool) -> None:
    drifted_node = make_drifted_node("a", make_web_pod("1"), termination_grace_period=grace)
    decision = decide_disruption(
        make_fleet(drifted_node, budgets=(make_pod_disruption_budget("g", {"app": "web"}, 0),))
    )
    assert bool(decision.commands) is goes


def test_no_replacement_is_planned_for_a_pod_whose_pdb_never_allows_disruption() -> None:
    drifted_node = make_drifted_node("a", make_web_pod("1"), termination_grace_period=timedelta(hours=1))
    decision = decide_disruption(
        make_fleet(drifted_node, budgets=(make_pod_disruption_budget("g", {"app": "web"}, 0, max_unavailable="0"),))
    )
    assert decision.commands[0].replacements == ()


def test_node_with_do_not_disrupt_is_not_replaced_for_drift() -> None:
    decision = decide_disruption(
        make_fleet(make_drifted_node("a", make_web_pod("1"), annotations={labels.DO_NOT_DISRUPT: "true"}))
    )
    assert summarize_commands(decision) == []


STATIC = make_node_pool(budgets=(), replicas=2)


def test_drifted_static_node_is_replaced_from_the_node_pool_template() -> None:
    decision = decide_disruption(
        make_fleet(
            make_drifted_node("a", make_web_pod("1")), make_node_with_pods("b", make_web_pod("2")), pools=(STATIC,)
        )
    )
    [command] = decision.commands
    assert (command.method, len(command.replacements)) == ("StaticDrift", 1)
    assert command.replacements[0].claim.name.startswith("default-")
    assert labels.INSTANCE_TYPE not in command.replacements[0].claim.requirements


@pytest.mark.parametrize(("limit", "count"), [("2", 0), ("3", 1), ("4", 2), (None, 2)])
def test_static_drift_respects_the_node_limit_of_the_node_pool(limit: str | None, count: int) -> None:
    limits = None if limit is None else parse_resources({"nodes": limit})
    nodes = [make_drifted_node("a", make_web_pod("1")), make_drifted_node("b", make_web_pod("2"))]
    decision = decide_disruption(make_fleet(*nodes, pools=(replace(STATIC, limits=limits),)))
    assert len(decision.commands) == count


def test_static_node_pool_with_surplus_nodes_has_no_drift_replacements() -> None:
    nodes = [
        make_drifted_node("a", make_web_pod("1")),
        make_node_with_pods("b", make_web_pod("2")),
        make_node_with_pods("c", make_web_pod("3")),
    ]
    assert summarize_commands(decide_disruption(make_fleet(*nodes, pools=(STATIC,)))) == []


# Which nodes count as drifted.

INSTANCE_TYPE = TYPES[1]
NODE_CLASS = replace(
    make_node_class(),
    resolved_images=(ResolvedImage(image_id="ami-1"),),
    resolved_security_groups=(SecurityGroup(group_id="sg-1", name="one"),),
    resolved_subnets=(Subnet(subnet_id="subnet-1", zone="a", zone_id="1", available_ip_count=9),),
)
INSTANCE = Instance(
    instance_id="a",
    instance_type=INSTANCE_TYPE.name,
    zone="a",
    subnet_id="subnet-1",
    image_id="ami-1",
    state="running",
    launched_at=NOW,
    capacity_type="on-demand",
    security_group_ids=("sg-1",),
)
HASH_ANNOTATIONS = {
    labels.NODEPOOL_HASH: compute_node_pool_hash(FREE),
    labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION,
    labels.NODECLASS_HASH: NODE_CLASS.spec_hash,
    labels.NODECLASS_HASH_VERSION: labels.NODECLASS_HASH_VERSION_VALUE,
}


def build_drift_inputs(
    notes: dict[str, str] | None = None, claim_labels: dict[str, str] | None = None, **fields: object
) -> DriftInputs:
    _, claim, _ = make_node_with_pods("a")
    meta = replace(
        claim.meta,
        annotations=build_pairs(HASH_ANNOTATIONS | (notes or {})),
        labels=build_pairs(dict(claim.meta.labels) | (claim_labels or {})),
        created_at=NOW - timedelta(hours=2),
    )
    inputs = DriftInputs(
        claim=replace(claim, meta=meta, image_id="ami-1"),
        pool=FREE,
        node_class=NODE_CLASS,
        instance=INSTANCE,
        instance_types=MappingProxyType({kind.name: kind for kind in TYPES}),
        now=NOW,
    )
    return replace(inputs, **fields)


def make_claim_younger(inputs: DriftInputs) -> DriftInputs:
    return replace(inputs, claim=replace(inputs.claim, meta=replace(inputs.claim.meta, created_at=NOW)))


RESERVED = {labels.CAPACITY_TYPE: "reserved", labels.RESERVATION_ID: "cr-1"}
RESERVATION = CapacityReservation(reservation_id="cr-1", instance_type=INSTANCE_TYPE.name, zone="a")


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (build_drift_inputs(), ""),
        (build_drift_inputs(pool=replace(FREE, labels=(("team", "x"),))), "NodePoolDrifted"),
        (build_drift_inputs({labels.NODEPOOL_HASH_VERSION: "v3"}, pool=replace(FREE, labels=(("team", "x"),))), ""),
        (build_drift_inputs({labels.NODEPOOL_HASH: "other"}), "NodePoolDrifted"),
        (build_drift_inputs({labels.NODEPOOL_HASH: "other"}, is_drift_requested=True), "DriftRequested"),
        (build_drift_inputs(is_at_risk=True), "RebalanceRecommended"),
        (
            build_drift_inputs(pool=replace(FREE, requirements=make_requirements((labels.ZONE, "In", ("b",))))),
            "RequirementsDrifted",
        ),
        (build_drift_inputs(pool=replace(FREE, requirements=make_requirements((labels.ZONE, "In", ("a", "b"))))), ""),
        (
            build_drift_inputs(pool=replace(FREE, requirements=make_requirements(("team", "Exists", ())))),
            "RequirementsDrifted",
        ),
        (build_drift_inputs(pool=replace(FREE, requirements=make_requirements(("team", "NotIn", ("x",))))), ""),
        (build_drift_inputs(pool=replace(FREE, requirements=make_requirements(("team", "DoesNotExist", ())))), ""),
        (build_drift_inputs(instance_types=MappingProxyType({"m.02": TYPES[0]})), "InstanceTypeNotFound"),
        (
            make_claim_younger(
                build_drift_inputs(instance_types=MappingProxyType({"m.02": TYPES[0]}), node_class=None)
            ),
            "",
        ),
        (build_drift_inputs(claim_labels={labels.ZONE: "z"}), "InstanceTypeNotFound"),
        (build_drift_inputs(claim_labels=RESERVED), "CapacityReservationDrift"),
        (
            build_drift_inputs(
                claim_labels=RESERVED, node_class=replace(NODE_CLASS, resolved_capacity_reservations=(RESERVATION,))
            ),
            "",
        ),
        (build_drift_inputs({labels.NODECLASS_HASH: "other"}), "NodeClassDrift"),
        (build_drift_inputs({labels.NODECLASS_HASH: "other", labels.NODECLASS_HASH_VERSION: "v6"}), ""),
        (
            build_drift_inputs(node_class=replace(NODE_CLASS, resolved_images=(ResolvedImage(image_id="ami-2"),))),
            "AMIDrift",
        ),
        (
            build_drift_inputs(
                node_class=replace(
                    NODE_CLASS,
                    resolved_images=(
                        ResolvedImage(
                            image_id="ami-1", requirements=make_requirements((labels.ARCH, "In", ("arm64",)))
                        ),
                    ),
                )
            ),
            "AMIDrift",
        ),
        (build_drift_inputs(node_class=replace(NODE_CLASS, resolved_images=())), None),
        (build_drift_inputs(instance=replace(INSTANCE, security_group_ids=("sg-1", "sg-2"))), "SecurityGroupDrift"),
        (build_drift_inputs(instance=replace(INSTANCE, subnet_id="subnet-9")), "SubnetDrift"),
        (build_drift_inputs(node_class=replace(NODE_CLASS, resolved_security_groups=())), None),
        (build_drift_inputs(node_class=replace(NODE_CLASS, resolved_subnets=())), None),
        (build_drift_inputs(instance=None), None),
        (
            build_drift_inputs(
                node_class=replace(NODE_CLASS, resolved_placement_group=PlacementGroup(group_id="pg-1", name="g"))
            ),
            "PlacementGroupDrift",
        ),
        (build_drift_inputs({labels.NODECLASS_HASH: "other"}, node_class=None), ""),
    ],
)
def test_drift_reason_follows_node_pool_node_class_and_instance(inputs: DriftInputs, reason: str | None) -> None:
    assert find_drift_reason(inputs) == reason


def test_drifted_condition_gets_its_reason_and_keeps_its_transition_time() -> None:
    node, claim, _ = make_node_with_pods("a")
    claim = replace(
        claim, meta=replace(claim.meta, annotations=build_pairs(HASH_ANNOTATIONS | {labels.NODEPOOL_HASH: "other"}))
    )
    cluster = make_fleet((node, claim, ()))
    [write] = describe_drift(ClusterState(cluster))
    assert isinstance(write, PatchStatus)
    assert '"reason":"NodePoolDrifted"' in write.status
    since = NOW - timedelta(hours=3)
    earlier_condition = Condition(type="Drifted", status="True", reason="AMIDrift", since=since)
    [second_patch] = describe_drift(
        ClusterState(make_fleet((node, replace(claim, conditions=(*claim.conditions, earlier_condition)), ())))
    )
    assert isinstance(second_patch, PatchStatus)
    [condition] = [entry for entry in json.loads(second_patch.status)["conditions"] if entry["type"] == "Drifted"]
    assert (condition["reason"], condition["lastTransitionTime"]) == ("NodePoolDrifted", "2026-11-21T09:00:00Z")
    current_condition = Condition(type="Drifted", status="True", reason="NodePoolDrifted", since=NOW)
    assert (
        describe_drift(
            ClusterState(make_fleet((node, replace(claim, conditions=(*claim.conditions, current_condition)), ())))
        )
        == ()
    )


def test_drifted_condition_is_removed_when_nothing_differs() -> None:
    node, claim, _ = make_drifted_node("a")
    claim = replace(
        claim,
        meta=replace(claim.meta, annotations=build_pairs(HASH_ANNOTATIONS)),
        image_id="ami-1",
        provider_id="aws:///a/a",
    )
    cluster = make_fleet((node, claim, ()), node_classes=(NODE_CLASS,), instances=(INSTANCE,))
    [write] = describe_drift(ClusterState(cluster))
    assert isinstance(write, PatchStatus)
    assert "Drifted" not in write.status
    assert describe_drift(ClusterState(replace(cluster, instances=None))) == ()


def test_unlaunched_node_claim_is_not_drifted() -> None:
    node, claim, _ = make_node_with_pods("a", conditions=())
    claim = replace(claim, meta=replace(claim.meta, annotations=build_pairs({labels.NODEPOOL_HASH: "other"})))
    assert describe_drift(ClusterState(make_fleet((node, claim, ())))) == ()


@pytest.mark.parametrize(
    ("period", "expire_after", "reason"),
    [("1h", 0, "Expired"), ("1h", 1, ""), ("1h", None, ""), ("0s", 0, ""), ("", 0, ""), ("soon", 0, "")],
)
def test_node_has_drifted_with_reason_expired_only_with_graceful_expiration(
    period: str, expire_after: int | None, reason: str
) -> None:
    annotations = ((labels.GRACEFUL_EXPIRATION, period),) if period else ()
    pool = make_node_pool(meta=ObjectMeta(name="default", annotations=annotations))
    _, claim, _ = make_node_with_pods("a")
    lifetime = None if expire_after is None else timedelta(hours=5, seconds=expire_after)
    claim = replace(claim, meta=replace(claim.meta, created_at=NOW - timedelta(hours=5)), expire_after=lifetime)
    inputs = DriftInputs(claim=claim, pool=pool, node_class=None, instance=None, instance_types={}, now=NOW)
    assert find_drift_reason(inputs) == reason


def test_expired_node_recovers_when_graceful_expiration_is_removed() -> None:
    cluster = make_fleet(make_drifted_node("a", make_web_pod("1", "1500m"), cpu=2, reason="Expired"))
    assert decide_disruption(cluster).commands == ()
