"""SSM Parameter Store. With a clock, values are cached: immutable ones for a day, others for a shorter time."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors


def is_mutable(parameter: str) -> bool:
    """Return whether the value of *parameter* changes with every release.

    >>> is_mutable("/aws/service/bottlerocket/aws-k8s-1.34/arm64/latest/image_id"), is_mutable("/a/1.42.0/image_id")
    (True, False)
    """
    return any(f"/{word}" in parameter for word in ("recommended/", "latest/", "ami-windows-latest/"))


PUBLIC_PREFIX: Final = "/aws/service/"
IMMUTABLE_VALUE_TTL: Final = timedelta(hours=24)
LATEST_RELEASE_TTL: Final = timedelta(minutes=30)
"""Cache TTL of Amazon's parameters for the newest release: the longest time a superseded image stays selected."""
USER_PARAMETER_TTL: Final = timedelta(minutes=5)
"""Cache TTL of the user's own parameters."""


class BotoParameterStore:
    """`shared.ports.aws.ParameterStore` over boto3."""

    def __init__(self, clients: Clients, clock: Callable[[], datetime] | None = None) -> None:
        """Make no call yet; without *clock* nothing is cached."""
        self._clients = clients
        self._clock = clock
        self._cached_values: dict[str, tuple[str, datetime]] = {}

    def get_parameter(self, name: str) -> str:
        """Return the value, which may be as old as the TTL. A missing parameter is not cached.

        Raises:
            NotFound: there is no such parameter.
        """
        if self._clock is None:
            return self._fetch_value(name)
        now = self._clock()
        cached = self._cached_values.get(name)
        if cached is None or now - cached[1] >= get_cache_ttl(name):
            cached = self._cached_values[name] = (self._fetch_value(name), now)
        return cached[0]

    def _fetch_value(self, name: str) -> str:
        with translate_errors(f"ssm:GetParameter {name}"):
            return str(self._clients.get_retrying_client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


def get_cache_ttl(name: str) -> timedelta:
    """Return how long the value of parameter *name* is cached."""
    if not name.startswith(PUBLIC_PREFIX):
        return USER_PARAMETER_TTL
    return LATEST_RELEASE_TTL if is_mutable(name) else IMMUTABLE_VALUE_TTL
