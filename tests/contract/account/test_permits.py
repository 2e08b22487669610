"""Callers have an identity and the permissions that the policies in the account grant."""

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from sim.aws_account.function_runtime import Credentials
from sim.aws_http.protocol import ApiError
from sim.cloud.open_answers import OpenAnswers
from tests.contract.account_stage import Json, Stage, get_error_code

pytestmark = pytest.mark.loopback

OWNED_TAGS = [{"Key": "kubernetes.io/cluster/demo", "Value": "owned"}]
TEMPLATE = {"ImageId": "ami-1", "TagSpecifications": [{"ResourceType": "instance", "Tags": OWNED_TAGS}]}


def make_allow_statement(*actions: str, resource: str = "*", **fields: Any) -> Json:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource, **fields}


def get_client_as_role(stage: Stage, service: str, *statements: Json, name: str = "worker") -> Any:
    """Return a client for *service* with a role that has *statements* as its policy."""
    return stage.account.get_client(service, stage.account.issue_role_credentials(stage.create_role(name, *statements)))


def test_assumed_role_is_returned_as_the_caller_identity(stage: Stage) -> None:
    arn = stage.create_role("worker")
    deployer = stage.get_client("sts").get_caller_identity()
    assert (deployer["Account"], deployer["Arn"]) == ("123456789012", "arn:aws:iam::123456789012:user/deployer")
    assumed_role = stage.get_client("sts").assume_role(RoleArn=arn, RoleSessionName="me")
    assert assumed_role["AssumedRoleUser"]["Arn"] == "arn:aws:sts::123456789012:assumed-role/worker/me"
    issued_credentials = assumed_role["Credentials"]
    credentials = Credentials(
        access_key=issued_credentials["AccessKeyId"],
        secret_key=issued_credentials["SecretAccessKey"],
        session_token=issued_credentials["SessionToken"],
    )
    assert (
        stage.account.get_client("sts", credentials).get_caller_identity()["Arn"]
        == assumed_role["AssumedRoleUser"]["Arn"]
    )
    function = stage.account.issue_role_credentials(arn, "tick")
    assert stage.account.get_client("sts", function).get_caller_identity()["Arn"].endswith(":assumed-role/worker/tick")


def test_unknown_access_key_is_rejected(stage: Stage) -> None:
    made_up = Credentials(access_key="ASIAMADEUP", secret_key="", session_token="")
    call = stage.account.get_client("sqs", made_up).list_queues
    assert get_error_code(call) == "InvalidClientTokenId"


def test_access_key_of_a_deleted_role_is_rejected(stage: Stage) -> None:
    client = get_client_as_role(stage, "sqs", make_allow_statement("*"))
    client.list_queues()
    stage.get_client("iam").delete_role_policy(RoleName="worker", PolicyName="own")
    stage.get_client("iam").delete_role(RoleName="worker")
    assert get_error_code(client.list_queues) == "InvalidClientTokenId"


