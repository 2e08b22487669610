"""An account with canned responses to every call that `joiner doctor` makes, parsed as by boto3."""

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
from shared.model.cloud_provider.instance_type import Catalog
from shared.settings import Settings
from shared.store.catalog import build_catalog_key
from shared.store.catalog_format import compress_body, decode_catalog, encode_catalog
from tests.support.cli.doctor_facts import NAMES, QUEUE, ROLE, RULE, TOPIC, make_queue_policy
from tests.support.cli.fleet_files import make_instance_type

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


def build_cluster_response(**parts: Any) -> dict[str, Any]:
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


def build_function_response(name: str) -> dict[str, Any]:
    """Return Lambda's response for a Joiner function or for another function."""
    short = name.rpartition("-")[2]
    settings = Settings(cluster_name="prod", region="us-east-1", instance_profile="nodes", report_topic=TOPIC)
    return {
        "Handler": f"functions.{short}.handler.handler" if short in NAMES else "index.handler",
        "Role": f"{ROLE}{short}",
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "LoggingConfig": {"LogGroup": f"/joiner/{short}"},
        "Environment": {"Variables": settings.build_environment()},
    }


def build_queue_attributes(url: str) -> dict[str, Any]:
    if url.endswith("interruption"):
        return {"QueueArn": QUEUE, "ApproximateNumberOfMessages": "0", "Policy": make_queue_policy()}
    return {"QueueArn": "arn:dead", "ApproximateNumberOfMessages": "0"}


def build_metric_results(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    datapoints = [(now, 7.0), (now - timedelta(minutes=1), 8.0)]
    series = ((query["Id"], datapoints if query["Id"].startswith("inv") else []) for query in queries)
    return [
        {"Id": key, "Timestamps": [at for at, _ in points], "Values": [value for _, value in points]}
        for key, points in series
    ]


def build_catalog() -> Catalog:
    now = datetime.now(UTC)
    plain = decode_catalog(msgspec.json.encode({"region": "us-east-1", "instanceTypes": [make_instance_type(4)]}))
    return replace(plain, built_at=now, priced_at=now - timedelta(hours=1))


def build_object_response(key: str) -> dict[str, Any]:
    """Return the newest catalog; the object that names the newest catalog does not exist."""
    if not key.endswith(".json.gz"):
        return {"Error": {"Code": "NoSuchKey", "Message": key}}
    body = compress_body(encode_catalog(build_catalog()))
    return {"Body": StreamingBody(io.BytesIO(body), len(body))}


def build_image_response(image_id: str) -> dict[str, Any]:
    return {
        "ImageId": image_id,
        "Name": "al2023",
        "Architecture": "x86_64",
        "CreationDate": "2026-10-01T00:00:00.000Z",
        "State": "available",
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}, {"DeviceName": "/dev/x"}],
    }


def build_subnet_response(zone: str) -> dict[str, Any]:
    return {
        "SubnetId": f"subnet-{zone}",
        "AvailabilityZone": zone,
        "AvailabilityZoneId": zone,
        "AvailableIpAddressCount": 200,
        "State": "available",
    }


def build_zone_response(zone: str, kind: str = "availability-zone", state: str = "available") -> dict[str, Any]:
    return {"ZoneName": zone, "ZoneType": kind, "State": state}


def build_simulation_response(actions: list[str], decision: str) -> dict[str, Any]:
    """Return the policy simulator's response that each of *actions* has *decision*."""
    return {"EvaluationResults": [{"EvalActionName": name, "EvalDecision": decision} for name in actions]}


