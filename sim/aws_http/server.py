"""HTTP server with one port for all services: the cloud model first, then moto.

A request is parsed once. If a fault is pending, the call fails; so does a call that AWS would reject (`sim.aws_rules`).
If `sim.cloud` handles the action, it does so under a lock, since the model is not thread-safe; moto handles everything
else. The state of moto belongs to the process:
`EmbeddedAws.reset` clears it, and so does every `mock_aws` in the same process.
"""

from collections.abc import Callable, Iterable
from threading import RLock, Thread
from typing import Any, Final, Self, TypeAlias

from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from sim.aws_http.api_faults import FaultQueue, InjectedFault
from sim.aws_http.cloud_dispatch import build_overlay, build_payer_overlay
from sim.aws_http.commitment_calls import PAYER_ACCESS_KEY
from sim.aws_http.protocol import (
    ApiCall,
    ApiDict,
    ApiError,
    ApiReply,
    Environ,
    NotOurs,
    encode_error,
    encode_result,
    parse_call,
    parse_parameters,
)
from sim.aws_http.request_checks import check_api_call
from sim.cloud.cloud import Cloud

StartResponse: TypeAlias = Callable[..., Any]
Application: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]
FrontHandler: TypeAlias = Callable[[ApiCall, Environ], ApiReply | None]
"""Handles a request before all others, or returns None; may raise `ApiError`."""

_POLL_INTERVAL_SECONDS: Final = 0.02
_MIN_ERROR_STATUS: Final = 500
_CACHED_ACTIONS: Final = frozenset({"DescribeInstanceTypes"})
"""Serializing this result takes half a second, and it is the same for every cloud."""


class _QuietRequestHandler(WSGIRequestHandler):
    """Writes no access log, but logs internal errors. One request per connection: none stays open."""

    protocol_version = "HTTP/1.0"
    timeout = 300

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


class _Server(ThreadedWSGIServer):
    """Stops only when its requests have ended."""

    daemon_threads = False


class LoopbackServer:
    """Serves a WSGI application on a free port of 127.0.0.1, in a separate thread."""

    def __init__(self, application: Application) -> None:
        """Serve *application*; nothing listens before `start`."""
        self._application = application
        self._server: _Server | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The endpoint, such as ``http://127.0.0.1:41234``.

        Raises:
            RuntimeError: the server is not started.
        """
        if self._server is None:
            raise RuntimeError("not started")
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        """Listen."""
        self._server = _Server("127.0.0.1", 0, self._application, _QuietRequestHandler)
        self._thread = Thread(
            target=self._server.serve_forever, args=(_POLL_INTERVAL_SECONDS,), name="embedded-aws", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and return when the port is free and the thread has ended; may be repeated."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server = self._thread = None


class EmbeddedAws:
    """A local AWS on the loopback interface, for boto3 with ``endpoint_url``. A context manager."""

    def __init__(self, cloud: Cloud, front_handler: FrontHandler = lambda *_: None) -> None:
        """Use *cloud* for what *front_handler* does not handle; the server does not listen before `start`."""
        self._front_handler = front_handler
        self._lock = RLock()
        self._faults = FaultQueue()
        self._moto: Any = DomainDispatcherApplication(create_backend_app)
        self._server = LoopbackServer(self)
        self._cached_replies: dict[bytes, ApiReply] = {}
        self.reset(cloud)

    def __enter__(self) -> Self:
        """Start the server."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    @property
    def url(self) -> str:
        """The endpoint, such as ``http://127.0.0.1:41234``.

        Raises:
            RuntimeError: the server is not started.
        """
        return self._server.url

    @property
    def lock(self) -> RLock:
        """The lock to hold when the cloud or its clock is used while requests may arrive."""
        return self._lock

    def reset(self, cloud: Cloud) -> None:
        """Start over with *cloud*, an empty moto and no faults."""
        with self._lock:
            self._faults.clear()
            BackendDict.reset()
            reset_model_data()
            self._overlay, self._payer_overlay = build_overlay(cloud), build_payer_overlay(cloud)

    def start(self) -> Self:
        """Listen on a free port of 127.0.0.1, in a separate thread."""
        self._server.start()
        return self

    def stop(self) -> None:
        """Stop listening, and return when the port is free and the thread has ended; may be repeated."""
        self._server.stop()

    def inject_error(
        self, service: str, action: str, code: str, status: int, *, times: int = 1, after: bool = False
    ) -> None:
        """Fail the next *times* calls of *action* with *code* and *status*; status 0: without a response.

        Args:
            service: As in the signature: ``ec2``, ``dynamodb``.
            action: As in the API: ``CreateFleet``, ``PutItem``.
            code: AWS's error code.
            status: The HTTP status, or 0 to close the connection.
            times: Number of calls; a client that retries uses several.
            after: Whether the call takes effect first and only its response is lost.
        """
        self._faults.add(service, action, InjectedFault(code=code, status=status, takes_effect=after), times)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request (WSGI)."""
        call = parse_call(environ)
        fault = self._faults.take(call)
        if fault is not None:
            if fault.takes_effect:
                b"".join(self._handle_call(call, environ, lambda *_: None))
            return _send_reply(encode_error(call, fault.build_error()), start_response)
        return self._handle_call(call, environ, start_response)

    def _handle_call(self, call: ApiCall, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        overlay = self._payer_overlay if call.access_key == PAYER_ACCESS_KEY else self._overlay
        handler = overlay.get((call.service, call.action))
        try:
            check_api_call(call)
            reply = self._call_front(call, environ)
            if reply is not None:
                return _send_reply(reply, start_response)
            if handler is not None:
                with self._lock:
                    return _send_reply(self._encode_result(call, handler(parse_parameters(call))), start_response)
        except ApiError as error:
            return _send_reply(encode_error(call, error), start_response)
        except NotOurs:
            pass
        moto_response: Iterable[bytes] = self._moto(environ, start_response)
        return moto_response

    def _call_front(self, call: ApiCall, environ: Environ) -> ApiReply | None:
        """Return the reply of the front handler, or None if it does not handle the call."""
        try:
            return self._front_handler(call, environ)
        except NotOurs:
            return None

    def _encode_result(self, call: ApiCall, result: ApiDict) -> ApiReply:
        """Return the encoded *result*; a long constant result is encoded only once."""
        if call.action not in _CACHED_ACTIONS:
            return encode_result(call, result)
        if call.body not in self._cached_replies:
            self._cached_replies[call.body] = encode_result(call, result)
        return self._cached_replies[call.body]


def _send_reply(reply: ApiReply, start_response: StartResponse) -> Iterable[bytes]:
    headers = [
        ("Content-Type", reply.content_type),
        ("Content-Length", str(len(reply.body))),
        ("x-amzn-RequestId", "0"),
        *reply.headers,
    ]
    start_response(f"{reply.status} {'OK' if reply.status < _MIN_ERROR_STATUS else 'Error'}", headers)
    return [reply.body]
