"""The embedded AWS itself: our calls and moto's through one door, faults on demand, and nothing left behind."""

import socket
import threading
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import msgspec
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2.client import BotoEc2
from shared.aws.s3 import S3Bucket
from shared.aws.sqs import SqsMessageQueue
from shared.aws.ssm import BotoParameterStore
from shared.errors import NotFound, Unreachable
from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import BlockDevice, ConnectionTracking, LaunchTemplate, NetworkInterface
from sim.aws_http.api_faults import LOST_RESPONSE_STATUS
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock

pytestmark = pytest.mark.loopback

TEMPLATE = LaunchTemplate(name="joiner/1", image_id="ami-1", user_data="", tags=(("eks:eks-cluster-name", "joiner"),))
STANDARD = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
ONCE = Config(retries={"total_max_attempts": 1})


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(Cloud(Clock())) as server:
        yield server


@pytest.fixture(scope="module")
def clients(server: EmbeddedAws) -> Iterator[Clients]:
    clients = Clients("us-east-1", endpoint_url=server.url)
    yield clients
    clients.close()


@pytest.fixture(autouse=True)
def cloud(server: EmbeddedAws) -> Cloud:
    cloud = Cloud(Clock())
    server.reset(cloud)
    return cloud


@pytest.fixture
def ec2(clients: Clients, cloud: Cloud) -> BotoEc2:
    return BotoEc2(clients, cloud.clock.get_time)


@pytest.fixture
def table(clients: Clients) -> DynamoTable:
    key = {"pk": "HASH", "sk": "RANGE"}
    clients.get_retrying_client("dynamodb").create_table(
        TableName="joiner",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in key.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in key],
        BillingMode="PAY_PER_REQUEST",
    )
    return DynamoTable(clients, "joiner")


def make_boto_client(server: EmbeddedAws, service: str) -> Any:
    return boto3.client(service, region_name="us-east-1", endpoint_url=server.url, config=ONCE)


def test_one_endpoint_serves_all_aws_services(clients: Clients, table: DynamoTable) -> None:
    table.write("lease", "a", "{}", version=0)
    assert [row.name for row in table.list_rows("lease")] == ["a"]
    clients.get_retrying_client("s3").create_bucket(Bucket="joiner")
    S3Bucket(clients, "joiner").put("a/b c", b"body")
    assert S3Bucket(clients, "joiner").list_keys("a/") == ("a/b c",)
    url = clients.get_retrying_client("sqs").create_queue(QueueName="joiner-provision")["QueueUrl"]
    SqsMessageQueue(clients, url.removesuffix("provision")).add("provision", "x", timedelta())
    assert clients.get_retrying_client("sts").get_caller_identity()["Account"] == "123456789012"
    assert clients.get_retrying_client("lambda").list_functions()["Functions"] == []


def test_ssm_parameters_outside_the_eks_paths_are_served_by_moto(clients: Clients) -> None:
    clients.get_retrying_client("ssm").put_parameter(Name="/mine", Value="ami-1", Type="String")
    assert BotoParameterStore(clients).get_parameter("/mine") == "ami-1"


def test_ec2_calls_not_emulated_by_cloud_are_served_by_moto(clients: Clients) -> None:
    ec2 = clients.get_retrying_client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "main"}])
    assert ec2.describe_vpcs()["Vpcs"][0]["Tags"] == [{"Key": "Name", "Value": "main"}]


def test_reset_clears_all_state_and_injected_errors(server: EmbeddedAws, ec2: BotoEc2, table: DynamoTable) -> None:
    ec2.ensure_launch_template(TEMPLATE)
    server.inject_error("ec2", "DescribeLaunchTemplates", "InternalError", 500, times=99)
    server.reset(Cloud(Clock()))
    assert ec2.describe_launch_templates("joiner") == ()
    with pytest.raises(NotFound):
        table.list_rows("lease")


