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
