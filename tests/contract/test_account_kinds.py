"""Every type that stacks may have is made, changed and taken away, and nothing of it is left."""

from typing import Any

import pytest

from sim.account.kinds.kinds import KINDS
from sim.lambdas.template import synthesised
from tests.contract.account_left import lying_in
from tests.contract.account_stage import TRUST, Json, Stage

pytestmark = pytest.mark.loopback

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
OPEN = {**POLICY, "Statement": [{**POLICY["Statement"][0], "Principal": "*"}]}  # type: ignore[dict-item]
ROLE: Json = {"RoleName": "mine", "AssumeRolePolicyDocument": TRUST}
MINE = {"Type": "AWS::IAM::Role", "Properties": ROLE}
ARN = {"Fn::GetAtt": ["Mine", "Arn"]}
RULE: Json = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
TARGET = {"Arn": "arn:aws:lambda:us-east-1:123456789012:function:tick", "RoleArn": ARN}
ALARM: Json = {
    "MetricName": "M",
    "Namespace": "N",
    "ComparisonOperator": "GreaterThanThreshold",
    "EvaluationPeriods": 1,
    "Period": 60,
    "Statistic": "Sum",
    "Threshold": 1,
}
RULES: Json = {"ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
LIFE: Json = {"Rules": [{"Status": "Enabled", "ExpirationInDays": 3, "Prefix": "a/", "Id": "old"}]}
KEYS: Json = {
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}

# The type; what it says first, and then; what else the stack has.
TABLE: tuple[tuple[str, Json, Json, Json], ...] = (
    ("AWS::CDK::Metadata", {"Analytics": "a"}, {"Analytics": "b"}, {}),
    ("AWS::CloudWatch::Alarm", ALARM, {**ALARM, "Threshold": 2}, {}),
    ("AWS::CloudWatch::Dashboard", {"DashboardBody": "{}"}, {"DashboardBody": '{"widgets": []}'}, {}),
    (
        "AWS::DynamoDB::Table",
        {**KEYS, "SSESpecification": {"SSEEnabled": True}},
        {
            **KEYS,
            "SSESpecification": {"SSEEnabled": True},
            "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True},
            "DeletionProtectionEnabled": False,
        },
        {},
    ),
    (
        "AWS::ECR::Repository",
        {"RepositoryName": "images"},
        {"RepositoryName": "images", "RepositoryPolicyText": OPEN},
        {},
    ),
    (
        "AWS::EC2::SecurityGroup",
        {"GroupDescription": "d", "SecurityGroupIngress": [{**RULE, "CidrIp": "10.0.0.0/8"}]},
        {
            "GroupDescription": "d",
            "SecurityGroupEgress": [{**RULE, "CidrIpv6": "::/0", "Description": "out"}],
            "Tags": [{"Key": "a", "Value": "b"}],
        },
        {},
    ),
    (
        "AWS::EC2::SecurityGroupIngress",
        {**RULE, "GroupId": {"Ref": "Mine"}, "SourceSecurityGroupId": {"Ref": "Mine"}},
        {**RULE, "GroupId": {"Ref": "Mine"}, "CidrIp": "10.0.0.0/8"},
        {"Mine": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "d"}}},
    ),
    (
        "AWS::EC2::SecurityGroupEgress",
        {**RULE, "GroupId": {"Ref": "Mine"}, "DestinationPrefixListId": "pl-1"},
        {**RULE, "GroupId": {"Ref": "Mine"}, "CidrIp": "10.0.0.0/8"},
        {
            "Mine": {
                "Type": "AWS::EC2::SecurityGroup",
                "Properties": {"GroupDescription": "d", "SecurityGroupEgress": []},
            }
        },
    ),
    (
        "AWS::EC2::VPCEndpoint",
        {"ServiceName": "com.amazonaws.us-east-1.s3", "VpcId": "vpc-1", "RouteTableIds": ["rtb-1"]},
        {
            "ServiceName": "com.amazonaws.us-east-1.s3",
            "VpcId": "vpc-1",
            "RouteTableIds": ["rtb-2"],
            "PolicyDocument": OPEN,
        },
        {},
    ),
    (
        "AWS::Events::Rule",
        {"EventPattern": {"source": ["a"]}, "Targets": [{"Id": "1", **TARGET}, {"Id": "2", **TARGET}]},
        {"EventPattern": {"source": ["b"]}, "Targets": [{"Id": "2", **TARGET}], "State": "DISABLED"},
        {"Mine": MINE},
    ),
    (
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": TRUST,
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"],
            "Policies": [{"PolicyName": "p", "PolicyDocument": POLICY}],
        },
        {
            "AssumeRolePolicyDocument": TRUST,
            "PermissionsBoundary": "arn:aws:iam::aws:policy/ReadOnlyAccess",
            "Policies": [{"PolicyName": "q", "PolicyDocument": POLICY}],
        },
        {},
    ),
    (
        "AWS::IAM::Policy",
        {"PolicyName": "p", "PolicyDocument": POLICY, "Roles": [{"Ref": "Mine"}, {"Ref": "Other"}]},
        {"PolicyName": "q", "PolicyDocument": POLICY, "Roles": [{"Ref": "Mine"}]},
        {"Mine": MINE, "Other": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}},
    ),
    (
        "AWS::IAM::ManagedPolicy",
        {"PolicyDocument": POLICY, "Roles": [{"Ref": "Mine"}]},
        {"PolicyDocument": POLICY, "Description": "d"},
        {"Mine": MINE},
    ),
    (
        "AWS::IAM::InstanceProfile",
        {"Roles": [{"Ref": "Mine"}]},
        {"Roles": [{"Ref": "Other"}]},
        {"Mine": MINE, "Other": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}},
    ),
    ("AWS::KMS::Key", {"KeyPolicy": OPEN}, {"KeyPolicy": {**OPEN, "Id": "x"}}, {}),
    (
        "AWS::KMS::Alias",
        {"AliasName": "alias/a", "TargetKeyId": {"Ref": "Mine"}},
        {"AliasName": "alias/a", "TargetKeyId": {"Ref": "Other"}},
        {name: {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": OPEN}} for name in ("Mine", "Other")},
    ),
    ("AWS::Logs::LogGroup", {"RetentionInDays": 30}, {"LogGroupClass": "STANDARD"}, {}),
    (
        "AWS::Logs::SubscriptionFilter",
        {"LogGroupName": {"Ref": "Mine"}, "FilterPattern": "", "DestinationArn": TARGET["Arn"]},
        {"LogGroupName": {"Ref": "Mine"}, "FilterPattern": "x", "DestinationArn": TARGET["Arn"]},
        {"Mine": {"Type": "AWS::Logs::LogGroup"}},
    ),
    (
        "AWS::S3::Bucket",
        {
            "VersioningConfiguration": {"Status": "Enabled"},
            "BucketEncryption": RULES,
            "LifecycleConfiguration": LIFE,
            "PublicAccessBlockConfiguration": {"BlockPublicAcls": True},
        },
        {
            "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
            "Tags": [{"Key": "a", "Value": "b"}],
        },
        {},
    ),
    (
        "AWS::S3::BucketPolicy",
        {"Bucket": {"Ref": "Mine"}, "PolicyDocument": OPEN},
        {"Bucket": {"Ref": "Mine"}, "PolicyDocument": {**OPEN, "Id": "x"}},
        {"Mine": {"Type": "AWS::S3::Bucket"}},
    ),
    (
        "AWS::SNS::Topic",
        {"DisplayName": "a"},
        {"Subscription": [{"Protocol": "sqs", "Endpoint": "arn:aws:sqs:us-east-1:123456789012:q"}]},
        {},
    ),
    (
        "AWS::SNS::Subscription",
        {"TopicArn": {"Ref": "Mine"}, "Protocol": "email", "Endpoint": "a@example.org"},
        {"TopicArn": {"Ref": "Mine"}, "Protocol": "email", "Endpoint": "b@example.org", "FilterPolicy": {"a": ["b"]}},
        {"Mine": {"Type": "AWS::SNS::Topic"}},
    ),
    (
        "AWS::SNS::TopicPolicy",
        {"Topics": [{"Ref": "Mine"}], "PolicyDocument": OPEN},
        {"Topics": [{"Ref": "Mine"}], "PolicyDocument": {**OPEN, "Id": "x"}},
        {"Mine": {"Type": "AWS::SNS::Topic"}},
    ),
    (
        "AWS::SQS::Queue",
        {
            "VisibilityTimeout": 60,
            "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Mine", "Arn"]}, "maxReceiveCount": 3},
        },
        {"SqsManagedSseEnabled": True},
        {"Mine": {"Type": "AWS::SQS::Queue"}},
    ),
    (
        "AWS::SQS::QueuePolicy",
        {"Queues": [{"Ref": "Mine"}], "PolicyDocument": OPEN},
        {"Queues": [{"Ref": "Mine"}], "PolicyDocument": {**OPEN, "Id": "x"}},
        {"Mine": {"Type": "AWS::SQS::Queue"}},
    ),
    ("AWS::SSM::Parameter", {"Type": "String", "Value": "a"}, {"Type": "String", "Value": "b"}, {}),
    ("AWS::Scheduler::ScheduleGroup", {"Name": "a"}, {"Name": "b"}, {}),
    (
        "AWS::Scheduler::Schedule",
        {
            "ScheduleExpression": "rate(1 minute)",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "GroupName": {"Ref": "Group"},
            "Target": TARGET,
        },
        {
            "ScheduleExpression": "rate(2 minutes)",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "GroupName": {"Ref": "Group"},
            "Target": TARGET,
        },
        {"Mine": MINE, "Group": {"Type": "AWS::Scheduler::ScheduleGroup"}},
    ),
)
ELSEWHERE = {
    *(f"AWS::CodeDeploy::{name}" for name in ("Application", "DeploymentConfig", "DeploymentGroup")),
    *(f"AWS::Lambda::{name}" for name in ("EventInvokeConfig", "EventSourceMapping", "Function", "LayerVersion")),
    *(f"AWS::Lambda::{name}" for name in ("Permission", "Version")),
    "AWS::EKS::AccessEntry",
}
"""In test_account_functions.py and test_account_authentication.py."""


