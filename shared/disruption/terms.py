"""What an operator may say about disruption besides the NodePools' own fields."""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from shared.disruption.budgets import least
from shared.disruption.knobs import time_zone
from shared.model.nodepools import Budget
from shared.model.objects import Problem
from shared.model.units import parse_duration

EVERYTHING = "*"
"""In place of a reason: all of them."""
BUDGETS: Final = "joiner:disruption-budgets"
TIME_ZONE: Final = "joiner:disruption-time-zone"
_ANY_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the deployment."""

    spot_to_spot: bool = False
    """Feature gate SpotToSpotConsolidation."""
    budgets: tuple[Budget, ...] = ()
    """For the nodes of all NodePools together."""
    time_zone: str = "UTC"
    """In which these budgets' schedules are read."""
    overlap: timedelta = timedelta()
    """For so long new nodes are paid for beside old ones; 0: as if nothing would ever change again."""
    frees_limits: bool = False
    """Whether nodes that go give back at once what they take of limits, as in Karpenter: where their replacements have
    to come first, the ledger would refuse these."""
    problem: str = ""
    """What of this cannot be read: nothing goes by choice until it is mended."""

    def problems(self) -> tuple[Problem, ...]:
        """Answer what is to be reported."""
        if not self.problem:
            return ()
        message = f"{self.problem}; no node is disrupted by choice until it is mended and deployed"
        return (Problem(kind="Setting", name="joiner", message=message),)


class _Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget as a NodePool has it."""

    nodes: str = "10%"
    reasons: tuple[Literal["Drifted", "Empty", "Underutilized"], ...] | None = None
    schedule: str = ""
    duration: str | None = None


def terms_from(budgets: str, zone: str, *, spot_to_spot: bool = False) -> Terms:
    """Read the settings; *budgets* is a list as a NodePool has it in spec.disruption.budgets, in JSON, or "".

    >>> [one.nodes for one in terms_from('[{"nodes": "5%"}, {"nodes": "0", "reasons": ["Drifted"]}]', "UTC").budgets]
    ['5%', '0']

    What cannot be read is the answer's problem, which names the setting.
    """
    try:
        time_zone(zone or "UTC")
    except ValueError as error:
        return Terms(spot_to_spot=spot_to_spot, problem=f"{TIME_ZONE}: {error}")
    try:
        some = _budgets(budgets)
    except ValueError as error:
        return Terms(spot_to_spot=spot_to_spot, problem=f"{BUDGETS}{error}")
    problem = least(some, "", 0, _ANY_DAY, time_zone(zone or "UTC"), BUDGETS).problem
    return Terms(spot_to_spot=spot_to_spot, budgets=some, time_zone=zone or "UTC", problem=problem)


def _budgets(text: str) -> tuple[Budget, ...]:
    try:
        read = msgspec.json.decode(text or "[]", type=tuple[_Budget, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f": {error}; write a list like a NodePool's spec.disruption.budgets, in JSON") from None
    return tuple(_budget(number, one) for number, one in enumerate(read))


def _budget(number: int, one: _Budget) -> Budget:
    try:
        lasts = None if one.duration is None else parse_duration(one.duration)
    except ValueError as error:
        raise ValueError(f"[{number}].duration: {error}") from None
    return Budget(nodes=one.nodes, reasons=one.reasons, schedule=one.schedule, duration=lasts)
