"""Objects that exist but cannot be read: they get an event and do not count as deleted."""

import json

import pytest

from shared.decide.disruption.candidates import evaluate_candidate
from shared.decide.node_class.status import resolve_node_class_status
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core import labels
from shared.model.core.metadata import Problem
from shared.model.decisions.action import Action, DeleteObject, PatchStatus, PublishEvent, TerminateInstances
from shared.model.decisions.disruption_verdict import BlockedVerdict
from shared.model.ec2.instance import Instance
from shared.state.cluster_state import ClusterState
from tests.support import launch_cases
from tests.support.lifecycle_cases import (
    NODE_CLASS,
    NOW,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_true_conditions,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle
from tests.unit.shared.decide.lifecycle.termination.test_termination import make_deleted_claim, make_launch_group

HEALTHY_INSTANCE = make_instance("b")
HEALTHY_CLAIM = make_claim("b")


def make_problem(kind: str, name: str, **fields: Case) -> Problem:
    return Problem(kind=kind, name=name, message="spec: nonsense", uid=f"uid-{name}", **fields)


def make_tagged_instance(key: str, value: str) -> Instance:
    return replace_fields(make_instance(), tags=((key, value),))


def list_terminated_instances(*problems: Problem, **fields: Case) -> list[str]:
    actions = decide_lifecycle(make_cluster(**({"node_claims": (HEALTHY_CLAIM,), "problems": problems} | fields)))
    return [
        instance_id for action in filter_actions(TerminateInstances, actions) for instance_id in action.instance_ids
    ]


@pytest.mark.parametrize(
    ("orphan", "groups", "is_terminated"),
    [
        (make_tagged_instance("karpenter.sh/nodeclaim", "a"), (), False),
        (make_tagged_instance("karpenter.sh/nodeclaim", "c"), (), True),
        (make_instance(), (), False),
        (make_tagged_instance(labels.LAUNCH_GROUP, "g"), (make_launch_group(),), False),
        (make_tagged_instance(labels.LAUNCH_GROUP, "g"), (make_launch_group(claims=("c",)),), True),
    ],
)
def test_instance_of_an_unreadable_node_claim_is_not_garbage_collected(
    orphan: Case, groups: Case, *, is_terminated: bool
) -> None:
    terminated_ids = list_terminated_instances(
        make_problem("NodeClaim", "a"), instances=(orphan, HEALTHY_INSTANCE), launch_groups=groups
    )
    assert terminated_ids == (["i-a"] if is_terminated else [])
    assert list_terminated_instances(instances=(orphan, HEALTHY_INSTANCE), launch_groups=groups) == ["i-a"]


def test_instance_of_an_unreadable_launch_group_is_not_garbage_collected() -> None:
    orphan = make_tagged_instance(labels.LAUNCH_GROUP, "g")
    assert list_terminated_instances(make_problem("launch-group", "g"), instances=(orphan, HEALTHY_INSTANCE)) == []
    assert list_terminated_instances(make_problem("launch-group", "h"), instances=(orphan, HEALTHY_INSTANCE)) == ["i-a"]


def test_empty_instance_list_is_ignored_while_nodes_are_unreadable() -> None:
    fields: Case = {"node_claims": (make_claim(),), "nodes": (), "instances": ()}
    assert filter_actions(DeleteObject, decide_lifecycle(make_cluster(**fields))) != []
    assert (
        filter_actions(
            DeleteObject, decide_lifecycle(make_cluster(**fields, problems=(make_problem("Node", "node-a"),)))
        )
        == []
    )


@pytest.mark.parametrize(
    ("name", "dns", "waits"),
    [("node-a", "node-a", True), ("i-a", "node-a", True), ("node-z", "node-a", False)],
)
def test_node_claim_of_an_unreadable_node_does_not_reach_the_registration_timeout(
    name: str,
    dns: str,
    waits: bool,  # noqa: FBT001
) -> None:
    late = make_claim(
        conditions=make_true_conditions("Launched", since=get_time_before(minutes=16)),
        created=get_time_before(minutes=16),
    )
    running_instance = replace_fields(make_instance(at=get_time_before(minutes=16)), private_dns_name=dns)
    actions = decide_lifecycle(
        make_cluster(node_claims=(late,), instances=(running_instance,), problems=(make_problem("Node", name),))
    )
    assert [deletion.message for deletion in filter_actions(DeleteObject, actions)] == (
        [] if waits else ["registration_timeout"]
    )
    blind = decide_lifecycle(make_cluster(node_claims=(late,), instances=None, problems=(make_problem("Node", name),)))
    assert filter_actions(DeleteObject, blind) == []


def test_instance_of_an_unreadable_node_is_not_terminated_without_a_drain() -> None:
    fields: Case = {"node_claims": (make_deleted_claim(),), "nodes": (), "instances": (make_instance(),)}
    assert filter_actions(TerminateInstances, decide_lifecycle(make_cluster(**fields))) != []
    actions = decide_lifecycle(make_cluster(**fields, problems=(make_problem("Node", "node-a"),)))
    assert filter_actions(TerminateInstances, actions) == []
    assert any("cannot be read" in event.message for event in filter_actions(PublishEvent, actions))


def test_unreadable_pod_blocks_the_drain_until_the_deadline() -> None:
    node = make_node(going=True, deleted=get_time_before(seconds=20))
    problem = make_problem("Pod", "shop/cart", node="node-a")

    def list_terminations(node_claim: Case, *problems: Problem) -> tuple[Action, ...]:
        fields: Case = {
            "node_claims": (node_claim,),
            "nodes": (node,),
            "instances": (make_instance(),),
            "problems": problems,
        }
        return tuple(filter_actions(TerminateInstances, decide_lifecycle(make_cluster(**fields))))

    assert list_terminations(make_deleted_claim()) != ()
    assert list_terminations(make_deleted_claim(), problem) == ()
    at_deadline = make_deleted_claim(annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T12:00:00Z"})
    assert list_terminations(at_deadline, problem) == ()
    expired = make_deleted_claim(annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T11:59:59Z"})
    assert list_terminations(expired, problem) != ()


def test_node_with_an_unreadable_pod_is_no_candidate() -> None:
    fields: Case = {"node_claims": (make_claim(),), "nodes": (make_node(),)}
    cluster_state = ClusterState(make_cluster(**fields, problems=(make_problem("Pod", "shop/cart", node="node-a"),)))
    [state] = cluster_state.nodes
    assert evaluate_candidate(state, cluster_state) == BlockedVerdict(
        node="node-a", reason="PodUnreadable", message="pod shop/cart cannot be read"
    )
    elsewhere = ClusterState(make_cluster(**fields, problems=(make_problem("Pod", "shop/cart", node="node-b"),)))
    assert not isinstance(evaluate_candidate(elsewhere.nodes[0], elsewhere), BlockedVerdict)


@pytest.mark.parametrize(
    ("kind", "reason"), [("NodePool", "NodePoolValidationFailed"), ("EC2NodeClass", "ValidationFailed")]
)
def test_unreadable_object_gets_one_event_and_a_false_condition(kind: str, reason: str) -> None:
    conditions = make_true_conditions("NodeClassReady")
    problem = make_problem(kind, "poor", conditions=conditions, generation=4)
    actions = decide_lifecycle(make_cluster(problems=(problem,)))
    [patch] = [action for action in filter_actions(PatchStatus, actions) if action.name == "poor"]
    [event] = [action for action in filter_actions(PublishEvent, actions) if action.name == "poor"]
    assert (event.kind, event.reason, event.message, event.type) == (kind, reason, "spec: nonsense", "Warning")
    conditions_by_type = {condition["type"]: condition for condition in json.loads(patch.status)["conditions"]}
    assert sorted(conditions_by_type) == ["NodeClassReady", "Ready", "ValidationSucceeded"]
    assert (
        conditions_by_type["ValidationSucceeded"]["status"],
        conditions_by_type["ValidationSucceeded"]["reason"],
    ) == ("False", reason)
    assert conditions_by_type["ValidationSucceeded"]["message"] == "spec: nonsense"
    assert (conditions_by_type["Ready"]["status"], conditions_by_type["Ready"]["observedGeneration"]) == ("False", 4)
    assert patch.kind == kind


def test_unreadable_object_without_uid_and_name_gets_no_status() -> None:
    nameless = Problem(kind="NodePool", name="without a name", message="nonsense")
    assert [
        patch
        for patch in filter_actions(PatchStatus, decide_lifecycle(make_cluster(problems=(nameless,))))
        if patch.name != "default"
    ] == []


def test_node_class_conditions_are_kept_without_aws_answers_until_its_spec_changes() -> None:
    unknown_answers = NodeClassAnswers(subnets=None, security_groups=None, images=None)

    def get_statuses(generation: int) -> set[str]:
        meta = replace_fields(NODE_CLASS.meta, generation=generation)
        conditions = make_true_conditions("SubnetsReady", "SecurityGroupsReady", "AMIsReady")
        node_class = launch_cases.make_node_class(meta=meta, conditions=conditions)
        status_conditions = json.loads(resolve_node_class_status(node_class, unknown_answers, "p", NOW).status)[
            "conditions"
        ]
        return {
            condition["status"]
            for condition in status_conditions
            if condition["type"] in ("SubnetsReady", "SecurityGroupsReady", "AMIsReady")
        }

    assert get_statuses(generation=1) == {"True"}
    assert get_statuses(generation=2) == {"Unknown"}


def test_unreadable_pending_pod_blocks_no_candidate() -> None:
    field = ClusterState(
        make_cluster(node_claims=(make_claim(),), nodes=(make_node(),), problems=(make_problem("Pod", "shop/cart"),))
    )
    assert not isinstance(evaluate_candidate(field.nodes[0], field), BlockedVerdict)
