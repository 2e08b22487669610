"""Validation of disruption budgets before a deployment; the fields of a schedule are validated at run time."""

from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

CONTEXT_KEY: Final = "disruption-budgets"
_DESCRIPTOR_PATTERN: Final = "@(annually|yearly|monthly|weekly|daily|midnight|hourly)"


class BudgetOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A disruption budget, under the rules of the NodePool CRD."""

    nodes: Annotated[str, msgspec.Meta(pattern="^((100|[0-9]{1,2})%|[0-9]+)$")] = "10%"
    reasons: tuple[Literal["Drifted", "Empty", "Underutilized"], ...] | None = None
    schedule: Annotated[str, msgspec.Meta(pattern=rf"^({_DESCRIPTOR_PATTERN}|\S+( \S+){{4}})$")] | None = None
    duration: Annotated[str, msgspec.Meta(pattern="^([0-9]+[hm])+(0s)?$")] | None = None


def check_budgets(text: str) -> None:
    """Check that *text* is a list of disruption budgets.

    Raises:
        ValueError: the message names the field.
    """
    try:
        budgets = msgspec.json.decode(text or "[]", type=tuple[BudgetOption, ...])
    except msgspec.DecodeError as error:
        raise ValueError(
            f"{CONTEXT_KEY}: {error}: must be a JSON list like spec.disruption.budgets of a NodePool"
        ) from None
    for number, budget in enumerate(budgets):
        if (budget.schedule is None) != (budget.duration is None):
            raise ValueError(f"{CONTEXT_KEY}[{number}]: schedule and duration go together")


def check_time_zone(name: str) -> None:
    """Check that *name* is in the time zone database.

    Raises:
        ValueError: the message contains *name*.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"disruption-time-zone is {name!r}: must be a time zone like Europe/Berlin") from None
