"""Callers are somebody, and may what the policies say that lie in the account."""

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from sim.account.contract import Credentials
from sim.http.protocol import ApiError
from tests.contract.account_stage import Json, Stage, code_of

pytestmark = pytest.mark.loopback

OWNED = [{"Key": "kubernetes.io/cluster/demo", "Value": "owned"}]
TEMPLATE = {"ImageId": "ami-1", "TagSpecifications": [{"ResourceType": "instance", "Tags": OWNED}]}


def allow(*actions: str, resource: str = "*", **more: Any) -> Json:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource, **more}


def acting(stage: Stage, service: str, *statements: Json, name: str = "worker") -> Any:
    """Answer a client of a role that may what *statements* say."""
    return stage.account.client(service, stage.account.credentials_of(stage.role(name, *statements)))


def test_a_role_is_who_it_is(stage: Stage) -> None:
    arn = stage.role("worker")
    deployer = stage.client("sts").get_caller_identity()
    assert (deployer["Account"], deployer["Arn"]) == ("123456789012", "arn:aws:iam::123456789012:user/deployer")
    got = stage.client("sts").assume_role(RoleArn=arn, RoleSessionName="me")
    assert got["AssumedRoleUser"]["Arn"] == "arn:aws:sts::123456789012:assumed-role/worker/me"
    given = got["Credentials"]
    mine = Credentials(
        access_key=given["AccessKeyId"], secret_key=given["SecretAccessKey"], session_token=given["SessionToken"]
    )
    assert stage.account.client("sts", mine).get_caller_identity()["Arn"] == got["AssumedRoleUser"]["Arn"]
    function = stage.account.credentials_of(arn, "tick")
    assert stage.account.client("sts", function).get_caller_identity()["Arn"].endswith(":assumed-role/worker/tick")


def test_keys_that_nobody_gave_out_are_nobodys(stage: Stage) -> None:
    made_up = Credentials(access_key="ASIAMADEUP", secret_key="", session_token="")
    call = stage.account.client("sqs", made_up).list_queues
    assert code_of(call) == "InvalidClientTokenId"


def test_keys_of_a_role_that_is_gone_are_nobodys(stage: Stage) -> None:
    client = acting(stage, "sqs", allow("*"))
    client.list_queues()
    stage.client("iam").delete_role_policy(RoleName="worker", PolicyName="own")
    stage.client("iam").delete_role(RoleName="worker")
    assert code_of(client.list_queues) == "InvalidClientTokenId"


