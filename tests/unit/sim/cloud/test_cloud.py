"""Tests of the simulated cloud: events, rate limits, images, launch templates and costs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.errors import Conflict, Invalid, NotFound, Throttled
from shared.model.ec2.account import Image, SelectorTerm
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType
from sim.cloud import seeded_random
from sim.cloud.cloud import Cloud
from sim.cloud.eventbridge_events import EventBridgeEvent
from sim.cloud.rate_limits import RATE_LIMITS, get_call_category
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from tests.contract.asking import (
    AL2023,
    FIRST_LAUNCH,
    STANDARD,
    TEMPLATE_NAME,
    build_fleet_request,
    launch_instance,
)
from tests.contract.memory_face import Face, build_memory_face

ONE_MINUTE = timedelta(minutes=1)
TEMPLATE = LaunchTemplate(name=TEMPLATE_NAME, image_id="ami-0b", user_data="")


@pytest.fixture
def aws() -> Face:
    return build_memory_face(Cloud(Clock()))


@pytest.fixture
def events(aws: Face) -> list[EventBridgeEvent]:
    received_events: list[EventBridgeEvent] = []
    aws.cloud.events.subscribe(received_events.append)
    return received_events


def launch_spot_instance(aws: Face) -> str:
    fleet_request = build_fleet_request(aws, "m5.large", strategy="price-capacity-optimized")
    return aws.ec2.create_fleet(fleet_request).instances[0].instance_id


def test_instance_state_change_has_the_eventbridge_envelope(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = launch_instance(aws)
    (event,) = events
    assert event == {
        "version": "0",
        "id": event["id"],
        "detail-type": "EC2 Instance State-change Notification",
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-11-21T08:00:00Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:ec2:us-east-1:123456789012:instance/{instance_id}"],
        "detail": {"instance-id": instance_id, "state": "pending"},
    }
    assert msgspec.json.decode(msgspec.json.encode(event)) == event


def test_event_ids_are_unique(aws: Face, events: list[EventBridgeEvent]) -> None:
    launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    assert len({event["id"] for event in events}) == 2


def test_spot_interruption_publishes_a_warning_event(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = launch_spot_instance(aws)
    aws.cloud.instances.interrupt(instance_id)
    warning = events[-1]
    assert warning["detail-type"] == "EC2 Spot Instance Interruption Warning"
    assert warning["detail"] == {"instance-id": instance_id, "instance-action": "terminate"}
    assert warning["resources"] == [f"arn:aws:ec2:us-east-1a:instance/{instance_id}"]


def test_rebalance_recommendation_leaves_the_instance_running(aws: Face, events: list[EventBridgeEvent]) -> None:
    instance_id = launch_spot_instance(aws)
    aws.cloud.instances.send_rebalance_recommendation(instance_id)
    assert events[-1]["detail-type"] == "EC2 Instance Rebalance Recommendation"
    assert events[-1]["detail"] == {"instance-id": instance_id}
    aws.cloud.clock.advance(timedelta(hours=2))
    assert aws.cloud.instances.describe(instance_id).state == "running"


def test_scheduled_maintenance_publishes_a_health_event(aws: Face, events: list[EventBridgeEvent]) -> None:
    ids = [launch_instance(aws), launch_instance(aws, "another call")]
    aws.cloud.schedule_maintenance(ids)
    event = events[-1]
    assert (event["source"], event["detail-type"]) == ("aws.health", "AWS Health Event")
    detail = event["detail"]
    assert (detail["service"], detail["eventTypeCategory"]) == ("EC2", "scheduledChange")
    assert [entity["entityValue"] for entity in detail["affectedEntities"]] == ids
    assert detail["startTime"] == "Sat, 28 Nov 2026 08:00:00 GMT"
    assert detail["endTime"] == "Sat, 28 Nov 2026 10:00:00 GMT"


def test_maintenance_of_an_unknown_instance_raises_not_found(aws: Face, events: list[EventBridgeEvent]) -> None:
    with pytest.raises(NotFound):
        aws.cloud.schedule_maintenance(["i-0aaaaaaaaaaaaaaaa"])
    assert events == []


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("CreateFleet", "run"),
        ("TerminateInstances", "terminate"),
        ("CreateTags", "tag"),
        ("CreateLaunchTemplate", "mutate"),
        ("DeleteLaunchTemplate", "mutate"),
        ("DescribeInstances", "read"),
        ("GetParameter", "read"),
    ],
)
def test_api_calls_are_assigned_to_rate_limit_categories(action: str, kind: str) -> None:
    assert get_call_category(action) == kind


def count_admitted_calls(cloud: Cloud, action: str) -> int:
    """Call *action* until it is throttled, at most 200 times, and return the number of admitted calls."""
    for count in range(200):
        try:
            cloud.rate_limiter.check_call(action)
        except Throttled:
            return count
    return 200


def test_rate_limits_apply_only_if_enabled() -> None:
    cloud = Cloud(Clock())
    assert count_admitted_calls(cloud, "CreateFleet") == 200
    cloud.rate_limiter.enabled = True
    assert count_admitted_calls(cloud, "CreateFleet") == RATE_LIMITS["run"].burst
    cloud.rate_limiter.enabled = False
    assert count_admitted_calls(cloud, "CreateFleet") == 200


def test_rate_limit_bucket_refills_up_to_its_burst() -> None:
    cloud = Cloud(Clock())
    cloud.rate_limiter.enabled = True
    count_admitted_calls(cloud, "CreateFleet")
    cloud.clock.advance(timedelta(seconds=1))
    assert count_admitted_calls(cloud, "CreateFleet") == 2
    cloud.clock.advance(timedelta(hours=1))
    assert count_admitted_calls(cloud, "CreateFleet") == RATE_LIMITS["run"].burst


def test_rate_limit_buckets_are_independent() -> None:
    cloud = Cloud(Clock())
    cloud.rate_limiter.enabled = True
    count_admitted_calls(cloud, "CreateFleet")
    assert count_admitted_calls(cloud, "CreateTags") == RATE_LIMITS["tag"].burst


def test_call_is_admitted_after_its_retry_after_time() -> None:
    cloud = Cloud(Clock())
    cloud.rate_limiter.enabled = True
    count_admitted_calls(cloud, "CreateFleet")
    with pytest.raises(Throttled) as throttled:
        cloud.rate_limiter.check_call("CreateFleet")
    assert throttled.value.retry_after == timedelta(milliseconds=500)
    cloud.clock.advance(throttled.value.retry_after)
    cloud.rate_limiter.check_call("CreateFleet")


def test_specific_calls_can_be_rejected() -> None:
    cloud = Cloud(Clock())
    cloud.rate_limiter.reject_next_calls("CreateTags", 2)
    cloud.rate_limiter.check_call("CreateFleet")
    for _ in range(2):
        with pytest.raises(Throttled, match="RequestLimitExceeded"):
            cloud.rate_limiter.check_call("CreateTags")
    cloud.rate_limiter.check_call("CreateTags")


def test_every_port_call_is_rate_limited(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    calls: dict[str, Callable[[], object]] = {
        "CreateFleet": lambda: aws.ec2.create_fleet(fleet_request),
        "TerminateInstances": lambda: aws.ec2.terminate_instances([]),
        "DescribeInstances": lambda: aws.ec2.describe_instances("joiner"),
        "DescribeInstanceStatus": aws.ec2.describe_instance_statuses,
        "CreateTags": lambda: aws.ec2.create_tags("i-0a", ()),
        "CreateLaunchTemplate": lambda: aws.ec2.ensure_launch_template(TEMPLATE),
        "DescribeLaunchTemplates": lambda: aws.ec2.describe_launch_templates("joiner"),
        "DeleteLaunchTemplate": lambda: aws.ec2.delete_launch_template(TEMPLATE_NAME),
        "DescribeInstanceTypes": aws.ec2.describe_instance_types,
        "DescribeInstanceTypeOfferings": aws.ec2.describe_offerings,
        "DescribeSpotPriceHistory": aws.ec2.describe_spot_prices,
        "DescribeSubnets": lambda: aws.ec2.describe_subnets(()),
        "DescribeSecurityGroups": lambda: aws.ec2.describe_security_groups(()),
        "DescribeImages": lambda: aws.ec2.describe_images(()),
        "GetParameter": lambda: aws.parameters.get_parameter(STANDARD),
        "GetProducts": lambda: aws.prices.get_on_demand_prices("us-east-1"),
        "DescribeCluster": lambda: aws.eks.describe_cluster("joiner"),
    }
    for action, call in calls.items():
        aws.cloud.rate_limiter.reject_next_calls(action)
        with pytest.raises(Throttled, match=action):
            call()


def test_price_list_of_other_regions_is_empty(aws: Face) -> None:
    assert aws.prices.get_on_demand_prices("eu-west-1") == {}


def test_ami_release_can_be_scheduled_in_the_future(aws: Face) -> None:
    before = aws.parameters.get_parameter(STANDARD)
    aws.cloud.release_amis(DEFAULT_START_TIME + timedelta(hours=1))
    assert aws.parameters.get_parameter(STANDARD) == before
    aws.cloud.clock.advance(timedelta(hours=1))
    (image,) = aws.ec2.describe_images((SelectorTerm(id=aws.parameters.get_parameter(STANDARD)),))
    assert image.created_at == DEFAULT_START_TIME + timedelta(hours=1)


def test_ami_releases_are_named_by_date(aws: Face) -> None:
    (image,) = aws.ec2.describe_images((SelectorTerm(id=aws.parameters.get_parameter(STANDARD)),))
    assert image.name == "amazon-eks-node-al2023-x86_64-standard-1.34-v20261111"
    (bottlerocket,) = aws.ec2.describe_images((SelectorTerm(name="bottlerocket-aws-k8s-1.34-arm64-v1.42.0"),))
    path = "/aws/service/bottlerocket/aws-k8s-1.34/arm64"
    assert aws.parameters.get_parameter(f"{path}/1.42.0/image_id") == bottlerocket.image_id
    assert aws.parameters.get_parameter(f"{path}/latest/image_id") == bottlerocket.image_id


def test_two_ami_releases_on_one_day_have_different_ids(aws: Face) -> None:
    aws.cloud.release_amis()
    once = aws.parameters.get_parameter(STANDARD)
    aws.cloud.release_amis()
    assert aws.parameters.get_parameter(STANDARD) != once


def test_removed_ami_stays_in_its_ssm_parameter(aws: Face) -> None:
    image_id = aws.parameters.get_parameter(STANDARD)
    aws.cloud.images.remove(image_id)
    assert aws.parameters.get_parameter(STANDARD) == image_id
    (error,) = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large")).errors
    assert error.code == "InvalidAMIID.NotFound"
    with pytest.raises(NotFound, match=r"InvalidAMIID\.NotFound"):
        aws.cloud.images.set_deprecation_time(image_id, DEFAULT_START_TIME)


def test_image_of_another_owner_is_found_only_by_id_or_owner(aws: Face) -> None:
    strange = Image(image_id="ami-0c", name="golden", architecture="arm64", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    aws.cloud.images.add(strange, owner="999999999999")
    match_counts = [
        len(aws.ec2.describe_images((term,)))
        for term in (
            SelectorTerm(id="ami-0c"),
            SelectorTerm(name="golden", owner="999999999999"),
            SelectorTerm(name="golden"),
        )
    ]
    assert match_counts == [1, 1, 0]


def test_every_kubernetes_version_has_amis(aws: Face) -> None:
    for version in ("1.30", "1.33", "1.35"):
        assert aws.parameters.get_parameter(AL2023.replace("1.34", version) + "/arm64/standard/recommended/image_id")


@pytest.mark.parametrize("name", ["ab", "a" * 129, "with space", "tab\t"])
def test_launch_template_with_an_invalid_name_is_rejected(aws: Face, name: str) -> None:
    with pytest.raises(Invalid) as refused:
        aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, name=name))
    assert refused.value.code == "InvalidLaunchTemplateName.MalformedException"


def test_launch_template_name_can_be_used_only_once(aws: Face) -> None:
    aws.cloud.create_launch_template(TEMPLATE)
    with pytest.raises(Conflict, match=r"AlreadyExistsException"):
        aws.cloud.create_launch_template(TEMPLATE)


def test_user_data_above_the_size_limit_is_rejected(aws: Face) -> None:
    fits = 16384 // 3 * 4 + 4
    aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, user_data="a" * fits))
    with pytest.raises(Invalid) as refused:
        aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, name="other", user_data="a" * (fits + 4)))
    assert refused.value.code == "InvalidUserData.Malformed"


@pytest.mark.parametrize("capacity_type", ["on-demand", "spot", "reserved"])
def test_instance_cost_is_the_price_of_its_offering(aws: Face, capacity_type: CapacityType) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "reserved", 1)
    aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity_type=capacity_type))
    (spot_price,) = [
        price.price_usd_per_hour
        for price in aws.ec2.describe_spot_prices()
        if (price.instance_type, price.zone) == ("m5.large", "us-east-1a")
    ]
    listed = aws.prices.get_on_demand_prices("us-east-1")["m5.large"]
    assert aws.cloud.compute_hourly_cost() == (spot_price if capacity_type == "spot" else listed)


def test_hourly_cost_is_the_sum_of_running_instances(aws: Face) -> None:
    assert aws.cloud.compute_hourly_cost() == 0
    ids = sorted(launch_instance(aws, f"call {number}") for number in range(3))
    price = aws.prices.get_on_demand_prices("us-east-1")["m5.large"]
    summary = aws.cloud.build_summary()
    assert summary.at == DEFAULT_START_TIME
    assert [cost.instance.instance_id for cost in summary.costs] == ids
    assert summary.usd_per_hour == pytest.approx(3 * price)
    aws.cloud.terminate_instances([ids[0]])
    aws.cloud.instances.stop(ids[1])
    assert aws.cloud.compute_hourly_cost() == price
    assert len(aws.cloud.build_summary().costs) == 2


def test_spot_instance_cost_changes_every_hour(aws: Face) -> None:
    launch_spot_instance(aws)
    costs: set[float] = set()
    for _ in range(5):
        costs.add(aws.cloud.compute_hourly_cost())
        aws.cloud.clock.advance(timedelta(hours=1))
    assert len(costs) == 5


def test_seeded_random_values_depend_only_on_their_arguments() -> None:
    assert seeded_random.draw_fraction("a", 1) == seeded_random.draw_fraction("a", 1)
    assert len({seeded_random.draw_fraction("a", number) for number in range(100)}) == 100
    assert seeded_random.build_resource_id("i", 1) == seeded_random.build_resource_id("i", 1)
    assert len(seeded_random.build_resource_id("i", 1)) == 19
    assert [len(part) for part in seeded_random.build_uuid(FIRST_LAUNCH).split("-")] == [8, 4, 4, 4, 12]
    assert seeded_random.draw_fraction("ab", "c") != seeded_random.draw_fraction("a", "bc")
