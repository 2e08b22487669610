"""A control plane with failures: its API server dies, stops responding, is overloaded, and accepts no more tokens."""

import os
import signal
import socket
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from shared.kubernetes.backoff import Backoff
from shared.kubernetes.client import KubeClient
from tests.controlplane.binaries import API_SERVER
from tests.controlplane.commands import User
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ADMIN, WATCH_QUIET_TIMEOUT, ControlPlane

LISTER: Final = User(name="lister", groups=("system:authenticated",))
"""A user who may list, but not watch."""
REQUEST_TIMEOUT: Final = timedelta(seconds=5)
"""Timeout of the functions' client: the arena has one thread, so a longer timeout would block all of it."""


class BadPlane(ControlPlane):
    """A control plane whose functions can change identity at any moment, as when their token expires."""

    def __init__(self) -> None:
        """Plan the control plane; the functions are `FUNCTIONS`, and a request may last as long as a test needs."""
        super().__init__(users=(FUNCTIONS, LISTER), api_server_flags=["--request-timeout=1h"])
        self.identity = ""
        """The functions' bearer token; "": that of `FUNCTIONS`."""
        self.next_identity = ""
        """The functions' token after a renewal; "": the token is not renewed."""
        self.renewals = 0

    def get_client(
        self, token: str | Callable[[], str] = "", quiet_timeout: timedelta = WATCH_QUIET_TIMEOUT
    ) -> KubeClient:
        """Return the functions' client if *token* is theirs: as in production, but with `REQUEST_TIMEOUT`."""
        if token != self.get_token(FUNCTIONS):
            return super().get_client(token, quiet_timeout)
        return KubeClient(
            self.endpoint,
            certificate_authority=self.certificate_authority,
            token=lambda: self.identity or token,
            renew=self._renew,
            backoff=Backoff(lambda: datetime.now(UTC)),
            timeout=REQUEST_TIMEOUT,
        )

    def _renew(self) -> None:
        self.renewals += 1
        self.identity = self.next_identity or self.identity

    def kill_api_server(self) -> None:
        """Kill the API server, as by a crash, if it is running."""
        if API_SERVER in self.processes.get_pids():
            self.processes.kill_process(API_SERVER)

    def restart_api_server(self) -> None:
        """Start the API server again, with the same port and the same data."""
        self.processes.restart(API_SERVER)
        self.wait_until_ready()

    @contextmanager
    def freeze_api_server(self) -> Iterator[None]:
        """Stop the API server from responding or closing connections, for a block."""
        pid = self.processes.get_pids()[API_SERVER]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def occupy_priority_level(self, level: str) -> Iterator[None]:
        """Let a request of the functions' own user occupy the only seat of priority level *level*, for a block."""
        with ExitStack() as lines:

            def is_taken() -> bool:
                if self.sum_flow_control_metric("current_executing_seats", level):
                    return True
                lines.enter_context(self._hold_endless_request())
                return False

            self.wait_until(is_taken, f"the seat of {level} to be taken")
            yield

    @contextmanager
    def _hold_endless_request(self) -> Iterator[None]:
        """Open a request whose body never arrives."""
        address = urlsplit(self.endpoint)
        with (
            socket.create_connection((address.hostname, address.port)) as plain,
            self._build_ssl_context().wrap_socket(plain, server_hostname=address.hostname) as line,
        ):
            head = "POST /api/v1/namespaces/default/events HTTP/1.1", f"Host: {address.netloc}", "Content-Length: 9"
            token = f"Authorization: Bearer {self.get_token(FUNCTIONS)}"
            line.sendall("\r\n".join((*head, token, "Content-Type: application/json", "", "")).encode())
            yield

    def count_rejected_requests(self, level: str) -> int:
        """Return how many requests the API server rejected because priority level *level* was full.

        By its own count.
        """
        return self.sum_flow_control_metric("rejected_requests_total", level)

    def sum_flow_control_metric(self, metric: str, level: str) -> int:
        """Return the sum of the API server's samples of *metric* for priority level *level*."""
        _, body = self._get("/metrics", ADMIN)
        lines = [line for line in body.splitlines() if line.startswith(f"apiserver_flowcontrol_{metric}{{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in lines if f'priority_level="{level}"' in line)

    def read_flow_schema_uid(self) -> str:
        """Return the uid of the FlowSchema to which requests of the functions belong."""
        headers, _ = self._get("/api/v1/nodes?limit=1", FUNCTIONS)
        return headers["X-Kubernetes-PF-FlowSchema-UID"]

    def _get(self, path: str, user: User) -> tuple[Message, str]:
        request = Request(f"{self.endpoint}{path}", headers={"Authorization": f"Bearer {self.get_token(user)}"})  # noqa: S310 - our own endpoint
        try:
            with urlopen(request, timeout=120, context=self._build_ssl_context()) as answer:  # noqa: S310 - our own endpoint
                return answer.headers, answer.read().decode()
        except HTTPError as refusal:
            with refusal:
                return refusal.headers, ""

    def _build_ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=b64decode(self.certificate_authority).decode())
