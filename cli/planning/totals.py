"""The totals of a plan: cost, age of the prices, and notes."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from cli.planning.document import PlanResult
from cli.planning.spot_shares import list_share_texts
from cli.terminal.text import Palette, wrap_text
from shared.decide.launch.money.limit_prices import measure_limit_usage
from shared.model.core.formatting import format_count, format_elapsed, format_usd_per_hour, format_usd_per_month
from shared.model.core.labels import ZONE
from shared.model.core.resources import USD_PER_HOUR, format_amount
from shared.model.core.units import HOURS_PER_MONTH
from shared.model.decisions.placement import NewNodeClaim
from shared.model.karpenter.money_limit import format_scope
from shared.model.karpenter.zone_balance import get_balance_percent
from shared.state.spot_shares.node_pool_shares import measure_planned_shares

MAX_SPOT_PRICE_AGE: Final = timedelta(days=7)
"""Spot prices change within this time."""


def render_totals(plan: PlanResult, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the cost of the plan, compared with the greedy plan, and the age of the prices."""
    if plan.placement.new_nodes:
        first, *lines = (line for words in _list_cost_texts(plan) for line in wrap_text(words, width, ""))
        yield from (palette.colorize("bold", first), *lines)
        color, text = _describe_price_age(plan)
        yield from (palette.colorize(color, line) for line in wrap_text(text, width, ""))
        if not all(has_fixed_zone(node) for node in plan.placement.new_nodes):
            yield palette.colorize("dim", "* cheapest of several possible zones")
    share_texts = list_share_texts(measure_planned_shares(plan.cluster_state, plan.placement), ", with the new nodes")
    for text in (*_list_limit_texts(plan), *_list_balance_texts(plan), *share_texts):
        yield from wrap_text(text, width, "")
    yield palette.colorize("dim", f"read in {plan.decode_seconds:.2f} s, planned in {plan.solve_seconds:.2f} s")


def _list_cost_texts(plan: PlanResult) -> Iterator[str]:
    price, greedy = plan.placement.price_usd_per_hour, plan.placement.greedy_usd_per_hour
    yield f"total: {format_usd_per_hour(price)}, {format_usd_per_month(HOURS_PER_MONTH * price)}"
    list_price = plan.placement.list_usd_per_hour
    if any(node.cheapest.commitments for node in plan.placement.new_nodes):
        yield (
            f"without commitments: {format_usd_per_hour(list_price)}; Savings Plans and Reserved Instances pay "
            f"{format_usd_per_hour(list_price - price)}"
        )
    surcharge = sum(node.cheapest.interruption_usd_per_hour for node in plan.placement.new_nodes)
    if surcharge:
        yield f"with {format_usd_per_hour(surcharge)} for expected spot interruptions, which are not billed"
    if plan.other_costs_usd_per_hour:
        yield f"plus {format_usd_per_hour(plan.other_costs_usd_per_hour)} for EBS volumes and other node costs"
    if greedy > price > 0:
        saved = format_usd_per_month(HOURS_PER_MONTH * (greedy - price))
        yield f"saves {saved}: first-fit packing costs {format_usd_per_hour(greedy)} ({greedy / price - 1:.0%} more)"
    else:
        yield "first-fit packing costs the same"
    if plan.placement.second_launches:
        pods_text = format_count(plan.placement.second_launches, "pod")
        yield f"{pods_text} may need a second launch: Joiner nominates no nodes (--pod-nominations Disabled)"


def _list_limit_texts(plan: PlanResult) -> Iterator[str]:
    """Yield the usage of each limit in USD per hour."""
    for usage in measure_limit_usage(plan.cluster_state, plan.options.money):
        used, limit = (format_amount(USD_PER_HOUR, amount) for amount in (usage.used, usage.limit))
        yield f"limit of {format_scope(usage.scope)}: {used} of {limit} is used, without the new nodes"


def _list_balance_texts(plan: PlanResult) -> Iterator[str]:
    """Yield each NodePool with new nodes whose zones are balanced when they are launched."""
    pools_in_plan = {node.node_pool for node in plan.placement.new_nodes}
    for pool in plan.cluster.node_pools:
        percent = get_balance_percent(pool)
        if percent is not None and pool.name in pools_in_plan:
            yield f"NodePool {pool.name} is balanced over its zones at launch: its nodes may cost {percent} % more"


def _describe_price_age(plan: PlanResult) -> tuple[str, str]:
    """Return the color and the text about the age of the prices."""
    catalog = plan.cluster.catalog
    if catalog is None or catalog.priced_at is None:
        return "dim", "age of the prices: unknown, because the catalog has no pricedAt"
    age = plan.cluster.taken_at - catalog.priced_at
    text = f"prices of {catalog.priced_at:%Y-%m-%d %H:%M} UTC ({format_elapsed(age)} old)"
    estimated_types = catalog.list_estimated_capacity_types()
    if estimated_types:
        text += f"; {' and '.join(estimated_types)} prices could not be updated since"
    if age >= MAX_SPOT_PRICE_AGE:
        text += ": spot prices have changed since, build a new catalog"
    return "yellow" if estimated_types or age >= MAX_SPOT_PRICE_AGE else "dim", text


def render_notes(plan: PlanResult, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the notes about the plan."""
    pods = len({approximation.pod for approximation in plan.placement.approximations})
    launch_note = f"{format_count(pods, 'pod')} with a constraint that depends on the zone of the launched node"
    for note in (*plan.notes, *((launch_note,) if pods else ())):
        yield from (palette.colorize("dim", line) for line in wrap_text(f"note: {note}", width, ""))


def has_fixed_zone(node: NewNodeClaim) -> bool:
    """Return whether the zone of the cheapest offering is the only possible zone of *node*."""
    return node.requirements[ZONE].values == {node.cheapest.zone}
