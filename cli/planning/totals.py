"""The totals of a plan: cost, age of the prices, and notes."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from cli.planning.document import PlanResult
from cli.terminal.text import Palette, format_age, wrap_text
from shared.model.core.formatting import format_count
from shared.model.core.labels import ZONE
from shared.model.decisions.placement import NewNodeClaim

HOURS_PER_MONTH: Final = 730
MAX_SPOT_PRICE_AGE: Final = timedelta(days=7)
"""Spot prices change within this time."""


def render_totals(plan_result: PlanResult, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the cost of the plan, compared with the greedy plan, and the age of the prices."""
    price, greedy = plan_result.placement.price_usd_per_hour, plan_result.placement.greedy_usd_per_hour
    if plan_result.placement.new_nodes:
        month = f"${HOURS_PER_MONTH * price:,.2f} per month of {HOURS_PER_MONTH} hours"
        first, *continuation_lines = wrap_text(f"total ${price:.4f} per hour, {month}", width, "")
        yield from (palette.colorize("bold", first), *continuation_lines)
        if plan_result.other_costs_usd_per_hour:
            node_cost_text = (
                f"volumes and whatever else each node costs: ${plan_result.other_costs_usd_per_hour:.4f} per hour more"
            )
            yield from wrap_text(node_cost_text, width, "")
        if greedy > price > 0:
            saved = f"${HOURS_PER_MONTH * (greedy - price):,.2f} per month saved"
            comparison_text = f"{100 * (greedy / price - 1):.0f} % more; {saved}"
            yield from wrap_text(f"the greedy plan: ${greedy:.4f} per hour, {comparison_text}", width, "")
        else:
            yield palette.colorize("dim", "the greedy plan would cost as much")
        if second_launch_count := plan_result.placement.second_launches:
            pods_text = format_count(second_launch_count, "pod")
            words = f"{pods_text} would need a second launch, as kube-scheduler is told nothing (--hints)"
            yield from wrap_text(words, width, "")
        yield from _render_price_age(plan_result, palette, width)
        if not all(has_fixed_zone(node) for node in plan_result.placement.new_nodes):
            yield palette.colorize("dim", "* the cheapest of several zones")
    yield palette.colorize(
        "dim", f"read in {plan_result.decode_seconds:.2f} s, planned in {plan_result.solve_seconds:.2f} s"
    )


def _render_price_age(plan_result: PlanResult, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the age of the prices."""
    catalog, now = plan_result.cluster.catalog, plan_result.cluster.taken_at
    if catalog is None or catalog.priced_at is None:
        color, text = "dim", "prices of an unknown day: the catalogue has no pricedAt"
    else:
        elapsed = now - catalog.priced_at
        color, text = "dim", f"prices of {catalog.priced_at:%Y-%m-%d %H:%M} UTC, {format_age(elapsed)} old"
        if catalog.list_estimated_capacity_types():
            color, text = (
                "yellow",
                f"{text}; {' and '.join(catalog.list_estimated_capacity_types())} prices could not be asked for since",
            )
        if elapsed >= MAX_SPOT_PRICE_AGE:
            color, text = "yellow", f"{text}: spot prices are others by now, fetch a new catalogue"
    yield from (palette.colorize(color, line) for line in wrap_text(text, width, ""))


def render_notes(plan_result: PlanResult, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the notes about the plan."""
    pods = len({approximation.pod for approximation in plan_result.placement.approximations})
    approximation_note = (
        f"{format_count(pods, 'pod')} with a constraint that is decided only at launch, by the zone that the node gets"
        if pods
        else ""
    )
    for note in (*plan_result.notes, approximation_note):
        if note:
            yield from (palette.colorize("dim", line) for line in wrap_text(f"note: {note}", width, ""))


def has_fixed_zone(node: NewNodeClaim) -> bool:
    """Return whether the zone of the cheapest offering is the only possible zone of *node*."""
    return node.requirements[ZONE].values == {node.cheapest.zone}
