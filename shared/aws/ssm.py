"""SSM Parameter Store. With a clock, values are remembered: for a day what never moves, for less what does."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.launch.images import is_mutable

PUBLIC: Final = "/aws/service/"
PINNED_FOR: Final = timedelta(hours=24)
MOVING_FOR: Final = timedelta(minutes=30)
"""Of Amazon's own that name the newest release: so long at most an image stays chosen that is no longer the one."""
OWN_FOR: Final = timedelta(minutes=5)
"""Of the user's own."""


class BotoParameters:
    """`shared.ports.Parameters` over boto3."""

    def __init__(self, clients: Clients, clock: Callable[[], datetime] | None = None) -> None:
        """Call nothing yet; without *clock* nothing is remembered."""
        self._clients = clients
        self._clock = clock
        self._known: dict[str, tuple[str, datetime]] = {}

    def parameter(self, name: str) -> str:
        """Answer the value, which may be as old as `age_of` says. That there is none is not remembered.

        Raises:
            Gone: there is no such parameter.
        """
        if self._clock is None:
            return self._asked(name)
        now = self._clock()
        known = self._known.get(name)
        if known is None or now - known[1] >= age_of(name):
            known = self._known[name] = (self._asked(name), now)
        return known[0]

    def _asked(self, name: str) -> str:
        with faults(f"ssm:GetParameter {name}"):
            return str(self._clients.patient("ssm").get_parameter(Name=name)["Parameter"]["Value"])


def age_of(name: str) -> timedelta:
    """Answer for how long the value of parameter *name* is believed."""
    if not name.startswith(PUBLIC):
        return OWN_FOR
    return MOVING_FOR if is_mutable(name) else PINNED_FOR
