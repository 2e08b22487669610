"""The installed ClusterRole: what the functions do in the cluster, and nothing else; asked of the manifests themselves.

tests/kubernetes/test_rights.py asks the same of a real API server.
"""

import json
from importlib.resources import files
from typing import Final

import pytest
import yaml

from infra.installer import manifests
from infra.node_role import FUNCTIONS_GROUP
from shared.kube.answers import GROUP, ROLE
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.optional import OPTIONAL
from sim.iam.rbac import Right, granted, is_granted, right_for
from tests.infra.guarded import Guarded

SELDOM: Final[dict[Right, str]] = {
    ("delete", "", "pods"): "when the grace of their node is over",
    ("get", "", "events"): "when an event is repeated",
    ("patch", "", "events"): "when an event is repeated",
    ("patch", "", "pods/status"): "when pods of several kinds wait together",
    ("patch", "karpenter.sh", "nodeoverlays/status"): "with the feature NodeOverlay",
    ("patch", "autoscaling.x-k8s.io", "capacitybuffers/status"): "with the feature CapacityBuffer",
}
"""What the short life need not do, and when it is done."""


@pytest.fixture(scope="module")
def rights() -> frozenset[Right]:
    return granted(json.loads(manifests()), FUNCTIONS_GROUP)


def listed() -> set[Right]:
    """Answer what a snapshot lists, features included, and a warm container watches."""
    return {right_for(method, one.path) for one in (*LISTINGS, *OPTIONAL) for method in ("list", "watch")}


def test_every_call_of_every_function_is_granted(life: Guarded, rights: frozenset[Right]) -> None:
    assert [one for one in sorted(life.rights) if not is_granted(rights, one)] == []
    assert {record.outcome for record in life.runtime.records} == {"ok"}


def test_the_short_life_drained_and_wrote(life: Guarded) -> None:
    assert life.rights >= {
        ("create", "", "pods/eviction"),
        ("create", "karpenter.sh", "nodeclaims"),
        ("patch", "", "nodes"),
        ("patch", "karpenter.sh", "nodeclaims/status"),
        ("patch", "karpenter.k8s.aws", "ec2nodeclasses/status"),
    }


def test_nothing_is_granted_that_is_not_done_or_excused(life: Guarded, rights: frozenset[Right]) -> None:
    assert sorted(rights - life.rights - listed() - SELDOM.keys()) == []


def test_an_excuse_is_for_something_that_is_granted(rights: frozenset[Right]) -> None:
    assert SELDOM.keys() <= rights


@pytest.mark.parametrize(
    "right",
    [
        ("list", "", "secrets"),
        ("get", "", "configmaps"),
        ("create", "", "pods"),
        ("create", "", "pods/exec"),
        ("patch", "", "pods"),
        ("create", "", "serviceaccounts/token"),
        ("create", "", "nodes"),
        ("create", "", "nodes/proxy"),
        ("delete", "karpenter.sh", "nodepools"),
        ("delete", "karpenter.k8s.aws", "ec2nodeclasses"),
        ("patch", "apps", "deployments"),
        ("patch", "policy", "poddisruptionbudgets"),
        ("patch", "rbac.authorization.k8s.io", "clusterroles"),
        ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
        ("patch", "flowcontrol.apiserver.k8s.io", "flowschemas"),
        ("impersonate", "", "users"),
    ],
    ids=" ".join,
)
def test_an_attack_is_refused(right: Right, rights: frozenset[Right]) -> None:
    assert not is_granted(rights, right)


def test_no_right_is_a_star(rights: frozenset[Right]) -> None:
    assert not [one for one in rights if "*" in one]


def test_the_manifests_are_the_files_that_people_apply_by_hand() -> None:
    shipped = json.loads(manifests())
    for name in ("rbac.yaml", "priority.yaml"):
        text = files("shared.kube").joinpath(name).read_text(encoding="utf-8")
        assert [one for one in yaml.safe_load_all(text) if one not in shipped] == []


def test_role_and_group_are_what_faults_tell_people() -> None:
    shipped = json.loads(manifests())
    [binding] = [one for one in shipped if one["kind"] == "ClusterRoleBinding"]
    assert (binding["roleRef"]["name"], FUNCTIONS_GROUP) == (ROLE, GROUP)
    assert [subject["name"] for subject in binding["subjects"]] == [GROUP]


def test_requests_of_the_functions_have_a_priority_level_of_their_own() -> None:
    shipped = json.loads(manifests())
    [schema] = [one for one in shipped if one["kind"] == "FlowSchema"]
    [level] = [one for one in shipped if one["kind"] == "PriorityLevelConfiguration"]
    assert schema["spec"]["priorityLevelConfiguration"]["name"] == level["metadata"]["name"]
    [rule] = schema["spec"]["rules"]
    assert [subject["group"]["name"] for subject in rule["subjects"]] == [GROUP]
    assert level["spec"]["limited"]["limitResponse"]["type"] == "Queue"


@pytest.mark.parametrize(
    ("rules", "wanted", "answer"),
    [
        ([("", "pods", "list")], ("list", "", "pods"), True),
        ([("", "pods", "list")], ("list", "", "pods/status"), False),
        ([("", "pods", "list")], ("list", "apps", "pods"), False),
        ([("*", "*", "*")], ("delete", "apps", "deployments"), True),
        ([("apps", "*", "get")], ("get", "apps", "deployments"), True),
        ([("apps", "*", "get")], ("list", "apps", "deployments"), False),
    ],
)
def test_a_rule_grants(rules: list[tuple[str, str, str]], wanted: Right, answer: bool) -> None:  # noqa: FBT001
    said = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in rules]
    role = {"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": said}
    other = {"kind": "ClusterRole", "metadata": {"name": "b"}, "rules": [{key: ["*"] for key in said[0]}]}
    binding = {"kind": "ClusterRoleBinding", "roleRef": {"name": "a"}, "subjects": [{"kind": "Group", "name": "g"}]}
    assert is_granted(granted([role, other, binding], "g"), wanted) is answer
    assert granted([role, other, binding], "h") == frozenset()