def test_error_injected_before_a_call_has_no_side_effect(server: EmbeddedAws, table: DynamoTable) -> None:
    server.inject_error("dynamodb", "PutItem", "InternalServerError", 500)
    with pytest.raises(Unreachable):
        table.write("lease", "a", "{}", version=0)
    assert table.read("lease", "a") is None
    assert table.write("lease", "a", "{}", version=0).version == 1


@pytest.mark.parametrize("status", [500, LOST_RESPONSE_STATUS])
def test_error_injected_after_a_call_loses_only_the_response(
    server: EmbeddedAws, table: DynamoTable, status: int
) -> None:
    server.inject_error("dynamodb", "PutItem", "InternalServerError", status, after=True)
    with pytest.raises(Unreachable):
        table.write("lease", "a", "{}", version=0)
    row = table.read("lease", "a")
    assert row is not None
    assert row.version == 1


@pytest.mark.parametrize("status", [503, LOST_RESPONSE_STATUS])
def test_cloud_calls_can_fail_after_taking_effect(
    server: EmbeddedAws, cloud: Cloud, clients: Clients, status: int
) -> None:
    server.inject_error("ec2", "DeleteLaunchTemplate", "Unavailable", status, after=True)
    cloud.create_launch_template(TEMPLATE)
    BotoEc2(clients, cloud.clock.get_time).delete_launch_template(TEMPLATE.name)
    assert cloud.templates.list_by_tag(*TEMPLATE.tags[0]) == ()


def test_injected_error_occurs_the_requested_number_of_times(server: EmbeddedAws) -> None:
    server.inject_error("sts", "GetCallerIdentity", "Throttling", 400, times=2)
    sts = make_boto_client(server, "sts")
    for _ in range(2):
        with pytest.raises(ClientError, match="Throttling"):
            sts.get_caller_identity()
    assert sts.get_caller_identity()["Account"] == "123456789012"


@pytest.mark.parametrize(
    ("service", "action", "call", "arguments"),
    [
        ("ec2", "DescribeSubnets", "describe_subnets", {}),
        ("eks", "DescribeCluster", "describe_cluster", {"name": "joiner"}),
        ("eks", "ListClusters", "list_clusters", {}),
        ("pricing", "GetProducts", "get_products", {"ServiceCode": "AmazonEC2"}),
        ("ssm", "GetParameter", "get_parameter", {"Name": "/a"}),
        ("sts", "GetCallerIdentity", "get_caller_identity", {}),
        ("s3", "GetObject", "get_object", {"Bucket": "joiner", "Key": "a"}),
        ("s3", "PutObject", "put_object", {"Bucket": "joiner", "Key": "a"}),
        ("s3", "ListObjectsV2", "list_objects_v2", {"Bucket": "joiner"}),
        ("sqs", "ListQueues", "list_queues", {}),
        ("events", "ListRules", "list_rules", {}),
        ("cloudformation", "ListStacks", "list_stacks", {}),
        ("lambda", "ListFunctions", "list_functions", {}),
    ],
)
def test_injected_error_is_encoded_in_the_protocol_of_each_service(
    server: EmbeddedAws, service: str, action: str, call: str, arguments: dict[str, str]
) -> None:
    server.inject_error(service, action, "AccessDenied", 403)
    with pytest.raises(ClientError, match=f"AccessDenied.* {action} .*injected") as raised:
        getattr(make_boto_client(server, service), call)(**arguments)
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        ("describe_subnets", {"DryRun": True}, "DryRunOperation"),
        ("describe_subnets", {"Filters": [{"Name": "colour", "Values": ["red"]}]}, "InvalidParameterValue"),
        ("describe_security_groups", {"Filters": [{"Name": "colour", "Values": ["red"]}]}, "InvalidParameterValue"),
        ("describe_instance_types", {"MaxResults": 101}, "InvalidParameterValue"),
        ("describe_instance_type_offerings", {"LocationType": "region"}, "InvalidParameterValue"),
        ("describe_instances", {"InstanceIds": ["i-1"], "MaxResults": 5}, "InvalidParameterCombination"),
        ("describe_instances", {"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceID.NotFound"),
        ("describe_instances", {"InstanceIds": ["i-1"]}, "InvalidInstanceID.Malformed"),
        ("describe_launch_templates", {}, "InvalidParameterValue"),
        (
            "create_fleet",
            {"TargetCapacitySpecification": {"TotalTargetCapacity": 1}, "LaunchTemplateConfigs": []},
            "InvalidParameterValue",
        ),
        (
            "create_launch_template",
            {
                "LaunchTemplateName": "abc",
                "LaunchTemplateData": {"SecurityGroupIds": ["sg-1"], "NetworkInterfaces": [{"DeviceIndex": 0}]},
            },
            "InvalidParameterCombination",
        ),
    ],
)
def test_ec2_error_codes_match_the_real_service(
    server: EmbeddedAws, call: str, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as raised:
        getattr(make_boto_client(server, "ec2"), call)(**arguments)
    assert raised.value.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ([], 3),
        ([("availability-zone", "us-east-1a")], 1),
        ([("availability-zone-id", "use1-az*")], 3),
        ([("tag-key", "karpenter.sh/discovery")], 3),
        ([("tag:karpenter.sh/discovery", "other")], 0),
        ([("tag:karpenter.sh/discovery", "joiner"), ("availability-zone", "us-east-1b")], 1),
        ([("tag:missing", "*")], 0),
    ],
)
def test_all_filters_must_match(server: EmbeddedAws, filters: list[tuple[str, str]], count: int) -> None:
    query_filters = [{"Name": name, "Values": [value]} for name, value in filters]
    assert len(make_boto_client(server, "ec2").describe_subnets(Filters=query_filters)["Subnets"]) == count


