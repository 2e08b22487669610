"""How the launch steps of the test on AWS judge an answer: as expected, different, skipped."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e_aws.results import Observation, StepFailed, StepSkipped
from tests.e2e_aws.steps.launches import (
    check_dry_runs,
    check_exceeded_quota,
    check_repeated_token,
    measure_fleets,
)
from tests.e2e_aws.steps.reservations import check_reservation_filters
from tests.e2e_aws.steps.upkeep import collect_orphan
from tests.support.e2e_environment import ScriptedEnvironment, make_client_error

ACCEPTED = make_client_error("DryRunOperation")
MISSING = make_client_error("InvalidLaunchTemplateName.NotFoundException")
ERROR = {"ErrorCode": "VcpuLimitExceeded"}


def build_environment(folder: Path, **ec2: Any) -> ScriptedEnvironment:
    """Return an environment with a network and images, whose EC2 answers with *ec2*."""
    network = {
        "describe_subnets": {"Subnets": [{"AvailabilityZone": "us-east-1a", "SubnetId": "subnet-1"}]},
        "describe_security_groups": {"SecurityGroups": [{"GroupId": "sg-1"}]},
        "create_launch_template": {},
        "delete_launch_template": {},
    }
    return ScriptedEnvironment(
        folder,
        ec2=network | ec2,
        eks={"describe_cluster": {"cluster": {"version": "1.36"}}},
        ssm={"get_parameter": {"Parameter": {"Value": "ami-1"}}},
    )


def launched(*instance_ids: str) -> dict[str, Any]:
    return {"Instances": [{"InstanceIds": list(instance_ids)}], "Errors": []}


def described(*instance_ids: str) -> dict[str, Any]:
    return {"Reservations": [{"Instances": [{"InstanceId": instance_id} for instance_id in instance_ids]}]}


def answer_in_turn(*answers: Any) -> Callable[..., Any]:
    remaining = list(answers)
    return lambda **_: remaining.pop(0)


@pytest.mark.parametrize(
    ("fleet", "run", "outcome"),
    [
        (ACCEPTED, ACCEPTED, "as expected"),
        (MISSING, ACCEPTED, "as expected"),
        (make_client_error("UnsupportedOperation"), ACCEPTED, "different"),
        (ACCEPTED, make_client_error("UnauthorizedOperation"), "different"),
        (ACCEPTED, {}, "different"),
    ],
)
def test_dry_run_answers_are_compared_with_those_that_joiner_knows(
    tmp_path: Path, fleet: Any, run: Any, outcome: str
) -> None:
    environment = build_environment(tmp_path, create_launch_template=ACCEPTED, create_fleet=fleet, run_instances=run)
    assert check_dry_runs(environment).outcome == outcome


@pytest.mark.parametrize(
    ("repetitions", "instances", "outcome"),
    [
        ((launched("i-1"), MISSING), ["i-1"], "as expected"),
        (({"Instances": [], "Errors": []}, make_client_error("IdempotentParameterMismatch")), ["i-1"], "as expected"),
        ((launched("i-2"), launched("i-2")), ["i-1", "i-2"], "different"),
    ],
)
def test_repeated_token_is_as_expected_if_one_instance_exists(
    tmp_path: Path, repetitions: tuple[Any, Any], instances: list[str], outcome: str
) -> None:
    environment = build_environment(
        tmp_path,
        create_fleet=answer_in_turn(launched("i-1"), *repetitions),
        describe_instances=described(*instances),
    )
    observation = check_repeated_token(environment)
    assert observation.outcome == outcome
    assert f"instances: {len(instances)}" in observation.observed
    assert [entry.kind for entry in environment.ledger.document.entries] == ["launch-template", "instances"]


def test_repeated_token_fails_without_a_first_instance(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="no instance"):
        check_repeated_token(build_environment(tmp_path, create_fleet={"Instances": [], "Errors": [ERROR]}))


@pytest.mark.parametrize(
    ("count", "delay", "outcome"), [(20, 1, "as expected"), (19, 1, "different"), (20, 31, "different")]
)
def test_fleet_times_are_as_expected_if_all_instances_start_within_the_read_timeout(
    tmp_path: Path, count: int, delay: float, outcome: str
) -> None:
    ids = [f"i-{number}" for number in range(count)]

    def create_fleet(**call: Any) -> Any:
        environment.now += timedelta(seconds=delay)
        return launched(*ids[: call["TargetCapacitySpecification"]["TotalTargetCapacity"]])

    environment = build_environment(tmp_path, create_fleet=create_fleet, describe_instances=described(*ids))
    observation = measure_fleets(environment)
    assert observation.outcome == outcome
    assert observation.evidence["seconds"] == {"1": delay, "20": delay}


def check_quota(folder: Path, quota: float, response: Any) -> Observation:
    environment = build_environment(folder, create_fleet=response, describe_instances=described("i-1"))
    environment.clients["service_quotas"] = {"get_service_quota": {"Quota": {"Value": quota}}}
    return check_exceeded_quota(environment)


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ({"Instances": [], "Errors": [ERROR]}, "as expected"),
        ({"Instances": [], "Errors": [{"ErrorCode": "MaxSpotInstanceCountExceeded"}]}, "different"),
        (launched("i-1"), "different"),
    ],
)
def test_exceeded_quota_expects_its_error_code_and_no_instance(tmp_path: Path, response: Any, outcome: str) -> None:
    assert check_quota(tmp_path, 32.0, response).outcome == outcome


def test_exceeded_quota_is_skipped_if_the_quota_is_above_every_instance_type(tmp_path: Path) -> None:
    with pytest.raises(StepSkipped, match="640"):
        check_quota(tmp_path, 640.0, launched())


@pytest.mark.parametrize(("ignored", "outcome"), [((), "as expected"), (("instance-match-criteria",), "different")])
def test_reservation_filters_are_different_if_ec2_ignores_one(
    tmp_path: Path, ignored: tuple[str, ...], outcome: str
) -> None:
    reservation = {"CapacityReservationId": "cr-1", "OwnerId": "111122223333"}

    def describe(**call: Any) -> Any:
        wrong = {"Name": "instance-match-criteria", "Values": ["open"]}
        is_selected = wrong["Name"] in ignored or wrong not in call["Filters"]
        return {"CapacityReservations": [reservation] if is_selected else []}

    environment = build_environment(
        tmp_path,
        create_capacity_reservation={"CapacityReservation": reservation},
        describe_capacity_reservations=describe,
    )
    assert check_reservation_filters(environment).outcome == outcome


def test_rejected_reservation_filter_is_different_and_named(tmp_path: Path) -> None:
    environment = build_environment(
        tmp_path,
        create_capacity_reservation={"CapacityReservation": {"CapacityReservationId": "cr-1", "OwnerId": "1"}},
        describe_capacity_reservations=make_client_error("InvalidParameterValue"),
    )
    observation = check_reservation_filters(environment)
    assert observation.outcome == "different"
    assert observation.evidence["tag key"] == "InvalidParameterValue"


@pytest.mark.parametrize(("after", "outcome"), [([], "as expected"), (["i-1"], "different")])
def test_orphan_is_as_expected_if_joiner_terminates_it(tmp_path: Path, after: list[str], outcome: str) -> None:
    environment = build_environment(
        tmp_path,
        create_fleet=launched("i-1"),
        describe_instances=answer_in_turn(described("i-1"), described("i-1"), described(*after)),
    )
    assert collect_orphan(environment).outcome == outcome


def test_orphan_has_the_tags_by_which_joiner_recognizes_its_instances(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    def create_fleet(**call: Any) -> Any:
        calls.append(call)
        return launched("i-1")

    environment = build_environment(
        tmp_path, create_fleet=create_fleet, describe_instances=answer_in_turn(described("i-1"), described())
    )
    collect_orphan(environment)
    [instance_tags] = [part["Tags"] for part in calls[0]["TagSpecifications"] if part["ResourceType"] == "instance"]
    tags = {tag["Key"]: tag["Value"] for tag in instance_tags}
    assert (tags["eks:eks-cluster-name"], tags["kubernetes.io/cluster/prod"]) == ("prod", "owned")
    assert {"karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass", "joiner-e2e"} <= tags.keys()
