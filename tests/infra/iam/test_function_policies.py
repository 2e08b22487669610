"""Permissions in AWS and in the cluster, by function; test_attacks tests their effect."""

from pathlib import Path
from typing import Any

import pytest

from sim.authorization.template_policies import Template, get_resources, iterate_statements, map_function_roles
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from tests.infra.policies import as_list
from tests.infra.stacks import ALL, FUNCTIONS, PRIVATE, find_statement, list_allowed_functions, synthesize_stack


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
        ("ec2:DescribeInstances", {"disrupt", "lifecycle", "provision"}),
        ("ec2:DescribeInstanceStatus", {"lifecycle"}),
        ("ec2:DescribeLaunchTemplates", {"provision", "lifecycle"}),
        ("ec2:DescribeInstanceTypes", {"catalog"}),
        ("ec2:DescribeSpotPriceHistory", {"catalog"}),
        ("ec2:DescribeSubnets", {"catalog"}),
        ("pricing:GetProducts", {"catalog"}),
        ("ssm:GetParameter", {"catalog"}),
        ("eks:DescribeCluster", ALL),
        ("dynamodb:PutItem", FUNCTIONS),
        ("dynamodb:Query", FUNCTIONS - {"catalog", "watch"}),
        ("dynamodb:ConditionCheckItem", {"disrupt", "provision"}),
        ("dynamodb:DeleteItem", {"disrupt"}),
        ("s3:GetObject", FUNCTIONS - {"lifecycle", "watch"}),
        ("s3:PutObject", FUNCTIONS),
    ],
)
def test_action_is_allowed_only_for_functions_that_need_it(
    template: Template, action: str, functions: set[str]
) -> None:
    assert list_allowed_functions(template, action) == functions


def test_lifecycle_reads_the_catalog_only_for_node_overlays(tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"feature-gates": "NodeOverlay=true"})
    assert list_allowed_functions(template, "s3:GetObject") == FUNCTIONS - {"watch"}
    assert list_allowed_functions(template, "s3:ListBucket") == FUNCTIONS - {"watch"}


def test_no_policy_has_wildcard_actions_or_iam_actions_except_pass_role(template: Template) -> None:
    actions = {action for _, document in iterate_statements(template) for action in as_list(document["Action"])}
    assert not [action for action in actions if "*" in action]
    assert {action for action in actions if action.startswith("iam:")} == {"iam:PassRole"}


def test_ec2_write_statements_require_the_cluster_tags(template: Template) -> None:
    changes = [
        document
        for _, document in iterate_statements(template)
        if _is_ec2_change(document) and document["Sid"] != "LaunchWithSelectedResources"
    ]
    assert len(changes) == 7
    for change in changes:
        [condition_prefix] = {key.partition("/")[0] for key in change["Condition"]["StringLike"]}
        assert change["Condition"]["StringEquals"][f"{condition_prefix}/kubernetes.io/cluster/demo"] == "owned"
        assert change["Condition"]["StringLike"] == {f"{condition_prefix}/karpenter.sh/nodepool": "*"}


def _is_ec2_change(statement: dict[str, Any]) -> bool:
    actions = as_list(statement["Action"])
    return any(action.startswith("ec2:") and not action.startswith("ec2:Describe") for action in actions)


def test_launches_require_cluster_tags_and_an_owned_launch_template(template: Template) -> None:
    tagged = find_statement(template, "provision", "CreateTaggedFleets")["Condition"]["StringEquals"]
    assert tagged["aws:RequestTag/eks:eks-cluster-name"] == "demo"
    unbound = find_statement(template, "provision", "LaunchWithSelectedResources")
    kinds = {arn.rpartition(":")[2].partition("/")[0] for arn in unbound["Resource"]}
    assert kinds == {"image", "snapshot", "subnet", "security-group", "capacity-reservation", "placement-group"}
    assert (
        "aws:ResourceTag/kubernetes.io/cluster/demo"
        in (find_statement(template, "provision", "LaunchFromOwnedTemplates")["Condition"]["StringEquals"])
    )


def test_create_tags_is_allowed_only_at_launch_and_for_node_names(template: Template) -> None:
    new = find_statement(template, "provision", "TagCreatedResources")["Condition"]["StringEquals"]
    assert new["ec2:CreateAction"] == ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]
    name_statement = find_statement(template, "lifecycle", "TagOwnedInstances")
    assert name_statement["Resource"].endswith(":instance/*")
    assert name_statement["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"] == [
        "eks:eks-cluster-name",
        "karpenter.sh/nodeclaim",
        "Name",
    ]