def test_paginated_results_have_the_requested_page_size(server: EmbeddedAws) -> None:
    pages = make_boto_client(server, "ec2").get_paginator("describe_instance_type_offerings")
    options = {"LocationType": "availability-zone", "PaginationConfig": {"PageSize": 700}}
    sizes = [len(page["InstanceTypeOfferings"]) for page in pages.paginate(**options)]
    assert set(sizes[:-1]) == {700}
    assert len(sizes) > 3


def test_deprecated_images_are_hidden_unless_requested(server: EmbeddedAws, cloud: Cloud) -> None:
    image = cloud.images.select((SelectorTerm(name="*"),))[0]
    cloud.images.set_deprecation_time(image.image_id, cloud.clock.get_time())
    query = {"Filters": [{"Name": "image-id", "Values": [image.image_id]}]}
    assert make_boto_client(server, "ec2").describe_images(**query)["Images"] == []
    assert len(make_boto_client(server, "ec2").describe_images(**query, IncludeDeprecated=True)["Images"]) == 1


def test_images_are_filtered_by_owner(server: EmbeddedAws) -> None:
    ec2 = make_boto_client(server, "ec2")
    assert ec2.describe_images(Owners=["self"])["Images"] == []
    assert len(ec2.describe_images(Owners=["self", "amazon"])["Images"]) == len(ec2.describe_images()["Images"]) > 0


def test_spot_price_history_has_one_entry_per_hour(server: EmbeddedAws, cloud: Cloud) -> None:
    start = cloud.clock.get_time()
    with server.lock:
        cloud.clock.advance(timedelta(hours=2))
    query = {"InstanceTypes": ["m5.large"], "StartTime": start}
    ec2 = make_boto_client(server, "ec2")
    hours = [price["Timestamp"] for price in ec2.describe_spot_price_history(**query)["SpotPriceHistory"]]
    assert sorted(set(hours)) == [start + timedelta(hours=number) for number in range(3)]
    del query["StartTime"]
    assert len(ec2.describe_spot_price_history(**query)["SpotPriceHistory"]) == 3
    assert ec2.describe_spot_price_history(**query, ProductDescriptions=["Windows"])["SpotPriceHistory"] == []


