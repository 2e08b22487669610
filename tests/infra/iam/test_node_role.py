"""Permissions that depend on the cluster: IPv6 addresses, additional policies of nodes, and keys of volumes."""

import json
from pathlib import Path
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data

from infra.iam.node_role import IPV6_ACTION, NODE_POLICIES
from sim.authorization.template_policies import Template, get_resources, iterate_statements
from tests.infra.policies import as_list
from tests.infra.stacks import find_statement, synthesize_stack

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
MULTI_REGION_KEY = "arn:aws:kms:us-east-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab"
LOG_POLICY = "arn:aws:iam::111122223333:policy/agents/logs"


def list_node_statements(template: Template) -> list[dict[str, Any]]:
    """Return the inline statements of the node roles."""
    return [
        statement
        for key, policy in get_resources(template, "AWS::IAM::Policy").items()
        if "NodesRole" in key
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def list_node_roles(template: Template) -> dict[str, dict[str, Any]]:
    return {key: role for key, role in get_resources(template, "AWS::IAM::Role").items() if "NodesRole" in key}


def test_on_an_ipv4_cluster_the_node_role_has_managed_policies_only(template: Template) -> None:
    assert list_node_statements(template) == []
    [role] = list_node_roles(template).values()
    assert len(role["ManagedPolicyArns"]) == len(NODE_POLICIES)


def test_on_an_ipv6_cluster_the_node_role_can_assign_addresses(tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"ip-family": "ipv6"})
    [statement] = list_node_statements(template)
    assert statement["Action"] == IPV6_ACTION
    assert str(statement["Resource"]).endswith("network-interface/*")


def test_the_managed_policies_of_nodes_have_all_permissions_of_the_vpc_cni_except_ipv6_addresses() -> None:
    """The actions of the policy for IPv6 in the EKS User Guide, with the resource of each."""
    statements = [
        statement
        for name in NODE_POLICIES
        for statement in json.loads(aws_managed_policies_data)[name]["Document"]["Statement"]
    ]
    allowed = {(action, *as_list(entry["Resource"])) for entry in statements for action in as_list(entry["Action"])}
    names = ("DescribeInstances", "DescribeTags", "DescribeNetworkInterfaces", "DescribeInstanceTypes")
    assert allowed >= {(f"ec2:{name}", "*") for name in names}
    assert ("ec2:CreateTags", "arn:aws:ec2:*:*:network-interface/*") in allowed
    assert IPV6_ACTION not in {action for action, *_ in allowed}


def test_additional_policies_are_attached_to_every_node_role(tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"node-role-policies": LOG_POLICY, "windows": "true"})
    roles = list_node_roles(template)
    assert len(roles) == 2
    assert all(LOG_POLICY in role["ManagedPolicyArns"] for role in roles.values())


def test_without_keys_no_function_can_use_kms(template: Template) -> None:
    actions = {action for _, statement in iterate_statements(template) for action in as_list(statement["Action"])}
    assert not [action for action in actions if action.startswith("kms:")]


def test_only_the_function_that_launches_can_use_the_keys_and_only_through_ec2(tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"kms-keys": f"{KEY},{MULTI_REGION_KEY}"})
    users = {
        function
        for function, statement in iterate_statements(template)
        if any(action.startswith("kms:") for action in as_list(statement["Action"]))
    }
    assert users == {"provision"}
    use, grant = (find_statement(template, "provision", sid) for sid in ("UseKeys", "GrantKeys"))
    assert use["Resource"] == grant["Resource"] == [KEY, MULTI_REGION_KEY]
    assert grant["Action"] == "kms:CreateGrant"
    assert grant["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}
    for statement in (use, grant):
        assert statement["Condition"]["StringEquals"] == {"kms:ViaService": "ec2.us-east-1.amazonaws.com"}
