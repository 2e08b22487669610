"""Classification of AWS errors by error code, done once, into the faults of `shared.errors`.

The order matters. A throttling error is `Throttled` even with status 503, and an error code with a specific reason
takes precedence over the HTTP status. An error that is no response of the service (timeout, refused connection,
undecodable body) is `Unreachable`.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from shared.errors import Conflict, Fault, Forbidden, InsufficientCapacity, Invalid, NotFound, Throttled, Unreachable

_THROTTLING_CODES: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_CONFLICT_CODES: Final = frozenset(
    {
        "ConditionalCheckFailed",
        "ConditionalCheckFailedException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_FORBIDDEN_CODE: Final = re.compile(
    r"(Unauthorized|AccessDenied|AuthFailure|ExpiredToken|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|"
    r"AuthorizationError|KMSAccessDenied|KMSDisabled|KMSInvalidState|KMSNotFound|KMSOptInRequired|MissingAuthenticationToken|OptInRequired|PendingVerification|RequestExpired|InvalidAccessKeyId|Blocked$)"
)
_NOT_FOUND_CODE: Final = re.compile(
    r"\.NotFound|NotFoundException$|^(NoSuch|NotFound$|ParameterNotFound|404$)|NonExistentQueue$|QueueDoesNotExist"
)
_NAME_TAKEN_CODE: Final = re.compile(r"AlreadyExists|AlreadyOwnedByYou")
_INSUFFICIENT_CAPACITY_CODE: Final = re.compile(r"^Insufficient.*Capacity$")


def get_error_code(error: ClientError) -> str:
    """Return AWS's error code, such as ``InvalidInstanceID.NotFound``."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def translate_errors(call: str) -> Iterator[None]:
    """Convert boto3's exceptions in the with block to a `shared.errors.Fault`; *call* names the call and the object."""
    try:
        yield
    except ClientError as error:
        raise _build_fault(error, call) from error
    except ParamValidationError as error:
        raise Invalid(f"{call}: {error}", code="ParamValidation") from error
    except (NoCredentialsError, PartialCredentialsError, NoRegionError) as error:
        raise Forbidden(f"{call}: {error}") from error
    except (BotoCoreError, ResponseParserError) as error:
        raise Unreachable(f"{call}: {error}") from error


def _build_fault(error: ClientError, call: str) -> Fault:
    codes = _list_error_codes(error)
    detail: Any = error.response.get("Error", {})
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
    return classify_error(codes, status, f"{call}: {', '.join(codes)}: {detail.get('Message', '')}")


def classify_error(codes: tuple[str, ...], status: int, message: str) -> Fault:
    """Return the fault for *codes* (several for a canceled transaction) and the HTTP *status*."""
    if any(code in _CONFLICT_CODES or _NAME_TAKEN_CODE.search(code) for code in codes):
        return Conflict(message)
    if any(code in _THROTTLING_CODES for code in codes):
        return Throttled(message)
    if any(_FORBIDDEN_CODE.match(code) for code in codes):
        return Forbidden(message)
    if any(_NOT_FOUND_CODE.search(code) for code in codes):
        return NotFound(message)
    if any(_INSUFFICIENT_CAPACITY_CODE.match(code) for code in codes):
        return InsufficientCapacity(message)
    return _classify_by_status(status, message, codes[0])


def _classify_by_status(status: int, message: str, code: str) -> Fault:
    if status >= 500:  # noqa: PLR2004 - HTTP: the server's fault
        return Unreachable(message)
    match status:
        case 401 | 403:
            return Forbidden(message)
        case 404:
            return NotFound(message)
        case 429:
            return Throttled(message)
        case _:
            return Invalid(message, code=code)


def _list_error_codes(error: ClientError) -> tuple[str, ...]:
    """Return the error code; for a canceled transaction, the codes of its parts, which are more specific."""
    reasons = error.response.get("CancellationReasons", ())
    parts = tuple(sorted({str(reason["Code"]) for reason in reasons if reason.get("Code", "None") != "None"}))
    return parts or (get_error_code(error),)
