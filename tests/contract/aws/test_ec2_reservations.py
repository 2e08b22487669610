"""DescribeCapacityReservations of the emulated EC2 rejects what AWS rejects."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from shared.model.ec2.account import CapacityReservation
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.contract.http_face import get_clients, get_embedded_aws

MISSING_ID = "cr-0bbbbbbbbbbbbbbbb"
BY_ID = {"Filters": [{"Name": "capacity-reservation-id", "Values": [MISSING_ID]}]}


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        (BY_ID, "InvalidParameterValue"),
        ({"CapacityReservationIds": [MISSING_ID]}, "InvalidCapacityReservationId.NotFound"),
        ({"CapacityReservationIds": [MISSING_ID], "MaxResults": 5}, "InvalidParameterCombination"),
    ],
)
def test_a_query_that_aws_rejects_is_rejected(parameters: dict[str, Any], code: str) -> None:
    get_embedded_aws().reset(Cloud(Clock()))
    with pytest.raises(ClientError) as error:
        get_clients().get_retrying_client("ec2").describe_capacity_reservations(**parameters)
    assert error.value.response["Error"]["Code"] == code


@pytest.mark.loopback
def test_a_query_by_id_returns_that_reservation_alone() -> None:
    cloud = Cloud(Clock())
    get_embedded_aws().reset(cloud)
    ids = [
        cloud.reservations.add(CapacityReservation(reservation_id="", instance_type=name, zone="us-east-1a"))
        for name in ("m5.large", "m5.xlarge")
    ]
    client = get_clients().get_retrying_client("ec2")
    response = client.describe_capacity_reservations(CapacityReservationIds=ids[1:])
    assert [item["CapacityReservationId"] for item in response["CapacityReservations"]] == ids[1:]


@pytest.mark.loopback
def test_created_reservation_is_described_until_it_is_cancelled() -> None:
    cloud = Cloud(Clock())
    get_embedded_aws().reset(cloud)
    client = get_clients().get_retrying_client("ec2")
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "team", "Value": "platform"}]}]
    call = {"InstanceType": "m5.large", "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-east-1a"}
    created = client.create_capacity_reservation(
        **call, InstanceCount=2, InstanceMatchCriteria="targeted", TagSpecifications=tags
    )["CapacityReservation"]
    assert (created["AvailableInstanceCount"], created["InstanceMatchCriteria"]) == (2, "targeted")
    filters = [{"Name": "tag:team", "Values": ["platform"]}]
    [described] = client.describe_capacity_reservations(Filters=filters)["CapacityReservations"]
    assert described == created
    client.cancel_capacity_reservation(CapacityReservationId=created["CapacityReservationId"])
    assert client.describe_capacity_reservations(Filters=filters)["CapacityReservations"] == []


@pytest.mark.loopback
def test_reservation_of_an_offering_that_does_not_exist_is_rejected() -> None:
    get_embedded_aws().reset(Cloud(Clock()))
    client = get_clients().get_retrying_client("ec2")
    with pytest.raises(ClientError, match="Unsupported"):
        client.create_capacity_reservation(
            InstanceType="m5.large", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1z", InstanceCount=1
        )
    with pytest.raises(ClientError, match=r"InvalidCapacityReservationId\.NotFound"):
        client.cancel_capacity_reservation(CapacityReservationId=MISSING_ID)
