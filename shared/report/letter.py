"""The words in which people are told each day what nodes cost: what `joiner cost` shows, as an e-mail has it."""

from collections.abc import Iterator
from typing import Final

from shared.report.days import Day, is_whole
from shared.report.parts import Part, parts_of

MOST: Final = 10
"""Of each kind, dearest first."""
DEAREST: Final = 5
CENTS_BELOW: Final = 1_000
"""Dollars: a subject is short."""
TITLES: Final = {"pool": "By NodePool", "type": "By instance type", "capacity-type": "By capacity type"}


def subject(one: Day) -> str:
    """Answer the line that a list of messages shows, below a hundred characters for every name of a cluster."""
    amount = f"{one.usd:,.2f}" if one.usd < CENTS_BELOW else f"{one.usd:,.0f}"
    return f"Joiner: {one.cluster} cost ${amount} on {one.day}"


def text(one: Day, before: Day | None) -> str:
    """Answer the message: *one* day, and how it differs from that *before*, None if there is no report of it."""
    known = before if before is not None and is_whole(one) and is_whole(before) else None
    titles = TITLES | ({"label": f"By {one.label}"} if one.label else {})
    blocks = [_summary(one, before), *(_parts(title, by, one, known) for by, title in titles.items()), _dearest(one)]
    more = f"More: joiner cost --days 7 --by type, from the bucket's costs/{one.day}.json"
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + f"\n\n{more}\n"


def _summary(one: Day, before: Day | None) -> Iterator[str]:
    yield f"The nodes of {one.cluster} cost {_usd(one.usd)} on {one.day} (UTC), for {one.node_hours:,.0f} node hours."
    yield _change(one, before)
    yield f"{_usd(one.saved_by_spot_usd)} less than on demand."
    commands = f"{one.commands:,} command{'' if one.commands == 1 else 's'}"
    yield f"{_usd(one.saved_by_commands_usd)} saved by {commands} of disruption, to the end of the day."
    yield f"{_usd(one.idle_usd)}{_percent(one.idle_usd, one.usd)} for what no pod requested."
    if unpriced := sum(share.unpriced_hours for share in one.shares):
        yield f"{unpriced:,.1f} node hours have no known price, and count nothing."


def _change(one: Day, before: Day | None) -> str:
    if not is_whole(one):
        return f"The day is known from {one.since:%H:%M} to {one.until:%H:%M} only."
    if before is None:
        return "There is no report of the day before."
    if not is_whole(before):
        return f"The day before, {_usd(before.usd)}, is known from {before.since:%H:%M} to {before.until:%H:%M} only."
    change = one.usd - before.usd
    if not round(change, 2):
        return "That is as much as on the day before."
    what = "more" if change > 0 else "less"
    return f"That is {_usd(abs(change))}{_percent(abs(change), before.usd)} {what} than on the day before."


def _parts(title: str, by: str, one: Day, before: Day | None) -> Iterator[str]:
    """List what *one* day cost, dearest first, beside the change; whoever cost something *before* only is there too."""
    now, then = parts_of((one,), by), parts_of((before,), by) if before is not None else ()
    earlier, names = {part.name: part for part in then}, {part.name for part in now}
    gone = [part for part in then if part.name not in names]
    yield title
    for part in now[:MOST]:
        change = "" if before is None else f", {_signed(part.usd - _usd_of(earlier.get(part.name)))}"
        yield f"  {part.name or '(none)'}: {_usd(part.usd)}{_percent(part.usd, one.usd)}{change}"
    if rest := now[MOST:]:
        yield f"  {len(rest):,} more: {_usd(sum(part.usd for part in rest))}"
    for part in gone[:MOST]:
        yield f"  {part.name or '(none)'}: nothing any more, {_signed(-part.usd)}"
    if not now and not gone:
        yield "  none"


def _dearest(one: Day) -> Iterator[str]:
    if one.dearest:
        yield "Dearest nodes"
    for each in one.dearest[:DEAREST]:
        what = f"{each.instance_type} {each.capacity_type}, NodePool {each.pool}"
        yield f"  {each.claim}: {_usd(each.usd)} in {each.hours:.1f} hours, {what}"


def _usd_of(part: Part | None) -> float:
    return part.usd if part is not None else 0.0


def _usd(amount: float) -> str:
    return f"${amount:,.2f}"


def _signed(amount: float) -> str:
    """Answer a change.

    >>> _signed(0.4), _signed(-1.25), _signed(-0.001)
    ('+$0.40', '-$1.25', 'unchanged')
    """
    return f"{'+' if amount > 0 else '-'}{_usd(abs(amount))}" if round(amount, 2) else "unchanged"


def _percent(part: float, whole: float) -> str:
    return f" ({100 * part / whole:.0f}%)" if whole else ""
