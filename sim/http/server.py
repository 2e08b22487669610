"""The server: one port for every service, ours in front, moto behind.

A request is taken apart once. If a fault is due it fails; if `sim.cloud` knows the answer it is given under a lock,
since the model is not made for threads; everything else is moto's. moto's state is the process's own:
`EmbeddedAws.reset` empties it, and so does every `mock_aws` in the same process.
"""

from collections.abc import Callable, Iterable
from threading import RLock, Thread
from typing import Any, Final, Self, TypeAlias

from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from sim.cloud.cloud import Cloud
from sim.http.faults import Fault, Faults
from sim.http.overlay import overlay
from sim.http.protocol import ApiError, Call, Environ, NotOurs, Reply, answer, parameters_of, parse_call, refusal
from sim.http.queries import Wire

StartResponse: TypeAlias = Callable[..., Any]
Front: TypeAlias = Callable[[Call, Environ], Reply | None]
"""Answers a request before anybody else does, or leaves it to them; may raise `ApiError`."""

_POLL_SECONDS: Final = 0.02
_SERVERS_FAULT: Final = 500
_CONSTANT: Final = frozenset({"DescribeInstanceTypes"})
"""Half a second of writing, and the same for every cloud."""


class _Quiet(WSGIRequestHandler):
    """Writes no access log; what goes wrong inside is still logged. One connection, one request: none lingers."""

    protocol_version = "HTTP/1.0"
    timeout = 300

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


class _Server(ThreadedWSGIServer):
    """Ends only when its requests have ended."""

    daemon_threads = False


class EmbeddedAws:
    """An AWS of our own on the loopback interface, for boto3 with ``endpoint_url``. A context manager."""

    def __init__(self, cloud: Cloud, front: Front = lambda *_: None) -> None:
        """Answer from *cloud* what *front* leaves to it; nothing listens before `start`."""
        self._front = front
        self._lock = RLock()
        self._faults = Faults()
        self._moto: Any = DomainDispatcherApplication(create_backend_app)
        self._server: _Server | None = None
        self._thread: Thread | None = None
        self._constant: dict[bytes, Reply] = {}
        self.reset(cloud)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    @property
    def url(self) -> str:
        """The endpoint, as ``http://127.0.0.1:41234``.

        Raises:
            RuntimeError: nothing listens.
        """
        if self._server is None:
            raise RuntimeError("not started")
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def lock(self) -> RLock:
        """Hold it to touch the cloud or its clock while requests may come in."""
        return self._lock

    def reset(self, cloud: Cloud) -> None:
        """Begin anew with *cloud*, an empty moto and no faults."""
        with self._lock:
            self._faults.clear()
            BackendDict.reset()
            reset_model_data()
            self._overlay = overlay(cloud)

    def start(self) -> Self:
        """Listen on a free port of 127.0.0.1, in a thread of its own."""
        self._server = _Server("127.0.0.1", 0, self, _Quiet)
        self._thread = Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="embedded-aws", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening, and return once the port is free and the thread is gone; may be repeated."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server = self._thread = None

    def fail_next(
        self, service: str, action: str, code: str, status: int, *, times: int = 1, after: bool = False
    ) -> None:
        """Answer the next *times* calls of *action* with *code* and *status*; status 0: with nothing at all.

        Args:
            service: As in the signature: ``ec2``, ``dynamodb``.
            action: As in the API: ``CreateFleet``, ``PutItem``.
            code: AWS's error code.
            status: The HTTP status, or 0 to end the connection.
            times: How many calls; a client that retries uses up several.
            after: Let the call take effect first, and lose only its answer.
        """
        self._faults.add(service, action, Fault(code=code, status=status, after=after), times)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (WSGI)."""
        call = parse_call(environ)
        fault = self._faults.take(call)
        if fault is not None:
            if fault.after:
                b"".join(self._answered(call, environ, lambda *_: None))
            return _write(refusal(call, fault.error()), start_response)
        return self._answered(call, environ, start_response)

    def _answered(self, call: Call, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        handler = self._overlay.get((call.service, call.action))
        try:
            reply = self._fronted(call, environ)
            if reply is not None:
                return _write(reply, start_response)
            if handler is not None:
                with self._lock:
                    return _write(self._written(call, handler(parameters_of(call))), start_response)
        except ApiError as error:
            return _write(refusal(call, error), start_response)
        except NotOurs:
            pass
        answered: Iterable[bytes] = self._moto(environ, start_response)
        return answered

    def _fronted(self, call: Call, environ: Environ) -> Reply | None:
        """Ask who is in front; what is none of theirs is left to those behind."""
        try:
            return self._front(call, environ)
        except NotOurs:
            return None

    def _written(self, call: Call, result: Wire) -> Reply:
        """Answer *result* on the wire; what is long and never changes is written once."""
        if call.action not in _CONSTANT:
            return answer(call, result)
        if call.body not in self._constant:
            self._constant[call.body] = answer(call, result)
        return self._constant[call.body]


def _write(reply: Reply, start_response: StartResponse) -> Iterable[bytes]:
    headers = [
        ("Content-Type", reply.content_type),
        ("Content-Length", str(len(reply.body))),
        ("x-amzn-RequestId", "0"),
        *reply.headers,
    ]
    start_response(f"{reply.status} {'OK' if reply.status < _SERVERS_FAULT else 'Error'}", headers)
    return [reply.body]
