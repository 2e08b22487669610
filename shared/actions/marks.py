"""Offerings that EC2 refused, for every function to see: one row for all that one answer closed.

A row is named by its content and written without a look at what is there: a refusal that is repeated has another end,
and so another row; of several that speak of one offering readers take the last end.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec

from shared.errors import Conflict
from shared.model.catalogue import UnavailableOffering
from shared.ports import World

KIND: Final = "unavailable"


def mark_unavailable(offerings: Iterable[UnavailableOffering], world: World) -> None:
    """Write down that *offerings*, one at least, are not to be tried until they end.

    Raises:
        Fault: the table did not answer.
    """
    some = sorted(set(offerings))
    body = msgspec.json.encode(some)
    ends = max(one.until for one in some)
    try:
        world.table.write(KIND, sha256(body).hexdigest()[:32], body.decode(), version=0, expires_at=ends)
    except Conflict:
        return  # the same was written already