def test_a_role_is_given_to_whom_it_trusts(stage: Stage) -> None:
    arn = "arn:aws:events:us-east-1:123456789012:rule/mine"
    conditions = {"StringEquals": {"aws:SourceAccount": "123456789012"}, "ArnLike": {"aws:SourceArn": arn}}
    service = {"Service": "scheduler.amazonaws.com"}
    trust = {"Effect": "Allow", "Principal": service, "Action": "sts:AssumeRole", "Condition": conditions}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = stage.client("iam").create_role(RoleName="waker", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    given = stage.account.credentials_of(role, service="scheduler.amazonaws.com", source_arn=arn)
    assert given.session_token
    for said in ({"service": "scheduler.amazonaws.com"}, {"service": "lambda.amazonaws.com", "source_arn": arn}):
        with pytest.raises(ApiError, match="not authorized to perform: sts:AssumeRole"):
            stage.account.credentials_of(role, **said)
    assume = stage.client("sts").assume_role
    assert code_of(lambda: assume(RoleArn=role, RoleSessionName="me")) == "AccessDenied"
    assert code_of(lambda: assume(RoleArn=f"{role}s", RoleSessionName="me")) == "AccessDenied"


@pytest.mark.parametrize(
    ("service", "call", "said", "action", "resource", "code"),
    [
        (
            "sqs",
            "send_message",
            {"QueueUrl": "QUEUE", "MessageBody": "x"},
            "sqs:SendMessage",
            "arn:aws:sqs:us-east-1:123456789012:jobs",
            "AccessDenied",
        ),
        ("sqs", "list_queues", {}, "sqs:ListQueues", "*", "AccessDenied"),
        (
            "s3",
            "put_object",
            {"Bucket": "box", "Key": "a/b", "Body": b""},
            "s3:PutObject",
            "arn:aws:s3:::box/a/*",
            "AccessDenied",
        ),
        ("s3", "get_object", {"Bucket": "box", "Key": "x"}, "s3:GetObject", "arn:aws:s3:::box/x", "AccessDenied"),
        (
            "s3",
            "list_objects_v2",
            {"Bucket": "box", "Prefix": "p/"},
            "s3:ListBucket",
            "arn:aws:s3:::box",
            "AccessDenied",
        ),
        ("s3", "get_bucket_location", {"Bucket": "box"}, "s3:GetBucketLocation", "arn:aws:s3:::box", "AccessDenied"),
        ("s3", "create_bucket", {"Bucket": "crate"}, "s3:CreateBucket", "arn:aws:s3:::crate", "AccessDenied"),
        (
            "dynamodb",
            "put_item",
            {"TableName": "t", "Item": {"k": {"S": "a"}}},
            "dynamodb:PutItem",
            "arn:aws:dynamodb:us-east-1:123456789012:table/t",
            "AccessDeniedException",
        ),
        ("dynamodb", "list_tables", {}, "dynamodb:ListTables", "*", "AccessDeniedException"),
        (
            "ssm",
            "get_parameter",
            {"Name": "/aws/service/eks/x"},
            "ssm:GetParameter",
            "arn:aws:ssm:us-east-1::parameter/aws/service/*",
            "AccessDeniedException",
        ),
        (
            "ssm",
            "get_parameter",
            {"Name": "/own"},
            "ssm:GetParameter",
            "arn:aws:ssm:us-east-1:123456789012:parameter/own",
            "AccessDeniedException",
        ),
        (
            "eks",
            "describe_cluster",
            {"name": "demo"},
            "eks:DescribeCluster",
            "arn:aws:eks:us-east-1:123456789012:cluster/demo",
            "AccessDeniedException",
        ),
        (
            "lambda",
            "invoke",
            {"FunctionName": "tick:live"},
            "lambda:InvokeFunction",
            "arn:aws:lambda:us-east-1:123456789012:function:tick:live",
            "AccessDeniedException",
        ),
        ("lambda", "list_functions", {}, "lambda:ListFunctions", "*", "AccessDeniedException"),
        (
            "logs",
            "create_log_stream",
            {"logGroupName": "g", "logStreamName": "s"},
            "logs:CreateLogStream",
            "arn:aws:logs:us-east-1:123456789012:log-group:g:*",
            "AccessDeniedException",
        ),
        ("pricing", "get_products", {"ServiceCode": "AmazonEC2"}, "pricing:GetProducts", "*", "AccessDeniedException"),
        (
            "sns",
            "publish",
            {"TopicArn": "arn:aws:sns:us-east-1:123456789012:t", "Message": "x"},
            "sns:Publish",
            "arn:aws:sns:us-east-1:123456789012:t",
            "AccessDenied",
        ),
        ("cloudwatch", "describe_alarms", {}, "cloudwatch:DescribeAlarms", "*", "AccessDenied"),
        ("ec2", "describe_instances", {}, "ec2:DescribeInstances", "*", "UnauthorizedOperation"),
        (
            "cloudformation",
            "describe_stacks",
            {"StackName": "none"},
            "cloudformation:DescribeStacks",
            "arn:aws:cloudformation:us-east-1:123456789012:stack/none/*",
            "AccessDenied",
        ),
        ("iam", "list_roles", {}, "iam:ListRoles", "*", "AccessDenied"),
        (
            "scheduler",
            "get_schedule",
            {"Name": "s", "GroupName": "g"},
            "scheduler:GetSchedule",
            "arn:aws:scheduler:us-east-1:123456789012:schedule/g/s",
            "AccessDeniedException",
        ),
    ],
)
def test_a_role_may_what_it_is_allowed_where_it_is_allowed(
    stage: Stage, service: str, call: str, said: Json, action: str, resource: str, code: str
) -> None:
    stage.client("s3").create_bucket(Bucket="box")
    url = stage.client("sqs").create_queue(QueueName="jobs")["QueueUrl"]
    said = {key: url if value == "QUEUE" else value for key, value in said.items()}
    elsewhere = f"{resource}x" if resource != "*" else "arn:aws:sqs:us-east-1:123456789012:x"
    plain, other = (
        acting(stage, service, name="plain"),
        acting(stage, service, allow(action, resource=elsewhere), name="other"),
    )
    allowed = acting(stage, service, allow(action, resource=resource), name="allowed")
    if not elsewhere.endswith("*x"):
        assert code_of(lambda: getattr(other, call)(**said)) == code
    with pytest.raises(ClientError) as refused:
        getattr(plain, call)(**said)
    error = refused.value.response["Error"]
    assert error["Code"] == code
    assert f"assumed-role/plain/function is not authorized to perform: {action} on resource:" in error["Message"]
    assert code_of(lambda: getattr(allowed, call)(**said)) != code


def test_a_transaction_is_all_that_it_does(stage: Stage) -> None:
    stage.client("dynamodb").create_table(
        TableName="t",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    key = {"k": {"S": "a"}}
    items = [
        {"Put": {"TableName": "t", "Item": key}},
        {
            "ConditionCheck": {
                "TableName": "t",
                "Key": {"k": {"S": "b"}},
                "ConditionExpression": "attribute_not_exists(k)",
            }
        },
    ]
    some = acting(stage, "dynamodb", allow("dynamodb:PutItem"), name="some")
    assert code_of(lambda: some.transact_write_items(TransactItems=items)) == "AccessDeniedException"
    both = acting(stage, "dynamodb", allow("dynamodb:PutItem", "dynamodb:ConditionCheckItem"), name="both")
    both.transact_write_items(TransactItems=items)
    assert code_of(lambda: both.batch_get_item(RequestItems={"t": {"Keys": [key]}})) == "AccessDeniedException"


def test_a_deny_wins(stage: Stage) -> None:
    client = acting(stage, "sqs", allow("*"), {"Effect": "Deny", "Action": "sqs:*", "Resource": "*"})
    with pytest.raises(ClientError, match="an explicit deny forbids the sqs:ListQueues action"):
        client.list_queues()


def test_a_managed_policy_and_a_boundary_count(stage: Stage) -> None:
    stage.role("worker")
    iam, prefix = stage.client("iam"), "arn:aws:iam::aws:policy"
    iam.attach_role_policy(RoleName="worker", PolicyArn=f"{prefix}/AmazonSQSFullAccess")
    client = stage.account.client("sqs", stage.account.credentials_of("arn:aws:iam::123456789012:role/worker"))
    client.list_queues()
    iam.put_role_permissions_boundary(RoleName="worker", PermissionsBoundary=f"{prefix}/AmazonS3FullAccess")
    with pytest.raises(ClientError, match="no permissions boundary allows the sqs:ListQueues action"):
        client.list_queues()


def test_the_resource_has_a_word(stage: Stage) -> None:
    sqs = stage.client("sqs")
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    client = acting(stage, "sqs", allow("sqs:*"))
    who = {"AWS": "arn:aws:sts::123456789012:assumed-role/worker/function"}
    deny = {"Effect": "Deny", "Principal": who, "Action": "sqs:SendMessage", "Resource": "*"}
    sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [deny]})}
    )
    assert code_of(lambda: client.send_message(QueueUrl=url, MessageBody="x")) == "AccessDenied"
    client.receive_message(QueueUrl=url)