def test_price_list_of_other_regions_is_empty(server: EmbeddedAws) -> None:
    price_filters = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-west-1"}]
    assert (
        make_boto_client(server, "pricing").get_products(ServiceCode="AmazonEC2", Filters=price_filters)["PriceList"]
        == []
    )


@pytest.mark.parametrize(
    ("capacity_type", "strategy"),
    [("on-demand", "lowest-price"), ("spot", "price-capacity-optimized"), ("reserved", "lowest-price")],
)
def test_instance_is_launched_and_described_with_its_capacity_type(
    ec2: BotoEc2,
    cloud: Cloud,
    capacity_type: Any,
    strategy: Any,
) -> None:
    cloud.pools.set_limit("m5.large", "us-east-1a", "reserved", 1)
    ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, capacity_type=capacity_type))
    (image,) = cloud.images.select((SelectorTerm(id=cloud.images.get_parameter(STANDARD)),))
    subnet = next(candidate for candidate in cloud.network.subnets.values() if candidate.zone == "us-east-1a")
    override = Override(
        instance_type="m5.large", zone="us-east-1a", subnet_id=subnet.subnet_id, image_id=image.image_id
    )
    request = FleetRequest(
        client_token=f"uid-{capacity_type}",
        capacity=1,
        capacity_type=capacity_type,
        allocation_strategy=strategy,
        configs=(LaunchTemplateConfig(launch_template_name=TEMPLATE.name, overrides=(override,)),),
    )
    (started,) = ec2.create_fleet(request).instances
    cloud.clock.advance(timedelta(minutes=1))
    described = ec2.describe_instance(started.instance_id)
    assert started.capacity_type == described.capacity_type == capacity_type
    assert described == cloud.instances.describe(started.instance_id)


@pytest.mark.parametrize("capacity_type", ["on-demand", "spot", "reserved"])
def test_launch_template_is_stored_as_sent(ec2: BotoEc2, cloud: Cloud, capacity_type: Any) -> None:
    sent = LaunchTemplate(
        name="joiner/1",
        image_id="ami-1",
        user_data="YQ==",
        instance_profile="nodes",
        security_group_ids=("sg-1",),
        block_devices=(
            BlockDevice(device_name="/dev/xvda", volume_size_gib=20, delete_on_termination=True),
            BlockDevice(device_name="/dev/xvdb", volume_type="io2", encrypted=False, iops=4000, snapshot_id="snap-1"),
        ),
        detailed_monitoring=True,
        http_put_response_hop_limit=2,
        http_tokens="optional",
        associate_public_ip_address=False,
        ip_prefix_count=2,
        is_ipv6=True,
        network_interfaces=(NetworkInterface(), NetworkInterface(device_index=1, interface_type="efa-only")),
        connection_tracking=ConnectionTracking(udp_timeout=40),
        nested_virtualization="enabled",
        placement_group_id="pg-1",
        capacity_type=capacity_type,
        reservation_type="default" if capacity_type == "reserved" else "",
        uses_open_reservations=capacity_type != "reserved",
        tags=TEMPLATE.tags,
        created_at=cloud.clock.get_time(),
    )
    ec2.ensure_launch_template(sent)
    assert cloud.templates.find(sent.name) == sent


def test_unsigned_request_is_served_by_moto(server: EmbeddedAws) -> None:
    with urllib.request.urlopen(f"{server.url}/moto-api/data.json", timeout=600) as answer:  # noqa: S310 - our own server
        assert answer.status == 200


def test_server_that_is_not_started_has_no_url() -> None:
    with pytest.raises(RuntimeError):
        _ = EmbeddedAws(Cloud(Clock())).url


def test_stopped_server_leaves_no_port_and_no_thread() -> None:
    before = set(threading.enumerate())
    server = EmbeddedAws(Cloud(Clock())).start()
    address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    with socket.create_connection(address, timeout=600):
        pass
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=600)
    assert set(threading.enumerate()) <= before
