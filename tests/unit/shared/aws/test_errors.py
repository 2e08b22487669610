"""AWS's words for what went wrong, and ours."""

from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from shared.aws.errors import translate_errors
from shared.errors import Conflict, Fault, Forbidden, InsufficientCapacity, Invalid, NotFound, Throttled, Unreachable

URL = "https://ec2.us-east-1.amazonaws.com"


def make_client_error(code: str, status: int = 400, **fields: Any) -> ClientError:
    metadata = {"ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError({"Error": {"Code": code, "Message": "words"}, **metadata, **fields}, "Call")


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("RequestLimitExceeded", 503, Throttled),
        ("Throttling", 400, Throttled),
        ("ThrottlingException", 400, Throttled),
        ("ProvisionedThroughputExceededException", 400, Throttled),
        ("SlowDown", 503, Throttled),
        ("Whatever", 429, Throttled),
        ("UnauthorizedOperation", 403, Forbidden),
        ("AccessDenied", 403, Forbidden),
        ("AccessDeniedException", 400, Forbidden),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", 403, Forbidden),
        ("ExpiredTokenException", 400, Forbidden),
        ("UnrecognizedClientException", 400, Forbidden),
        ("Whatever", 401, Forbidden),
        ("Whatever", 403, Forbidden),
        ("InvalidInstanceID.NotFound", 400, NotFound),
        ("InvalidLaunchTemplateName.NotFoundException", 400, NotFound),
        ("InvalidLaunchTemplateId.NotFound", 400, NotFound),
        ("ResourceNotFoundException", 404, NotFound),
        ("ParameterNotFound", 400, NotFound),
        ("NoSuchKey", 404, NotFound),
        ("404", 404, NotFound),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, NotFound),
        ("Whatever", 404, NotFound),
        ("ConditionalCheckFailedException", 400, Conflict),
        ("TransactionConflictException", 400, Conflict),
        ("InvalidLaunchTemplateName.AlreadyExistsException", 400, Conflict),
        ("InsufficientInstanceCapacity", 500, InsufficientCapacity),
        ("InternalError", 500, Unreachable),
        ("ServiceUnavailable", 503, Unreachable),
        ("InvalidParameterValue", 400, Invalid),
        ("ValidationException", 400, Invalid),
        ("IdempotentParameterMismatch", 400, Invalid),
        ("VcpuLimitExceeded", 400, Invalid),
        ("InvalidInstanceID.Malformed", 400, Invalid),
    ],
)
def test_error_code_and_http_status_map_to_one_fault(code: str, status: int, fault: type[Fault]) -> None:
    with pytest.raises(Fault, match=f"ec2:Call i-1: {code}: words") as raised, translate_errors("ec2:Call i-1"):
        raise make_client_error(code, status)
    assert type(raised.value) is fault


def test_invalid_fault_has_the_aws_error_code() -> None:
    with pytest.raises(Invalid) as raised, translate_errors("ec2:Call"):
        raise make_client_error("InvalidParameterValue")
    assert raised.value.code == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("reasons", "fault"),
    [
        (["ConditionalCheckFailed", "None"], Conflict),
        (["None", "TransactionConflict"], Conflict),
        (["None", "ThrottlingError"], Throttled),
        (["ValidationError", "None"], Invalid),
        ([], Invalid),
    ],
)
def test_cancelled_transaction_maps_to_the_fault_of_its_cancellation_reason(
    reasons: list[str], fault: type[Fault]
) -> None:
    with pytest.raises(Fault) as raised, translate_errors("dynamodb:TransactWriteItems"):
        raise make_client_error(
            "TransactionCanceledException", CancellationReasons=[{"Code": code} for code in reasons]
        )
    assert type(raised.value) is fault


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (EndpointConnectionError(endpoint_url=URL), Unreachable),
        (ConnectTimeoutError(endpoint_url=URL), Unreachable),
        (ReadTimeoutError(endpoint_url=URL), Unreachable),
        (BotoCoreError(), Unreachable),
        (ResponseParserError("no XML"), Unreachable),
        (NoCredentialsError(), Forbidden),
        (ParamValidationError(report="no"), Invalid),
    ],
)
def test_client_side_errors_are_translated_to_faults(error: Exception, fault: type[Fault]) -> None:
    with pytest.raises(Fault) as raised, translate_errors("ec2:Call"):
        raise error
    assert type(raised.value) is fault
    assert raised.value.__cause__ is error


def test_error_without_details_is_invalid() -> None:
    with pytest.raises(Invalid), translate_errors("ec2:Call"):
        raise ClientError({}, "Call")


def test_other_python_exceptions_are_not_translated() -> None:
    with pytest.raises(KeyError), translate_errors("ec2:Call"):
        raise KeyError("ours")
