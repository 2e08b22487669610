"""A real Kubernetes control plane on loopback, for the duration of a `with` block.

For example::

    with ControlPlane() as plane:
        plane.get_client().list("/api/v1/nodes")

It keeps its data in a temporary folder of its own and leaves nothing: processes and folder are removed at the end of
the block, at exit, and by a watchdog if this process is killed.
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
from shared.kubernetes.client import KubeClient
from shared.kubernetes.raw_api_client import build_tls_context
from tests.controlplane import commands
from tests.controlplane.binaries import (
    API_SERVER,
    CONTROLLERS,
    ETCD,
    KWOK,
    SCHEDULER,
    STAGES,
    Say,
    ensure_programs,
    print_line,
)
from tests.controlplane.certificates import write_certificates
from tests.controlplane.commands import User
from tests.controlplane.processes import Processes

ALL_PARTS: Final = (ETCD, API_SERVER, CONTROLLERS, SCHEDULER, KWOK)
API_ONLY: Final = (ETCD, API_SERVER)
"""Only the test acts: no scheduler, no garbage collector, no service accounts."""

ADMIN: Final = User(name="admin", groups=("system:masters",))
_SYSTEM: Final = {
    CONTROLLERS: User(name="system:kube-controller-manager"),
    SCHEDULER: User(name="system:kube-scheduler"),
    KWOK: User(name="kwok", groups=("system:masters",)),
}
_OUR_STAGES: Final = Path(__file__).with_name("stages.yaml")
_START_SECONDS: Final = 600
_REQUEST_TIMEOUT: Final = timedelta(minutes=2)
WATCH_QUIET_TIMEOUT: Final = timedelta(seconds=5)
"""For clients of tests: a slow API server must count neither as unreachable nor as having sent its last watch event."""
_SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Namespaces that the API server creates, some of them only after it is ready."""
_POLL_SECONDS: Final = 0.05