def test_a_bucket_that_wants_tls_is_open_to_what_comes_by_tls(stage: Stage) -> None:
    s3 = stage.client("s3")
    s3.create_bucket(Bucket="box")
    only = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::box", "arn:aws:s3:::box/*"],
    }
    statement = {**only, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    s3.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    acting(stage, "s3", allow("s3:PutObject")).put_object(Bucket="box", Key="k", Body=b"")


def test_a_function_is_known_by_what_it_runs_as(stage: Stage) -> None:
    by_code = {"Null": {"lambda:SourceFunctionArn": "false"}}
    deny = {"Effect": "Deny", "Action": "sqs:*", "Resource": "*", "Condition": by_code}
    role = stage.role("worker", allow("*"), deny)
    arn = "arn:aws:lambda:us-east-1:123456789012:function:tick"
    function = stage.account.client("sqs", stage.account.credentials_of(role, "tick", function_arn=arn))
    assert code_of(function.list_queues) == "AccessDenied"
    stage.account.client("sqs", stage.account.credentials_of(role, "lambda")).list_queues()


def test_an_instance_is_ended_by_whom_its_tags_allow(stage: Stage) -> None:
    conditions = {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/demo": "owned"}}
    client = acting(stage, "ec2", allow("ec2:TerminateInstances", Condition=conditions))
    launched = launch(stage)
    assert code_of(lambda: client.terminate_instances(InstanceIds=launched)) == ""
    assert code_of(lambda: client.terminate_instances(InstanceIds=["i-0123"])) == "UnauthorizedOperation"


def launch(stage: Stage) -> list[str]:
    """Start an instance with the cluster's tags; answer its id."""
    ec2 = stage.client("ec2")
    make_template(ec2, image_of(stage))
    return list(fleet(stage, ec2)["Instances"][0]["InstanceIds"])


def image_of(stage: Stage) -> str:
    every = stage.client("ec2").describe_images(Owners=["amazon"])["Images"]
    return str(next(one["ImageId"] for one in every if one["Architecture"] == "x86_64"))


def make_template(ec2: Any, image: str = "ami-1", tags: list[Json] = OWNED) -> None:
    ec2.create_launch_template(
        LaunchTemplateName="nodes",
        LaunchTemplateData={"ImageId": image},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )


def fleet(stage: Stage, ec2: Any, **more: Any) -> Json:
    subnet = stage.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    overrides = [{"InstanceType": "m5.large", "SubnetId": subnet}]
    made: Json = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "$Latest"},
                "Overrides": overrides,
            }
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        TagSpecifications=[{"ResourceType": kind, "Tags": OWNED} for kind in ("fleet", "instance")],
        **more,
    )
    return made


def test_a_fleet_asks_for_all_that_it_uses_and_makes(stage: Stage) -> None:
    make_template(stage.client("ec2"), image_of(stage))
    only_fleet = acting(stage, "ec2", allow("ec2:CreateFleet"), name="some")
    with pytest.raises(ClientError, match="ec2:CreateTags on resource: arn:aws:ec2:us-east-1:123456789012:fleet/"):
        fleet(stage, only_fleet)
    no_subnet = {"Effect": "Deny", "Action": "ec2:RunInstances", "Resource": "arn:aws:ec2:*:*:subnet/*"}
    launcher = ("ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags")
    with pytest.raises(ClientError, match="ec2:RunInstances on resource: arn:aws:ec2:us-east-1:123456789012:subnet/"):
        fleet(stage, acting(stage, "ec2", allow(*launcher), no_subnet, name="most"))
    assert fleet(stage, acting(stage, "ec2", allow(*launcher), name="all"))["Instances"]


def test_a_template_and_tags_are_asked_for_with_what_they_say(stage: Stage) -> None:
    tagged = {"StringEquals": {"aws:RequestTag/kubernetes.io/cluster/demo": "owned"}}
    make = allow("ec2:CreateLaunchTemplate", "ec2:CreateTags", Condition=tagged)
    ours = {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/demo": "owned"}}
    ec2 = acting(stage, "ec2", make, allow("ec2:DeleteLaunchTemplate", Condition=ours))
    with pytest.raises(ClientError, match="ec2:CreateLaunchTemplate"):
        make_template(ec2, tags=[{"Key": "kubernetes.io/cluster/other", "Value": "owned"}])
    make_template(ec2)
    ec2.delete_launch_template(LaunchTemplateName="nodes")
    assert code_of(lambda: ec2.delete_launch_template(LaunchTemplateName="nodes")) == "UnauthorizedOperation"
    [instance] = launch(stage)
    ec2.create_tags(Resources=[instance], Tags=OWNED)
    assert (
        code_of(lambda: ec2.create_tags(Resources=[instance], Tags=[{"Key": "a", "Value": "b"}]))
        == "UnauthorizedOperation"
    )
    assert code_of(lambda: ec2.create_tags(Resources=["vol-1"], Tags=[{"Key": "a"}])) == "UnauthorizedOperation"


def test_a_dry_run_says_whether_the_role_may(stage: Stage) -> None:
    may = acting(stage, "ec2", allow("ec2:*"), name="may")
    may_not = acting(stage, "ec2", name="not")
    subnet = stage.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    said = {
        "ImageId": image_of(stage),
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
        "DryRun": True,
    }
    assert code_of(lambda: may.run_instances(**said)) == "DryRunOperation"
    assert code_of(lambda: may_not.run_instances(**said)) == "UnauthorizedOperation"
    assert code_of(lambda: fleet(stage, may_not, DryRun=True)) == "UnauthorizedOperation"


def test_a_profile_is_handed_on_only_with_the_right_to_pass_its_role(stage: Stage) -> None:
    node = stage.role("node")
    iam = stage.client("iam")
    iam.create_instance_profile(InstanceProfileName="nodes")
    iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="node")
    subnet = stage.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    said = {
        "ImageId": "ami-1",
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
        "DryRun": True,
    }
    run = acting(stage, "ec2", allow("ec2:*"), name="some")
    profile = {"IamInstanceProfile": {"Name": "nodes"}}
    with pytest.raises(ClientError, match=f"iam:PassRole on resource: {node}"):
        run.run_instances(**said, **profile)


def test_the_variables_of_an_environment_lead_here(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stage.account.environment().items():
        monkeypatch.setenv(name, value)
    sts = boto3.client("sts")
    assert sts.get_caller_identity()["Account"] == "123456789012"
    sts.close()
