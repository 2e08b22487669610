"""An account that answers by heart: every call that `joiner doctor` makes, as boto3 would parse the answer."""

import io
from collections import Counter
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, ClassVar

import msgspec
from botocore.awsrequest import AWSResponse
from botocore.response import StreamingBody
from msgspec.structs import replace

from shared.aws.clients import Clients
from shared.model.catalogue import Catalogue
from shared.settings import Settings
from shared.snapshot.catalogue import decode_catalogue, encode_catalogue, key_of, packed
from tests.unit.doctor_facts import NAMES, QUEUE, ROLE, RULE, TOPIC, policy
from tests.unit.fleet_files import kind

DENIED = {"Error": {"Code": "AccessDeniedException", "Message": "you may not"}}
DRY_RUN = {"Error": {"Code": "DryRunOperation", "Message": "would have succeeded"}}
NOT_THERE = {"Error": {"Code": "ValidationError", "Message": "Stack with id joiner-prod does not exist"}}
MISSING = {"Error": {"Code": "ResourceNotFoundException", "Message": "no such thing"}}
INSTALLED = {
    "StackName": "joiner-prod",
    "StackStatus": "UPDATE_COMPLETE",
    "CreationTime": datetime(2026, 11, 1, tzinfo=UTC),
}
PREFIX = "https://sqs.us-east-1.amazonaws.com/1/prod-joiner-"
STACK = (
    *(("AWS::Lambda::Function", f"Functions{name.title()}", f"joiner-prod-{name}") for name in NAMES),
    ("AWS::Lambda::Function", "Other", "joiner-prod-other"),
    ("AWS::SQS::Queue", "QueuesInterruption", f"{PREFIX}interruption"),
    ("AWS::SQS::Queue", "QueuesDead", f"{PREFIX}dead-letters"),
    ("AWS::Events::Rule", "EventsSpot", "spot"),
    ("AWS::Events::Rule", "Daily", "daily"),
    ("AWS::Scheduler::ScheduleGroup", "SchedulesGroup", "joiner-prod-ticks"),
    ("AWS::Scheduler::Schedule", "SchedulesDisrupt", "tick"),
    ("AWS::S3::Bucket", "StateBucket", "joiner-things"),
)


def plane(**parts: Any) -> dict[str, Any]:
    return {
        "name": "prod",
        "status": "ACTIVE",
        "version": "1.34",
        "endpoint": "https://prod.eks",
        "certificateAuthority": {"data": ""},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"},
        "accessConfig": {"authenticationMode": "API"},
        "resourcesVpcConfig": {
            "endpointPublicAccess": True,
            "publicAccessCidrs": ["0.0.0.0/0"],
            "subnetIds": ["subnet-1"],
            "clusterSecurityGroupId": "sg-1",
        },
        "computeConfig": {"enabled": False},
        "logging": {
            "clusterLogging": [{"enabled": True, "types": ["scheduler"]}, {"enabled": False, "types": ["api"]}]
        },
        **parts,
    }


def function(name: str) -> dict[str, Any]:
    """Answer what Lambda says of one of ours, or of one that is not."""
    short = name.rpartition("-")[2]
    told = Settings(cluster_name="prod", region="us-east-1", instance_profile="nodes", report_topic=TOPIC)
    return {
        "Handler": f"functions.{short}.handler.handler" if short in NAMES else "index.handler",
        "Role": f"{ROLE}{short}",
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "LoggingConfig": {"LogGroup": f"/joiner/{short}"},
        "Environment": {"Variables": told.environment()},
    }


def queue(url: str) -> dict[str, Any]:
    if url.endswith("interruption"):
        return {"QueueArn": QUEUE, "ApproximateNumberOfMessages": "0", "Policy": policy()}
    return {"QueueArn": "arn:dead", "ApproximateNumberOfMessages": "0"}


def metrics(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    counted = [(now, 7.0), (now - timedelta(minutes=1), 8.0)]
    found = ((one["Id"], counted if one["Id"].startswith("inv") else []) for one in queries)
    return [
        {"Id": key, "Timestamps": [at for at, _ in some], "Values": [each for _, each in some]} for key, some in found
    ]


def catalogue() -> Catalogue:
    now = datetime.now(UTC)
    plain = decode_catalogue(msgspec.json.encode({"region": "us-east-1", "instanceTypes": [kind(4)]}))
    return replace(plain, made_at=now, priced_at=now - timedelta(hours=1))


def stored(key: str) -> dict[str, Any]:
    """Answer the newest catalogue; that nobody wrote down which it is."""
    if not key.endswith(".json.gz"):
        return {"Error": {"Code": "NoSuchKey", "Message": key}}
    body = packed(encode_catalogue(catalogue()))
    return {"Body": StreamingBody(io.BytesIO(body), len(body))}


def image(image_id: str) -> dict[str, Any]:
    return {
        "ImageId": image_id,
        "Name": "al2023",
        "Architecture": "x86_64",
        "CreationDate": "2026-10-01T00:00:00.000Z",
        "State": "available",
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}, {"DeviceName": "/dev/x"}],
    }


