"""boto3's clients of the account, each made once; its session reads the services' models, which takes a second."""

from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any, Final

import boto3
from botocore.config import Config

from sim.account.contract import Credentials

_PATIENT: Final = Config(retries={"max_attempts": 0}, max_pool_connections=32, read_timeout=900)
"""As long as a function may run."""


class Clients:
    """All that were asked for; safe to share between threads."""

    def __init__(self, url: Callable[[], str], region: str) -> None:
        """Make none yet; the account listens at *url*."""
        self._url, self._region = url, region
        self._made: dict[tuple[str, str], Any] = {}
        self._lock = RLock()

    def client(self, service: str, credentials: Credentials) -> Any:  # noqa: ANN401 - boto3's have no types
        """Answer the client of *service* for whoever has *credentials*; the same one the next time."""
        key = service, credentials.access_key
        with self._lock:
            if key not in self._made:
                self._made[key] = _session().client(
                    service,
                    region_name=self._region,
                    endpoint_url=self._url(),
                    aws_access_key_id=credentials.access_key,
                    aws_secret_access_key=credentials.secret_key,
                    aws_session_token=credentials.session_token or None,
                    config=_PATIENT,
                )
            return self._made[key]

    def close(self) -> None:
        """Close all."""
        with self._lock:
            for client in self._made.values():
                client.close()
            self._made.clear()


@cache
def _session() -> boto3.session.Session:
    """Answer the session that has read the services' models already."""
    return boto3.session.Session()
