"""The installed ClusterRole allows exactly what the functions do in the cluster; checked on the manifests.

tests/scenario/operations/test_permissions.py checks that each permission is needed,
tests/kubernetes/control_plane/test_rbac.py checks the permissions with a real API server.
"""

import json
from importlib.resources import files

import pytest
import yaml

from infra.functions.installer import build_manifests
from infra.iam.node_role import FUNCTIONS_GROUP
from shared.installer.rbac import (
    RbacPermission,
    find_granted_permissions,
    is_granted,
    list_enabled_features,
    read_optional_rules,
    read_rbac_manifests,
)
from shared.kubernetes.errors import FUNCTIONS_CLUSTER_ROLE, GROUP
from shared.settings import ChosenSettings
from shared.settings_text import decode_texts
from tests.infra.guarded import Guarded


@pytest.fixture(scope="module")
def rights() -> frozenset[RbacPermission]:
    return find_granted_permissions(json.loads(build_manifests()), [FUNCTIONS_GROUP])


def test_every_kubernetes_call_of_every_function_is_granted(life: Guarded, rights: frozenset[RbacPermission]) -> None:
    assert [permission for permission in sorted(life.used_permissions) if not is_granted(rights, permission)] == []
    assert {record.outcome for record in life.runtime.invocations} == {"ok"}


def test_simulated_cluster_run_evicts_pods_and_writes_objects(life: Guarded) -> None:
    assert life.used_permissions >= {
        ("create", "", "pods/eviction"),
        ("create", "karpenter.sh", "nodeclaims"),
        ("patch", "", "nodes"),
        ("patch", "karpenter.sh", "nodeclaims/status"),
        ("patch", "karpenter.k8s.aws", "ec2nodeclasses/status"),
    }


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


@pytest.mark.parametrize(
    ("settings", "permissions"),
    [
        (ChosenSettings(pod_deletion_cost="on"), {("patch", "", "pods")}),
        (ChosenSettings(surge_drain="on"), {("patch", "apps", "deployments")}),
        (
            ChosenSettings(gangs="on"),
            {("list", "scheduling.x-k8s.io", "podgroups"), ("watch", "scheduling.x-k8s.io", "podgroups")},
        ),
        (
            ChosenSettings(provisioning_requests="on"),
            {
                ("list", "autoscaling.x-k8s.io", "provisioningrequests"),
                ("watch", "autoscaling.x-k8s.io", "provisioningrequests"),
                ("patch", "autoscaling.x-k8s.io", "provisioningrequests/status"),
            },
        ),
        (
            ChosenSettings(scheduled_scaling="on"),
            {
                ("patch", "apps", resource)
                for resource in ("deployments", "deployments/scale", "statefulsets", "statefulsets/scale")
            },
        ),
        (
            ChosenSettings(dynamic_resource_allocation="on"),
            {
                (verb, "resource.k8s.io", resource)
                for verb in ("list", "watch")
                for resource in ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
            },
        ),
    ],
)
def test_setting_grants_the_permissions_of_its_feature_only_while_it_is_on(
    settings: ChosenSettings, permissions: set[RbacPermission]
) -> None:
    granted = find_granted_permissions(json.loads(build_manifests(settings)), [FUNCTIONS_GROUP])
    usual = find_granted_permissions(json.loads(build_manifests(ChosenSettings())), [FUNCTIONS_GROUP])
    assert granted - usual == permissions


def test_shipped_cluster_role_is_the_one_that_the_simulator_enforces() -> None:
    for features in (frozenset(), frozenset(read_optional_rules())):
        settings = decode_texts(ChosenSettings, dict.fromkeys(features, "on"))
        shipped = json.loads(build_manifests(settings))
        assert list_enabled_features(settings) == features
        assert [manifest for manifest in read_rbac_manifests(features) if manifest not in shipped] == []


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
    assert is_granted(find_granted_permissions([role, other_role, binding], ["g"]), permission) is answer
    assert find_granted_permissions([role, other_role, binding], ["h"]) == frozenset()
