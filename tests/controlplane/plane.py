"""A real Kubernetes control plane on loopback, for as long as a `with` lasts.

    with ControlPlane() as plane:
        plane.client().list("/api/v1/nodes")

It keeps its data in a temporary folder of its own and leaves nothing: processes and folder go at the end of the block,
at exit, and by a watchdog if this process is killed.
"""

import secrets
import socket
import ssl
import subprocess
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.request import urlopen

import msgspec

from shared.errors import Fault
from shared.kube.client import KubeClient
from shared.kube.proxies import verifying
from tests.controlplane import commands
from tests.controlplane.binaries import (
    API_SERVER,
    CONTROLLERS,
    ETCD,
    KWOK,
    SCHEDULER,
    STAGES,
    Say,
    programs,
    tell,
)
from tests.controlplane.certificates import write_certificates
from tests.controlplane.commands import User
from tests.controlplane.processes import Processes

ALL: Final = (ETCD, API_SERVER, CONTROLLERS, SCHEDULER, KWOK)
API_ONLY: Final = (ETCD, API_SERVER)
"""Nobody acts but the test: no scheduler, no garbage collector, no service accounts."""

ADMIN: Final = User(name="admin", groups=("system:masters",))
_SYSTEM: Final = {
    CONTROLLERS: User(name="system:kube-controller-manager"),
    SCHEDULER: User(name="system:kube-scheduler"),
    KWOK: User(name="kwok", groups=("system:masters",)),
}
_OUR_STAGES: Final = Path(__file__).with_name("stages.yaml")
_START_SECONDS: Final = 600
_SILENCE: Final = timedelta(minutes=2)
QUIET: Final = timedelta(seconds=5)
"""Of tests' clients: a slow machine is neither out of reach nor done with telling what it has to tell."""
_OF_THE_SYSTEM: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Namespaces that the API server makes, some of them only after it has said that it is ready."""
_POLL_SECONDS: Final = 0.05


class NotStarted(Exception):
    """A part of the control plane ended, or none was ready in time; the message has the last lines of its log."""


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, or some of them."""

    def __init__(
        self,
        *,
        parts: Iterable[str] = ALL,
        users: Iterable[User] = (),
        node_grace_seconds: int = 40,
        api_server_flags: Iterable[str] = (),
        authenticator: str = "",
        say: Say = tell,
    ) -> None:
        """Plan one of *parts*, which knows *users* besides the administrator (`token_of` answers their tokens).

        Bearer tokens that are none of theirs are shown to the webhook at the URL *authenticator*, if there is one. A
        node without heartbeats is lost after *node_grace_seconds*; *say* hears of a build, which takes minutes.
        """
        self._parts = tuple(each for each in ALL if each in set(parts))
        self._tokens = {secrets.token_hex(16): user for user in (ADMIN, *_SYSTEM.values(), *users)}
        self._node_grace_seconds, self._say = node_grace_seconds, say
        self._flags, self._authenticator = tuple(api_server_flags), authenticator
        if CONTROLLERS not in self._parts:
            self._flags = ("--disable-admission-plugins=ServiceAccount", *self._flags)
        self._processes: Processes | None = None
        self._port = ExitStack()
        self.endpoint = ""
        self.certificate_authority = ""

    def __enter__(self) -> Self:
        """Start, and wait until it serves."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; after a failure the logs are kept and the error says where."""
        if error is not None and self._processes is not None:
            error.add_note(f"logs of the control plane: {self.keep_logs()}")
        self.stop()

    @property
    def processes(self) -> Processes:
        """Answer what runs, to be counted, killed and revived by name."""
        assert self._processes, "the control plane has not been started"
        return self._processes

    def start(self) -> None:
        """Start everything; answers when it is ready.

        Raises:
            NoPrograms: there is nothing to start, and no way to build it.
            NotStarted: a part ended or took too long.
        """
        binaries = programs((*self._parts, *((STAGES,) if KWOK in self._parts else ())), self._say)
        folder = Path(tempfile.mkdtemp(prefix="joiner-plane-"))
        self._processes = Processes(folder)
        try:
            self._start(binaries, folder, self._port.enter_context(_held_port()))
        except BaseException as error:
            error.add_note(f"logs of the control plane: {self.keep_logs()}")
            self.stop()
            raise

    def stop(self) -> None:
        """End everything and remove its folder; once more is nothing."""
        if self._processes is not None:
            self._processes.end()
            self._processes = None
        self._port.close()

    def keep_logs(self, where: Path | None = None) -> Path:
        """Copy the logs to *where*, or to a new temporary folder; answer which."""
        where = where or Path(tempfile.mkdtemp(prefix="joiner-plane-logs-"))
        self.processes.keep_logs(where)
        return where

    def token_of(self, user: User) -> str:
        """Answer the bearer token of *user*."""
        return next(token for token, known in self._tokens.items() if known == user)

    def client(self, token: str | Callable[[], str] = "", quiet: timedelta = QUIET) -> KubeClient:
        """Answer a client with *token*, or the function that answers one; the administrator's if there is none.

        A watch that is silent for *quiet* has nothing more to tell.
        """
        chosen = token or self.token_of(ADMIN)
        ask = chosen if callable(chosen) else lambda: chosen
        return KubeClient(
            self.endpoint,
            certificate_authority=self.certificate_authority,
            token=ask,
            timeout=_SILENCE,
            quiet=quiet,
        )

    def kubeconfig(self, token: str = "") -> str:
        """Answer a kubeconfig for kubectl, with *token* or as the administrator."""
        return commands.kubeconfig(self.endpoint, self.certificate_authority, token or self.token_of(ADMIN))

    def account_token(self, namespace: str, name: str) -> str:
        """Answer a token of an existing service account, for an hour."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = msgspec.json.decode(self.client().create(path, b'{"spec":{"expirationSeconds":3600}}'))
        return str(answer["status"]["token"])

    def wait_for(self, claim: Callable[[], bool], what: str, seconds: float = _START_SECONDS) -> None:
        """Wait until *claim* holds; a fault of the API server counts as not yet.

        Raises:
            NotStarted: *what* did not come about in time, or a part of the plane ended.
        """
        deadline = time.monotonic() + seconds
        while not _holds(claim):
            died = self.processes.died()
            if died or time.monotonic() > deadline:
                raise NotStarted(died or f"waited {seconds} s for {what}")
            time.sleep(_POLL_SECONDS)

    def wait_until_ready(self) -> None:
        """Wait until the API server says that it is ready: its hooks have made roles and priority classes."""
        context = verifying()
        context.load_verify_locations(cadata=b64decode(self.certificate_authority).decode())
        self.wait_for(lambda: _is_ready(self.endpoint, context), API_SERVER)

    def _start(self, binaries: Path, folder: Path, port: int) -> None:
        write_certificates(folder)
        self.endpoint = f"https://127.0.0.1:{port}"
        self.certificate_authority = b64encode(folder.joinpath("ca.crt").read_bytes()).decode()
        folder.joinpath("tokens.csv").write_text(commands.token_file(self._tokens))
        for name, user in _SYSTEM.items():
            folder.joinpath(f"{name}.kubeconfig").write_text(self.kubeconfig(self.token_of(user)))
        folder.joinpath("scheduler.yaml").write_text(commands.scheduler_settings(folder))
        asked = commands.authenticator(folder, self._authenticator) if self._authenticator else ()
        lines = {
            ETCD: commands.etcd(binaries, folder),
            API_SERVER: commands.api_server(binaries, folder, port, *self._flags, *asked),
            CONTROLLERS: commands.controllers(binaries, folder, self._node_grace_seconds),
            SCHEDULER: commands.scheduler(binaries, folder),
            KWOK: commands.kwok(binaries, folder, self._node_grace_seconds),
        }
        for name in API_ONLY:
            self.processes.start(name, lines[name])
        if KWOK in self._parts:
            kwoks = subprocess.check_output([str(binaries / STAGES)])
            folder.joinpath("stages.yaml").write_bytes(kwoks + b"\n---\n" + _OUR_STAGES.read_bytes())
        self.wait_until_ready()
        client = self.client()
        namespaces = [f"/api/v1/namespaces/{name}" for name in _OF_THE_SYSTEM]
        self.wait_for(lambda: all(map(client.read, namespaces)), "the namespaces of the system")
        for name in self._parts[len(API_ONLY) :]:
            self.processes.start(name, lines[name])
        if CONTROLLERS in self._parts:
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self.wait_for(lambda: bool(client.read(account)), "the default service account")


@contextmanager
def _held_port() -> Iterator[int]:
    """Keep a free port of loopback from all who do not share it, while the API server has it and when it is down."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def _holds(claim: Callable[[], bool]) -> bool:
    try:
        return claim()
    except Fault:
        return False


def _is_ready(endpoint: str, context: ssl.SSLContext) -> bool:
    try:
        with urlopen(f"{endpoint}/readyz", timeout=60, context=context) as answer:  # noqa: S310 - our own endpoint
            return bool(answer.read() == b"ok")
    except (OSError, HTTPException):
        return False
