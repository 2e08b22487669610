"""The fault table: every call to AWS, failed in every way it can fail, while nodes come and go.

docs/faults.md says what happens and names the tests of this file; `test_every_row_is_a_test` holds the two together.
Each test ends with the fault over, all pods running, no instance leaked or started twice, and then with nothing left.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest

from shared.errors import Fault, Forbidden, InsufficientCapacity, Invalid, Throttled, Unreachable
from shared.model.action import LaunchInstances, MarkUnavailable
from shared.model.ec2 import PlacementGroup
from shared.report.journal import Entry
from shared.settings import Settings
from shared.snapshot.catalogue import NEWEST
from shared.snapshot.rows import launch_groups
from sim.faults import Call, Tap, When
from tests.scenario.worlds import CLAIMS, CLASSES, World, deployment, node_class, pool

TABLE: Final = Path(__file__).parents[2] / "docs" / "faults.md"

Failure = tuple[type[Fault], When, str]

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
    "DescribeCapacityReservations": "ec2.capacity_reservations",
    "DescribeCluster": "eks.cluster",
    "DescribeImages": "ec2.images",
    "DescribeInstanceStatus": "ec2.instance_statuses",
    "DescribeInstanceTypeOfferings": "ec2.offerings",
    "DescribeInstanceTypes": "ec2.instance_types",
    "DescribeInstances": "ec2.describe_instances",
    "DescribeLaunchTemplates": "ec2.launch_templates",
    "DescribePlacementGroups": "ec2.placement_group",
    "DescribeSecurityGroups": "ec2.security_groups",
    "DescribeSpotPriceHistory": "ec2.spot_prices",
    "DescribeSubnets": "ec2.subnets",
    "DryRun": "ec2.refusals",
    "GetItem": "table.read",
    "GetObject": "bucket.get",
    "GetParameter": "parameters.parameter",
    "GetProducts": "prices.on_demand",
    "ListObjects": "bucket.keys",
    "PutItem": "table.write",
    "PutObject": "bucket.put",
    "Query": "table.rows",
    "SendMessage": "mailbox.send",
    "TerminateInstances": "ec2.terminate_instances",
}

SHOPPING: Final = frozenset(
    ("DescribeInstanceTypeOfferings", "DescribeInstanceTypes", "DescribeSpotPriceHistory", "GetProducts")
)


def failing(method: str, failure: Failure, hits: list[str]) -> Tap:
    """Let every call of *method* fail so."""
    fault, when, words = failure

    def tap(call: Call) -> None:
        if call.when == when and f"{call.port}.{call.method}" == method:
            hits.append(call.detail)
            raise fault(f"{method}: {words}")

    return tap


RACK: Final = PlacementGroup(group_id="", name="rack", strategy="cluster")


def late(replicas: int = 4, **more: object) -> list[dict[str, object]]:
    """Answer a node class, a pool and a Deployment that come while the fault lasts."""
    selected = deployment(replicas, "late", nodeSelector={"is": "late"})
    selectors = [{"tags": {"karpenter.sh/discovery": "*"}}]
    asked = {"capacityReservationSelectorTerms": selectors, "placementGroupSelector": {"name": RACK.name}} | more
    return [node_class("late", **asked), pool("late", of="late", labels={"is": "late"}), selected]


def with_rack(world: World) -> World:
    """Answer *world* with the placement group that the late class asks for."""
    world.cloud.reservations.add_group(RACK)
    return world


def ends_well(world: World, launched: int) -> None:
    """See the world settle, without an instance too many, and empty itself."""
    world.settled(4, within=400)
    world.until(lambda: len(world.living()) == len(world.claims()) == 1, within=300)
    assert len(world.launched) == launched
    world.scale(0, "late")
    world.until(lambda: not world.living() and not world.claims(), within=600)
    world.forget()  # a container that lives on tidies up every ten minutes only
    world.seconds(130)
    assert world.cloud.templates.tagged("eks:eks-cluster-name", world.cluster_name) == ()
    assert len(world.launched) == launched


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails(call: str, fault: str) -> None:
    world = with_rack(World(node_class(), pool(), deployment(2)))
    world.settled(2)
    hits: list[str] = []
    with world.tapped(failing(CALLS[call], FAULTS[fault], hits)):
        if call in SHOPPING:
            world.bucket.put("market/us-east-1.json.gz", b"")  # what is on sale was written down: let that be broken
        if call == "ListObjects":
            world.bucket.put(NEWEST, b"")  # which is the newest was written down, too
        world.apply(late())
        world.scale(0)
        world.until(lambda: hits, within=700)
        world.seconds(100)
    assert FAULTS[fault][2] in world.log()
    ends_well(world, launched=2)


TYPES: Final = ("c5.xlarge", "m5.xlarge", "m5.2xlarge")


def fleets_of(entry: Entry) -> list[LaunchInstances]:
    """Answer the launches of one invocation."""
    return [one.action for one in entry.done if isinstance(one.action, LaunchInstances)]


def fleets(world: World) -> int:
    """Answer how many CreateFleet were sent."""
    return sum(len(fleets_of(entry)) for entry in world.entries)


def out_of_spot(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone, ("spot",))


def out_of_everything(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone)


def refilled(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.refill_zone(zone)


def out_of_one_type(world: World) -> None:
    for zone in world.cloud.zones:
        world.cloud.set_capacity("m5.large", zone, "on-demand", 0)


def without_quota(world: World) -> None:
    world.cloud.set_quota("on-demand", 0)


def with_quota(world: World) -> None:
    world.cloud.set_quota("on-demand", None)


def without_addresses(world: World) -> None:
    for subnet_id in world.cloud.network.subnets:
        world.cloud.set_free_ips(subnet_id, 0)


def with_addresses(world: World) -> None:
    for subnet_id in world.cloud.network.subnets:
        world.cloud.set_free_ips(subnet_id, 1000)


SHORTAGES: Final[dict[str, tuple[Callable[[World], None], Callable[[World], None], str]]] = {
    "ice-total": (out_of_everything, refilled, "InsufficientCapacityError"),
    "quota": (without_quota, with_quota, "VcpuLimitExceeded"),
    "no-addresses": (without_addresses, with_addresses, "InsufficientFreeAddressesInSubnet"),
}


@pytest.mark.parametrize("shortage", SHORTAGES)
def test_a_shortage_that_ends(shortage: str) -> None:
    world = with_rack(World(node_class(), pool()))
    begins, ends, told = SHORTAGES[shortage]
    begins(world)
    world.apply(late())
    world.seconds(150)
    assert not world.launched
    assert told in world.log() + "".join(map(repr, world.entries))
    assert world.events(reason="InsufficientCapacityError")
    ends(world)
    ends_well(world, launched=1)


def test_a_type_that_is_out_is_passed_over_at_once() -> None:
    world = with_rack(World(node_class(), pool()))
    out_of_one_type(world)
    [klass, only, pods] = late()
    two = pool("late", of="late", labels={"is": "late"}, types=("m5.large", "m5.xlarge"))
    world.apply([klass, two, deployment(1, "late", nodeSelector={"is": "late"}, cpu="500m")])
    assert only["metadata"] == two["metadata"]
    assert pods["kind"] == "Deployment"
    world.until(lambda: world.launched, within=70)
    [one] = world.cloud.snapshot().costs
    assert one.instance.instance_type == "m5.xlarge"
    assert fleets(world) == 1


def test_spot_that_is_out_is_on_demand_in_the_same_invocation() -> None:
    world = with_rack(World(node_class(), pool()))
    out_of_spot(world)
    world.apply([pool("both", capacity=("spot", "on-demand"), labels={"is": "both"}, types=TYPES)])
    world.apply([deployment(4, "late", nodeSelector={"is": "both"})])
    world.until(lambda: world.launched, within=70)
    [one] = world.cloud.snapshot().costs
    assert one.instance.capacity_type == "on-demand"
    assert len({entry.at for entry in world.entries if fleets_of(entry)}) == 1
    ends_well(world, launched=1)


def test_a_spot_only_pool_waits_for_spot_and_says_so() -> None:
    world = with_rack(World(node_class(), pool()))
    out_of_spot(world)
    world.apply([pool("spot", capacity=("spot",), labels={"is": "spot"}, types=TYPES)])
    world.apply([deployment(4, "late", nodeSelector={"is": "spot"})])
    world.seconds(120)
    assert not world.launched
    assert world.events(reason="InsufficientCapacityError")
    refilled(world)
    ends_well(world, launched=1)


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


def refusal(code: str, message: str) -> Fault:
    """Answer what the port raises where EC2 says *code* to a whole request."""
    if code == "InsufficientInstanceCapacity":
        return InsufficientCapacity(message)
    return Forbidden(message) if code == "PendingVerification" else Invalid(message, code)


def refusing(code: str, words: str, hits: list[str]) -> Tap:
    """Let EC2 refuse every CreateFleet as a whole."""

    def tap(call: Call) -> None:
        if (call.when, call.port, call.method) == ("before", "ec2", "create_fleet"):
            hits.append(code)
            raise refusal(code, f"ec2:CreateFleet: {code}: {words}")

    return tap


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_request_that_is_refused_as_wrong(refusal: str) -> None:
    code, words, reason = REFUSALS[refusal]
    world, hits = with_rack(World(node_class(), pool())), list[str]()
    with world.tapped(refusing(code, words, hits)):
        world.apply(late())
        world.until(lambda: hits, within=400)
        world.seconds(30)
        [claim] = world.claims()
        status, said, message = world.condition(CLAIMS, claim["metadata"]["name"], "Launched")
        assert (status, said) == ("Unknown", reason)
        assert words in message
        assert any(words in event for event in world.events("late", reason))
    ends_well(world, launched=1)


@pytest.mark.parametrize("short", SHORT)
def test_a_quota_that_refuses_the_whole_request(short: str) -> None:
    code, words = SHORT[short]
    world, hits = with_rack(World(node_class(), pool())), list[str]()
    with world.tapped(refusing(code, words, hits)):
        world.apply(late())
        world.until(lambda: hits, within=400)
        world.seconds(30)
        assert world.events(reason="InsufficientCapacityError")
        assert code in "".join(map(repr, world.done(MarkUnavailable)))
        assert all(group.result is not None for group in launch_groups(world.table, world.clock.now(), []))
    ends_well(world, launched=1)


def test_a_right_that_is_missing_is_named_and_nothing_more_is_launched() -> None:
    world = World(node_class(), pool())
    world.cloud.dry_runs.deny("RunInstances", "You are not authorized to perform: ec2:RunInstances on resource: x")
    world.apply([deployment(2)])
    world.settled(2)
    world.until(lambda: world.condition(CLASSES, "default", "ValidationSucceeded")[0] == "False", within=70)
    _, reason, message = world.condition(CLASSES, "default", "ValidationSucceeded")
    assert reason == "RunInstancesAuthCheckFailed"
    assert "give ec2:RunInstances to the functions' roles" in message
    world.apply([deployment(4, "late")])
    world.seconds(120)
    assert len(world.launched) == len(world.claims()) == 1
    world.cloud.dry_runs.allow("RunInstances")
    world.settled(6, within=700)
    assert len(world.launched) == len(world.claims()) == 2


def test_a_subnet_that_is_gone_is_passed_over_and_found_out() -> None:
    world = with_rack(World(node_class(), pool()))
    gone = list(world.cloud.network.subnets)[:2]
    for subnet_id in gone:
        world.cloud.network.remove_subnet(subnet_id)
    world.apply(late())
    ends_well(world, launched=1)


def test_a_template_that_is_deleted_meanwhile_is_made_again() -> None:
    world, deleted = with_rack(World(node_class(), pool())), list[str]()

    def tap(call: Call) -> None:
        if (call.when, call.port, call.method) == ("before", "ec2", "create_fleet") and not deleted:
            for one in world.cloud.templates.tagged("eks:eks-cluster-name", world.cluster_name):
                deleted.append(one.name)
                world.cloud.templates.delete(one.name)

    with world.tapped(tap):
        world.apply(late())
        world.settled(4, within=400)
    assert deleted
    ends_well(world, launched=1)


def test_an_answer_that_gives_some_of_the_machines_is_followed_by_a_request_for_the_others() -> None:
    world = with_rack(World(node_class(), pool()))
    rooms = dict(zip(world.cloud.zones, (1, 1, 0), strict=True))
    for zone, room in rooms.items():
        world.cloud.set_capacity("m5.xlarge", zone, "on-demand", room)
    world.apply([pool("late", labels={"is": "late"})])
    world.apply([deployment(3, "late", nodeSelector={"is": "late"}, cpu="2500m")])
    world.seconds(100)
    assert len(world.launched) == 2
    assert world.events(reason="InsufficientCapacityError")
    world.cloud.set_capacity("m5.xlarge", world.cloud.zones[2], "on-demand", 5)
    world.settled(3, within=400)
    assert len(world.launched) == len(world.claims()) == 3


def test_spot_without_its_role_is_on_demand_and_says_what_to_create() -> None:
    world, hits = with_rack(World(node_class(), pool())), list[str]()
    words = "The provided credentials do not have permission to create the service-linked role for EC2 Spot"
    code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

    def tap(call: Call) -> None:
        if (call.when, call.port, call.method) == ("before", "ec2", "create_fleet") and not hits:
            hits.append(code)
            raise Invalid(f"ec2:CreateFleet: {code}: {words}", code)

    with world.tapped(tap):
        world.apply([pool("both", capacity=("spot", "on-demand"), labels={"is": "both"}, types=TYPES)])
        world.apply([deployment(4, "late", nodeSelector={"is": "both"})])
        world.until(lambda: world.launched, within=70)
    [one] = world.cloud.snapshot().costs
    assert one.instance.capacity_type == "on-demand"
    assert any("create-service-linked-role" in event for event in world.events("both"))
    ends_well(world, launched=1)


def test_every_row_is_a_test(request: pytest.FixtureRequest) -> None:
    named = set(re.findall(r"`(test_[^`]+)`", TABLE.read_text()))
    every = {f"test_a_call_that_fails[{call}-{fault}]" for call in CALLS for fault in FAULTS}
    every |= {f"test_a_shortage_that_ends[{one}]" for one in SHORTAGES}
    every |= {f"test_a_request_that_is_refused_as_wrong[{one}]" for one in REFUSALS}
    every |= {f"test_a_quota_that_refuses_the_whole_request[{one}]" for one in SHORT}
    own = {name for name in vars(request.module) if name.startswith("test_")}
    single = (
        own
        - {"test_the_breaker_holds_back_tells_and_closes_by_itself"}
        - {one.partition("[")[0] for one in every}
        - {"test_every_row_is_a_test"}
    )
    assert named == every | single


def test_the_breaker_holds_back_tells_and_closes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "from_environment", fused(Settings.from_environment))
    world = World(node_class(), pool("late", labels={"is": "late"}))
    world.apply([deployment(5, "late", nodeSelector={"is": "late"}, cpu="2500m")])
    world.until(lambda: world.launched, within=70)
    world.seconds(20)
    assert len(world.launched) == 2
    assert any("joiner:launch-pool-nodes-per-minute" in one for one in world.events("late", "LaunchBreakerOpen"))
    assert any(note.verdict == "LaunchBreakerOpen" for entry in world.entries for note in entry.notes)
    assert '"LaunchBreakerTrips": [1.0]' in world.log()
    world.settled(5, within=300)
    assert len(world.launched) == len(world.claims()) == 5


def fused(read: Callable[[Mapping[str, str]], Settings]) -> Callable[[Mapping[str, str]], Settings]:
    """Answer the deployment's settings with a small fuse."""
    return lambda environ: msgspec.structs.replace(read(environ), launch_pool_nodes_per_minute="2")