def test_role_can_be_assumed_only_by_trusted_principals(stage: Stage) -> None:
    arn = "arn:aws:events:us-east-1:123456789012:rule/mine"
    conditions = {"StringEquals": {"aws:SourceAccount": "123456789012"}, "ArnLike": {"aws:SourceArn": arn}}
    service = {"Service": "scheduler.amazonaws.com"}
    trust = {"Effect": "Allow", "Principal": service, "Action": "sts:AssumeRole", "Condition": conditions}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = stage.get_client("iam").create_role(RoleName="waker", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    credentials = stage.account.issue_role_credentials(role, service="scheduler.amazonaws.com", source_arn=arn)
    assert credentials.session_token
    for identity in ({"service": "scheduler.amazonaws.com"}, {"service": "lambda.amazonaws.com", "source_arn": arn}):
        with pytest.raises(ApiError, match="not authorized to perform: sts:AssumeRole"):
            stage.account.issue_role_credentials(role, **identity)
    assume = stage.get_client("sts").assume_role
    assert get_error_code(lambda: assume(RoleArn=role, RoleSessionName="me")) == "AccessDenied"
    assert get_error_code(lambda: assume(RoleArn=f"{role}s", RoleSessionName="me")) == "AccessDenied"


@pytest.mark.parametrize(
    ("service", "call", "arguments", "action", "resource", "code"),
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
def test_role_is_allowed_only_its_actions_on_its_resources(
    stage: Stage, service: str, call: str, arguments: Json, action: str, resource: str, code: str
) -> None:
    stage.get_client("s3").create_bucket(Bucket="box")
    url = stage.get_client("sqs").create_queue(QueueName="jobs")["QueueUrl"]
    arguments = {key: url if value == "QUEUE" else value for key, value in arguments.items()}
    elsewhere = f"{resource}x" if resource != "*" else "arn:aws:sqs:us-east-1:123456789012:x"
    plain, wrong_resource_client = (
        get_client_as_role(stage, service, name="plain"),
        get_client_as_role(stage, service, make_allow_statement(action, resource=elsewhere), name="other"),
    )
    allowed = get_client_as_role(stage, service, make_allow_statement(action, resource=resource), name="allowed")
    if not elsewhere.endswith("*x"):
        assert get_error_code(lambda: getattr(wrong_resource_client, call)(**arguments)) == code
    with pytest.raises(ClientError) as refused:
        getattr(plain, call)(**arguments)
    error = refused.value.response["Error"]
    assert error["Code"] == code
    assert f"assumed-role/plain/function is not authorized to perform: {action} on resource:" in error["Message"]
    assert get_error_code(lambda: getattr(allowed, call)(**arguments)) != code


def test_transaction_requires_the_permissions_of_all_its_operations(stage: Stage) -> None:
    stage.get_client("dynamodb").create_table(
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
    put_only_client = get_client_as_role(stage, "dynamodb", make_allow_statement("dynamodb:PutItem"), name="some")
    assert get_error_code(lambda: put_only_client.transact_write_items(TransactItems=items)) == "AccessDeniedException"
    client = get_client_as_role(
        stage, "dynamodb", make_allow_statement("dynamodb:PutItem", "dynamodb:ConditionCheckItem"), name="both"
    )
    client.transact_write_items(TransactItems=items)
    assert get_error_code(lambda: client.batch_get_item(RequestItems={"t": {"Keys": [key]}})) == "AccessDeniedException"


def test_explicit_deny_overrides_allow(stage: Stage) -> None:
    client = get_client_as_role(
        stage, "sqs", make_allow_statement("*"), {"Effect": "Deny", "Action": "sqs:*", "Resource": "*"}
    )
    with pytest.raises(ClientError, match="an explicit deny forbids the sqs:ListQueues action"):
        client.list_queues()


def test_managed_policies_and_permissions_boundaries_are_enforced(stage: Stage) -> None:
    stage.create_role("worker")
    iam, prefix = stage.get_client("iam"), "arn:aws:iam::aws:policy"
    iam.attach_role_policy(RoleName="worker", PolicyArn=f"{prefix}/AmazonSQSFullAccess")
    client = stage.account.get_client(
        "sqs", stage.account.issue_role_credentials("arn:aws:iam::123456789012:role/worker")
    )
    client.list_queues()
    iam.put_role_permissions_boundary(RoleName="worker", PermissionsBoundary=f"{prefix}/AmazonS3FullAccess")
    with pytest.raises(ClientError, match="no permissions boundary allows the sqs:ListQueues action"):
        client.list_queues()


def test_queue_policy_can_deny_an_allowed_role(stage: Stage) -> None:
    sqs = stage.get_client("sqs")
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    client = get_client_as_role(stage, "sqs", make_allow_statement("sqs:*"))
    principal = {"AWS": "arn:aws:sts::123456789012:assumed-role/worker/function"}
    deny = {"Effect": "Deny", "Principal": principal, "Action": "sqs:SendMessage", "Resource": "*"}
    sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [deny]})}
    )
    assert get_error_code(lambda: client.send_message(QueueUrl=url, MessageBody="x")) == "AccessDenied"
    client.receive_message(QueueUrl=url)


