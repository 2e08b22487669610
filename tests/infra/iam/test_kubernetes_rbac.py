"""The installed ClusterRole allows exactly what the functions do in the cluster; checked on the manifests.

tests/kubernetes/control_plane/test_rbac.py checks the same with a real API server.
"""

import json
from importlib.resources import files
from typing import Final

import pytest
import yaml

from infra.functions.installer import build_manifests
from infra.iam.node_role import FUNCTIONS_GROUP
from shared.kubernetes.errors import FUNCTIONS_CLUSTER_ROLE, GROUP
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from tests.infra.guarded import Guarded
from tests.infra.rbac import RbacPermission, find_granted_permissions, get_required_permission, is_granted

RARE_PERMISSIONS: Final[dict[RbacPermission, str]] = {
    ("delete", "", "pods"): "when the grace of their node is over",
    ("get", "", "events"): "when an event is repeated",
    ("patch", "", "events"): "when an event is repeated",
    ("patch", "", "pods/status"): "when pods of several kinds wait together",
    ("patch", "karpenter.sh", "nodeoverlays/status"): "with the feature NodeOverlay",
    ("patch", "autoscaling.x-k8s.io", "capacitybuffers/status"): "with the feature CapacityBuffer",
}
"""Permissions that the short life does not use, and when they are used."""


@pytest.fixture(scope="module")
def rights() -> frozenset[RbacPermission]:
    return find_granted_permissions(json.loads(build_manifests()), FUNCTIONS_GROUP)


def list_snapshot_permissions() -> set[RbacPermission]:
    """Return the permissions for all lists of a snapshot, features included, and all watches of a warm container."""
    return {
        get_required_permission(method, kind.path)
        for kind in (*RESOURCE_KINDS, *OPTIONAL_KINDS)
        for method in ("list", "watch")
    }


def test_every_kubernetes_call_of_every_function_is_granted(life: Guarded, rights: frozenset[RbacPermission]) -> None:
    assert [permission for permission in sorted(life.rights) if not is_granted(rights, permission)] == []
    assert {record.outcome for record in life.runtime.invocations} == {"ok"}


def test_simulated_cluster_run_evicts_pods_and_writes_objects(life: Guarded) -> None:
    assert life.rights >= {
        ("create", "", "pods/eviction"),
        ("create", "karpenter.sh", "nodeclaims"),
        ("patch", "", "nodes"),
        ("patch", "karpenter.sh", "nodeclaims/status"),
        ("patch", "karpenter.k8s.aws", "ec2nodeclasses/status"),
    }


def test_every_granted_permission_is_used_or_listed_as_rare(life: Guarded, rights: frozenset[RbacPermission]) -> None:
    assert sorted(rights - life.rights - list_snapshot_permissions() - RARE_PERMISSIONS.keys()) == []


def test_every_rare_permission_is_granted(rights: frozenset[RbacPermission]) -> None:
    assert RARE_PERMISSIONS.keys() <= rights


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
def test_sensitive_kubernetes_permission_is_not_granted(
    right: RbacPermission, rights: frozenset[RbacPermission]
) -> None:
    assert not is_granted(rights, right)


def test_no_permission_contains_a_wildcard(rights: frozenset[RbacPermission]) -> None:
    assert not [permission for permission in rights if "*" in permission]


def test_shipped_manifests_contain_rbac_and_priority_files() -> None:
    shipped = json.loads(build_manifests())
    for name in ("rbac.yaml", "priority.yaml"):
        text = files("shared.installer").joinpath(name).read_text(encoding="utf-8")
        assert [manifest for manifest in yaml.safe_load_all(text) if manifest not in shipped] == []


def test_cluster_role_and_group_match_the_names_in_error_messages() -> None:
    shipped = json.loads(build_manifests())
    [binding] = [manifest for manifest in shipped if manifest["kind"] == "ClusterRoleBinding"]
    assert (binding["roleRef"]["name"], FUNCTIONS_GROUP) == (FUNCTIONS_CLUSTER_ROLE, GROUP)
    assert [subject["name"] for subject in binding["subjects"]] == [GROUP]


def test_function_requests_have_their_own_priority_level() -> None:
    shipped = json.loads(build_manifests())
    [schema] = [manifest for manifest in shipped if manifest["kind"] == "FlowSchema"]
    [level] = [manifest for manifest in shipped if manifest["kind"] == "PriorityLevelConfiguration"]
    assert schema["spec"]["priorityLevelConfiguration"]["name"] == level["metadata"]["name"]
    [rule] = schema["spec"]["rules"]
    assert [subject["group"]["name"] for subject in rule["subjects"]] == [GROUP]
    assert level["spec"]["limited"]["limitResponse"]["type"] == "Queue"


@pytest.mark.parametrize(
    ("rules", "permission", "answer"),
    [
        ([("", "pods", "list")], ("list", "", "pods"), True),
        ([("", "pods", "list")], ("list", "", "pods/status"), False),
        ([("", "pods", "list")], ("list", "apps", "pods"), False),
        ([("*", "*", "*")], ("delete", "apps", "deployments"), True),
        ([("apps", "*", "get")], ("get", "apps", "deployments"), True),
        ([("apps", "*", "get")], ("list", "apps", "deployments"), False),
    ],
)
def test_rbac_rule_grants_the_expected_permissions(
    rules: list[tuple[str, str, str]],
    permission: RbacPermission,
    answer: bool,  # noqa: FBT001
) -> None:
    role_rules = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in rules]
    role = {"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": role_rules}
    other_role = {"kind": "ClusterRole", "metadata": {"name": "b"}, "rules": [{key: ["*"] for key in role_rules[0]}]}
    binding = {"kind": "ClusterRoleBinding", "roleRef": {"name": "a"}, "subjects": [{"kind": "Group", "name": "g"}]}
    assert is_granted(find_granted_permissions([role, other_role, binding], "g"), permission) is answer
    assert find_granted_permissions([role, other_role, binding], "h") == frozenset()
