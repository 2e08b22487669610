"""Zonal shifts and autoshifts, on every face of the cloud."""

from datetime import timedelta

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from shared.errors import Invalid, NotFound
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.contract.http_face import get_clients, get_embedded_aws
from tests.contract.memory_face import Face

HOUR = timedelta(hours=1)


def test_shift_is_returned_until_it_expires(aws: Face) -> None:
    shifts, now = aws.cloud.zonal_shifts, aws.cloud.clock.get_time()
    shifts.enable()
    assert aws.zonal_shifts.get_zonal_shifts(shifts.cluster_arn) == ()
    shift = shifts.start_shift("us-east-1b", now, HOUR)
    assert shift.zone_id == "use1-az2"
    assert aws.zonal_shifts.get_zonal_shifts(shifts.cluster_arn) == (shift,)
    aws.cloud.clock.advance(HOUR)
    assert aws.zonal_shifts.get_zonal_shifts(shifts.cluster_arn) == ()


def test_autoshift_has_no_end_and_yields_to_the_shift_of_a_user(aws: Face) -> None:
    shifts, now = aws.cloud.zonal_shifts, aws.cloud.clock.get_time()
    shifts.enable()
    shifts.start_autoshift("us-east-1a", now)
    [autoshift] = aws.zonal_shifts.get_zonal_shifts(shifts.cluster_arn)
    assert (autoshift.zone_id, autoshift.expires_at, autoshift.started_at) == ("use1-az1", None, now)
    shift = shifts.start_shift("us-east-1c", now, HOUR)
    assert aws.zonal_shifts.get_zonal_shifts(shifts.cluster_arn) == (shift,)
    shifts.cancel_shift()
    shifts.end_autoshift()
    assert aws.zonal_shifts.get_zonal_shifts(shifts.cluster_arn) == ()


@pytest.mark.parametrize("is_enabled", [False, True])
def test_resource_that_arc_does_not_manage_is_not_found(aws: Face, *, is_enabled: bool) -> None:
    shifts = aws.cloud.zonal_shifts
    if is_enabled:
        shifts.enable()
    with pytest.raises(NotFound):
        aws.zonal_shifts.get_zonal_shifts(f"{shifts.cluster_arn}-other" if is_enabled else shifts.cluster_arn)


@pytest.mark.parametrize("hours", [0, 73])
def test_shift_that_arc_does_not_accept_is_not_started(hours: int) -> None:
    cloud = Cloud(Clock())
    with pytest.raises(NotFound):
        cloud.zonal_shifts.start_shift("us-east-1a", cloud.clock.get_time(), HOUR)
    cloud.zonal_shifts.enable()
    with pytest.raises(Invalid):
        cloud.zonal_shifts.start_shift("us-east-1a", cloud.clock.get_time(), timedelta(hours=hours))
    cloud.zonal_shifts.start_shift("us-east-1a", cloud.clock.get_time(), HOUR)
    with pytest.raises(Invalid):
        cloud.zonal_shifts.start_shift("us-east-1b", cloud.clock.get_time(), HOUR)


@pytest.mark.loopback
@pytest.mark.parametrize(
    "identifier", ["short", "arn:aws:eks:eu-west-1:123456789012:cluster/joiner", "arn:aws:ec2:us-east-1:x:instance/i"]
)
def test_identifier_that_aws_rejects_is_rejected(identifier: str) -> None:
    get_embedded_aws().reset(Cloud(Clock()))
    with pytest.raises((ClientError, ParamValidationError)) as error:
        get_clients().get_retrying_client("arc-zonal-shift").get_managed_resource(resourceIdentifier=identifier)
    assert isinstance(error.value, ParamValidationError) or (
        error.value.response["Error"]["Code"] == "ValidationException"
    )
