"""What a plan comes to: dollars, by which prices, and what is to be known of it besides."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from cli.planned import Planned
from cli.text import Palette, age, count, folded
from shared.model.labels import ZONE
from shared.scheduling.placement import NewNode

HOURS_PER_MONTH: Final = 730
STALE: Final = timedelta(days=7)
"""After that spot prices are others."""


def totals(planned: Planned, palette: Palette, width: int | None) -> Iterator[str]:
    """Iterate over what the plan costs, against the greedy one, and by which prices."""
    price, greedy = planned.placement.price_usd_per_hour, planned.placement.greedy_usd_per_hour
    if planned.placement.new_nodes:
        month = f"${HOURS_PER_MONTH * price:,.2f} per month of {HOURS_PER_MONTH} hours"
        first, *rest = folded(f"total ${price:.4f} per hour, {month}", width, "")
        yield from (palette.paint("bold", first), *rest)
        if planned.besides:
            more = f"volumes and whatever else each node costs: ${planned.besides:.4f} per hour more"
            yield from folded(more, width, "")
        if greedy > price > 0:
            saved = f"${HOURS_PER_MONTH * (greedy - price):,.2f} per month saved"
            more = f"{100 * (greedy / price - 1):.0f} % more; {saved}"
            yield from folded(f"the greedy plan: ${greedy:.4f} per hour, {more}", width, "")
        else:
            yield palette.paint("dim", "the greedy plan would cost as much")
        if again := planned.placement.second_launches:
            words = f"{count(again, 'pod')} would need a second launch, as kube-scheduler is told nothing (--hints)"
            yield from folded(words, width, "")
        yield from _prices(planned, palette, width)
        if not all(is_fixed(node) for node in planned.placement.new_nodes):
            yield palette.paint("dim", "* the cheapest of several zones")
    yield palette.paint("dim", f"read in {planned.decode_seconds:.2f} s, planned in {planned.solve_seconds:.2f} s")


def _prices(planned: Planned, palette: Palette, width: int | None) -> Iterator[str]:
    """Say how old the prices are."""
    catalogue, now = planned.cluster.catalogue, planned.cluster.taken_at
    if catalogue is None or catalogue.priced_at is None:
        colour, said = "dim", "prices of an unknown day: the catalogue has no pricedAt"
    else:
        passed = now - catalogue.priced_at
        colour, said = "dim", f"prices of {catalogue.priced_at:%Y-%m-%d %H:%M} UTC, {age(passed)} old"
        if catalogue.estimated():
            colour, said = (
                "yellow",
                f"{said}; {' and '.join(catalogue.estimated())} prices could not be asked for since",
            )
        if passed >= STALE:
            colour, said = "yellow", f"{said}: spot prices are others by now, fetch a new catalogue"
    yield from (palette.paint(colour, line) for line in folded(said, width, ""))


def notes(planned: Planned, palette: Palette, width: int | None) -> Iterator[str]:
    """Iterate over what is to be known of the plan besides."""
    pods = len({one.pod for one in planned.placement.approximations})
    own = (
        f"{count(pods, 'pod')} with a constraint that is decided only at launch, by the zone that the node gets"
        if pods
        else ""
    )
    for note in (*planned.notes, own):
        if note:
            yield from (palette.paint("dim", line) for line in folded(f"note: {note}", width, ""))


def is_fixed(node: NewNode) -> bool:
    """Whether the zone of its cheapest offering is the only one that it can be in."""
    return node.requirements[ZONE].values == {node.cheapest.zone}