def test_bucket_policy_that_requires_tls_allows_tls_requests(stage: Stage) -> None:
    s3 = stage.get_client("s3")
    s3.create_bucket(Bucket="box")
    only = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::box", "arn:aws:s3:::box/*"],
    }
    statement = {**only, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    s3.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    get_client_as_role(stage, "s3", make_allow_statement("s3:PutObject")).put_object(Bucket="box", Key="k", Body=b"")


def test_function_arn_condition_applies_to_function_credentials(stage: Stage) -> None:
    by_code = {"Null": {"lambda:SourceFunctionArn": "false"}}
    deny = {"Effect": "Deny", "Action": "sqs:*", "Resource": "*", "Condition": by_code}
    role = stage.create_role("worker", make_allow_statement("*"), deny)
    arn = "arn:aws:lambda:us-east-1:123456789012:function:tick"
    function = stage.account.get_client("sqs", stage.account.issue_role_credentials(role, "tick", function_arn=arn))
    assert get_error_code(function.list_queues) == "AccessDenied"
    stage.account.get_client("sqs", stage.account.issue_role_credentials(role, "lambda")).list_queues()


def test_terminate_instances_is_allowed_by_resource_tags(stage: Stage) -> None:
    conditions = {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/demo": "owned"}}
    client = get_client_as_role(stage, "ec2", make_allow_statement("ec2:TerminateInstances", Condition=conditions))
    launched = launch_instance(stage)
    assert get_error_code(lambda: client.terminate_instances(InstanceIds=launched)) == ""
    assert (
        get_error_code(lambda: client.terminate_instances(InstanceIds=["i-01234567"])) == "InvalidInstanceID.NotFound"
    )
    stage.account.cloud.set_open_answers(OpenAnswers(denies_unseen_instances=True))
    assert get_error_code(lambda: client.terminate_instances(InstanceIds=["i-01234567"])) == "UnauthorizedOperation"


def launch_instance(stage: Stage) -> list[str]:
    """Launch an instance with the cluster's tags; return its id."""
    ec2 = stage.get_client("ec2")
    create_template(ec2, find_image(stage))
    return list(launch_fleet(stage, ec2)["Instances"][0]["InstanceIds"])


def find_image(stage: Stage) -> str:
    images = stage.get_client("ec2").describe_images(Owners=["amazon"])["Images"]
    return str(next(image["ImageId"] for image in images if image["Architecture"] == "x86_64"))


def create_template(ec2: Any, image: str = "ami-1", tags: list[Json] = OWNED_TAGS) -> None:
    ec2.create_launch_template(
        LaunchTemplateName="nodes",
        LaunchTemplateData={"ImageId": image},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )


def launch_fleet(stage: Stage, ec2: Any, **fields: Any) -> Json:
    subnet = stage.get_client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    overrides = [{"InstanceType": "m5.large", "SubnetId": subnet}]
    response: Json = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "$Latest"},
                "Overrides": overrides,
            }
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        TagSpecifications=[{"ResourceType": kind, "Tags": OWNED_TAGS} for kind in ("fleet", "instance")],
        **fields,
    )
    return response


def test_create_fleet_requires_permissions_for_every_resource_it_uses(stage: Stage) -> None:
    create_template(stage.get_client("ec2"), find_image(stage))
    only_fleet = get_client_as_role(stage, "ec2", make_allow_statement("ec2:CreateFleet"), name="some")
    with pytest.raises(ClientError, match="ec2:CreateTags on resource: arn:aws:ec2:us-east-1:123456789012:fleet/"):
        launch_fleet(stage, only_fleet)
    no_subnet = {"Effect": "Deny", "Action": "ec2:RunInstances", "Resource": "arn:aws:ec2:*:*:subnet/*"}
    launcher = ("ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags")
    with pytest.raises(ClientError, match="ec2:RunInstances on resource: arn:aws:ec2:us-east-1:123456789012:subnet/"):
        launch_fleet(stage, get_client_as_role(stage, "ec2", make_allow_statement(*launcher), no_subnet, name="most"))
    assert launch_fleet(stage, get_client_as_role(stage, "ec2", make_allow_statement(*launcher), name="all"))[
        "Instances"
    ]


def test_launch_template_and_tag_calls_are_checked_against_tag_conditions(stage: Stage) -> None:
    tagged = {"StringEquals": {"aws:RequestTag/kubernetes.io/cluster/demo": "owned"}}
    make = make_allow_statement("ec2:CreateLaunchTemplate", "ec2:CreateTags", Condition=tagged)
    condition = {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/demo": "owned"}}
    ec2 = get_client_as_role(stage, "ec2", make, make_allow_statement("ec2:DeleteLaunchTemplate", Condition=condition))
    with pytest.raises(ClientError, match="ec2:CreateLaunchTemplate"):
        create_template(ec2, tags=[{"Key": "kubernetes.io/cluster/other", "Value": "owned"}])
    create_template(ec2)
    ec2.delete_launch_template(LaunchTemplateName="nodes")
    code = "InvalidLaunchTemplateName.NotFoundException"
    assert get_error_code(lambda: ec2.delete_launch_template(LaunchTemplateName="nodes")) == code
    [instance] = launch_instance(stage)
    ec2.create_tags(Resources=[instance], Tags=OWNED_TAGS)
    assert (
        get_error_code(lambda: ec2.create_tags(Resources=[instance], Tags=[{"Key": "a", "Value": "b"}]))
        == "UnauthorizedOperation"
    )
    assert get_error_code(lambda: ec2.create_tags(Resources=["vol-1"], Tags=[{"Key": "a"}])) == "UnauthorizedOperation"


def test_dry_run_reports_whether_the_role_is_authorized(stage: Stage) -> None:
    may = get_client_as_role(stage, "ec2", make_allow_statement("ec2:*"), name="may")
    may_not = get_client_as_role(stage, "ec2", name="not")
    subnet = stage.get_client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    arguments = {
        "ImageId": find_image(stage),
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
        "DryRun": True,
    }
    assert get_error_code(lambda: may.run_instances(**arguments)) == "DryRunOperation"
    assert get_error_code(lambda: may_not.run_instances(**arguments)) == "UnauthorizedOperation"
    assert get_error_code(lambda: launch_fleet(stage, may_not, DryRun=True)) == "UnauthorizedOperation"


def test_run_instances_with_an_instance_profile_requires_pass_role(stage: Stage) -> None:
    node = stage.create_role("node")
    iam = stage.get_client("iam")
    iam.create_instance_profile(InstanceProfileName="nodes")
    iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="node")
    subnet = stage.get_client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    arguments = {
        "ImageId": "ami-1",
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
        "SubnetId": subnet,
        "DryRun": True,
    }
    run = get_client_as_role(stage, "ec2", make_allow_statement("ec2:*"), name="some")
    profile = {"IamInstanceProfile": {"Name": "nodes"}}
    with pytest.raises(ClientError, match=f"iam:PassRole on resource: {node}"):
        run.run_instances(**arguments, **profile)


def test_sdk_environment_variables_point_to_the_simulated_account(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in stage.account.build_environment().items():
        monkeypatch.setenv(name, value)
    sts = boto3.client("sts")
    assert sts.get_caller_identity()["Account"] == "123456789012"
    sts.close()


def test_item_of_a_group_is_reached_by_the_arn_of_its_table_with_a_condition_on_its_key(stage: Stage) -> None:
    stage.get_client("dynamodb").create_table(
        TableName="groups",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/groups"
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["group/g"]}}
    statement = make_allow_statement("dynamodb:GetItem", "dynamodb:PutItem", resource=arn, Condition=condition)
    client = get_client_as_role(stage, "dynamodb", statement)
    item = {"pk": {"S": "group/g"}, "sk": {"S": "usage"}}
    client.put_item(TableName=arn, Item=item)
    assert client.get_item(TableName=arn, Key=item)["Item"] == item
    other_key = item | {"pk": {"S": "group/other"}}
    for call in (
        lambda: client.put_item(TableName=arn, Item=other_key),
        lambda: client.get_item(TableName=arn, Key=other_key),
        lambda: client.delete_item(TableName=arn, Key=item),
    ):
        assert get_error_code(call) == "AccessDeniedException"
