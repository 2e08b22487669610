"""What is refused of disruption budgets before they are deployed; the fields of a schedule are read later."""

from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

KNOB: Final = "joiner:disruption-budgets"
_DESCRIPTOR: Final = "@(annually|yearly|monthly|weekly|daily|midnight|hourly)"


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of them, under the rules that Karpenter's definition of a NodePool has for it."""

    nodes: Annotated[str, msgspec.Meta(pattern="^((100|[0-9]{1,2})%|[0-9]+)$")] = "10%"
    reasons: tuple[Literal["Drifted", "Empty", "Underutilized"], ...] | None = None
    schedule: Annotated[str, msgspec.Meta(pattern=rf"^({_DESCRIPTOR}|\S+( \S+){{4}})$")] | None = None
    duration: Annotated[str, msgspec.Meta(pattern="^([0-9]+[hm])+(0s)?$")] | None = None


def check_budgets(text: str) -> None:
    """Refuse what is no list of budgets.

    Raises:
        ValueError: the message names the field.
    """
    try:
        some = msgspec.json.decode(text or "[]", type=tuple[Budget, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"{KNOB}: {error}: want a list in JSON, as a NodePool's spec.disruption.budgets") from None
    for number, one in enumerate(some):
        if (one.schedule is None) != (one.duration is None):
            raise ValueError(f"{KNOB}[{number}]: schedule and duration go together")


def check_time_zone(name: str) -> None:
    """Refuse a name that the database of time zones does not have.

    Raises:
        ValueError: the message names it.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"joiner:disruption-time-zone is {name!r}: want one like Europe/Berlin") from None
