"""A control plane that has bad days: its API server dies, falls silent, is too busy, and takes no more tokens."""

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

from shared.kube.client import KubeClient
from shared.kube.patience import Patience
from tests.controlplane.binaries import API_SERVER
from tests.controlplane.commands import User
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ADMIN, QUIET, ControlPlane

LISTER: Final = User(name="lister", groups=("system:authenticated",))
"""Somebody who may list, but not watch."""
TIMEOUT: Final = timedelta(seconds=5)
"""Of the functions' client: a silence of ten seconds would be one of the whole arena, which has one thread."""


class BadPlane(ControlPlane):
    """One whose functions are somebody else at a moment's notice, as when their token expires."""

    def __init__(self) -> None:
        """Plan one; the functions are `FUNCTIONS`, and a request may last for as long as a test wants it to."""
        super().__init__(users=(FUNCTIONS, LISTER), api_server_flags=["--request-timeout=1h"])
        self.identity = ""
        """The functions' bearer token; "": that of `FUNCTIONS`."""
        self.next_identity = ""
        """What their token becomes when it is renewed; "": nobody renews it."""
        self.renewals = 0

    def client(self, token: str | Callable[[], str] = "", quiet: timedelta = QUIET) -> KubeClient:
        """Answer the functions' client for the functions' token: as in production, but `TIMEOUT` is its patience."""
        if token != self.token_of(FUNCTIONS):
            return super().client(token, quiet)
        return KubeClient(
            self.endpoint,
            certificate_authority=self.certificate_authority,
            token=lambda: self.identity or token,
            renew=self._renew,
            patience=Patience(lambda: datetime.now(UTC)),
            timeout=TIMEOUT,
        )

    def _renew(self) -> None:
        self.renewals += 1
        self.identity = self.next_identity or self.identity

    def die(self) -> None:
        """Let the API server be gone, as by a crash, if it is there."""
        if API_SERVER in self.processes.pids():
            self.processes.kill(API_SERVER)

    def rise(self) -> None:
        """Start it again: the same port, the same data."""
        self.processes.revive(API_SERVER)
        self.wait_until_ready()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it neither answer nor hang up, for a block."""
        pid = self.processes.pids()[API_SERVER]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def crowded(self, level: str) -> Iterator[None]:
        """Let a request of the functions' own user take the one seat of priority level *level*, for a block."""
        with ExitStack() as lines:

            def is_taken() -> bool:
                if self.counted("current_executing_seats", level):
                    return True
                lines.enter_context(self._endless_request())
                return False

            self.wait_for(is_taken, f"the seat of {level} to be taken")
            yield

    @contextmanager
    def _endless_request(self) -> Iterator[None]:
        """Make one whose body never comes."""
        address = urlsplit(self.endpoint)
        with (
            socket.create_connection((address.hostname, address.port)) as plain,
            self._trust().wrap_socket(plain, server_hostname=address.hostname) as line,
        ):
            head = "POST /api/v1/namespaces/default/events HTTP/1.1", f"Host: {address.netloc}", "Content-Length: 9"
            token = f"Authorization: Bearer {self.token_of(FUNCTIONS)}"
            line.sendall("\r\n".join((*head, token, "Content-Type: application/json", "", "")).encode())
            yield

    def rejected(self, level: str) -> int:
        """Answer how many requests the priority level *level* was too busy for, by the API server's own count."""
        return self.counted("rejected_requests_total", level)

    def counted(self, what: str, level: str) -> int:
        """Answer the sum of what the API server measures of *what* at the priority level *level*."""
        _, body = self._get("/metrics", ADMIN)
        lines = [one for one in body.splitlines() if one.startswith(f"apiserver_flowcontrol_{what}{{")]
        return sum(int(float(one.rpartition(" ")[2])) for one in lines if f'priority_level="{level}"' in one)

    def flow_schema(self) -> str:
        """Answer the uid of the FlowSchema that requests of the functions count for."""
        headers, _ = self._get("/api/v1/nodes?limit=1", FUNCTIONS)
        return headers["X-Kubernetes-PF-FlowSchema-UID"]

    def _get(self, path: str, user: User) -> tuple[Message, str]:
        request = Request(f"{self.endpoint}{path}", headers={"Authorization": f"Bearer {self.token_of(user)}"})  # noqa: S310 - our own endpoint
        try:
            with urlopen(request, timeout=120, context=self._trust()) as answer:  # noqa: S310 - our own endpoint
                return answer.headers, answer.read().decode()
        except HTTPError as refusal:
            with refusal:
                return refusal.headers, ""

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=b64decode(self.certificate_authority).decode())
