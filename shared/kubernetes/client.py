"""Kubernetes client of the functions, over raw requests of the official client library.

Every response is classified here, once. A missing response (a timeout, a refused connection, a truncated document) is
`Unreachable` and never taken for an empty list. A rejected token is renewed once. If the server throttles, the client
backs off. A read on a connection that the server closed while it was idle is repeated once, on a new connection; a
write is not, because the server may have performed it.
"""

import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from threading import Lock, local
from typing import Final
from urllib.parse import urlencode

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import TimeoutError as UrllibTimeoutError

from shared.errors import Expired, Fault, Invalid, Throttled, Unreachable
from shared.kubernetes.backoff import Backoff
from shared.kubernetes.errors import build_fault, check_json_document, is_success
from shared.kubernetes.raw_api_client import JSON_CONTENT_TYPE, RawApiClient, build_configuration
from shared.kubernetes.watch_stream import CollectionHead, parse_head, read_changes
from shared.ports.kubernetes import WatchEvents
from shared.ports.tracing import OpenSegment, open_no_segment
from shared.wire.paths import build_list_path, is_object

_DEFAULT_TIMEOUT: Final = timedelta(seconds=10)
_DEFAULT_QUIET_TIMEOUT: Final = timedelta(milliseconds=100)
_MAX_WATCH_TIMEOUT: Final = timedelta(seconds=30)
MAX_CONNECTIONS: Final = 16
"""Connections to the API server that stay open, and therefore the largest number of calls that may run at once.

The priority level of the functions (`shared/installer/priority.yaml`) has 10 of 255 shares of an API server that runs
600 requests at once: 23 seats. 16 writes leave a third of them to the other functions, and no request waits in a queue.
"""
_MAX_CONCURRENT_WATCHES: Final = 16
"""More than the number of kinds that are watched."""
_MERGE_PATCH_CONTENT_TYPE: Final = "application/merge-patch+json"


