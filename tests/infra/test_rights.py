"""Who may do what, in AWS and in the cluster; what that is worth is tried in test_attacks."""

from typing import Any

import pytest

from sim.lambdas.intrinsics import Resolver
from tests.infra.policies import Template, resources, roles, several, statements
from tests.infra.stacks import ALL, FUNCTIONS, PRIVATE, allowed, statement


@pytest.mark.parametrize(
    ("action", "functions"),
    [
        ("ec2:CreateFleet", {"provision"}),
        ("ec2:RunInstances", {"provision"}),
        ("ec2:CreateLaunchTemplate", {"provision"}),
        ("iam:PassRole", {"provision"}),
        ("ec2:TerminateInstances", {"lifecycle"}),
        ("ec2:DeleteLaunchTemplate", {"lifecycle"}),
        ("ec2:CreateTags", {"provision", "lifecycle"}),
        ("ec2:DescribeInstances", {"disrupt", "lifecycle"}),
        ("ec2:DescribeInstanceStatus", {"lifecycle"}),
        ("ec2:DescribeLaunchTemplates", {"provision", "lifecycle"}),
        ("ec2:DescribeInstanceTypes", {"catalog"}),
        ("ec2:DescribeSpotPriceHistory", {"catalog"}),
        ("ec2:DescribeSubnets", {"catalog"}),
        ("pricing:GetProducts", {"catalog"}),
        ("ssm:GetParameter", {"catalog"}),
        ("eks:DescribeCluster", ALL),
        ("dynamodb:PutItem", FUNCTIONS),
        ("s3:GetObject", FUNCTIONS - {"lifecycle"}),
        ("s3:PutObject", FUNCTIONS),
    ],
)
def test_only_who_needs_an_action_has_it(template: Template, action: str, functions: set[str]) -> None:
    assert allowed(template, action) == functions


def test_nobody_has_a_wildcard_action_or_touches_iam(template: Template) -> None:
    actions = {action for _, each in statements(template) for action in several(each["Action"])}
    assert not [action for action in actions if "*" in action]
    assert {action for action in actions if action.startswith("iam:")} == {"iam:PassRole"}


def test_every_change_to_ec2_is_bound_to_the_tags_of_the_cluster(template: Template) -> None:
    changes = [each for _, each in statements(template) if _changes_ec2(each) and each["Sid"] != "LaunchWith"]
    assert len(changes) == 7
    for each in changes:
        [by] = {key.partition("/")[0] for key in each["Condition"]["StringLike"]}
        assert each["Condition"]["StringEquals"][f"{by}/kubernetes.io/cluster/demo"] == "owned"
        assert each["Condition"]["StringLike"] == {f"{by}/karpenter.sh/nodepool": "*"}


def _changes_ec2(statement: dict[str, Any]) -> bool:
    actions = several(statement["Action"])
    return any(action.startswith("ec2:") and not action.startswith("ec2:Describe") for action in actions)


def test_nothing_is_launched_without_the_tags_or_from_a_foreign_template(template: Template) -> None:
    tagged = statement(template, "provision", "LaunchTagged")["Condition"]["StringEquals"]
    assert tagged["aws:RequestTag/eks:eks-cluster-name"] == "demo"
    unbound = statement(template, "provision", "LaunchWith")
    kinds = {arn.rpartition(":")[2].partition("/")[0] for arn in unbound["Resource"]}
    assert kinds == {"image", "snapshot", "subnet", "security-group", "capacity-reservation", "placement-group"}
    assert (
        "aws:ResourceTag/kubernetes.io/cluster/demo"
        in (statement(template, "provision", "LaunchFromOwn")["Condition"]["StringEquals"])
    )


def test_tags_are_given_only_while_launching_or_to_name_a_node(template: Template) -> None:
    new = statement(template, "provision", "TagNew")["Condition"]["StringEquals"]
    assert new["ec2:CreateAction"] == ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]
    named = statement(template, "lifecycle", "NameOwn")
    assert named["Resource"].endswith(":instance/*")
    assert named["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"] == [
        "eks:eks-cluster-name",
        "karpenter.sh/nodeclaim",
        "Name",
    ]


