"""The fault table: every call to AWS, failed in every way it can fail, while nodes come and go.

docs/faults.md says what happens and names the tests of this file;
`test_every_row_of_the_fault_table_has_a_test` compares the two.
Each test ends with the fault over, all pods running, no instance leaked or started twice, and then with nothing left.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from shared.errors import Fault, Forbidden, InsufficientCapacity, Invalid, Throttled, Unreachable
from shared.model.decisions.action import LaunchInstances, MarkUnavailable
from shared.model.ec2.account import PlacementGroup
from shared.report.journal.journal import JournalEntry
from shared.settings import Settings
from shared.store.catalog import NEWEST_CATALOG_KEY
from shared.store.launch_groups import read_launch_groups
from sim.cloud.ec2.instance import SimulatedInstance
from sim.fault_tap import CallPhase, PortCall, Tap
from tests.scenario.worlds import CLAIMS, CLASSES, World, make_deployment, make_node_class, make_node_pool

TABLE: Final = Path(__file__).parents[3] / "docs" / "faults.md"

Failure = tuple[type[Fault], CallPhase, str]

FAULTS: Final[dict[str, Failure]] = {
    "throttled": (Throttled, "before", "RequestLimitExceeded: Request limit exceeded."),
    "5xx": (Unreachable, "before", "InternalError: An internal error has occurred"),
    "lost": (Unreachable, "after", "Read timeout on endpoint URL"),
    "expired": (Forbidden, "before", "ExpiredToken: The security token included in the request is expired"),
    "unauthorized": (Forbidden, "before", "UnauthorizedOperation: You are not authorized to perform this operation."),
}
CALLS: Final = {
    "CreateFleet": "ec2.create_fleet",
    "CreateLaunchTemplate": "ec2.ensure_launch_template",
    "CreateTags": "ec2.create_tags",
    "DeleteLaunchTemplate": "ec2.delete_launch_template",
    "DescribeCapacityReservations": "ec2.describe_capacity_reservations",
    "DescribeCluster": "eks.describe_cluster",
    "DescribeImages": "ec2.describe_images",
    "DescribeInstanceStatus": "ec2.describe_instance_statuses",
    "DescribeInstanceTypeOfferings": "ec2.describe_offerings",
    "DescribeInstanceTypes": "ec2.describe_instance_types",
    "DescribeInstances": "ec2.describe_instances",
    "DescribeLaunchTemplates": "ec2.describe_launch_templates",
    "DescribePlacementGroups": "ec2.describe_placement_group",
    "DescribeSecurityGroups": "ec2.describe_security_groups",
    "DescribeSpotPriceHistory": "ec2.describe_spot_prices",
    "DescribeSubnets": "ec2.describe_subnets",
    "DryRun": "ec2.dry_run_launch",
    "GetItem": "table.read",
    "GetObject": "bucket.get",
    "GetParameter": "parameters.get_parameter",
    "GetProducts": "prices.get_on_demand_prices",
    "ListObjects": "bucket.list_keys",
    "PutItem": "table.write",
    "PutObject": "bucket.put",
    "Query": "table.list_rows",
    "SendMessage": "mailbox.add",
    "TerminateInstances": "ec2.terminate_instances",
}

SHOPPING: Final = frozenset(
    ("DescribeInstanceTypeOfferings", "DescribeInstanceTypes", "DescribeSpotPriceHistory", "GetProducts")
)


def build_failing_tap(method: str, failure: Failure, hits: list[str]) -> Tap:
    """Build a tap that fails every call of *method* with *failure*."""
    fault, when, words = failure

    def raise_failure(call: PortCall) -> None:
        if call.phase == when and f"{call.port}.{call.method}" == method:
            hits.append(call.detail)
            raise fault(f"{method}: {words}")

    return raise_failure


RACK: Final = PlacementGroup(group_id="", name="rack", strategy="cluster")


def build_late_objects(replicas: int = 4, **fields: object) -> list[dict[str, object]]:
    """Build a node class, a pool and a Deployment that are applied during the fault."""
    selected = make_deployment(replicas, "late", nodeSelector={"is": "late"})
    selectors = [{"tags": {"karpenter.sh/discovery": "*"}}]
    class_fields = {
        "capacityReservationSelectorTerms": selectors,
        "placementGroupSelector": {"name": RACK.name},
    } | fields
    return [
        make_node_class("late", **class_fields),
        make_node_pool("late", class_name="late", labels={"is": "late"}),
        selected,
    ]


def add_rack(world: World) -> World:
    """Add the placement group that the late class selects to *world* and return *world*."""
    world.cloud.reservations.add_group(RACK)
    return world


def assert_ends_well(world: World, launched: int) -> None:
    """See the world settle, without an instance too many, and empty itself."""
    world.wait_until_settled(4, timeout=400)
    world.wait_until(lambda: len(world.list_active_instances()) == len(world.list_claims()) == 1, timeout=300)
    assert len(world.launched) == launched
    world.scale(0, "late")
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=600)
    world.clear_container_caches()  # a container that lives on tidies up every ten minutes only
    world.advance_seconds(130)
    assert world.cloud.templates.list_by_tag("eks:eks-cluster-name", world.cluster_name) == ()
    assert len(world.launched) == launched


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", CALLS)
def test_failing_api_call_is_recovered_from(call: str, fault: str) -> None:
    world = add_rack(World(make_node_class(), make_node_pool(), make_deployment(2)))
    world.wait_until_settled(2)
    hits: list[str] = []
    with world.use_tap(build_failing_tap(CALLS[call], FAULTS[fault], hits)):
        if call in SHOPPING:
            world.bucket.put("market/us-east-1.json.gz", b"")  # what is on sale was written down: let that be broken
        if call == "ListObjects":
            world.bucket.put(NEWEST_CATALOG_KEY, b"")  # which is the newest was written down, too
        world.apply(build_late_objects())
        world.scale(0)
        world.wait_until(lambda: hits, timeout=700)
        world.advance_seconds(100)
    assert FAULTS[fault][2] in world.log()
    assert_ends_well(world, launched=2)


TYPES: Final = ("c5.xlarge", "m5.xlarge", "m5.2xlarge")


def list_launches(entry: JournalEntry) -> list[LaunchInstances]:
    """Return the launches of an invocation."""
    return [result.action for result in entry.results if isinstance(result.action, LaunchInstances)]


def count_fleets(world: World) -> int:
    """Return how many CreateFleet calls were sent."""
    return sum(len(list_launches(entry)) for entry in world.entries)


def remove_spot_capacity(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone, ("spot",))


def remove_all_capacity(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone)


def restore_capacity(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.restore_zone(zone)


def remove_type_capacity(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.pools.set_limit("m5.large", zone, "on-demand", 0)


def set_zero_quota(world: World) -> None:
    world.cloud.pools.set_quota("on-demand", 0)


def remove_quota(world: World) -> None:
    world.cloud.pools.set_quota("on-demand", None)


def remove_free_addresses(world: World) -> None:
    for subnet_id in world.cloud.network.subnets:
        world.cloud.network.get_subnet(subnet_id).set_free(0)


def restore_free_addresses(world: World) -> None:
    for subnet_id in world.cloud.network.subnets:
        world.cloud.network.get_subnet(subnet_id).set_free(1000)


CAPACITY_REASON: Final = "InsufficientCapacityError"
SHORTAGES: Final[dict[str, tuple[Callable[[World], None], Callable[[World], None], str, str]]] = {
    "ice-total": (remove_all_capacity, restore_capacity, "InsufficientCapacityError", CAPACITY_REASON),
    "quota": (set_zero_quota, remove_quota, "VcpuLimitExceeded", CAPACITY_REASON),
    "no-addresses": (
        *(remove_free_addresses, restore_free_addresses),
        *("InsufficientFreeAddressesInSubnet", "SubnetAddressesLow"),
    ),
}


@pytest.mark.parametrize("shortage", SHORTAGES)
def test_capacity_shortage_is_reported_and_recovered_from(shortage: str) -> None:
    world = add_rack(World(make_node_class(), make_node_pool()))
    begins, ends, error_code, event_reason = SHORTAGES[shortage]
    begins(world)
    world.apply(build_late_objects())
    world.advance_seconds(150)
    assert not world.launched
    assert error_code in world.log() + "".join(map(repr, world.entries))
    assert world.list_events(reason=event_reason)
    ends(world)
    assert_ends_well(world, launched=1)


def test_instance_type_without_capacity_is_skipped_in_the_same_fleet_request() -> None:
    world = add_rack(World(make_node_class(), make_node_pool()))
    remove_type_capacity(world)
    [klass, only, pods] = build_late_objects()
    two = make_node_pool("late", class_name="late", labels={"is": "late"}, types=("m5.large", "m5.xlarge"))
    world.apply([klass, two, make_deployment(1, "late", nodeSelector={"is": "late"}, cpu="500m")])
    assert only["metadata"] == two["metadata"]
    assert pods["kind"] == "Deployment"
    world.wait_until(lambda: world.launched, timeout=70)
    [cost] = world.cloud.build_summary().costs
    assert cost.instance.instance_type == "m5.xlarge"
    assert count_fleets(world) == 1


def test_unavailable_spot_falls_back_to_on_demand_in_the_same_invocation() -> None:
    world = add_rack(World(make_node_class(), make_node_pool()))
    remove_spot_capacity(world)
    world.apply([make_node_pool("both", capacity=("spot", "on-demand"), labels={"is": "both"}, types=TYPES)])
    world.apply([make_deployment(4, "late", nodeSelector={"is": "both"})])
    world.wait_until(lambda: world.launched, timeout=70)
    [cost] = world.cloud.build_summary().costs
    assert cost.instance.capacity_type == "on-demand"
    assert len({entry.at for entry in world.entries if list_launches(entry)}) == 1
    assert_ends_well(world, launched=1)


def test_spot_only_nodepool_waits_for_spot_capacity_and_emits_an_event() -> None:
    world = add_rack(World(make_node_class(), make_node_pool()))
    remove_spot_capacity(world)
    world.apply([make_node_pool("spot", capacity=("spot",), labels={"is": "spot"}, types=TYPES)])
    world.apply([make_deployment(4, "late", nodeSelector={"is": "spot"})])
    world.advance_seconds(120)
    assert not world.launched
    assert world.list_events(reason="InsufficientCapacityError")
    restore_capacity(world)
    assert_ends_well(world, launched=1)


REFUSALS: Final = {
    "bad-ami": ("InvalidAMIID.NotFound", "The image id '[ami-0]' does not exist", "AMINotFound"),
    "bad-profile": (
        "InvalidParameterValue",
        "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        "InstanceProfileNameInvalid",
    ),
    "missing-security-group": ("InvalidGroup.NotFound", "The security group 'sg-0' does not exist", "LaunchFailed"),
    "missing-subnet": ("InvalidSubnetID.NotFound", "The subnet ID 'subnet-0' does not exist", "LaunchFailed"),
    "other-vpc": (
        "InvalidParameter",
        "Security group sg-0 and subnet subnet-0 belong to different networks.",
        "SecurityGroupSubnetVPCMismatch",
    ),
    "pending-verification": ("PendingVerification", "Your request is being verified", "AccountPendingVerification"),
    "user-data": ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"),
}
SHORT: Final = {
    "capacity": ("InsufficientInstanceCapacity", "We currently do not have sufficient capacity"),
    "fleet-quota": ("MaxFleetCountExceeded", "You have reached the limit of fleets"),
    "on-demand-quota": ("VcpuLimitExceeded", "You have requested more vCPU capacity than your current limit"),
    "spot-quota": ("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"),
}


def build_refusal(code: str, message: str) -> Fault:
    """Build the exception that the port raises when EC2 rejects a whole request with *code*."""
    if code == "InsufficientInstanceCapacity":
        return InsufficientCapacity(message)
    return Forbidden(message) if code == "PendingVerification" else Invalid(message, code)


def build_refusing_tap(code: str, words: str, hits: list[str]) -> Tap:
    """Build a tap that rejects every CreateFleet as a whole."""

    def reject_fleet(call: PortCall) -> None:
        if (call.phase, call.port, call.method) == ("before", "ec2", "create_fleet"):
            hits.append(code)
            raise build_refusal(code, f"ec2:CreateFleet: {code}: {words}")

    return reject_fleet


@pytest.mark.parametrize("refusal", REFUSALS)
def test_invalid_launch_request_is_reported_in_the_launched_condition(refusal: str) -> None:
    code, words, reason = REFUSALS[refusal]
    world, hits = add_rack(World(make_node_class(), make_node_pool())), list[str]()
    with world.use_tap(build_refusing_tap(code, words, hits)):
        world.apply(build_late_objects())
        world.wait_until(lambda: hits, timeout=400)
        world.advance_seconds(30)
        [claim] = world.list_claims()
        status, condition_reason, message = world.get_condition(CLAIMS, claim["metadata"]["name"], "Launched")
        assert (status, condition_reason) == ("Unknown", reason)
        assert words in message
        assert any(words in event for event in world.list_events("late", reason))
    assert_ends_well(world, launched=1)


@pytest.mark.parametrize("short", SHORT)
def test_quota_error_marks_the_offering_unavailable(short: str) -> None:
    code, words = SHORT[short]
    world, hits = add_rack(World(make_node_class(), make_node_pool())), list[str]()
    with world.use_tap(build_refusing_tap(code, words, hits)):
        world.apply(build_late_objects())
        world.wait_until(lambda: hits, timeout=400)
        world.advance_seconds(30)
        assert world.list_events(reason="InsufficientCapacityError")
        assert code in "".join(map(repr, world.list_done_actions(MarkUnavailable)))
        assert all(group.result is not None for group in read_launch_groups(world.table, world.clock.get_time(), []))
    assert_ends_well(world, launched=1)


def test_missing_run_instances_permission_is_reported_and_stops_launches() -> None:
    world = World(make_node_class(), make_node_pool())
    world.cloud.dry_runs.deny("RunInstances", "You are not authorized to perform: ec2:RunInstances on resource: x")
    world.apply([make_deployment(2)])
    world.wait_until_settled(2)
    world.wait_until(lambda: world.get_condition(CLASSES, "default", "ValidationSucceeded")[0] == "False", timeout=70)
    _, reason, message = world.get_condition(CLASSES, "default", "ValidationSucceeded")
    assert reason == "RunInstancesAuthCheckFailed"
    assert "allow ec2:RunInstances for the functions' roles" in message
    world.apply([make_deployment(4, "late")])
    world.advance_seconds(120)
    assert len(world.launched) == len(world.list_claims()) == 1
    world.cloud.dry_runs.allow("RunInstances")
    world.wait_until_settled(6, timeout=700)
    assert len(world.launched) == len(world.list_claims()) == 2


def test_deleted_subnet_is_skipped_and_other_subnets_are_used() -> None:
    world = add_rack(World(make_node_class(), make_node_pool()))
    removed_subnets = list(world.cloud.network.subnets)[:2]
    for subnet_id in removed_subnets:
        world.cloud.network.remove_subnet(subnet_id)
    world.apply(build_late_objects())
    assert_ends_well(world, launched=1)


def test_launch_template_deleted_before_create_fleet_is_recreated() -> None:
    world, deleted = add_rack(World(make_node_class(), make_node_pool())), list[str]()

    def delete_templates(call: PortCall) -> None:
        if (call.phase, call.port, call.method) == ("before", "ec2", "create_fleet") and not deleted:
            for template in world.cloud.templates.list_by_tag("eks:eks-cluster-name", world.cluster_name):
                deleted.append(template.name)
                world.cloud.templates.delete(template.name)

    with world.use_tap(delete_templates):
        world.apply(build_late_objects())
        world.wait_until_settled(4, timeout=400)
    assert deleted
    assert_ends_well(world, launched=1)


def test_partial_fleet_result_is_followed_by_a_request_for_the_missing_instances() -> None:
    world = add_rack(World(make_node_class(), make_node_pool()))
    rooms = dict(zip(world.cloud.zones, (1, 1, 0), strict=True))
    for zone, room in rooms.items():
        world.cloud.pools.set_limit("m5.xlarge", zone, "on-demand", room)
    world.apply([make_node_pool("late", labels={"is": "late"})])
    world.apply([make_deployment(3, "late", nodeSelector={"is": "late"}, cpu="2500m")])
    world.advance_seconds(100)
    assert len(world.launched) == 2
    assert world.list_events(reason="InsufficientCapacityError")
    world.cloud.pools.set_limit("m5.xlarge", world.cloud.zones[2], "on-demand", 5)
    world.wait_until_settled(3, timeout=400)
    assert len(world.launched) == len(world.list_claims()) == 3


def test_offering_without_capacity_at_the_start_of_an_instance_is_avoided() -> None:
    world, reason = add_rack(World(make_node_class(), make_node_pool())), "Server.InsufficientInstanceCapacity"
    full_zone = world.cloud.zones[0]

    def end_instance(instance: SimulatedInstance) -> None:
        instance.state_reason = f"{reason}: Insufficient capacity to satisfy instance request"
        world.cloud.instances.terminate_immediately(instance.instance_id)

    def end_in_full_zone(event: dict[str, Any]) -> None:
        if event["detail"].get("state") == "pending":
            instance = world.cloud.instances.find(event["detail"]["instance-id"])
            if instance.subnet.zone == full_zone:
                world.clock.call_after(timedelta(seconds=3), lambda: end_instance(instance))

    world.cloud.events.subscribe(end_in_full_zone)
    world.apply(build_late_objects())
    world.wait_until_settled(4, timeout=400)
    assert full_zone not in {instance.zone for instance in world.list_active_instances()}
    marks = world.list_done_actions(MarkUnavailable)
    assert {(mark.offering.instance_type, mark.offering.zone) for mark in marks} == {("m5.xlarge", full_zone)}
    assert any(reason in event for event in world.list_events(reason="InstanceEndedEarly"))
    # The EC2 event of the first instance has no reason, but its replacement is launched elsewhere already.
    assert_ends_well(world, launched=2)


def test_missing_spot_service_linked_role_falls_back_to_on_demand_and_emits_an_event() -> None:
    world, hits = add_rack(World(make_node_class(), make_node_pool())), list[str]()
    words = "The provided credentials do not have permission to create the service-linked role for EC2 Spot"
    code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

    def reject_once(call: PortCall) -> None:
        if (call.phase, call.port, call.method) == ("before", "ec2", "create_fleet") and not hits:
            hits.append(code)
            raise Invalid(f"ec2:CreateFleet: {code}: {words}", code)

    with world.use_tap(reject_once):
        world.apply([make_node_pool("both", capacity=("spot", "on-demand"), labels={"is": "both"}, types=TYPES)])
        world.apply([make_deployment(4, "late", nodeSelector={"is": "both"})])
        world.wait_until(lambda: world.launched, timeout=70)
    [cost] = world.cloud.build_summary().costs
    assert cost.instance.capacity_type == "on-demand"
    assert any("create-service-linked-role" in event for event in world.list_events("both"))
    assert_ends_well(world, launched=1)


def test_every_row_of_the_fault_table_has_a_test(request: pytest.FixtureRequest) -> None:
    page = TABLE.read_text()
    cited_tests = set(re.findall(r"`(test_[^`]+)`", page))
    failure_table = page.partition("| Failure | Meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| (\w+) \|", failure_table, re.MULTILINE)) == set(FAULTS)
    expected_tests = {f"test_failing_api_call_is_recovered_from[{call}-*]" for call in CALLS}
    expected_tests |= {f"test_capacity_shortage_is_reported_and_recovered_from[{shortage}]" for shortage in SHORTAGES}
    expected_tests |= {
        f"test_invalid_launch_request_is_reported_in_the_launched_condition[{refusal_name}]"
        for refusal_name in REFUSALS
    }
    expected_tests |= {f"test_quota_error_marks_the_offering_unavailable[{quota_name}]" for quota_name in SHORT}
    test_names = {name for name in vars(request.module) if name.startswith("test_")}
    single = (
        test_names
        - {"test_open_launch_breaker_delays_launches_emits_an_event_and_closes_automatically"}
        - {test_id.partition("[")[0] for test_id in expected_tests}
        - {"test_every_row_of_the_fault_table_has_a_test"}
    )
    assert cited_tests == expected_tests | single


def test_open_launch_breaker_delays_launches_emits_an_event_and_closes_automatically(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Settings, "from_environment", build_limited_settings_reader(Settings.from_environment))
    world = World(make_node_class(), make_node_pool("late", labels={"is": "late"}))
    world.apply([make_deployment(5, "late", nodeSelector={"is": "late"}, cpu="2500m")])
    world.wait_until(lambda: world.launched, timeout=70)
    world.advance_seconds(20)
    assert len(world.launched) == 2
    assert any("launch-pool-nodes-per-minute" in event for event in world.list_events("late", "LaunchBreakerOpen"))
    assert any(note.verdict == "LaunchBreakerOpen" for entry in world.entries for note in entry.notes)
    assert '"LaunchBreakerTrips": [1.0]' in world.log()
    world.wait_until_settled(5, timeout=300)
    assert len(world.launched) == len(world.list_claims()) == 5


def build_limited_settings_reader(
    read: Callable[[Mapping[str, str]], Settings],
) -> Callable[[Mapping[str, str]], Settings]:
    """Wrap *read* so that the settings limit each pool to two new nodes per minute."""
    return lambda environ: msgspec.structs.replace(read(environ), launch_pool_nodes_per_minute=2)
