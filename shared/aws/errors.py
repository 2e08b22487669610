"""What AWS says went wrong, as one of our faults: classified once, by AWS's error code.

Order matters. A throttle is a throttle even with status 503, and a refusal that names its reason beats the status.
Whatever is not an answer of the service (time-outs, refused connections, undecodable bodies) is `Unreachable`.
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

from shared.errors import Conflict, Fault, Forbidden, Gone, InsufficientCapacity, Invalid, Throttled, Unreachable

_THROTTLED: Final = frozenset(
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
_CONFLICT: Final = frozenset(
    {
        "ConditionalCheckFailed",
        "ConditionalCheckFailedException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_FORBIDDEN: Final = re.compile(
    r"(Unauthorized|AccessDenied|AuthFailure|ExpiredToken|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|"
    r"AuthorizationError|KMSAccessDenied|KMSDisabled|KMSInvalidState|KMSNotFound|KMSOptInRequired|MissingAuthenticationToken|OptInRequired|PendingVerification|RequestExpired|InvalidAccessKeyId|Blocked$)"
)
_GONE: Final = re.compile(
    r"\.NotFound|NotFoundException$|^(NoSuch|NotFound$|ParameterNotFound|404$)|NonExistentQueue$|QueueDoesNotExist"
)
_TAKEN: Final = re.compile(r"AlreadyExists|AlreadyOwnedByYou")
_NO_CAPACITY: Final = re.compile(r"^Insufficient.*Capacity$")


def code_of(error: ClientError) -> str:
    """Answer AWS's code, as ``InvalidInstanceID.NotFound``."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def faults(call: str) -> Iterator[None]:
    """Turn what boto3 raises inside into a `shared.errors.Fault`; *call* names the call and the object."""
    try:
        yield
    except ClientError as error:
        raise _fault(error, call) from error
    except ParamValidationError as error:
        raise Invalid(f"{call}: {error}", code="ParamValidation") from error
    except (NoCredentialsError, PartialCredentialsError, NoRegionError) as error:
        raise Forbidden(f"{call}: {error}") from error
    except (BotoCoreError, ResponseParserError) as error:
        raise Unreachable(f"{call}: {error}") from error


def _fault(error: ClientError, call: str) -> Fault:
    codes = _codes(error)
    detail: Any = error.response.get("Error", {})
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
    return classified(codes, status, f"{call}: {', '.join(codes)}: {detail.get('Message', '')}")


def classified(codes: tuple[str, ...], status: int, message: str) -> Fault:
    """Answer the fault that *codes* (several, for a cancelled transaction) and the HTTP *status* stand for."""
    if any(code in _CONFLICT or _TAKEN.search(code) for code in codes):
        return Conflict(message)
    if any(code in _THROTTLED for code in codes):
        return Throttled(message)
    if any(_FORBIDDEN.match(code) for code in codes):
        return Forbidden(message)
    if any(_GONE.search(code) for code in codes):
        return Gone(message)
    if any(_NO_CAPACITY.match(code) for code in codes):
        return InsufficientCapacity(message)
    return _by_status(status, message, codes[0])


def _by_status(status: int, message: str, code: str) -> Fault:
    if status >= 500:  # noqa: PLR2004 - HTTP: the server's fault
        return Unreachable(message)
    match status:
        case 401 | 403:
            return Forbidden(message)
        case 404:
            return Gone(message)
        case 429:
            return Throttled(message)
        case _:
            return Invalid(message, code=code)


def _codes(error: ClientError) -> tuple[str, ...]:
    """Answer the code; for a cancelled transaction the codes of its parts, which say more."""
    reasons = error.response.get("CancellationReasons", ())
    parts = tuple(sorted({str(reason["Code"]) for reason in reasons if reason.get("Code", "None") != "None"}))
    return parts or (code_of(error),)
