"""How often EC2 is asked, and what is done when it says no: on stubs of boto3's clients, call by call."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from shared.aws.clients import Clients, RetryMode
from shared.aws.ec2.client import BotoEc2
from shared.errors import InsufficientCapacity, Invalid, NotFound, Throttled, Unreachable
from shared.model.ec2.fleet import FleetRequest
from shared.model.ec2.launch_template import LaunchTemplate

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TEMPLATE = LaunchTemplate(name="joiner/1", image_id="ami-1", user_data="")
NOT_FOUND = "InvalidInstanceID.NotFound"
UNKNOWN_TEMPLATE = "InvalidLaunchTemplateName.NotFoundException"
TEMPLATE_EXISTS = "InvalidLaunchTemplateName.AlreadyExistsException"
FLEET = FleetRequest(
    client_token="",
    capacity=1,
    capacity_type="on-demand",
    allocation_strategy="lowest-price",
    configs=(),
)


class Script:
    """What EC2 will be asked, in this order, and what it will say."""

    def __init__(self, clients: Clients) -> None:
        """Play the part of EC2 for *clients*."""
        self.stubs: dict[RetryMode, Stubber] = {
            "patient": Stubber(clients.get_retrying_client("ec2")),
            "once": Stubber(clients.get_single_attempt_client("ec2")),
        }

    def expect_call(
        self, call: str, answer: dict[str, Any], patience: RetryMode = "patient", **parameters: Any
    ) -> None:
        self.stubs[patience].add_response(call, answer, parameters or None)

    def expect_refusal(self, call: str, code: str, status: int = 400, patience: RetryMode = "patient") -> None:
        self.stubs[patience].add_client_error(call, code, "words", status)


@pytest.fixture(scope="module")
def shared_clients() -> Iterator[Clients]:
    clients = Clients("us-east-1")
    yield clients
    clients.close()


@pytest.fixture
def script(shared_clients: Clients) -> Iterator[Script]:
    script = Script(shared_clients)
    for stub in script.stubs.values():
        stub.activate()
    yield script
    for stub in script.stubs.values():
        stub.assert_no_pending_responses()
        stub.deactivate()


@pytest.fixture
def ec2(shared_clients: Clients) -> BotoEc2:
    return BotoEc2(shared_clients, lambda: NOON)


def test_terminating_an_empty_list_makes_no_call(ec2: BotoEc2, script: Script) -> None:
    assert script.stubs
    ec2.terminate_instances([])


def test_instance_ids_to_terminate_are_deduplicated_and_sorted(ec2: BotoEc2, script: Script) -> None:
    script.expect_call("terminate_instances", {}, InstanceIds=["i-1", "i-2"])
    ec2.terminate_instances(["i-2", "i-1", "i-2"])


def test_terminate_instances_calls_contain_at_most_500_instances(ec2: BotoEc2, script: Script) -> None:
    ids = [f"i-{number:04}" for number in range(1001)]
    for start, end in ((0, 500), (500, 1000), (1000, 1001)):
        script.expect_call("terminate_instances", {}, InstanceIds=ids[start:end])
    ec2.terminate_instances(ids)


def test_batch_with_an_unknown_instance_is_split_until_it_is_isolated(ec2: BotoEc2, script: Script) -> None:
    script.expect_refusal("terminate_instances", NOT_FOUND)
    script.expect_call("terminate_instances", {}, InstanceIds=["i-1", "i-2"])
    script.expect_refusal("terminate_instances", NOT_FOUND)
    script.expect_refusal("terminate_instances", NOT_FOUND)
    script.expect_call("terminate_instances", {}, InstanceIds=["i-4"])
    ec2.terminate_instances(["i-1", "i-2", "i-3", "i-4"])


def test_termination_error_is_raised(ec2: BotoEc2, script: Script) -> None:
    script.expect_refusal("terminate_instances", "InternalError", 500)
    with pytest.raises(Unreachable):
        ec2.terminate_instances(["i-1"])


def test_empty_describe_response_for_one_instance_raises_not_found(ec2: BotoEc2, script: Script) -> None:
    script.expect_call("describe_instances", {"Reservations": [{"Instances": []}]}, InstanceIds=["i-1"])
    with pytest.raises(NotFound):
        ec2.describe_instance("i-1")


def test_instance_statuses_are_queried_once_per_status_filter(ec2: BotoEc2, script: Script) -> None:
    def make_status(*details: dict[str, Any]) -> dict[str, Any]:
        return {"Status": "impaired", "Details": list(details)}

    failed: dict[str, Any] = {"Name": "reachability", "Status": "failed"}
    events = [
        {"Code": "instance-stop", "InstanceEventId": "e-2", "NotBefore": NOON, "Description": "to be stopped"},
        {"Code": "system-reboot", "InstanceEventId": "e-1", "Description": "[Canceled] to be rebooted"},
        {"Code": "system-reboot", "InstanceEventId": "e-0", "Description": "[Completed] to be rebooted"},
        {"Code": "instance-retirement", "InstanceEventId": "e-3"},
    ]
    answers = {
        "instance-status.status": [
            {"InstanceId": "i-2", "InstanceStatus": make_status(failed | {"ImpairedSince": NOON})}
        ],
        "system-status.status": [
            {"InstanceId": "i-1", "SystemStatus": make_status(failed)},
            {"InstanceId": "i-3", "SystemStatus": make_status({"Name": "reachability", "Status": "insufficient-data"})},
        ],
        "event.code": [{"InstanceId": "i-0", "Events": events}, {"InstanceId": "i-4", "Events": events[1:3]}],
    }
    codes = ["instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot"]
    for name, statuses in answers.items():
        filters = [{"Name": name, "Values": codes if name == "event.code" else ["impaired"]}]
        script.expect_call("describe_instance_status", {"InstanceStatuses": statuses}, Filters=filters, MaxResults=1000)
    first, second = ec2.describe_instance_statuses()
    assert (first.instance_id, second.instance_id) == ("i-0", "i-2")
    assert [(event.event_id, event.begins_at) for event in first.events] == [("e-2", NOON), ("e-3", None)]
    assert [(check.kind, check.since) for check in second.failed] == [("instance", NOON)]


def test_error_on_one_page_fails_the_whole_list(ec2: BotoEc2, script: Script) -> None:
    script.expect_call("describe_instances", {"Reservations": [], "NextToken": "2"})
    script.expect_refusal("describe_instances", "RequestLimitExceeded", 503)
    with pytest.raises(Throttled):
        ec2.describe_instances("joiner")


def test_existing_launch_template_is_not_created_again(ec2: BotoEc2, script: Script) -> None:
    known_templates = {"LaunchTemplates": [{"LaunchTemplateName": "joiner/1"}]}
    script.expect_call("describe_launch_templates", known_templates, LaunchTemplateNames=["joiner/1"])
    ec2.ensure_launch_template(TEMPLATE)


def test_launch_template_created_concurrently_is_accepted(ec2: BotoEc2, script: Script) -> None:
    script.expect_refusal("describe_launch_templates", UNKNOWN_TEMPLATE)
    script.expect_refusal("create_launch_template", TEMPLATE_EXISTS)
    ec2.ensure_launch_template(TEMPLATE)


def test_launch_template_rejected_by_ec2_raises_invalid(ec2: BotoEc2, script: Script) -> None:
    script.expect_refusal("describe_launch_templates", UNKNOWN_TEMPLATE)
    script.expect_refusal("create_launch_template", "InvalidUserData.Malformed")
    with pytest.raises(Invalid) as raised:
        ec2.ensure_launch_template(TEMPLATE)
    assert raised.value.code == "InvalidUserData.Malformed"


@pytest.mark.parametrize("code", [UNKNOWN_TEMPLATE, "InvalidLaunchTemplateId.NotFound"])
def test_create_fleet_raises_not_found_only_for_a_missing_launch_template(
    ec2: BotoEc2, script: Script, code: str
) -> None:
    script.expect_refusal("create_fleet", code, patience="once")
    with pytest.raises(NotFound):
        ec2.create_fleet(FLEET)


@pytest.mark.parametrize("code", ["InvalidSubnetID.NotFound", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"])
def test_create_fleet_raises_invalid_for_other_missing_resources(ec2: BotoEc2, script: Script, code: str) -> None:
    script.expect_refusal("create_fleet", code, patience="once")
    with pytest.raises(Invalid) as raised:
        ec2.create_fleet(FLEET)
    assert raised.value.code == code


def test_create_fleet_raises_insufficient_capacity(ec2: BotoEc2, script: Script) -> None:
    script.expect_refusal("create_fleet", "InsufficientInstanceCapacity", patience="once")
    with pytest.raises(InsufficientCapacity):
        ec2.create_fleet(FLEET)


def test_spot_price_history_is_requested_from_the_current_time(ec2: BotoEc2, script: Script) -> None:
    script.expect_call(
        "describe_spot_price_history",
        {"SpotPriceHistory": []},
        ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
        StartTime=NOON,
        MaxResults=2000,
    )
    assert ec2.describe_spot_prices() == ()


def test_managed_instances_are_selected_by_three_tags_and_live_states(ec2: BotoEc2, script: Script) -> None:
    script.expect_call(
        "describe_instances",
        {"Reservations": []},
        Filters=[
            {"Name": "tag:eks:eks-cluster-name", "Values": ["joiner"]},
            {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]},
            {"Name": "tag-key", "Values": ["karpenter.k8s.aws/ec2nodeclass"]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped", "shutting-down"]},
        ],
        MaxResults=1000,
    )
    assert ec2.describe_instances("joiner") == ()