def build_responses() -> dict[str, Any]:
    """Return the responses of a healthy account by call; a callable gets the request parameters."""
    summaries = [
        {"ResourceType": kind, "LogicalResourceId": logical, "PhysicalResourceId": physical}
        for kind, logical, physical in STACK
    ]
    return {
        "ec2:GetEbsEncryptionByDefault": {"EbsEncryptionByDefault": False},
        "sts:GetCallerIdentity": {"Arn": "arn:aws:iam::1:user/me"},
        "cloudformation:DescribeStacks": {"Stacks": [INSTALLED]},
        "cloudformation:ListStackResources": {"StackResourceSummaries": summaries},
        "lambda:GetFunctionConfiguration": lambda said: build_function_response(said["FunctionName"]),
        "cloudwatch:GetMetricData": lambda said: {"MetricDataResults": build_metric_results(said["MetricDataQueries"])},
        "scheduler:ListSchedules": {"Schedules": [{"Name": "tick", "State": "ENABLED"}]},
        "sqs:GetQueueAttributes": lambda said: {"Attributes": build_queue_attributes(said["QueueUrl"])},
        "events:DescribeRule": {"Arn": RULE, "State": "ENABLED"},
        "events:ListTargetsByRule": {"Targets": [{"Id": "q", "Arn": QUEUE}]},
        "s3:ListObjectsV2": {"Contents": [{"Key": build_catalog_key(build_catalog())}]},
        "s3:GetObject": lambda said: build_object_response(said["Key"]),
        "sns:GetTopicAttributes": {"Attributes": {"TopicArn": TOPIC, "SubscriptionsConfirmed": "2"}},
        "eks:DescribeCluster": {"cluster": build_cluster_response()},
        "eks:ListAccessEntries": {"accessEntries": [f"{ROLE}{name}" for name in (*NAMES, "nodes")]},
        "service-quotas:GetServiceQuota": {"Quota": {"Value": 640.0}},
        "iam:GetInstanceProfile": {"InstanceProfile": {"Roles": [{"Arn": f"{ROLE}nodes"}]}},
        "ssm:GetParameter": {"Parameter": {"Value": "ami-1"}},
        "ec2:DescribeSubnets": {"Subnets": [build_subnet_response("a"), build_subnet_response("b")]},
        "ec2:DescribeSecurityGroups": {"SecurityGroups": [{"GroupId": "sg-1", "GroupName": "nodes"}]},
        "ec2:DescribeImages": {"Images": [build_image_response("ami-1")]},
        "ec2:DescribeInstances": {"Reservations": []},
        "ec2:DescribeLaunchTemplates": {"LaunchTemplates": []},
        "ec2:RunInstances": DRY_RUN,
        "ec2:CreateFleet": DRY_RUN,
        "ec2:CreateLaunchTemplate": DRY_RUN,
    }


def build_preflight_responses() -> dict[str, Any]:
    """Return the responses that only a preflight needs, as overrides of `ByHeart`: an account before a deployment."""
    return {
        "cloudformation__DescribeStacks": NOT_THERE,
        "ssm__GetParameter": {"Parameter": {"Value": "28"}},
        "iam__GetRole": lambda said: {"Role": {"Arn": f"{ROLE}{said['RoleName']}"}},
        "iam__SimulatePrincipalPolicy": lambda said: build_simulation_response(said["ActionNames"], "allowed"),
        "ec2__DescribeAvailabilityZones": {"AvailabilityZones": [build_zone_response("a"), build_zone_response("b")]},
        "pricing__GetProducts": {"PriceList": ["{}"]},
    }


class ByHeart(Clients):
    """Clients without network access; `call_counts` counts the calls.

    boto3 clients are shared: each is slow to build.
    """

    _shared_clients: ClassVar[Clients] = Clients("us-east-1")
    _owners: ClassVar[dict[int, "ByHeart"]] = {}
    _turn: ClassVar[Lock] = Lock()

    def __init__(self, **overrides: Any) -> None:
        """Respond as `build_responses`, except for *overrides*, named with two underscores for the colon of a call."""
        super().__init__("us-east-1")
        renamed = {
            name.replace("__", ":").replace("service_quotas", "service-quotas"): response
            for name, response in overrides.items()
        }
        self.answers = build_responses() | renamed
        self.call_counts: Counter[str] = Counter()

    def get_retrying_client(self, service: str, region: str = "") -> Any:
        return self._attach_client(service, self._shared_clients.get_retrying_client(service, region))

    def get_single_attempt_client(self, service: str) -> Any:
        return self._attach_client(service, self._shared_clients.get_single_attempt_client(service))

    def _attach_client(self, service: str, client: Any) -> Any:
        """Return *client* after it is attached to this object and detached from any other."""
        with self._turn:
            if self._owners.get(id(client)) is not self:
                self._register_handlers(service, client)
                self._owners[id(client)] = self
        return client

    def _register_handlers(self, service: str, client: Any) -> None:
        def respond(model: Any, context: Any, **_: Any) -> tuple[AWSResponse, Any]:
            call = f"{service}:{model.name}"
            self.call_counts[call] += 1
            configured = self.answers[call]
            response = configured(context["said"]) if callable(configured) else configured
            status = 400 if "Error" in response else 200
            metadata = {
                "HTTPStatusCode": status,
                "HTTPHeaders": {"date": f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} GMT"},
            }
            return AWSResponse("https://nowhere", status, {}, None), {**response, "ResponseMetadata": metadata}

        def store_parameters(params: Any, context: Any, **_: Any) -> None:
            context["said"] = dict(params)

        for event, hears in (("provide-client-params", store_parameters), ("before-call", respond)):
            client.meta.events.unregister(event, unique_id=event)
            client.meta.events.register_first(event, hears, unique_id=event)


__all__ = ["DENIED", "MISSING", "NOT_THERE", "ByHeart", "build_cluster_response", "build_responses"]
