"""The base of all events of a script. Events with a duration end by themselves.

Seconds count from the moment when the stack has resolved its node classes and built its catalog.
"""

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """An event that happens *at* this second of the script and, if it has a duration, *lasts* this many seconds."""

    at: int
    lasts: int = 0

    @property
    def until(self) -> int:
        """The second when it ends."""
        return self.at + self.lasts
