"""A token of EKS lets in whom the stack's access entries name, for one cluster and a quarter of an hour."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta

import msgspec
import pytest
from urllib3 import PoolManager

from shared.kube.token import eks_token
from sim.account.account import DEPLOYER
from sim.account.contract import Credentials
from sim.clock import START, Clock
from tests.contract.account_stage import Json, Stage, code_of

pytestmark = pytest.mark.loopback

POLICIES = "arn:aws:eks::aws:cluster-access-policy"


class Keys(msgspec.Struct):
    access_key: str
    secret_key: str
    token: str | None


def token(stage: Stage, given: Credentials, cluster: str = "demo", age: timedelta = timedelta()) -> str:
    keys = Keys(given.access_key, given.secret_key, given.session_token or None)
    return eks_token(keys, cluster=cluster, region="us-east-1", now=stage.account.clock.now() - age)


def review(stage: Stage, said: str) -> Json:
    """Ask as kube-apiserver does."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": said}}
    with PoolManager() as pool:
        found: Json = pool.request("POST", stage.account.authenticator_url, body=json.dumps(asked)).json()
    assert (found["apiVersion"], found["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
    status: Json = found["status"]
    return status


def entry(stage: Stage, **said: object) -> Credentials:
    """Make a role with an access entry, by a stack; answer a function's credentials."""
    role = {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "worker", "AssumeRolePolicyDocument": {}}}
    principal = {"ClusterName": "demo", "PrincipalArn": {"Fn::GetAtt": ["Role", "Arn"]}}
    made = {"Type": "AWS::EKS::AccessEntry", "Properties": {**principal, **said}}
    stack = stage.deploy("s", {"Role": role, "Entry": made} if said else {"Role": role})
    assert stack["StackStatus"].endswith("E_COMPLETE")
    return stage.account.credentials_of("arn:aws:iam::123456789012:role/worker", "tick")


def test_a_role_is_let_in_with_the_groups_of_its_entry(stage: Stage) -> None:
    given = entry(stage, KubernetesGroups=["joiner:functions"])
    status = review(stage, token(stage, given))
    assert status["authenticated"]
    user = status["user"]
    assert user["username"] == "arn:aws:sts::123456789012:assumed-role/worker/tick"
    assert user["groups"] == ["joiner:functions"]
    assert user["extra"]["canonicalArn"] == ["arn:aws:iam::123456789012:role/worker"]
    assert user["uid"].startswith("aws-iam-authenticator:123456789012:AROA")


def test_a_username_of_ones_own_may_have_the_session_in_it(stage: Stage) -> None:
    given = entry(stage, KubernetesGroups=["g"], Username="f:{{SessionName}}")
    assert review(stage, token(stage, given))["user"]["username"] == "f:tick"


def test_an_administrators_policy_makes_a_master(stage: Stage) -> None:
    policies = [{"PolicyArn": f"{POLICIES}/AmazonEKSClusterAdminPolicy", "AccessScope": {"Type": "cluster"}}]
    given = entry(stage, Type="STANDARD", AccessPolicies=policies)
    assert review(stage, token(stage, given))["user"]["groups"] == ["system:masters"]
    entry(stage, Type="STANDARD", AccessPolicies=[], KubernetesGroups=["g"])
    assert review(stage, token(stage, given))["user"]["groups"] == ["g"]


@pytest.mark.parametrize(
    "policy",
    [
        {"PolicyArn": f"{POLICIES}/AmazonEKSViewPolicy", "AccessScope": {"Type": "cluster"}},
        {
            "PolicyArn": f"{POLICIES}/AmazonEKSClusterAdminPolicy",
            "AccessScope": {"Type": "namespace", "Namespaces": ["a"]},
        },
    ],
)
def test_a_lesser_policy_makes_none(stage: Stage, policy: Json) -> None:
    given = entry(stage, AccessPolicies=[policy])
    assert review(stage, token(stage, given))["user"]["groups"] == []


def test_a_node_is_called_as_its_machine(stage: Stage) -> None:
    entry(stage, Type="EC2_LINUX")
    launched = launch(stage)
    arn = "arn:aws:iam::123456789012:role/worker"
    node = review(stage, token(stage, stage.account.credentials_of(arn, launched)))["user"]
    name = stage.account.cloud.instance(launched).private_dns_name
    assert (node["username"], node["groups"]) == (f"system:node:{name}", ["system:bootstrappers", "system:nodes"])
    assert not review(stage, token(stage, stage.account.credentials_of(arn, "i-none")))["authenticated"]


def launch(stage: Stage) -> str:
    ec2 = stage.client("ec2")
    every = ec2.describe_images(Owners=["amazon"])["Images"]
    image = next(one["ImageId"] for one in every if one["Architecture"] == "x86_64")
    ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData={"ImageId": image})
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    made = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.large", "SubnetId": subnet}],
            }
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
    )
    return str(made["Instances"][0]["InstanceIds"][0])


