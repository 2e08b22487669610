"""Every resource type that stacks may have is created, updated and deleted, and leaves nothing behind."""

from typing import Any

import pytest

from sim.aws_account.resource_types.all_providers import RESOURCE_PROVIDERS
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from tests.contract.account_left import list_account_resources
from tests.contract.account_stage import TRUST, Json, Stage

pytestmark = pytest.mark.loopback

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
OPEN_POLICY = {**POLICY, "Statement": [{**POLICY["Statement"][0], "Principal": "*"}]}  # type: ignore[dict-item]
ROLE_PROPERTIES: Json = {"RoleName": "mine", "AssumeRolePolicyDocument": TRUST}
MINE_ROLE = {"Type": "AWS::IAM::Role", "Properties": ROLE_PROPERTIES}
ROLE_ARN = {"Fn::GetAtt": ["Mine", "Arn"]}
RULE: Json = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
TARGET = {"Arn": "arn:aws:lambda:us-east-1:123456789012:function:tick", "RoleArn": ROLE_ARN}
ALARM: Json = {
    "MetricName": "M",
    "Namespace": "N",
    "ComparisonOperator": "GreaterThanThreshold",
    "EvaluationPeriods": 1,
    "Period": 60,
    "Statistic": "Sum",
    "Threshold": 1,
}
ENCRYPTION_RULES: Json = {
    "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
}
LIFECYCLE_RULES: Json = {"Rules": [{"Status": "Enabled", "ExpirationInDays": 3, "Prefix": "a/", "Id": "old"}]}
KEY_SCHEMA: Json = {
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}