@pytest.mark.parametrize(("kind", "first", "then", "others"), TABLE, ids=[row[0] for row in TABLE])
def test_a_resource_is_made_changed_and_taken_away(
    stage: Stage, kind: str, first: Json, then: Json, others: Json
) -> None:
    before = lying_in(stage.account)
    for said, state in ((first, "CREATE_COMPLETE"), (then, "UPDATE_COMPLETE"), (first, "UPDATE_COMPLETE")):
        stack = stage.deploy("s", {"It": {"Type": kind, "Properties": said}, **others})
        assert (stack["StackStatus"], stage.why("s").count("FAILED")) == (state, 0), stage.why("s")
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert lying_in(stage.account) == before


def test_every_type_has_its_test() -> None:
    assert {row[0] for row in TABLE} | ELSEWHERE == KINDS.keys()


def stored(stage: Stage, value: Any) -> Any:
    """Put something where the template *value* looks for its assets, as `cdk deploy` does before."""
    s3 = stage.client("s3")
    bucket = "cdk-hnb659fds-assets-123456789012-us-east-1"
    s3.create_bucket(Bucket=bucket)
    for one in value["Resources"].values():
        for said in (one.get("Properties", {}).get("Code", {}), one.get("Properties", {}).get("Content", {})):
            if "S3Key" in said:
                s3.put_object(Bucket=bucket, Key=said["S3Key"], Body=b"zip")
    stage.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="33", Type="String")
    return value


def test_our_own_stack_is_made_changed_and_taken_away_without_a_trace(stage: Stage) -> None:
    stage.answer = lambda said: {"PhysicalResourceId": said["LogicalResourceId"], "Data": {"Told": "ok"}}
    template = stored(stage, synthesised())
    rest = {key: value for key, value in template.items() if key not in ("Resources", "Rules")}
    before = lying_in(stage.account)

    assert stage.deploy("joiner-demo", template["Resources"], **rest)["StackStatus"] == "CREATE_COMPLETE"

    assert len(lying_in(stage.account)) > 50
    assert stage.account.entries.entry("demo", stage.account.function(function_called(stage, "provision")).role_arn)
    buckets = [one for one in template["Resources"].values() if one["Type"] == "AWS::S3::Bucket"]
    assert stage.remove("joiner-demo")["StackStatus"] == "DELETE_COMPLETE"
    kept = sum(one.get("DeletionPolicy") == "Retain" for one in buckets)
    assert len(set(lying_in(stage.account)) - set(before)) == kept


def function_called(stage: Stage, name: str) -> str:
    every = stage.client("lambda").list_functions()["Functions"]
    return str(next(one["FunctionName"] for one in every if f".{name}." in one["Handler"]))
