"""Objects that are there but cannot be read: they are told so, and are not taken for gone."""

import json

import pytest

from shared.disruption.candidates import Blocked, assess, field_of
from shared.launch.nodeclass import Found, resolve
from shared.lifecycle.decide import decide
from shared.model import labels
from shared.model.action import Action, DeleteObject, PatchStatus, PublishEvent, TerminateInstances
from shared.model.ec2 import Instance
from shared.model.objects import Problem
from tests.unit import launch_cases
from tests.unit.lifecycle_cases import NODE_CLASS, NOW, Case, ago, changed, claim, cluster, instance, node, of, true
from tests.unit.test_lifecycle_termination import group, leaving

SEEN = instance("b")
OTHER = claim("b")


def bad(kind: str, name: str, **fields: Case) -> Problem:
    return Problem(kind=kind, name=name, message="spec: nonsense", uid=f"uid-{name}", **fields)


def tagged(key: str, value: str) -> Instance:
    return changed(instance(), tags=((key, value),))


def ended(*problems: Problem, **fields: Case) -> list[str]:
    actions = decide(cluster(**({"node_claims": (OTHER,), "problems": problems} | fields)))
    return [one for action in of(TerminateInstances, actions) for one in action.instance_ids]


@pytest.mark.parametrize(
    ("orphan", "groups", "gone"),
    [
        (tagged("karpenter.sh/nodeclaim", "a"), (), False),
        (tagged("karpenter.sh/nodeclaim", "c"), (), True),
        (instance(), (), False),
        (tagged(labels.LAUNCH_GROUP, "g"), (group(),), False),
        (tagged(labels.LAUNCH_GROUP, "g"), (group(claims=("c",)),), True),
    ],
)
def test_the_instance_of_a_claim_that_cannot_be_read_is_no_garbage(orphan: Case, groups: Case, gone: bool) -> None:  # noqa: FBT001
    found = ended(bad("NodeClaim", "a"), instances=(orphan, SEEN), launch_groups=groups)
    assert found == (["i-a"] if gone else [])
    assert ended(instances=(orphan, SEEN), launch_groups=groups) == ["i-a"]


def test_the_instance_of_a_launch_whose_row_cannot_be_read_is_no_garbage() -> None:
    orphan = tagged(labels.LAUNCH_GROUP, "g")
    assert ended(bad("launch-group", "g"), instances=(orphan, SEEN)) == []
    assert ended(bad("launch-group", "h"), instances=(orphan, SEEN)) == ["i-a"]


def test_an_empty_answer_of_ec2_is_not_believed_while_nodes_cannot_be_read() -> None:
    fields: Case = {"node_claims": (claim(),), "nodes": (), "instances": ()}
    assert of(DeleteObject, decide(cluster(**fields))) != []
    assert of(DeleteObject, decide(cluster(**fields, problems=(bad("Node", "node-a"),)))) == []


@pytest.mark.parametrize(
    ("name", "dns", "waits"),
    [("node-a", "node-a", True), ("i-a", "node-a", True), ("node-z", "node-a", False)],
)
def test_a_node_that_joined_but_cannot_be_read_is_not_late(name: str, dns: str, waits: bool) -> None:  # noqa: FBT001
    late = claim(conditions=true("Launched", since=ago(minutes=16)), created=ago(minutes=16))
    seen = changed(instance(at=ago(minutes=16)), private_dns_name=dns)
    actions = decide(cluster(node_claims=(late,), instances=(seen,), problems=(bad("Node", name),)))
    assert [one.why for one in of(DeleteObject, actions)] == ([] if waits else ["registration_timeout"])
    blind = decide(cluster(node_claims=(late,), instances=None, problems=(bad("Node", name),)))
    assert of(DeleteObject, blind) == []


def test_a_node_that_cannot_be_read_is_not_ended_undrained() -> None:
    fields: Case = {"node_claims": (leaving(),), "nodes": (), "instances": (instance(),)}
    assert of(TerminateInstances, decide(cluster(**fields))) != []
    actions = decide(cluster(**fields, problems=(bad("Node", "node-a"),)))
    assert of(TerminateInstances, actions) == []
    assert any("cannot be read" in one.message for one in of(PublishEvent, actions))


