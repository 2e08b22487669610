"""The HTTP endpoint of a workspace: it checks the method, the headers, the signature and the size of each request."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

import msgspec
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sim.remote_write.workspace import RefusedSeries, Workspace
from sim.remote_write.write_request import MalformedBody, decode_write_request

MAX_BODY_BYTES: Final = 1024 * 1024
MAX_SIGNATURE_AGE: Final = timedelta(minutes=5)
REQUIRED_HEADERS: Final = {
    "content-encoding": "snappy",
    "content-type": "application/x-protobuf",
    "x-prometheus-remote-write-version": "0.1.0",
}
_SIGNATURE_HEADERS: Final = frozenset({"host", "x-amz-date"})


class RefusedRequest(Exception):
    """The request is refused; *status* is the HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        """Set the status and the message."""
        super().__init__(message)
        self.status = status


class EndpointResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response, with the attributes of botocore's."""

    status_code: int
    content: bytes = b""


class WorkspaceEndpoint:
    """Responds to requests as botocore prepares them, or as an HTTP server receives them."""

    def __init__(
        self,
        workspace: Workspace,
        credentials: Credentials,
        region: str,
        get_signing_time: Callable[[], datetime] | None = None,
    ) -> None:
        """Accept requests that *credentials* signed for *region*.

        *get_signing_time* is the time with which the age of signatures is checked; None: it is not checked.
        """
        self._workspace, self._credentials, self._region = workspace, credentials, region
        self._get_signing_time = get_signing_time

    def send(self, request: Any) -> EndpointResponse:  # noqa: ANN401 - a prepared request of botocore
        """Return the response to a prepared request of botocore."""
        headers = {
            key: value.decode() if isinstance(value, bytes) else value for key, value in dict(request.headers).items()
        }
        return self.respond(request.method, request.url, headers, request.body)

    def respond(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> EndpointResponse:
        """Return the response to a request: 200 if all its samples are kept, otherwise the reason."""
        try:
            self._check_request(method, url, {key.lower(): value for key, value in headers.items()}, body)
            self._workspace.receive(decode_write_request(body))
        except RefusedRequest as refusal:
            return EndpointResponse(status_code=refusal.status, content=str(refusal).encode())
        except (MalformedBody, RefusedSeries) as error:
            return EndpointResponse(status_code=HTTPStatus.BAD_REQUEST, content=str(error).encode())
        return EndpointResponse(status_code=HTTPStatus.OK)

    def _check_request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        if method != "POST":
            raise RefusedRequest(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not allowed")
        self._check_signature(url, headers, body)
        for name, value in REQUIRED_HEADERS.items():
            if headers.get(name) != value:
                raise RefusedRequest(
                    HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"{name} is {headers.get(name)!r}: must be {value}"
                )
        if len(body) > MAX_BODY_BYTES:
            raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has {len(body)} bytes")

    def _check_signature(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        authorization = headers.get("authorization", "")
        if not authorization:
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "Missing Authentication Token")
        signed_names = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        if not set(signed_names) >= _SIGNATURE_HEADERS:
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "the host and the date are not signed")
        token = self._credentials.token
        if headers.get("x-amz-security-token") != token:
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "The security token included in the request is invalid.")
        timestamp = headers["x-amz-date"]
        self._check_age(timestamp)
        signer = SigV4Auth(self._credentials, "aps", self._region)
        request = AWSRequest(
            method="POST", url=url, data=body, headers={name: headers[name] for name in signed_names if name != "host"}
        )
        request.context["timestamp"] = timestamp
        signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        scope = f"Credential={signer.scope(request)},"
        if scope not in authorization or not authorization.endswith(f"Signature={signature}"):
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "The request signature we calculated does not match.")

    def _check_age(self, timestamp: str) -> None:
        if self._get_signing_time is None:
            return
        signed_at = datetime.strptime(timestamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(self._get_signing_time() - signed_at) > MAX_SIGNATURE_AGE:
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "Signature expired")
