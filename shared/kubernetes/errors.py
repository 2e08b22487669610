"""Classify responses of the API server: a document or a Fault, with a fix where one is known."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from shared.errors import (
    Conflict,
    EvictionRefused,
    Expired,
    Fault,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unreachable,
)

FUNCTIONS_CLUSTER_ROLE: Final = "joiner-functions"
"""The ClusterRole of the Lambda functions (rbac.yaml)."""
GROUP: Final = "joiner:functions"
"""The Kubernetes group the ClusterRole is bound to; the access entries of the functions' IAM roles name it."""
_MULTIPLE_BUDGETS_TEXT: Final = "more than one PodDisruptionBudget"
_BUDGET_TEXT: Final = "disruption budget"
_BUDGET_CAUSE_REASON: Final = "DisruptionBudget"

_FAULT_BY_STATUS_CODE: Final[dict[int, type[Fault]]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Expired,
}


class _Cause(msgspec.Struct, frozen=True, kw_only=True):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    causes: tuple[_Cause, ...] = ()


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a Status document that are read."""

    message: str = ""
    reason: str = ""
    details: _Details | None = None


def build_fault(
    call: str, code: int, body: bytes, headers: Mapping[str, str], find_fix: Callable[[int, str], str] | None = None
) -> Fault:
    """Return the Fault for a response with the unsuccessful status *code* to the request *call*.

    *find_fix* maps a status code and the server's message to a fix; the default is for requests of the Lambda
    functions.
    """
    status = _parse_status(body)
    fix = (find_fix or _find_fix)(code, status.message)
    message = f"{call}: {code} {status.message}".rstrip() + (f"; {fix}" if fix else "")
    if call.endswith("/eviction") and _is_refused_by_budgets(code, status):
        return EvictionRefused(message)
    if code in _FAULT_BY_STATUS_CODE:
        return _FAULT_BY_STATUS_CODE[code](message)
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(message, _parse_retry_after(headers))
    if HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR and code != HTTPStatus.REQUEST_TIMEOUT:
        return Invalid(message, status.reason)
    return Unreachable(message)


def is_success(code: int) -> bool:
    """Return whether *code* is a success status (2xx)."""
    return HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES


def check_json_document(call: str, data: bytes) -> bytes:
    """Return *data* if it is one complete JSON object.

    Raises:
        Unreachable: it is not; a truncated response proves nothing.
    """
    try:
        msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise Unreachable(f"{call}: the response is not a JSON object: {error}") from error
    return data


def _is_refused_by_budgets(code: int, status: _Status) -> bool:
    """Return whether PodDisruptionBudgets refuse an eviction.

    A 429 can also mean that the API server throttles; that proves nothing about budgets.
    """
    if code == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _MULTIPLE_BUDGETS_TEXT in status.message
    causes = status.details.causes if status.details is not None else ()
    has_budget_cause = any(cause.reason == _BUDGET_CAUSE_REASON for cause in causes)
    return code == HTTPStatus.TOO_MANY_REQUESTS and (has_budget_cause or _BUDGET_TEXT in status.message)


def _find_fix(code: int, message: str) -> str:
    """Return a fix for a refused request, "" if the message of the server is sufficient."""
    if code == HTTPStatus.UNAUTHORIZED:
        return f"create an access entry of the cluster for the role of the function, with the Kubernetes group {GROUP}"
    if "failed calling webhook" in message:
        return f"repair the webhook, or exclude the requests of the group {GROUP}"
    if "denied the request" in message or "denied request" in message:
        return f"let it admit the requests of the group {GROUP}"
    if code == HTTPStatus.FORBIDDEN and " cannot " in message:
        return f"the ClusterRole {FUNCTIONS_CLUSTER_ROLE}, bound to the group {GROUP}, must allow it: apply rbac.yaml"
    if code == HTTPStatus.TOO_MANY_REQUESTS and _BUDGET_TEXT not in message:
        return "if the error persists, check its flow schema and priority level"
    return ""


def _parse_status(data: bytes) -> _Status:
    try:
        return msgspec.json.decode(data, type=_Status)
    except msgspec.DecodeError:
        return _Status(message=data[:200].decode(errors="replace").strip())


def _parse_retry_after(headers: Mapping[str, str]) -> timedelta:
    seconds = headers.get("Retry-After", "")
    return timedelta(seconds=max(int(seconds), 1) if seconds.isdecimal() else 1)
