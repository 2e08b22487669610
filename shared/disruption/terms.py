"""What an operator may say about disruption besides the NodePools' own fields."""

import msgspec

from shared.model.nodepools import Budget

EVERYTHING = "*"
"""In place of a reason: all of them."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the deployment."""

    spot_to_spot: bool = False
    """Feature gate SpotToSpotConsolidation."""
    budgets: tuple[Budget, ...] = ()
    """For the nodes of all NodePools together."""
    time_zone: str = "UTC"
    """In which these budgets' schedules are read."""
