"""The registration history of a NodePool: its NodeClaims that recently failed to register, in an annotation."""

from datetime import datetime

import msgspec

from shared.model.core.labels import REGISTRATION_HEALTH
from shared.model.karpenter.node_pool import NodePool


class RegistrationHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The value of the annotation."""

    generations: str = msgspec.field(default="", name="of")
    """The generations of the NodePool and of its node class."""
    since: datetime
    """Launches that finished earlier do not count."""
    failed: dict[str, datetime] = {}
    """When the NodeClaims that did not register were deleted, by name."""


def parse_registration_history(pool: NodePool) -> RegistrationHistory | None:
    """Return the history in the annotation of *pool*; None if there is none, or it cannot be read."""
    try:
        return msgspec.json.decode(pool.meta.get_annotation(REGISTRATION_HEALTH), type=RegistrationHistory)
    except msgspec.DecodeError:
        return None