# Type, first properties, second properties, other resources of the stack.
TABLE: tuple[tuple[str, Json, Json, Json], ...] = (
    ("AWS::CDK::Metadata", {"Analytics": "a"}, {"Analytics": "b"}, {}),
    ("AWS::CloudWatch::Alarm", ALARM, {**ALARM, "Threshold": 2}, {}),
    ("AWS::CloudWatch::Dashboard", {"DashboardBody": "{}"}, {"DashboardBody": '{"widgets": []}'}, {}),
    (
        "AWS::DynamoDB::Table",
        {**KEY_SCHEMA, "SSESpecification": {"SSEEnabled": True}},
        {
            **KEY_SCHEMA,
            "SSESpecification": {"SSEEnabled": True},
            "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True},
            "DeletionProtectionEnabled": False,
        },
        {},
    ),
    (
        "AWS::ECR::Repository",
        {"RepositoryName": "images"},
        {"RepositoryName": "images", "RepositoryPolicyText": OPEN_POLICY},
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
            "PolicyDocument": OPEN_POLICY,
        },
        {},
    ),
    (
        "AWS::Events::Rule",
        {"EventPattern": {"source": ["a"]}, "Targets": [{"Id": "1", **TARGET}, {"Id": "2", **TARGET}]},
        {"EventPattern": {"source": ["b"]}, "Targets": [{"Id": "2", **TARGET}], "State": "DISABLED"},
        {"Mine": MINE_ROLE},
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
        {"Mine": MINE_ROLE, "Other": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}},
    ),
    (
        "AWS::IAM::ManagedPolicy",
        {"PolicyDocument": POLICY, "Roles": [{"Ref": "Mine"}]},
        {"PolicyDocument": POLICY, "Description": "d"},
        {"Mine": MINE_ROLE},
    ),
    (
        "AWS::IAM::InstanceProfile",
        {"Roles": [{"Ref": "Mine"}]},
        {"Roles": [{"Ref": "Other"}]},
        {"Mine": MINE_ROLE, "Other": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}},
    ),
    ("AWS::KMS::Key", {"KeyPolicy": OPEN_POLICY}, {"KeyPolicy": {**OPEN_POLICY, "Id": "x"}}, {}),
    (
        "AWS::KMS::Alias",
        {"AliasName": "alias/a", "TargetKeyId": {"Ref": "Mine"}},
        {"AliasName": "alias/a", "TargetKeyId": {"Ref": "Other"}},
        {name: {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": OPEN_POLICY}} for name in ("Mine", "Other")},
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
            "BucketEncryption": ENCRYPTION_RULES,
            "LifecycleConfiguration": LIFECYCLE_RULES,
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
        {"Bucket": {"Ref": "Mine"}, "PolicyDocument": OPEN_POLICY},
        {"Bucket": {"Ref": "Mine"}, "PolicyDocument": {**OPEN_POLICY, "Id": "x"}},
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
        {"Topics": [{"Ref": "Mine"}], "PolicyDocument": OPEN_POLICY},
        {"Topics": [{"Ref": "Mine"}], "PolicyDocument": {**OPEN_POLICY, "Id": "x"}},
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
        {"Queues": [{"Ref": "Mine"}], "PolicyDocument": OPEN_POLICY},
        {"Queues": [{"Ref": "Mine"}], "PolicyDocument": {**OPEN_POLICY, "Id": "x"}},
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
        {"Mine": MINE_ROLE, "Group": {"Type": "AWS::Scheduler::ScheduleGroup"}},
    ),
)
COVERED_ELSEWHERE = {
    *(f"AWS::CodeDeploy::{name}" for name in ("Application", "DeploymentConfig", "DeploymentGroup")),
    *(f"AWS::Lambda::{name}" for name in ("EventInvokeConfig", "EventSourceMapping", "Function", "LayerVersion")),
    *(f"AWS::Lambda::{name}" for name in ("Permission", "Version")),
    "AWS::EKS::AccessEntry",
}
"""Types that test_functions.py and test_authentication.py cover."""


@pytest.mark.parametrize(("kind", "first", "second", "other_resources"), TABLE, ids=[row[0] for row in TABLE])
def test_resource_of_every_type_is_created_updated_and_deleted(
    stage: Stage, kind: str, first: Json, second: Json, other_resources: Json
) -> None:
    before = list_account_resources(stage.account)
    for properties, state in ((first, "CREATE_COMPLETE"), (second, "UPDATE_COMPLETE"), (first, "UPDATE_COMPLETE")):
        stack = stage.deploy("s", {"It": {"Type": kind, "Properties": properties}, **other_resources})
        assert (stack["StackStatus"], stage.get_status_reasons("s").count("FAILED")) == (state, 0), (
            stage.get_status_reasons("s")
        )
    assert stage.remove("s")["StackStatus"] == "DELETE_COMPLETE"
    assert list_account_resources(stage.account) == before


def test_every_supported_resource_type_has_a_test() -> None:
    assert {row[0] for row in TABLE} | COVERED_ELSEWHERE == RESOURCE_PROVIDERS.keys()


def test_joiner_stack_is_created_and_deleted_leaving_only_retained_buckets(stage: Stage) -> None:
    stage.respond = lambda request: {"PhysicalResourceId": request["LogicalResourceId"], "Data": {"Told": "ok"}}
    template = stage.upload_assets(synthesize_template())
    template_sections = {key: value for key, value in template.items() if key not in ("Resources", "Rules")}
    before = list_account_resources(stage.account)

    assert stage.deploy("joiner-demo", template["Resources"], **template_sections)["StackStatus"] == "CREATE_COMPLETE"

    assert len(list_account_resources(stage.account)) > 50
    assert stage.account.access_entries.find_entry(
        "demo", stage.account.get_function(stage.find_function_name("provision")).role_arn
    )
    buckets = [resource for resource in template["Resources"].values() if resource["Type"] == "AWS::S3::Bucket"]
    assert stage.remove("joiner-demo")["StackStatus"] == "DELETE_COMPLETE"
    retained_count = sum(bucket.get("DeletionPolicy") == "RetainExceptOnCreate" for bucket in buckets)
    assert len(set(list_account_resources(stage.account)) - set(before)) == retained_count


def test_failed_first_deployment_leaves_no_resources(stage: Stage) -> None:
    def fail_last_creation(request: dict[str, Any]) -> dict[str, Any]:
        is_failing = (request["RequestType"], request["LogicalResourceId"][:16]) == ("Create", "InstallerEmptied")
        return {"Status": "FAILED" if is_failing else "SUCCESS", "PhysicalResourceId": "it", "Data": {"Told": "ok"}}

    stage.respond = fail_last_creation
    template = stage.upload_assets(synthesize_template())
    template_sections = {key: value for key, value in template.items() if key not in ("Resources", "Rules")}
    before = list_account_resources(stage.account)
    stack = stage.deploy("joiner-demo", template["Resources"], **template_sections)
    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    assert list_account_resources(stage.account) == ["cloudformation joiner-demo", *before]