def test_who_decides_writes_snapshots_beside_the_journal_and_the_catalog_what_is_sold(template: Template) -> None:
    further = {"catalog": {"catalogue/*", "costs/*", "market/*"}}
    for name in FUNCTIONS:
        written = {arn.partition("/")[2] for arn in several(statement(template, name, "Write")["Resource"])}
        assert written == {"journal/*", "snapshot/*"} | further.get(name, set())


def test_only_node_roles_are_passed_and_only_to_ec2(template: Template, private: Template) -> None:
    passed = statement(template, "provision", "PassNodeRole")
    assert passed["Resource"].startswith("arn:aws:iam::111122223333:role/nodesrole")
    assert passed["Condition"]["StringEquals"]["iam:PassedToService"][0] == "ec2.amazonaws.com"
    further = "arn:aws:iam::111122223333:role/KarpenterNodeRole-prod"
    assert further in statement(private, "provision", "PassNodeRole")["Resource"]


def test_who_is_told_of_costs_is_told_by_the_catalog_and_nobody_else_is_told(
    template: Template, private: Template
) -> None:
    assert allowed(template, "sns:Publish") == set()
    assert allowed(private, "sns:Publish") == {"catalog"}
    assert statement(private, "catalog", "TellCosts")["Resource"] == PRIVATE["joiner:report-topic"]
    told = [one["Environment"]["Variables"] for one in resources(private, "AWS::Lambda::Function").values()]
    assert {one["JOINER_REPORT_TOPIC"] for one in told} == {PRIVATE["joiner:report-topic"]}


def test_private_image_parameters_are_read_if_named(template: Template, private: Template) -> None:
    public = "arn:aws:ssm:us-east-1::parameter/aws/service/*"
    assert statement(template, "catalog", "FindImages")["Resource"] == public
    assert set(statement(private, "catalog", "FindImages")["Resource"]) == {
        public,
        "arn:aws:ssm:us-east-1:111122223333:parameter/images/golden",
    }


def test_nodes_and_functions_are_let_into_the_cluster(template: Template) -> None:
    entries = resources(template, "AWS::EKS::AccessEntry").values()
    keys = {Resolver(template).arn(key): key for key in resources(template, "AWS::IAM::Role")}
    function_of = {role: function for function, role in roles(template).items()}
    nodes = [keys[entry["PrincipalArn"]] for entry in entries if entry["Type"] == "EC2_LINUX"]
    functions = {
        function_of[keys[entry["PrincipalArn"]]]
        for entry in entries
        if entry.get("KubernetesGroups") == ["joiner:functions"]
    }
    assert [node.startswith("NodesRole") for node in nodes] == [True]
    assert functions == FUNCTIONS
    assert len(entries) == len(nodes) + len(FUNCTIONS) + 1
    assert {entry["ClusterName"] for entry in entries} == {"demo"}


def test_windows_nodes_have_a_role_an_entry_and_a_profile_of_their_own(private: Template) -> None:
    entries = resources(private, "AWS::EKS::AccessEntry").values()
    assert sorted(one["Type"] for one in entries if one["Type"] != "STANDARD") == ["EC2_LINUX", "EC2_WINDOWS"]
    [windows] = [one["PrincipalArn"] for one in entries if one["Type"] == "EC2_WINDOWS"]
    assert windows in statement(private, "provision", "PassNodeRole")["Resource"]
    assert len(resources(private, "AWS::IAM::InstanceProfile")) == 2
    assert "WindowsInstanceProfile" in private["Outputs"]


def test_a_node_gets_what_eks_asks_for_and_nothing_else(template: Template) -> None:
    [role] = [p for p in resources(template, "AWS::IAM::Role").values() if "ManagedPolicyArns" in p]
    assert sorted(arn.rpartition("/")[2] for arn in role["ManagedPolicyArns"]) == [
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonSSMManagedInstanceCore",
    ]


def test_no_role_exceeds_the_boundary_that_is_asked_for(template: Template, private: Template) -> None:
    assert {one.get("PermissionsBoundary") for one in resources(template, "AWS::IAM::Role").values()} == {None}
    boundaries = {one.get("PermissionsBoundary") for one in resources(private, "AWS::IAM::Role").values()}
    assert boundaries == {PRIVATE["joiner:permissions-boundary"]}