class KubeClient:
    """Client of one API server, an implementation of `shared.ports.kubernetes.Kube`. Safe to share between threads."""

    def __init__(
        self,
        endpoint: str,
        *,
        certificate_authority: str = "",
        token: Callable[[], str] | None = None,
        renew: Callable[[], None] | None = None,
        backoff: Backoff | None = None,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        quiet_timeout: timedelta = _DEFAULT_QUIET_TIMEOUT,
        open_segment: OpenSegment = open_no_segment,
    ) -> None:
        """Configure the client for *endpoint* (``https://host``); no connection is opened yet.

        *certificate_authority* is PEM in base64, as EKS returns it (empty: the system's authorities). *token* is
        called before every request, and again after *renew* if the server rejected the token. *backoff* (None: none)
        applies to all requests and outlives a call. *timeout* limits connecting and each pause while reading. A watch
        that is silent for *quiet_timeout* has delivered all its events. Each call is a segment of the trace that
        *open_segment* opens. The environment sets the proxy.
        """
        self._endpoint = endpoint.rstrip("/")
        self._configuration = build_configuration(
            self._endpoint,
            authority_pem=b64decode(certificate_authority).decode() if certificate_authority else None,
            token=self._read_token if token is not None else None,
            max_connections=MAX_CONNECTIONS,
        )
        self._api = self._build_api_client()
        self._watch_api_by_path: dict[str, RawApiClient] = {}
        self._watch_executor = ThreadPoolExecutor(_MAX_CONCURRENT_WATCHES, "watch")
        self._quiet_seconds = quiet_timeout.total_seconds()
        self._token, self._renew, self._rejected_token = token, renew, ""
        self._token_lock, self._sent_token = Lock(), local()
        self._backoff = backoff if backoff is not None else Backoff()
        self._timeout, self._open_segment = timeout, open_segment

    def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        """GET one page of a collection."""
        page_path = build_list_path(
            path,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        return self._call("GET", page_path)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        """GET the head of a collection now, and the changes up to it on the same connection, in a thread."""
        if not since.isdecimal():
            raise Invalid(f"GET {path}: {since!r} is not a resourceVersion", "BadRequest")
        api = self._watch_api_by_path.get(path) or self._watch_api_by_path.setdefault(path, self._build_api_client())
        call = f"{path}?limit=1"
        head = parse_head(call, self._call("GET", call, watch_api=api))
        if head.version < int(since):
            raise Expired(f"GET {path}: {since} is in the future, the server is at {head.version}")
        if head.version == int(since):
            return lambda: WatchEvents(version=since, count=head.count)
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(int(_MAX_WATCH_TIMEOUT.total_seconds())),
        } | ({"fieldSelector": field_selector} if field_selector else {})
        watch_path = f"{path}?{urlencode(query)}"
        return self._watch_executor.submit(self._read_changes, api, watch_path, int(since), head).result

    def read(self, path: str) -> bytes:
        """GET one object."""
        return self._call("GET", path)

    def create(self, path: str, body: bytes) -> bytes:
        """POST an object to a collection or a subresource."""
        return self._call("POST", path, body)

    def patch(self, path: str, body: bytes) -> bytes:
        """PATCH an object with a JSON merge patch."""
        return self._call("PATCH", path, body, _MERGE_PATCH_CONTENT_TYPE)

    def delete(self, path: str, body: bytes = b"") -> None:
        """DELETE one object; a path to a collection is refused because the API server would empty the collection."""
        if not is_object(path):
            raise Invalid(f"DELETE {path}: the path is not an object", "MethodNotAllowed")
        self._call("DELETE", path, body or None)

    def close_idle_connections(self) -> None:
        """Close the connections that no request uses; the next request opens a new one."""
        for api in (self._api, *self._watch_api_by_path.values()):
            api.close_idle_connections()

    def _build_api_client(self) -> RawApiClient:
        return RawApiClient(self._configuration)

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON_CONTENT_TYPE,
        *,
        watch_api: RawApiClient | None = None,
    ) -> bytes:
        call, api = f"{method} {path}", watch_api or self._api
        sent_in = self._backoff.check(call)
        send = partial(self._send, api, method, path, body=body, content_type=content_type)
        with self._open_segment(f"{method} {path.partition('?')[0]}", {}, is_remote=True):
            try:
                return self._send_request(call, send, sent_in)
            except Throttled as fault:
                if not self._backoff.wait(fault):
                    raise
                return self._send_request(call, send, self._backoff.round)

    def _send(
        self, api: RawApiClient, method: str, path: str, *, body: bytes | None, content_type: str
    ) -> tuple[BaseHTTPResponse, bytes]:
        """Send a request and return the response and its body."""
        seconds = self._timeout.total_seconds()
        response = api.request(method, path, timeout=(seconds, seconds), body=body, content_type=content_type)
        return response, response.data

    def _send_request(self, call: str, send: Callable[[], tuple[BaseHTTPResponse, bytes]], sent_in: int) -> bytes:
        """Send the request, with a renewed token if the old one is rejected, and return the document."""
        with self._translate_errors(call):
            response, document = send()
            if response.status == HTTPStatus.UNAUTHORIZED and self._renew_token():
                response, document = send()
        if not is_success(response.status):
            raise self._build_fault(call, response, sent_in)
        self._rejected_token = ""
        self._backoff.record_success(sent_in)
        return check_json_document(call, document)

    def _read_token(self) -> str:
        """Return the token for the next request of this thread, and remember it."""
        token = self._token() if self._token is not None else ""
        self._sent_token.value = token
        return token

    def _renew_token(self) -> bool:
        """Return whether a token other than the rejected one is available.

        The token is renewed once, not for every call: if many calls are rejected at once, the first one renews it.
        """
        if self._token is None or self._renew is None:
            return False
        with self._token_lock:
            token = self._token()
            if token != self._sent_token.value:
                return True  # another call has renewed it
            if token == self._rejected_token:
                return False
            self._renew()
            self._rejected_token = self._token()
            return True

    def _build_fault(self, call: str, response: BaseHTTPResponse, sent_in: int | None = None) -> Fault:
        fault = build_fault(call, response.status, response.data, response.headers)
        return self._backoff.record_throttling(fault, sent_in) if isinstance(fault, Throttled) else fault

    def _read_changes(self, api: RawApiClient, path: str, since: int, head: CollectionHead) -> WatchEvents:
        """Read the watch stream at *path*, then close it."""
        call, seconds = f"GET {path}", self._timeout.total_seconds()
        with self._translate_errors(call):
            response = api.request("GET", path, timeout=(seconds, seconds))
            try:
                if not is_success(response.status):
                    raise self._build_fault(call, response)
                self._set_quiet_timeout(response)
                return read_changes(call, response, since, head)
            finally:
                response.close()
                response.release_conn()

    def _set_quiet_timeout(self, response: BaseHTTPResponse) -> None:
        sock = getattr(response.connection, "sock", None)
        if sock is not None:
            sock.settimeout(self._quiet_seconds)

    @contextmanager
    def _translate_errors(self, call: str) -> Iterator[None]:
        """Convert all connection errors to Unreachable.

        Raises:
            Unreachable: *call* had no response.
        """
        try:
            yield
        except (HTTPError, ssl.SSLError, OSError) as error:
            if isinstance(error, UrllibTimeoutError) and not isinstance(error, NewConnectionError):
                self._backoff.record_silence(self._timeout)
            fix = f"if the error persists, check that {self._endpoint} is available and reachable from the functions"
            raise Unreachable(f"{call}: {error}; {fix}") from error