def test_a_pod_that_cannot_be_read_holds_a_drain_until_the_deadline() -> None:
    there = node(going=True, deleted=ago(seconds=20))
    problem = bad("Pod", "shop/cart", node="node-a")

    def ends(mine: Case, *problems: Problem) -> tuple[Action, ...]:
        fields: Case = {"node_claims": (mine,), "nodes": (there,), "instances": (instance(),), "problems": problems}
        return tuple(of(TerminateInstances, decide(cluster(**fields))))

    assert ends(leaving()) != ()
    assert ends(leaving(), problem) == ()
    expired = leaving(annotations={labels.TERMINATION_TIMESTAMP: "2026-11-21T11:59:59Z"})
    assert ends(expired, problem) != ()


def test_a_node_with_a_pod_that_cannot_be_read_is_no_candidate() -> None:
    fields: Case = {"node_claims": (claim(),), "nodes": (node(),)}
    some = field_of(cluster(**fields, problems=(bad("Pod", "shop/cart", node="node-a"),)))
    [state] = some.states
    assert assess(state, some) == Blocked(node="node-a", reason="PodUnreadable", message="pod shop/cart cannot be read")
    elsewhere = field_of(cluster(**fields, problems=(bad("Pod", "shop/cart", node="node-b"),)))
    assert not isinstance(assess(elsewhere.states[0], elsewhere), Blocked)


@pytest.mark.parametrize(
    ("kind", "reason"), [("NodePool", "NodePoolValidationFailed"), ("EC2NodeClass", "ValidationFailed")]
)
def test_what_cannot_be_read_is_told_so_once(kind: str, reason: str) -> None:
    kept = true("NodeClassReady")
    problem = bad(kind, "poor", conditions=kept, generation=4)
    actions = decide(cluster(problems=(problem,)))
    [told] = [one for one in of(PatchStatus, actions) if one.name == "poor"]
    [said] = [one for one in of(PublishEvent, actions) if one.name == "poor"]
    assert (said.kind, said.reason, said.message, said.type) == (kind, reason, "spec: nonsense", "Warning")
    written = {one["type"]: one for one in json.loads(told.status)["conditions"]}
    assert sorted(written) == ["NodeClassReady", "Ready", "ValidationSucceeded"]
    assert (written["ValidationSucceeded"]["status"], written["ValidationSucceeded"]["reason"]) == ("False", reason)
    assert written["ValidationSucceeded"]["message"] == "spec: nonsense"
    assert (written["Ready"]["status"], written["Ready"]["observedGeneration"]) == ("False", 4)
    assert told.kind == kind


def test_what_has_neither_uid_nor_name_is_told_nothing() -> None:
    nameless = Problem(kind="NodePool", name="without a name", message="nonsense")
    assert [one for one in of(PatchStatus, decide(cluster(problems=(nameless,)))) if one.name != "default"] == []


def test_a_node_class_that_could_not_be_asked_about_stays_as_it_was_until_its_spec_changes() -> None:
    nothing = Found(subnets=None, security_groups=None, images=None)

    def states(generation: int) -> set[str]:
        meta = changed(NODE_CLASS.meta, generation=generation)
        conditions = true("SubnetsReady", "SecurityGroupsReady", "AMIsReady")
        one = launch_cases.node_class(meta=meta, conditions=conditions)
        written = json.loads(resolve(one, nothing, "p", NOW).status)["conditions"]
        return {one["status"] for one in written if one["type"] in ("SubnetsReady", "SecurityGroupsReady", "AMIsReady")}

    assert states(generation=1) == {"True"}
    assert states(generation=2) == {"Unknown"}


def test_a_pending_pod_that_cannot_be_read_holds_nobody() -> None:
    field = field_of(cluster(node_claims=(claim(),), nodes=(node(),), problems=(bad("Pod", "shop/cart"),)))
    assert not isinstance(assess(field.states[0], field), Blocked)
