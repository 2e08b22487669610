"""Cached boto3 clients of the account: the boto3 session reads the service models, which takes a second."""

from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any, Final

import boto3
from botocore.config import Config

from sim.aws_account.function_runtime import Credentials

_CLIENT_CONFIG: Final = Config(retries={"max_attempts": 0}, max_pool_connections=32, read_timeout=900)
"""No retries; the read timeout is the longest time that a function may run."""


class ClientCache:
    """All created clients; safe to share between threads."""

    def __init__(self, url: Callable[[], str], region: str) -> None:
        """Start without clients; *url* returns the endpoint of the account."""
        self._url, self._region = url, region
        self._client_by_key: dict[tuple[str, str], Any] = {}
        self._lock = RLock()

    def get_client(self, service: str, credentials: Credentials) -> Any:  # noqa: ANN401 - boto3's have no types
        """Return the client of *service* for *credentials*; later calls return the same client."""
        key = service, credentials.access_key
        with self._lock:
            if key not in self._client_by_key:
                self._client_by_key[key] = _get_session().client(
                    service,
                    region_name=self._region,
                    endpoint_url=self._url(),
                    aws_access_key_id=credentials.access_key,
                    aws_secret_access_key=credentials.secret_key,
                    aws_session_token=credentials.session_token or None,
                    config=_CLIENT_CONFIG,
                )
            return self._client_by_key[key]

    def close(self) -> None:
        """Close all clients."""
        with self._lock:
            for client in self._client_by_key.values():
                client.close()
            self._client_by_key.clear()


@cache
def _get_session() -> boto3.session.Session:
    """Return the boto3 session, which caches the service models."""
    return boto3.session.Session()
