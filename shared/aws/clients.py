"""Where AWS clients are made: region, endpoint, patience. They are boto3's, without what boto3 puts around them.

Two kinds of patience, and every connection gives up early, so that a Lambda has time left to report it:

- ``patient``: reads, and writes that may be repeated. botocore's adaptive retries, which slow down by themselves when
  AWS throttles; four attempts.
- ``once``: writes that take effect only under a condition, and CreateFleet. A repeated attempt would hide what became
  of the first: a conditional write would be refused by its own earlier success. We see the time-out, and the next
  cycle repeats the same call with the same token.
"""

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, Literal

from botocore.config import Config
from botocore.session import Session

Patience = Literal["patient", "once"]

_CONNECT_SECONDS: Final = 3
_READ_SECONDS: Final = 10
_FLEET_SECONDS: Final = 30
"""CreateFleet answers when the instances are started."""


class Clients:
    """The boto3 clients of one account, each made when first asked for and kept; safe to share between threads."""

    def __init__(self, region: str, *, endpoint_url: str = "") -> None:
        """Speak to *region*; to *endpoint_url* instead of AWS, if given (the embedded cloud)."""
        self.region = region
        self._endpoint_url = endpoint_url or None
        self._made: dict[tuple[str, str, Patience], Any] = {}
        self._session: Any = None
        self._calls: Counter[str] = Counter()
        self._lock = Lock()

    def patient(self, service: str, region: str = "") -> Any:  # noqa: ANN401 - boto3 has no types
        """Answer the client of *service* for calls that may be repeated; in *region* if that is another."""
        return self._client(service, region or self.region, "patient")

    def once(self, service: str) -> Any:  # noqa: ANN401 - boto3 has no types
        """Answer the client of *service* for calls of which exactly one attempt is made."""
        return self._client(service, self.region, "once")

    def calls(self) -> Mapping[str, int]:
        """Answer how often each call went out so far, attempts counted: ``{"ec2:DescribeInstances": 3}``."""
        return dict(sorted(self._calls.items()))

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for client in self._made.values():
                client.close()
            self._made.clear()

    def _client(self, service: str, region: str, patience: Patience) -> Any:  # noqa: ANN401 - boto3 has no types
        key = (service, region, patience)
        with self._lock:
            if key not in self._made:
                self._session = self._session or Session()
                made = self._session.create_client(
                    service, region_name=region, endpoint_url=self._endpoint_url, config=_config(service, patience)
                )
                made.meta.events.register("before-send", self._count)
                self._made[key] = made
            return self._made[key]

    def _count(self, event_name: str, **_: object) -> None:
        service, call = event_name.split(".")[1:]
        self._calls[f"{service}:{call}"] += 1


def _config(service: str, patience: Patience) -> Config:
    """Answer the limits; ``total_max_attempts`` counts the first attempt, as ``max_attempts`` does not."""
    adaptive, strict = {"mode": "adaptive", "total_max_attempts": 4}, {"mode": "standard", "total_max_attempts": 1}
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_FLEET_SECONDS if (service, patience) == ("ec2", "once") else _READ_SECONDS,
        retries=adaptive if patience == "patient" else strict,
        tcp_keepalive=True,
    )