def subnet(zone: str) -> dict[str, Any]:
    return {
        "SubnetId": f"subnet-{zone}",
        "AvailabilityZone": zone,
        "AvailabilityZoneId": zone,
        "AvailableIpAddressCount": 200,
        "State": "available",
    }


def answers() -> dict[str, Any]:
    """What a healthy account says, by call; a function is given what was asked."""
    summaries = [
        {"ResourceType": kind, "LogicalResourceId": logical, "PhysicalResourceId": physical}
        for kind, logical, physical in STACK
    ]
    return {
        "sts:GetCallerIdentity": {"Arn": "arn:aws:iam::1:user/me"},
        "cloudformation:DescribeStacks": {"Stacks": [INSTALLED]},
        "cloudformation:ListStackResources": {"StackResourceSummaries": summaries},
        "lambda:GetFunctionConfiguration": lambda said: function(said["FunctionName"]),
        "cloudwatch:GetMetricData": lambda said: {"MetricDataResults": metrics(said["MetricDataQueries"])},
        "scheduler:ListSchedules": {"Schedules": [{"Name": "tick", "State": "ENABLED"}]},
        "sqs:GetQueueAttributes": lambda said: {"Attributes": queue(said["QueueUrl"])},
        "events:DescribeRule": {"Arn": RULE, "State": "ENABLED"},
        "events:ListTargetsByRule": {"Targets": [{"Id": "q", "Arn": QUEUE}]},
        "s3:ListObjectsV2": {"Contents": [{"Key": key_of(catalogue())}]},
        "s3:GetObject": lambda said: stored(said["Key"]),
        "sns:GetTopicAttributes": {"Attributes": {"TopicArn": TOPIC, "SubscriptionsConfirmed": "2"}},
        "eks:DescribeCluster": {"cluster": plane()},
        "eks:ListAccessEntries": {"accessEntries": [f"{ROLE}{name}" for name in (*NAMES, "nodes")]},
        "service-quotas:GetServiceQuota": {"Quota": {"Value": 640.0}},
        "iam:GetInstanceProfile": {"InstanceProfile": {"Roles": [{"Arn": f"{ROLE}nodes"}]}},
        "ssm:GetParameter": {"Parameter": {"Value": "ami-1"}},
        "ec2:DescribeSubnets": {"Subnets": [subnet("a"), subnet("b")]},
        "ec2:DescribeSecurityGroups": {"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "nodes"}]},
        "ec2:DescribeImages": {"Images": [image("ami-1")]},
        "ec2:DescribeInstances": {"Reservations": []},
        "ec2:DescribeLaunchTemplates": {"LaunchTemplates": []},
        "ec2:RunInstances": DRY_RUN,
        "ec2:CreateFleet": DRY_RUN,
        "ec2:CreateLaunchTemplate": DRY_RUN,
    }


class ByHeart(Clients):
    """Clients that reach nobody; `asked` counts the calls. Lent from one to the next: each takes long to make."""

    _kept: ClassVar[Clients] = Clients("us-east-1")
    _owners: ClassVar[dict[int, "ByHeart"]] = {}
    _turn: ClassVar[Lock] = Lock()

    def __init__(self, **others: Any) -> None:
        """Answer as `answers`, but for *others*, whose names have two underscores where the call has a colon."""
        super().__init__("us-east-1")
        renamed = {
            name.replace("__", ":").replace("service_quotas", "service-quotas"): one for name, one in others.items()
        }
        self.answers = answers() | renamed
        self.asked: Counter[str] = Counter()

    def patient(self, service: str, region: str = "") -> Any:
        return self._heard(service, self._kept.patient(service, region))

    def once(self, service: str) -> Any:
        return self._heard(service, self._kept.once(service))

    def _heard(self, service: str, client: Any) -> Any:
        """Answer *client* as one that asks us, and no other any more."""
        with self._turn:
            if self._owners.get(id(client)) is not self:
                self._take(service, client)
                self._owners[id(client)] = self
        return client

    def _take(self, service: str, client: Any) -> None:
        def answer(model: Any, context: Any, **_: Any) -> tuple[AWSResponse, Any]:
            call = f"{service}:{model.name}"
            self.asked[call] += 1
            known = self.answers[call]
            given = known(context["said"]) if callable(known) else known
            status = 400 if "Error" in given else 200
            metadata = {
                "HTTPStatusCode": status,
                "HTTPHeaders": {"date": f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} GMT"},
            }
            return AWSResponse("https://nowhere", status, {}, None), {**given, "ResponseMetadata": metadata}

        def remember(params: Any, context: Any, **_: Any) -> None:
            context["said"] = dict(params)

        for event, hears in (("provide-client-params", remember), ("before-call", answer)):
            client.meta.events.unregister(event, unique_id=event)
            client.meta.events.register_first(event, hears, unique_id=event)


__all__ = ["DENIED", "MISSING", "NOT_THERE", "ByHeart", "answers", "plane"]
