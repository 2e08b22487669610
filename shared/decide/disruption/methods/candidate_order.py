"""The orders in which candidates are tried."""

from shared.decide.disruption.candidates import Candidate


def rotate_to_cursor(cursor: str, eligible: list[Candidate]) -> list[Candidate]:
    """Return the candidates starting with the one named *cursor*, if it exists."""
    start_index = next((place for place, candidate in enumerate(eligible) if candidate.name == cursor), 0)
    return eligible[start_index:] + eligible[:start_index]


def build_price_sort_key(candidate: Candidate) -> tuple[float, float, str]:
    """Return a sort key with the highest price first.

    Karpenter sorts by price for each pod, which results in higher total cost.
    """
    return -candidate.price_usd_per_hour, candidate.reschedule_cost, candidate.name


def build_ratio_sort_key(candidate: Candidate) -> tuple[float, str]:
    """Return a sort key with the highest savings for each moved pod first."""
    return -candidate.savings_ratio, candidate.name