def test_a_role_without_an_entry_stays_out_and_so_does_one_whose_entry_is_gone(stage: Stage) -> None:
    given = entry(stage)
    status = review(stage, token(stage, given))
    assert not status["authenticated"]
    assert "has no access entry for demo" in status["error"]
    entry(stage, KubernetesGroups=["g"])
    assert review(stage, token(stage, given))["authenticated"]
    entry(stage)
    assert not review(stage, token(stage, given))["authenticated"]
    assert not review(stage, token(stage, DEPLOYER))["authenticated"]


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
def test_a_token_that_was_changed_opens_nothing(stage: Stage, was: str, becomes: str, words: str) -> None:
    given = entry(stage, KubernetesGroups=["g"])
    text = token(stage, given).removeprefix("k8s-aws-v1.")
    url = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    assert was in url
    changed = urlsafe_b64encode(url.replace(was, becomes).encode()).decode().rstrip("=")
    status = review(stage, f"k8s-aws-v1.{changed}")
    assert not status["authenticated"]
    assert words in status["error"]


@pytest.mark.parametrize("said", ["", "eyJhbGciOi", "k8s-aws-v1.a", "k8s-aws-v1._w"])
def test_what_is_no_token_opens_nothing(stage: Stage, said: str) -> None:
    assert not review(stage, said)["authenticated"]


def test_a_token_for_another_cluster_opens_nothing(stage: Stage) -> None:
    given = entry(stage, KubernetesGroups=["g"])
    status = review(stage, token(stage, given, cluster="other"))
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
def test_a_token_is_good_for_a_quarter_of_an_hour(stage: Stage, age: timedelta, *, is_good: bool) -> None:
    given = entry(stage, KubernetesGroups=["g"])
    stage.account.authenticator._clock = clock = Clock(START)  # noqa: SLF001 - time stands still
    keys = Keys(given.access_key, given.secret_key, given.session_token)
    made = eks_token(keys, cluster="demo", region="us-east-1", now=clock.now() - age)
    assert review(stage, made)["authenticated"] is is_good


def test_entries_are_asked_for_as_people_do(stage: Stage) -> None:
    entry(stage, KubernetesGroups=["g"], Tags=[{"Key": "a", "Value": "b"}])
    eks, arn = stage.client("eks"), "arn:aws:iam::123456789012:role/worker"
    assert eks.list_access_entries(clusterName="demo")["accessEntries"] == [arn]
    found = eks.describe_access_entry(clusterName="demo", principalArn=arn)["accessEntry"]
    assert (found["kubernetesGroups"], found["type"], found["tags"]) == (["g"], "STANDARD", {"a": "b"})
    create = eks.create_access_entry
    assert code_of(lambda: create(clusterName="demo", principalArn=arn)) == "ResourceInUseException"
    assert code_of(lambda: create(clusterName="none", principalArn=arn)) == "ResourceNotFoundException"
    wrong = {"clusterName": "demo", "principalArn": f"{arn}2", "type": "EC2_LINUX"}
    assert code_of(lambda: create(**wrong, kubernetesGroups=["g"])) == "InvalidParameterException"
    create(**wrong)
    scope = {"policyArn": f"{POLICIES}/AmazonEKSViewPolicy", "accessScope": {"type": "cluster"}}
    associate = eks.associate_access_policy
    assert (
        code_of(lambda: associate(clusterName="demo", principalArn=f"{arn}2", **scope)) == "InvalidParameterException"
    )
    delete = eks.delete_access_entry
    delete(clusterName="demo", principalArn=f"{arn}2")
    assert code_of(lambda: delete(clusterName="demo", principalArn=f"{arn}2")) == "ResourceNotFoundException"
