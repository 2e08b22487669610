"""The orders in which candidates are tried."""

from collections.abc import Sequence
from typing import Final

from shared.decide.disruption.candidates import Candidate

MAX_CURSOR_NAMES: Final = 20
"""Names in a cursor: if a candidate is gone before the next run, the run starts with the next one that still exists."""


def build_cursor(unreached_names: Sequence[str]) -> str:
    """Return the cursor with which the next run starts at the first of *unreached_names*; "" if there is none."""
    return " ".join(unreached_names[:MAX_CURSOR_NAMES])


def split_at_cursor(cursor: str, eligible: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates from the cursor on, and those before it.

    If no candidate of the cursor exists any more, all candidates come first.
    """
    position_by_name = {candidate.name: position for position, candidate in enumerate(eligible)}
    start = next((position_by_name[name] for name in cursor.split() if name in position_by_name), 0)
    return eligible[start:], eligible[:start]


def build_price_sort_key(candidate: Candidate) -> tuple[float, float, str]:
    """Return a sort key with the highest price first.

    Karpenter sorts by price for each pod, which results in higher total cost.
    """
    return -candidate.price_usd_per_hour, candidate.reschedule_cost, candidate.name


def build_ratio_sort_key(candidate: Candidate) -> tuple[float, str]:
    """Return a sort key with the highest savings for each moved pod first."""
    return -candidate.savings_ratio, candidate.name