def test_functions_write_only_journal_and_snapshots_and_catalog_also_its_data(template: Template) -> None:
    further = {"catalog": {"catalogue/*", "costs/*", "market/*"}}
    for name in FUNCTIONS - {"watch"}:
        written_prefixes = {
            arn.partition("/")[2] for arn in as_list(find_statement(template, name, "WriteObjects")["Resource"])
        }
        assert written_prefixes == {"journal/*", "snapshot/*"} | further.get(name, set())
    assert find_statement(template, "watch", "WriteObjects")["Resource"].endswith("/journal/*")


def test_pass_role_is_limited_to_node_roles_and_ec2(template: Template, private: Template) -> None:
    passed = find_statement(template, "provision", "PassNodeRole")
    assert passed["Resource"].startswith("arn:aws:iam::111122223333:role/nodesrole")
    assert passed["Condition"]["StringEquals"]["iam:PassedToService"][0] == "ec2.amazonaws.com"
    further = "arn:aws:iam::111122223333:role/KarpenterNodeRole-prod"
    assert further in find_statement(private, "provision", "PassNodeRole")["Resource"]


def test_only_catalog_function_publishes_to_the_report_topic(template: Template, private: Template) -> None:
    assert list_allowed_functions(template, "sns:Publish") == set()
    assert list_allowed_functions(private, "sns:Publish") == {"catalog"}
    assert find_statement(private, "catalog", "PublishCostReports")["Resource"] == PRIVATE["report-topic"]
    environments = [
        function_properties["Environment"]["Variables"]
        for function_properties in get_resources(private, "AWS::Lambda::Function").values()
    ]
    assert {environment["JOINER_REPORT_TOPIC"] for environment in environments} == {PRIVATE["report-topic"]}


def test_private_image_parameters_are_readable_if_configured(template: Template, private: Template) -> None:
    public = "arn:aws:ssm:us-east-1::parameter/aws/service/*"
    assert find_statement(template, "catalog", "ReadImageParameters")["Resource"] == public
    assert set(find_statement(private, "catalog", "ReadImageParameters")["Resource"]) == {
        public,
        "arn:aws:ssm:us-east-1:111122223333:parameter/images/golden",
    }


def test_nodes_and_functions_have_eks_access_entries(template: Template) -> None:
    entries = get_resources(template, "AWS::EKS::AccessEntry").values()
    keys = {IntrinsicResolver(template).get_arn(key): key for key in get_resources(template, "AWS::IAM::Role")}
    function_of = {role: function for function, role in map_function_roles(template).items()}
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


def test_windows_nodes_have_their_own_role_access_entry_and_instance_profile(private: Template) -> None:
    entries = get_resources(private, "AWS::EKS::AccessEntry").values()
    assert sorted(entry["Type"] for entry in entries if entry["Type"] != "STANDARD") == ["EC2_LINUX", "EC2_WINDOWS"]
    [windows] = [entry["PrincipalArn"] for entry in entries if entry["Type"] == "EC2_WINDOWS"]
    assert windows in find_statement(private, "provision", "PassNodeRole")["Resource"]
    assert len(get_resources(private, "AWS::IAM::InstanceProfile")) == 2
    assert "WindowsInstanceProfile" in private["Outputs"]


def test_node_role_has_only_the_managed_policies_required_by_eks(template: Template) -> None:
    [role] = [p for p in get_resources(template, "AWS::IAM::Role").values() if "ManagedPolicyArns" in p]
    assert sorted(arn.rpartition("/")[2] for arn in role["ManagedPolicyArns"]) == [
        "AmazonEC2ContainerRegistryPullOnly",
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonSSMManagedInstanceCore",
    ]


def test_every_role_has_the_configured_permissions_boundary(template: Template, private: Template) -> None:
    assert {role.get("PermissionsBoundary") for role in get_resources(template, "AWS::IAM::Role").values()} == {None}
    boundaries = {role.get("PermissionsBoundary") for role in get_resources(private, "AWS::IAM::Role").values()}
    assert boundaries == {PRIVATE["permissions-boundary"]}