class NotStarted(Exception):
    """A part of the control plane ended or was not ready in time; the message has the last lines of its log."""


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, or some of them."""

    def __init__(
        self,
        *,
        parts: Iterable[str] = ALL_PARTS,
        users: Iterable[User] = (),
        node_grace_seconds: int = 40,
        api_server_flags: Iterable[str] = (),
        authenticator: str = "",
        say: Say = print_line,
    ) -> None:
        """Prepare a control plane of *parts*, with *users* in addition to the administrator.

        `get_token` returns the users' tokens. Other bearer tokens are sent to the webhook at the URL *authenticator*,
        if there is one. A node without heartbeats is lost after *node_grace_seconds*; *say* receives the progress
        messages of a build, which takes minutes.
        """
        self._parts = tuple(part for part in ALL_PARTS if part in set(parts))
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
        """Start, and wait until the control plane is ready."""
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
        """Return the running processes, which can be counted, killed and restarted by name."""
        assert self._processes, "the control plane has not been started"
        return self._processes

    def start(self) -> None:
        """Start everything; return when it is ready.

        Raises:
            NoPrograms: there are no programs to start, and no way to build them.
            NotStarted: a part ended or took too long.
        """
        binaries = ensure_programs((*self._parts, *((STAGES,) if KWOK in self._parts else ())), self._say)
        folder = Path(tempfile.mkdtemp(prefix="joiner-plane-"))
        self._processes = Processes(folder)
        try:
            self._start(binaries, folder, self._port.enter_context(_reserve_port()))
        except BaseException as error:
            error.add_note(f"logs of the control plane: {self.keep_logs()}")
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything and remove the folder; may be called again."""
        if self._processes is not None:
            self._processes.stop_all()
            self._processes = None
        self._port.close()

    def keep_logs(self, destination: Path | None = None) -> Path:
        """Copy the logs to *destination*, or to a new temporary folder; return the folder."""
        destination = destination or Path(tempfile.mkdtemp(prefix="joiner-plane-logs-"))
        self.processes.keep_logs(destination)
        return destination

    def get_token(self, user: User) -> str:
        """Return the bearer token of *user*."""
        return next(token for token, token_user in self._tokens.items() if token_user == user)

    def get_client(
        self, token: str | Callable[[], str] = "", quiet_timeout: timedelta = WATCH_QUIET_TIMEOUT
    ) -> KubeClient:
        """Return a client with *token*, or a function that returns one; default: the administrator's token.

        A watch without events for *quiet_timeout* is considered complete.
        """
        token_source = token or self.get_token(ADMIN)
        provide_token = token_source if callable(token_source) else lambda: token_source
        return KubeClient(
            self.endpoint,
            certificate_authority=self.certificate_authority,
            token=provide_token,
            timeout=_REQUEST_TIMEOUT,
            quiet_timeout=quiet_timeout,
        )

    def build_kubeconfig(self, token: str = "") -> str:
        """Return a kubeconfig for kubectl, with *token* or as the administrator."""
        return commands.build_kubeconfig(self.endpoint, self.certificate_authority, token or self.get_token(ADMIN))

    def create_account_token(self, namespace: str, name: str) -> str:
        """Return a token of an existing service account, valid for an hour."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        response = msgspec.json.decode(self.get_client().create(path, b'{"spec":{"expirationSeconds":3600}}'))
        return str(response["status"]["token"])

    def wait_until(self, condition: Callable[[], bool], description: str, seconds: float = _START_SECONDS) -> None:
        """Wait until *condition* holds; an API server fault counts as not yet.

        Raises:
            NotStarted: *description* did not happen in time, or a part of the control plane ended.
        """
        deadline = time.monotonic() + seconds
        while not _is_true(condition):
            failures = self.processes.describe_dead()
            if failures or time.monotonic() > deadline:
                raise NotStarted(failures or f"waited {seconds} s for {description}")
            time.sleep(_POLL_SECONDS)

    def wait_until_ready(self) -> None:
        """Wait until the API server is ready: its hooks have created roles and priority classes."""
        context = build_tls_context()
        context.load_verify_locations(cadata=b64decode(self.certificate_authority).decode())
        self.wait_until(lambda: _is_ready(self.endpoint, context), API_SERVER)

    def _start(self, binaries: Path, folder: Path, port: int) -> None:
        write_certificates(folder)
        self.endpoint = f"https://127.0.0.1:{port}"
        self.certificate_authority = b64encode(folder.joinpath("ca.crt").read_bytes()).decode()
        folder.joinpath("tokens.csv").write_text(commands.build_token_file(self._tokens))
        for name, user in _SYSTEM.items():
            folder.joinpath(f"{name}.kubeconfig").write_text(self.build_kubeconfig(self.get_token(user)))
        folder.joinpath("scheduler.yaml").write_text(commands.build_scheduler_config(folder))
        authenticator_flags = (
            commands.configure_authenticator(folder, self._authenticator) if self._authenticator else ()
        )
        command_lines = {
            ETCD: commands.build_etcd_command(binaries, folder),
            API_SERVER: commands.build_api_server_command(binaries, folder, port, *self._flags, *authenticator_flags),
            CONTROLLERS: commands.build_controllers_command(binaries, folder, self._node_grace_seconds),
            SCHEDULER: commands.build_scheduler_command(binaries, folder),
            KWOK: commands.build_kwok_command(binaries, folder, self._node_grace_seconds),
        }
        for name in API_ONLY:
            self.processes.start(name, command_lines[name])
        if KWOK in self._parts:
            kwoks = subprocess.check_output([str(binaries / STAGES)])
            folder.joinpath("stages.yaml").write_bytes(kwoks + b"\n---\n" + _OUR_STAGES.read_bytes())
        self.wait_until_ready()
        client = self.get_client()
        namespaces = [f"/api/v1/namespaces/{name}" for name in _SYSTEM_NAMESPACES]
        self.wait_until(lambda: all(map(client.read, namespaces)), "the namespaces of the system")
        for name in self._parts[len(API_ONLY) :]:
            self.processes.start(name, command_lines[name])
        if CONTROLLERS in self._parts:
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self.wait_until(lambda: bool(client.read(account)), "the default service account")


@contextmanager
def _reserve_port() -> Iterator[int]:
    """Reserve a free loopback port for the API server, also while the API server is down."""
    with socket.socket() as reserving_socket:
        reserving_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserving_socket.bind(("127.0.0.1", 0))
        yield int(reserving_socket.getsockname()[1])


def _is_true(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except Fault:
        return False


def _is_ready(endpoint: str, context: ssl.SSLContext) -> bool:
    try:
        with urlopen(f"{endpoint}/readyz", timeout=60, context=context) as answer:  # noqa: S310 - our own endpoint
            return bool(answer.read() == b"ok")
    except (OSError, HTTPException):
        return False
