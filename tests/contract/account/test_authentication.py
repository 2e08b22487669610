"""An EKS token authenticates the principals of the stack's access entries, for one cluster and for 15 minutes."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta

import msgspec
import pytest
from urllib3 import PoolManager

from shared.kubernetes.eks_token import build_eks_token
from sim.aws_account.account import DEPLOYER_CREDENTIALS
from sim.aws_account.function_runtime import Credentials
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from tests.contract.account_stage import Json, Stage, get_error_code

pytestmark = pytest.mark.loopback

POLICY_ARN_PREFIX = "arn:aws:eks::aws:cluster-access-policy"


class Keys(msgspec.Struct):
    access_key: str
    secret_key: str
    token: str | None


def make_token(stage: Stage, credentials: Credentials, cluster: str = "demo", age: timedelta = timedelta()) -> str:
    keys = Keys(credentials.access_key, credentials.secret_key, credentials.session_token or None)
    return build_eks_token(keys, cluster=cluster, region="us-east-1", now=stage.account.clock.get_time() - age)


def review_token(stage: Stage, bearer_token: str) -> Json:
    """Send a TokenReview as kube-apiserver does; return its status."""
    token_review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": bearer_token}}
    with PoolManager() as pool:
        response: Json = pool.request("POST", stage.account.authenticator_url, body=json.dumps(token_review)).json()
    assert (response["apiVersion"], response["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
    status: Json = response["status"]
    return status


def deploy_access_entry(stage: Stage, **properties: object) -> Credentials:
    """Create a role with an access entry, by a stack; return the credentials of a function with that role."""
    role = {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "worker", "AssumeRolePolicyDocument": {}}}
    principal = {"ClusterName": "demo", "PrincipalArn": {"Fn::GetAtt": ["Role", "Arn"]}}
    access_entry = {"Type": "AWS::EKS::AccessEntry", "Properties": {**principal, **properties}}
    stack = stage.deploy("s", {"Role": role, "Entry": access_entry} if properties else {"Role": role})
    assert stack["StackStatus"].endswith("E_COMPLETE")
    return stage.account.issue_role_credentials("arn:aws:iam::123456789012:role/worker", "tick")


def test_role_authenticates_with_the_groups_of_its_access_entry(stage: Stage) -> None:
    credentials = deploy_access_entry(stage, KubernetesGroups=["joiner:functions"])
    status = review_token(stage, make_token(stage, credentials))
    assert status["authenticated"]
    user = status["user"]
    assert user["username"] == "arn:aws:sts::123456789012:assumed-role/worker/tick"
    assert user["groups"] == ["joiner:functions"]
    assert user["extra"]["canonicalArn"] == ["arn:aws:iam::123456789012:role/worker"]
    assert user["uid"].startswith("aws-iam-authenticator:123456789012:AROA")


def test_custom_username_can_contain_the_session_name(stage: Stage) -> None:
    credentials = deploy_access_entry(stage, KubernetesGroups=["g"], Username="f:{{SessionName}}")
    assert review_token(stage, make_token(stage, credentials))["user"]["username"] == "f:tick"


def test_cluster_admin_policy_grants_system_masters(stage: Stage) -> None:
    policies = [{"PolicyArn": f"{POLICY_ARN_PREFIX}/AmazonEKSClusterAdminPolicy", "AccessScope": {"Type": "cluster"}}]
    credentials = deploy_access_entry(stage, Type="STANDARD", AccessPolicies=policies)
    assert review_token(stage, make_token(stage, credentials))["user"]["groups"] == ["system:masters"]
    deploy_access_entry(stage, Type="STANDARD", AccessPolicies=[], KubernetesGroups=["g"])
    assert review_token(stage, make_token(stage, credentials))["user"]["groups"] == ["g"]


@pytest.mark.parametrize(
    "policy",
    [
        {"PolicyArn": f"{POLICY_ARN_PREFIX}/AmazonEKSViewPolicy", "AccessScope": {"Type": "cluster"}},
        {
            "PolicyArn": f"{POLICY_ARN_PREFIX}/AmazonEKSClusterAdminPolicy",
            "AccessScope": {"Type": "namespace", "Namespaces": ["a"]},
        },
    ],
)
def test_other_access_policies_do_not_grant_system_masters(stage: Stage, policy: Json) -> None:
    credentials = deploy_access_entry(stage, AccessPolicies=[policy])
    assert review_token(stage, make_token(stage, credentials))["user"]["groups"] == []


def test_node_role_authenticates_as_the_node_of_its_instance(stage: Stage) -> None:
    deploy_access_entry(stage, Type="EC2_LINUX")
    launched = launch_instance(stage)
    arn = "arn:aws:iam::123456789012:role/worker"
    node = review_token(stage, make_token(stage, stage.account.issue_role_credentials(arn, launched)))["user"]
    name = stage.account.cloud.instances.describe(launched).private_dns_name
    assert (node["username"], node["groups"]) == (f"system:node:{name}", ["system:bootstrappers", "system:nodes"])
    assert not review_token(stage, make_token(stage, stage.account.issue_role_credentials(arn, "i-none")))[
        "authenticated"
    ]


def launch_instance(stage: Stage) -> str:
    ec2 = stage.get_client("ec2")
    images = ec2.describe_images(Owners=["amazon"])["Images"]
    image = next(candidate["ImageId"] for candidate in images if candidate["Architecture"] == "x86_64")
    ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData={"ImageId": image})
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    response = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.large", "SubnetId": subnet}],
            }
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    )
    return str(response["Instances"][0]["InstanceIds"][0])


def test_role_without_an_access_entry_is_rejected(stage: Stage) -> None:
    credentials = deploy_access_entry(stage)
    status = review_token(stage, make_token(stage, credentials))
    assert not status["authenticated"]
    assert "has no access entry for demo" in status["error"]
    deploy_access_entry(stage, KubernetesGroups=["g"])
    assert review_token(stage, make_token(stage, credentials))["authenticated"]
    deploy_access_entry(stage)
    assert not review_token(stage, make_token(stage, credentials))["authenticated"]
    assert not review_token(stage, make_token(stage, DEPLOYER_CREDENTIALS))["authenticated"]


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("us-east-1.amazonaws.com", "us-east-1.amazonaws.com.evil.org", "is not STS"),
        ("https:", "http:", "is not STS"),
        ("amazonaws.com/?", "amazonaws.com/x?", "is not STS"),
        ("GetCallerIdentity", "AssumeRole", "AssumeRole is not GetCallerIdentity"),
        ("?Action", "?Evil=1&Action", "Evil does not belong there"),
        ("X-Amz-Expires=60&", "", "X-Amz-Expires is missing"),
        ("host%3Bx-k8s-aws-id", "host", "is not signed"),
        ("X-Amz-Expires=60", "X-Amz-Expires=61", "the signature is none of"),
        ("X-Amz-Signature=", "X-Amz-Signature=0", "the signature is none of"),
        ("X-Amz-Credential=ASIA", "X-Amz-Credential=ASIX", "is not known"),
        ("X-Amz-Security-Token=token", "X-Amz-Security-Token=other", "session token"),
        ("%2Fsts%2F", "%2Fec2%2F", "signed for another service"),
        ("X-Amz-Date=2", "X-Amz-Date=x", "is no instant"),
    ],
)
def test_modified_token_is_rejected(stage: Stage, was: str, becomes: str, words: str) -> None:
    credentials = deploy_access_entry(stage, KubernetesGroups=["g"])
    text = make_token(stage, credentials).removeprefix("k8s-aws-v1.")
    url = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    assert was in url
    changed = urlsafe_b64encode(url.replace(was, becomes).encode()).decode().rstrip("=")
    status = review_token(stage, f"k8s-aws-v1.{changed}")
    assert not status["authenticated"]
    assert words in status["error"]


@pytest.mark.parametrize("bearer_token", ["", "eyJhbGciOi", "k8s-aws-v1.a", "k8s-aws-v1._w"])
def test_malformed_token_is_rejected(stage: Stage, bearer_token: str) -> None:
    assert not review_token(stage, bearer_token)["authenticated"]


def test_token_for_another_cluster_is_rejected(stage: Stage) -> None:
    credentials = deploy_access_entry(stage, KubernetesGroups=["g"])
    status = review_token(stage, make_token(stage, credentials, cluster="other"))
    assert "the signature is none of" in status["error"]


@pytest.mark.parametrize(
    ("age", "is_good"),
    [
        (timedelta(minutes=14), True),
        (timedelta(minutes=15), False),
        (timedelta(minutes=-4), True),
        (timedelta(minutes=-6), False),
    ],
)
def test_token_is_valid_for_fifteen_minutes(stage: Stage, age: timedelta, *, is_good: bool) -> None:
    credentials = deploy_access_entry(stage, KubernetesGroups=["g"])
    stage.account.authenticator._clock = clock = Clock(DEFAULT_START_TIME)  # noqa: SLF001 - time stands still
    keys = Keys(credentials.access_key, credentials.secret_key, credentials.session_token)
    bearer_token = build_eks_token(keys, cluster="demo", region="us-east-1", now=clock.get_time() - age)
    assert review_token(stage, bearer_token)["authenticated"] is is_good


def test_access_entry_api_calls_return_the_same_results_as_eks(stage: Stage) -> None:
    deploy_access_entry(stage, KubernetesGroups=["g"], Tags=[{"Key": "a", "Value": "b"}])
    eks, arn = stage.get_client("eks"), "arn:aws:iam::123456789012:role/worker"
    assert eks.list_access_entries(clusterName="demo")["accessEntries"] == [arn]
    access_entry = eks.describe_access_entry(clusterName="demo", principalArn=arn)["accessEntry"]
    assert (access_entry["kubernetesGroups"], access_entry["type"], access_entry["tags"]) == (
        ["g"],
        "STANDARD",
        {"a": "b"},
    )
    create = eks.create_access_entry
    assert get_error_code(lambda: create(clusterName="demo", principalArn=arn)) == "ResourceInUseException"
    assert get_error_code(lambda: create(clusterName="none", principalArn=arn)) == "ResourceNotFoundException"
    wrong = {"clusterName": "demo", "principalArn": f"{arn}2", "type": "EC2_LINUX"}
    assert get_error_code(lambda: create(**wrong, kubernetesGroups=["g"])) == "InvalidParameterException"
    create(**wrong)
    scope = {"policyArn": f"{POLICY_ARN_PREFIX}/AmazonEKSViewPolicy", "accessScope": {"type": "cluster"}}
    associate = eks.associate_access_policy
    assert (
        get_error_code(lambda: associate(clusterName="demo", principalArn=f"{arn}2", **scope))
        == "InvalidParameterException"
    )
    delete = eks.delete_access_entry
    delete(clusterName="demo", principalArn=f"{arn}2")
    assert get_error_code(lambda: delete(clusterName="demo", principalArn=f"{arn}2")) == "ResourceNotFoundException"
