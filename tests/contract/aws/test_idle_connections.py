"""Connections that AWS closed while a container was frozen: reads are repeated, conditional writes are not."""

from collections.abc import Iterator

import pytest

from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.errors import Unreachable
from tests.contract.closing_server import ClosingServer, serve

pytestmark = pytest.mark.loopback


@pytest.fixture
def server() -> Iterator[ClosingServer]:
    with serve() as server:
        yield server


@pytest.fixture
def clients(server: ClosingServer) -> Iterator[Clients]:
    """Return clients with idle connections, which the server closes at the next request."""
    clients = Clients("us-east-1", endpoint_url=server.url)
    table = DynamoTable(clients, "joiner")
    table.read("lease", "a")
    table.write("lease", "a", "{}", version=0)
    server.close_mode = "reused"
    yield clients
    clients.close()


def test_a_read_on_a_closed_connection_is_repeated(server: ClosingServer, clients: Clients) -> None:
    assert DynamoTable(clients, "joiner").read("lease", "a") is None
    assert (len(server.methods), server.connection_count) == (4, 3)


def test_a_conditional_write_on_a_closed_connection_is_not_repeated(server: ClosingServer, clients: Clients) -> None:
    with pytest.raises(Unreachable):
        DynamoTable(clients, "joiner").write("lease", "a", "{}", version=1)
    assert len(server.methods) == 3


def test_a_write_after_the_idle_connections_were_closed_succeeds(server: ClosingServer, clients: Clients) -> None:
    clients.close_idle_connections()
    assert DynamoTable(clients, "joiner").write("lease", "a", "{}", version=1).version == 2
    assert DynamoTable(clients, "joiner").read("lease", "a") is None
    assert (len(server.methods), server.connection_count) == (4, 4)
