"""Connection pools that tell a stale connection from a server that does not respond.

A persistent connection is stale if the server has closed it while it was idle, for example while Lambda froze the
container. The next request on it fails before the first byte of a response, so that a read can be repeated on a new
connection. On a new connection, the same failure is an error of the server.
"""

from ssl import SSLEOFError, SSLZeroReturnError
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ProtocolError


class StaleConnectionError(ConnectionResetError):
    """The server closed a connection that was used before, and sent no byte of a response."""


class _HttpConnection(HTTPConnection):
    _has_responded = False

    def connect(self) -> None:
        """Connect; nothing was received on the new connection."""
        self._has_responded = False
        super().connect()

    def request(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - urllib3's
        """Send the request.

        Raises:
            StaleConnectionError: the server closed the TLS connection while it was idle.
        """
        try:
            super().request(*arguments, **options)
        except (SSLEOFError, SSLZeroReturnError) as error:
            self._raise_if_stale(error)
            raise

    def get_response(self) -> HTTPResponse:
        """Wait for the response.

        Raises:
            StaleConnectionError: the server closed the connection while it was idle.
        """
        try:
            response = super().getresponse()
        except (ConnectionError, SSLEOFError, SSLZeroReturnError) as error:
            self._raise_if_stale(error)
            raise
        self._has_responded = True
        return response

    getresponse = get_response  # the name that urllib3 calls

    def _raise_if_stale(self, error: Exception) -> None:
        if self._has_responded:
            raise StaleConnectionError(f"the server closed the idle connection: {error}") from error


class _HttpsConnection(_HttpConnection, HTTPSConnection):
    pass


class _HttpConnectionPool(HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsConnectionPool(HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


def detect_stale_connections(manager: PoolManager) -> PoolManager:
    """Return *manager*, whose connections report that they are stale from now on."""
    manager.pool_classes_by_scheme = {"http": _HttpConnectionPool, "https": _HttpsConnectionPool}
    return manager


def is_stale(error: Exception) -> bool:
    """Return whether *error* of a request means that its connection was stale."""
    return isinstance(error, ProtocolError) and isinstance(error.args[-1], StaleConnectionError)
