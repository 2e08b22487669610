"""Prometheus remote write over HTTP; requests to Amazon Managed Service for Prometheus are signed."""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import NoCredentialsError
from botocore.httpsession import URLLib3Session

from shared.aws.errors import classify_error, translate_errors
from shared.settings_text import WORKSPACE_URL

SIGNED_SERVICE: Final = "aps"
HEADERS: Final = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "User-Agent": "joiner",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
CONNECT_TIMEOUT_SECONDS: Final = 2
READ_TIMEOUT_SECONDS: Final = 5
_MAX_ANSWER_BYTES: Final = 200


class RemoteWriteEndpoint:
    """`shared.ports.remote_write.RemoteWrite` over HTTP."""

    def __init__(
        self,
        url: str,
        get_credentials: Callable[[], Any],
        send: Callable[[Any], Any] | None = None,
    ) -> None:
        """Write to *url*; no call is made yet.

        *get_credentials* returns the credentials of botocore, which are used if *url* is that of a workspace of Amazon
        Managed Service for Prometheus. *send* sends a prepared request of botocore; None: over HTTP.
        """
        self._url, self._get_credentials = url, get_credentials
        workspace = WORKSPACE_URL.fullmatch(url)
        self._signed_region = workspace["region"] if workspace is not None else ""
        self._session = URLLib3Session(timeout=(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS))
        self._send = send if send is not None else self._session.send
        self._call = f"remote write to {urlsplit(url).hostname}"

    def write(self, body: bytes) -> None:
        """Post *body* in one attempt, without following redirects.

        Raises:
            Fault: the endpoint did not accept all samples, or did not respond.
        """
        request = AWSRequest(method="POST", url=self._url, data=body, headers=HEADERS)
        with translate_errors(self._call):
            if self._signed_region:
                credentials = self._get_credentials()
                if credentials is None:
                    raise NoCredentialsError
                SigV4Auth(credentials, SIGNED_SERVICE, self._signed_region).add_auth(request)
            response = self._send(request.prepare())
        if not 200 <= response.status_code < 300:  # noqa: PLR2004 - HTTP: success
            # The charset of the answer may be wrong or unknown, and response.text would raise an error.
            answer = " ".join(response.content[:_MAX_ANSWER_BYTES].decode(errors="replace").split())
            status = response.status_code
            raise classify_error((str(status),), status, f"{self._call}: HTTP {status}: {answer}")

    def close_idle_connections(self) -> None:
        """Close the connections; the next write opens a new one."""
        self._session.close()
