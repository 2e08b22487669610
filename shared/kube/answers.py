"""What the API server answered: a document, or a Fault. Classified here, once, with what helps where that is known."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from shared.errors import Conflict, EvictionRefused, Expired, Fault, Forbidden, Gone, Invalid, Throttled, Unreachable

ROLE: Final = "joiner-functions"
"""The ClusterRole of the functions (rbac.yaml)."""
GROUP: Final = "joiner:functions"
"""Whom it is bound to: what the access entries of the functions' roles say."""
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"
_BUDGET: Final = "disruption budget"
_BUDGET_CAUSE: Final = "DisruptionBudget"

_FAULTS: Final[dict[int, type[Fault]]] = {
    HTTPStatus.UNAUTHORIZED: Forbidden,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: Gone,
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


def fault_from(
    call: str, code: int, body: bytes, headers: Mapping[str, str], helps: Callable[[int, str], str] | None = None
) -> Fault:
    """Answer what an answer with *code*, which is no success, means for whoever made *call*.

    *helps* says what to do for a code and the server's words; without it a function asks.
    """
    status = _status(body)
    remedy = (helps or _remedy)(code, status.message)
    message = f"{call}: {code} {status.message}".rstrip() + (f"; {remedy}" if remedy else "")
    if call.endswith("/eviction") and _is_refused_by_budgets(code, status):
        return EvictionRefused(message)
    if code in _FAULTS:
        return _FAULTS[code](message)
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(message, _retry_after(headers))
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


def _is_refused_by_budgets(code: int, status: _Status) -> bool:
    """Whether budgets refuse an eviction; the API server may also have no time for it, which says nothing of them."""
    if code == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _SEVERAL_BUDGETS in status.message
    causes = status.details.causes if status.details is not None else ()
    named = any(cause.reason == _BUDGET_CAUSE for cause in causes)
    return code == HTTPStatus.TOO_MANY_REQUESTS and (named or _BUDGET in status.message)


def _remedy(code: int, message: str) -> str:
    """Say what helps against a refusal, "" where the server's own words have to do."""
    if code == HTTPStatus.UNAUTHORIZED:
        return f"give the function's role an access entry of the cluster with the Kubernetes group {GROUP}"
    if "failed calling webhook" in message:
        return f"repair the webhook, or let it pass over what the group {GROUP} writes"
    if "denied the request" in message or "denied request" in message:
        return f"let it admit what the group {GROUP} writes"
    if code == HTTPStatus.FORBIDDEN and " cannot " in message:
        return f"the ClusterRole {ROLE}, bound to the group {GROUP}, has to allow it: apply rbac.yaml"
    if code == HTTPStatus.TOO_MANY_REQUESTS and _BUDGET not in message:
        return "look for the flow schema and priority level that it counts for, if it stays so"
    return ""


def _status(data: bytes) -> _Status:
    try:
        return msgspec.json.decode(data, type=_Status)
    except msgspec.DecodeError:
        return _Status(message=data[:200].decode(errors="replace").strip())


def _retry_after(headers: Mapping[str, str]) -> timedelta:
    wished = headers.get("Retry-After", "")
    return timedelta(seconds=max(int(wished), 1) if wished.isdecimal() else 1)
