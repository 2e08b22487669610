"""The checks of a request: host, origin and token. A page of another site must neither read nor call the server."""

from collections.abc import Iterable
from hmac import compare_digest
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

TOKEN_HEADER: Final = "X-Joiner-Token"  # noqa: S105 - the name of a header
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost")
MAX_BODY_BYTES: Final = 1024**2
MAX_URL_CHARACTERS: Final = 4096


class RejectedRequest(Exception):
    """The request is not served; the message is safe to return."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        """Reject with *status* and *message*."""
        super().__init__(message)
        self.status = status


def check_host(host: str, port: int) -> None:
    """Check that *host*, the Host header, is this server: another name could be rebound to 127.0.0.1.

    Raises:
        RejectedRequest: it is another name, or it has another port.
    """
    if host not in _list_hosts(port):
        raise RejectedRequest(
            HTTPStatus.FORBIDDEN, f"unknown host: open http://127.0.0.1:{port} with the token that joiner ui printed"
        )


def check_origin(origin: str | None, fetch_site: str | None, port: int) -> None:
    """Check the Origin and Sec-Fetch-Site headers; both are absent in requests that no page makes.

    Raises:
        RejectedRequest: a page of another origin makes the request.
    """
    is_foreign_origin = origin is not None and origin not in {f"http://{host}" for host in _list_hosts(port)}
    if is_foreign_origin or fetch_site in ("cross-site", "same-site"):
        raise RejectedRequest(HTTPStatus.FORBIDDEN, "requests of other origins are not served")


def _list_hosts(port: int) -> set[str]:
    return {f"{name}:{port}" for name in LOOPBACK_NAMES}


def check_token(sent_token: str | None, token: str) -> None:
    """Check *sent_token*, in constant time.

    Raises:
        RejectedRequest: it is missing or wrong.
    """
    if sent_token is None or not compare_digest(sent_token.encode(), token.encode()):
        raise RejectedRequest(
            HTTPStatus.UNAUTHORIZED, "missing or wrong token: open the address that joiner ui printed"
        )


def parse_query(target: str) -> tuple[str, dict[str, str]]:
    """Return the path and the query parameters of *target*; the first value of each parameter.

    Raises:
        RejectedRequest: *target* is too long.
    """
    if len(target) > MAX_URL_CHARACTERS:
        raise RejectedRequest(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long")
    path, _, query = target.partition("?")
    return path, {name: values[0] for name, values in parse_qs(query).items()}


def check_body_length(lengths: Iterable[str], transfer_encoding: str | None) -> int:
    """Return the length of the body in bytes, from the Content-Length headers.

    Raises:
        RejectedRequest: there is not exactly one valid length, or it exceeds `MAX_BODY_BYTES`.
    """
    values = list(lengths)
    if transfer_encoding is not None or len(values) != 1 or not (values[0].isascii() and values[0].isdecimal()):
        raise RejectedRequest(HTTPStatus.LENGTH_REQUIRED, "a body needs exactly one Content-Length")
    if len(values[0]) > len(str(MAX_BODY_BYTES)) or int(values[0]) > MAX_BODY_BYTES:
        raise RejectedRequest(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MAX_BODY_BYTES // 1024} KiB"
        )
    return int(values[0])
