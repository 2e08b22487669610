"""Why a disruption is refused: there is no replacement, or it does not pay."""

import msgspec


class ReplacementRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no replacement."""

    reason: str
    message: str
