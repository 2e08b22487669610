"""Proxies of the environment: which requests use them, which don't, and the error if a proxy refuses."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from select import select
from socket import create_connection
from typing import ClassVar

import pytest

from cli.cluster.kubeconfig import connect_to_cluster
from shared.errors import Unreachable
from shared.kubernetes.client import KubeClient
from shared.kubernetes.raw_api_client import RawApiClient, build_configuration
from shared.ports.kubernetes import Kube
from tests.contract.kube_canned import CannedHandler
from tests.contract.kube_front import run_server
from tests.contract.tls import build_server_context, encode_authority

pytestmark = pytest.mark.loopback
NODE = "/api/v1/nodes/a"
Open = Callable[[], Kube]
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Tunnel(BaseHTTPRequestHandler):
    """A proxy that accepts clients with the password, if there is one, and records the target hosts."""

    opened: ClassVar[list[str]]
    password: ClassVar[str]

    def do_CONNECT(self) -> None:
        self.opened.append(self.path)
        if self.password not in self.headers.get("Proxy-Authorization", ""):
            self.send_error(407)
            return
        host, _, port = self.path.partition(":")
        with create_connection((host, int(port))) as far:
            self.send_response(200)
            self.end_headers()
            near = self.connection
            while data := (source := select([near, far], [], [])[0][0]).recv(65536):
                (far if source is near else near).sendall(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def proxy() -> Iterator[str]:
    Tunnel.opened, Tunnel.password = [], ""
    yield from run_server(Tunnel)


@pytest.fixture
def secure(server: str, certificate: Path) -> Iterator[str]:
    """The canned API server, with TLS."""
    assert server
    yield from run_server(CannedHandler, build_server_context(certificate))


def build_functions_client(endpoint: str, certificate: Path, _: Path) -> Kube:
    """Return the client of the functions, as `shared.production_world` builds it."""
    return KubeClient(endpoint, certificate_authority=encode_authority(certificate))


def build_kubeconfig_client(endpoint: str, certificate: Path, folder: Path) -> Kube:
    """Return the client of `joiner plan --context`."""
    cluster = {"server": endpoint, "certificate-authority-data": encode_authority(certificate)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": "anything"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "here",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return connect_to_cluster(str(path), "").kube


@pytest.fixture(params=[build_functions_client, build_kubeconfig_client], ids=["functions", "kubeconfig"])
def open_kube(request: pytest.FixtureRequest, secure: str, certificate: Path, tmp_path: Path) -> Open:
    opens: Callable[[str, Path, Path], Kube] = request.param
    return lambda: opens(secure, certificate, tmp_path)


@pytest.mark.parametrize(
    ("name", "exceptions", "is_used"),
    [
        ("HTTPS_PROXY", "", True),
        ("https_proxy", "10.0.0.0/8,.eks.amazonaws.com", True),
        ("ALL_PROXY", "", True),
        ("HTTP_PROXY", "", False),
        ("HTTPS_PROXY", "localhost,127.0.0.1", False),
        ("HTTPS_PROXY", "*", False),
    ],
)
def test_proxy_is_used_unless_no_proxy_excludes_the_host(
    name: str,
    exceptions: str,
    is_used: bool,  # noqa: FBT001 - a parameter of the table
    open_kube: Open,
    secure: str,
    proxy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, proxy)
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert open_kube().read(NODE) == b"{}"
    assert Tunnel.opened == ([secure.removeprefix("https://")] if is_used else [])
    assert [path for _, path, _, _ in CannedHandler.received_requests] == [NODE]


def test_proxy_credentials_are_sent_to_the_proxy_but_not_to_the_server(
    open_kube: Open, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tunnel.password = b64encode(b"me:secret").decode()
    monkeypatch.setenv("HTTPS_PROXY", proxy.replace("//", "//me:secret@"))
    assert open_kube().read(NODE) == b"{}"
    assert Tunnel.opened
    assert "Proxy-Authorization" not in CannedHandler.received_requests[0][2]


def test_proxy_that_rejects_the_connection_raises_unreachable(
    open_kube: Open, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tunnel.password = "another"  # noqa: S105 - it opens nothing
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(Unreachable, match=f"GET {NODE}: .*407"):
        open_kube().read(NODE)


@pytest.mark.parametrize(
    ("environment", "endpoint", "proxy"),
    [
        ({}, "https://k.eks", ""),
        ({"HTTPS_PROXY": "proxy:3128"}, "https://k.eks", "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".eks"}, "https://k.eks:443", ""),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "k.eks:443"}, "https://k.eks:443", ""),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, "https://10.1.2.3", ""),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"}, "https://11.1.2.3", "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128"}, "http://k.eks", "http://proxy:3128"),
    ],
)
def test_proxy_is_selected_from_the_environment_variables(
    environment: dict[str, str], endpoint: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    configuration = build_configuration(endpoint, authority_pem=None, token=None, max_connections=1)
    used_proxy = RawApiClient(configuration).pool_manager.proxy
    assert (str(used_proxy) if used_proxy else "") == proxy
