"""What a deployment asks for: how pods are placed, what disruption is held to, how long an invocation may decide."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from shared.disruption.payback import OVERLAP
from shared.disruption.terms import Terms, terms_from
from shared.ports import World
from shared.scheduling.placement import Options
from shared.settings import Settings, gates_from

ACTING: Final = timedelta(seconds=20)
"""Kept of an invocation's time for what was planned: claims are made and instances asked for."""
CLOSING: Final = timedelta(seconds=5)
"""Kept of an invocation's time for its end: the report is written and the lease given back."""


def options(settings: Settings) -> Options:
    """Answer the solver's options as the deployment sets them; in mode `plan` no node class says that it is ready."""
    names = (
        "preference_policy",
        "min_values_policy",
        "hints",
        "node_cost_usd_per_hour",
        "volume_usd_per_gib_month",
    )
    said = {name: getattr(settings, name) for name in names}
    readiness = "Assumed" if settings.mode == "plan" else "Required"
    return msgspec.convert(said | {"readiness": readiness}, Options, strict=False)


def disruption_terms(settings: Settings) -> Terms:
    """Answer what disruption is held to; an exchange of nodes has to earn what it costs."""
    gates = gates_from(settings.feature_gates)
    said = terms_from(
        settings.disruption_budgets, settings.disruption_time_zone, spot_to_spot=gates.spot_to_spot_consolidation
    )
    return msgspec.structs.replace(said, overlap=OVERLAP)


def clock_of(world: World, kept: timedelta = ACTING) -> Callable[[], bool] | None:
    """Answer what tells that only what is *kept* of the time is left; None where nobody counts it."""
    left = world.time_left
    return None if left is None else lambda: left() < kept
