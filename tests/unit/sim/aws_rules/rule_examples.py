"""For each rule of the table, a request that breaks it, and no other rule of the same call before it."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

TAG: Final = {"Key": "team", "Value": "shop"}
TEMPLATE: Final = {"LaunchTemplateName": "joiner/a", "LaunchTemplateData": {"ImageId": "ami-1"}}
FLEET: Final = {
    "Type": "instant",
    "LaunchTemplateConfigs": [],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1},
}
ITEM: Final = {"pk": {"S": "kind"}, "sk": {"S": "name"}}
INVOKE: Final = {"FunctionName": "joiner-provision"}
LARGE_ITEM: Final = {**ITEM, "body": {"S": "x" * 409_600}}
MEDIUM_ITEM: Final = {**ITEM, "body": {"S": "x" * 400_000}}
KEY: Final = {"pk": {"S": "lease"}, "sk": {"S": "provision"}}


def make_template(**data: Any) -> dict[str, Any]:
    return {**TEMPLATE, "LaunchTemplateData": data}


def make_fleet(**changes: Any) -> dict[str, Any]:
    return FLEET | changes


def make_configs(count: int, overrides: int = 0) -> list[dict[str, Any]]:
    return [{"Overrides": [{"InstanceType": "m5.large"}] * overrides}] * count


def make_tags(count: int) -> list[dict[str, str]]:
    return [{"Key": f"key-{number}", "Value": ""} for number in range(count)]


def make_puts(count: int, item: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"Put": {"TableName": "joiner", "Item": item}}] * count


def make_metrics(
    metrics: int = 1, dimensions: int = 1, namespace: str = "Joiner", name: str = "Nodes"
) -> dict[str, Any]:
    directive = {
        "Namespace": namespace,
        "Dimensions": [[f"dimension-{number}" for number in range(dimensions)]],
        "Metrics": [{"Name": name, "Unit": "Count"}] * metrics,
    }
    return {"_aws": {"Timestamp": 0, "CloudWatchMetrics": [directive]}}


def make_filters(count: int = 1, values: int = 1, value: str = "a") -> dict[str, Any]:
    return {"Filters": [{"Name": "tag-key", "Values": [value] * values}] * count}


BROKEN_REQUEST_BY_RULE: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "ec2-filters-per-request": ("ec2:DescribeSubnets", make_filters(count=51)),
    "ec2-values-per-filter": ("ec2:DescribeSubnets", make_filters(values=201)),
    "ec2-filter-value-length": ("ec2:DescribeSubnets", make_filters(value="x" * 256)),
    "ec2-page-of-instances": ("ec2:DescribeInstances", {"MaxResults": 1001}),
    "ec2-page-of-images-and-prices": ("ec2:DescribeSpotPriceHistory", {"MaxResults": 2000}),
    "ec2-instance-ids-without-page-size": (
        "ec2:DescribeInstances",
        {"InstanceIds": ["i-0123456789abcdef0"], "MaxResults": 5},
    ),
    "ec2-instance-types-without-page-size": (
        "ec2:DescribeInstanceTypes",
        {"InstanceTypes": ["m5.large"], "MaxResults": 5},
    ),
    "ec2-capacity-reservation-ids-without-page-size": (
        "ec2:DescribeCapacityReservations",
        {"CapacityReservationIds": ["cr-1"], "MaxResults": 5},
    ),
    "ec2-other-ids-without-page-size": ("ec2:DescribeSubnets", {"SubnetIds": ["subnet-1"], "MaxResults": 5}),
    "ec2-instance-id-shape": ("ec2:TerminateInstances", {"InstanceIds": ["i-0ofanotheraccount"]}),
    "ec2-resources-per-tag-request": ("ec2:CreateTags", {"Resources": ["i-1"] * 1001, "Tags": [TAG]}),
    "ec2-tags-per-resource": (
        "ec2:CreateFleet",
        make_fleet(TagSpecifications=[{"ResourceType": "instance", "Tags": make_tags(51)}]),
    ),
    "ec2-tags-per-launched-resource": (
        "ec2:CreateLaunchTemplate",
        make_template(TagSpecifications=[{"ResourceType": "instance", "Tags": make_tags(51)}]),
    ),
    "ec2-tags-per-request": ("ec2:CreateTags", {"Resources": ["i-1"], "Tags": make_tags(51)}),
    "ec2-tag-key-length": ("ec2:CreateTags", {"Resources": ["i-1"], "Tags": [{"Key": "", "Value": ""}]}),
    "ec2-tag-value-length": ("ec2:CreateTags", {"Resources": ["i-1"], "Tags": [{"Key": "a", "Value": "x" * 257}]}),
    "ec2-reserved-tag-keys": ("ec2:CreateTags", {"Resources": ["i-1"], "Tags": [{"Key": "AWS:a", "Value": ""}]}),
    "ec2-unique-tag-keys": ("ec2:CreateTags", {"Resources": ["i-1"], "Tags": [TAG, TAG]}),
    "ec2-launch-template-name": ("ec2:CreateLaunchTemplate", TEMPLATE | {"LaunchTemplateName": "a name"}),
    "ec2-user-data-size": (
        "ec2:CreateLaunchTemplate",
        make_template(UserData=b64encode(b"x" * 16_385).decode()),
    ),
    "ec2-instance-profile-name": ("ec2:CreateLaunchTemplate", make_template(IamInstanceProfile={"Name": "a/b"})),
    "ec2-metadata-hop-limit": (
        "ec2:CreateLaunchTemplate",
        make_template(MetadataOptions={"HttpPutResponseHopLimit": 65}),
    ),
    "ec2-groups-in-one-place": (
        "ec2:RunInstances",
        {"MinCount": 1, "MaxCount": 1, "SecurityGroupIds": ["sg-1"], "NetworkInterfaces": [{"DeviceIndex": 0}]},
    ),
    "ec2-security-groups-per-interface": (
        "ec2:CreateLaunchTemplate",
        make_template(NetworkInterfaces=[{"Groups": ["sg-1"] * 17}]),
    ),
    "ec2-volume-initialization-rate": (
        "ec2:CreateLaunchTemplate",
        make_template(BlockDeviceMappings=[{"Ebs": {"VolumeInitializationRate": 301}}]),
    ),
    "ec2-fleet-overrides": ("ec2:CreateFleet", make_fleet(LaunchTemplateConfigs=make_configs(2, overrides=151))),
    "ec2-fleet-token": ("ec2:CreateFleet", make_fleet(ClientToken="x" * 65)),
    "ec2-fleet-capacity": (
        "ec2:CreateFleet",
        make_fleet(TargetCapacitySpecification={"TotalTargetCapacity": 0}),
    ),
    "ec2-instant-fleet-parameters": ("ec2:CreateFleet", make_fleet(ReplaceUnhealthyInstances=False)),
    "ec2-instant-fleet-tags": (
        "ec2:CreateFleet",
        make_fleet(TagSpecifications=[{"ResourceType": "network-interface", "Tags": [TAG]}]),
    ),
    "eks-cluster-name": ("eks:DescribeCluster", {"name": "-prod"}),
    "ssm-parameter-name": ("ssm:GetParameter", {"Name": "/my images/latest"}),
    "ssm-parameter-levels": ("ssm:GetParameter", {"Name": "/a" * 16}),
    "pricing-service-code": ("pricing:GetProducts", {"ServiceCode": "Amazon EC2"}),
    "dynamodb-item-size": ("dynamodb:PutItem", {"TableName": "joiner", "Item": LARGE_ITEM}),
    "dynamodb-transaction-item-size": ("dynamodb:TransactWriteItems", {"TransactItems": make_puts(1, LARGE_ITEM)}),
    "dynamodb-transaction-size": ("dynamodb:TransactWriteItems", {"TransactItems": make_puts(11, MEDIUM_ITEM)}),
    "dynamodb-item-in-transaction-once": (
        "dynamodb:TransactWriteItems",
        {"TransactItems": [{"Delete": {"TableName": "joiner", "Key": KEY}}] * 2},
    ),
    "dynamodb-partition-key": ("dynamodb:GetItem", {"TableName": "joiner", "Key": KEY | {"pk": {"S": ""}}}),
    "dynamodb-sort-key": ("dynamodb:GetItem", {"TableName": "joiner", "Key": KEY | {"sk": {"S": "x" * 1025}}}),
    "dynamodb-expression-size": (
        "dynamodb:PutItem",
        {"TableName": "joiner", "Item": ITEM, "ConditionExpression": "x" * 4097},
    ),
    "s3-key-size": ("s3:PutObject", {"Bucket": "joiner", "Key": "é" * 513}),
    "s3-bucket-name": ("s3:PutObject", {"Bucket": "Joiner", "Key": "a"}),
    "sqs-message-size": ("sqs:SendMessage", {"QueueUrl": "https://sqs/123456789012/a", "MessageBody": "x" * 262_145}),
    "sqs-message-characters": ("sqs:SendMessage", {"QueueUrl": "https://sqs/123456789012/a", "MessageBody": "\x00"}),
    "sqs-delay": (
        "sqs:SendMessage",
        {"QueueUrl": "https://sqs/123456789012/a", "MessageBody": "a", "DelaySeconds": 901},
    ),
    "sqs-queue-url": ("sqs:SendMessage", {"QueueUrl": "joiner-provision", "MessageBody": "a"}),
    "sqs-batch-size": (
        "sqs:SendMessageBatch",
        {"QueueUrl": "https://sqs/123456789012/a", "Entries": [{"Id": "1", "MessageBody": "a"}] * 11},
    ),
    "sns-message-size": ("sns:Publish", {"Message": ""}),
    "sns-subject": ("sns:Publish", {"Message": "a", "Subject": "x" * 100}),
    "sns-topic-arn": ("sns:Publish", {"Message": "a", "TopicArn": "costs"}),
    "events-detail-size": ("events:PutEvents", {"Entries": [{"Detail": "x" * 262_145}]}),
    "lambda-synchronous-payload": (
        "lambda:Invoke",
        INVOKE | {"InvocationType": "RequestResponse", "Payload": b"x" * 6_291_457},
    ),
    "lambda-asynchronous-payload": ("lambda:Invoke", INVOKE | {"InvocationType": "Event", "Payload": b"x" * 262_145}),
    "emf-metrics": ("logs:EmbeddedMetrics", make_metrics(metrics=101)),
    "emf-dimensions": ("logs:EmbeddedMetrics", make_metrics(dimensions=31)),
    "emf-namespace": ("logs:EmbeddedMetrics", make_metrics(namespace="AWS/EC2")),
    "emf-metric-name": ("logs:EmbeddedMetrics", make_metrics(name="")),
}
"""Call and parameters by rule. Rules about filters are not here: their only possible example is an unknown filter."""
