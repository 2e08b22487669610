"""Connections that the API server closed while a container was frozen: reads are repeated once, writes are not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.errors import Unreachable
from shared.kubernetes.client import KubeClient
from tests.contract.closing_server import BODY, ClosingServer, serve
from tests.contract.tls import build_server_context, certificate, encode_authority

__all__ = ["certificate"]
pytestmark = pytest.mark.loopback

NODE = "/api/v1/nodes/a"
WRITES: dict[str, Callable[[KubeClient], object]] = {
    "POST": lambda kube: kube.create("/api/v1/nodes", b"{}"),
    "PATCH": lambda kube: kube.patch(NODE, b"{}"),
    "DELETE": lambda kube: kube.delete(NODE),
}


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, certificate: Path) -> Iterator[ClosingServer]:
    with serve(build_server_context(certificate) if request.param == "https" else None) as server:
        yield server


@pytest.fixture
def kube(server: ClosingServer, certificate: Path) -> KubeClient:
    """Return a client with one idle connection, which the server closes at the next request."""
    authority = encode_authority(certificate) if server.scheme == "https" else ""
    kube = KubeClient(server.url, certificate_authority=authority)
    kube.read(NODE)
    server.close_mode = "reused"
    return kube


def test_a_read_on_a_closed_connection_is_repeated_on_a_new_one(server: ClosingServer, kube: KubeClient) -> None:
    assert kube.read(NODE) == BODY
    assert kube.list("/api/v1/nodes") == BODY
    assert server.methods == ["GET"] * 5
    assert server.connection_count == 3


@pytest.mark.parametrize("method", WRITES)
def test_a_write_on_a_closed_connection_is_not_repeated(server: ClosingServer, kube: KubeClient, method: str) -> None:
    with pytest.raises(Unreachable):
        WRITES[method](kube)
    assert server.methods == ["GET", method]


@pytest.mark.parametrize("method", WRITES)
def test_a_write_after_the_idle_connections_were_closed_succeeds(
    server: ClosingServer, kube: KubeClient, method: str
) -> None:
    kube.close_idle_connections()
    WRITES[method](kube)
    assert server.methods == ["GET", method]
    assert server.connection_count == 2


def test_a_read_that_fails_on_a_new_connection_is_not_repeated(server: ClosingServer, kube: KubeClient) -> None:
    kube.close_idle_connections()
    server.close_mode = "always"
    with pytest.raises(Unreachable):
        kube.read(NODE)
    assert server.methods == ["GET", "GET"]


def test_a_read_is_repeated_only_once(server: ClosingServer, kube: KubeClient) -> None:
    server.close_mode = "always"
    with pytest.raises(Unreachable):
        kube.read(NODE)
    assert server.methods == ["GET", "GET", "GET"]


def test_a_connection_stays_open_between_two_requests(server: ClosingServer, kube: KubeClient) -> None:
    server.close_mode = "never"
    kube.read(NODE)
    WRITES["POST"](kube)
    assert server.connection_count == 1
