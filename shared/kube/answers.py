"""What the API server answered: a document, or a Fault. Classified here, once."""

from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from shared.errors import Conflict, EvictionRefused, Expired, Fault, Forbidden, Gone, Invalid, Throttled, Unreachable

_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"

_FAULTS: Final[dict[int, type[Fault]]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: Gone,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Expired,
}


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a Status document that are read."""

    message: str = ""
    reason: str = ""


def fault_from(call: str, code: int, body: bytes, headers: Mapping[str, str]) -> Fault:
    """Answer what an answer with *code*, which is no success, means for whoever made *call*."""
    status = _status(body)
    message = f"{call}: {code} {status.message}".rstrip()
    is_eviction = call.endswith("/eviction")
    if code in _FAULTS:
        return _FAULTS[code](message)
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return EvictionRefused(message) if is_eviction else Throttled(message, _retry_after(headers))
    if code == HTTPStatus.INTERNAL_SERVER_ERROR and is_eviction and _SEVERAL_BUDGETS in status.message:
        return EvictionRefused(message)
    if HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR and code != HTTPStatus.REQUEST_TIMEOUT:
        return Invalid(message, status.reason)
    return Unreachable(message)


def is_success(code: int) -> bool:
    """Whether *code* is one of success."""
    return HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES


def document(call: str, data: bytes) -> bytes:
    """Answer *data* if it is one whole JSON document.

    Raises:
        Unreachable: it is not; an answer that was cut off says nothing.
    """
    try:
        msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise Unreachable(f"{call}: the answer is no JSON object: {error}") from error
    return data


def _status(data: bytes) -> _Status:
    try:
        return msgspec.json.decode(data, type=_Status)
    except msgspec.DecodeError:
        return _Status(message=data[:200].decode(errors="replace"))


def _retry_after(headers: Mapping[str, str]) -> timedelta:
    wished = headers.get("Retry-After", "")
    return timedelta(seconds=max(int(wished), 1) if wished.isdecimal() else 1)
