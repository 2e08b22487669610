"""A report as one page, and as a document with stable keys."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.charts import Span, bars, plot
from cli.html import Column, Markup, document, folding, joined, table, tag, words
from cli.report_blocked import Group
from cli.report_data import Report
from cli.report_fleet import Node, Pool
from cli.text import age, count, some

MOST: Final = 400
"""Decisions that the page shows; the document has all."""
NAMED: Final = 12
UNKNOWN: Final = "Not known: no cycle of this time was read, which is not to say that nothing happened."
_LONG: Final = timedelta(days=2)


def page(one: Report) -> str:
    """Answer the HTML."""
    title = f"Joiner: {instant(one.began)} to {instant(one.ended)} UTC"
    return document(title, tag("h1", "Joiner"), _head(one), _tiles(one), *_body(one))


def _head(one: Report) -> Markup:
    functions = ", ".join(f"{number:,} {name}" for name, number in one.cycles.items())
    said = (
        f"{one.source or 'no journal'}, {instant(one.began)} to {instant(one.ended)} UTC; cycles: {functions or 'none'}"
    )
    live = " Nodes and pods that wait are those of the live cluster." if one.is_live else ""
    lost = [tag("p", f"not read: {each}", class_="no") for each in one.unreadable]
    return joined((tag("p", said + live, class_="why"), *lost))


def _tiles(one: Report) -> Markup:
    price = sum(pool.usd_per_hour for pool in one.pools)
    tiles = (
        ("nodes", f"{len(one.nodes):,}" if one.cycles or one.is_live else "?"),
        ("$ per hour", f"{price:,.2f}"),
        ("$ for instances in this time", f"{one.usd:,.2f}"),
        ("$ per hour saved by commands", f"{one.saved_usd_per_hour:,.2f}"),
        ("launched", f"{sum(each.launched for each in one.changes):,}"),
        ("terminated", f"{sum(each.terminated for each in one.changes):,}"),
        ("pods without a place", f"{sum(len(group.names) for group in one.blocked_pods):,}"),
        ("cycles that failed", f"{sum(each.times for each in one.failures):,}"),
    )
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles), class_="tiles")


def _body(one: Report) -> Iterator[Markup]:
    span = Span(began=one.began, ended=one.ended, label=_label(one))
    if one.fleet:
        yield plot("Nodes", [("nodes", [(each.at, each.nodes) for each in one.fleet])], span)
        yield plot("Cost, $ per hour", [("instances", [(each.at, each.usd_per_hour) for each in one.fleet])], span)
    if one.waiting:
        pods = ("waiting", [(each.at, each.pods) for each in one.waiting])
        left = ("without a place", [(each.at, each.without_place) for each in one.waiting])
        yield plot("Pods without a node", [pods, left], span)
    if any(each.launched or each.terminated for each in one.changes):
        ups = ("launched", [(each.at, float(each.launched)) for each in one.changes])
        downs = ("terminated", [(each.at, float(each.terminated)) for each in one.changes])
        yield bars("Launches and terminations", ups, downs, span, one.change_seconds)
    yield from _blocked(one)
    yield from _fleet(one)
    yield from _decisions(one)
    yield from _troubles(one)


def _label(one: Report) -> "Any":  # noqa: ANN401 - of an instant, a text
    form = "%b %d" if one.ended - one.began > _LONG else "%H:%M"
    return lambda at: f"{at.astimezone(UTC):{form}}"


def _fleet(one: Report) -> Iterator[Markup]:
    yield tag("h2", "Fleet")
    if not one.pools:
        yield tag("p", "The journal tells of no machine." if one.cycles or one.is_live else UNKNOWN)
        return
    numbers = ("nodes", "$ per hour", "$ in this time", "launched", "terminated")
    columns = [Column(title="NodePool"), Column(title="capacity")]
    columns += [Column(title=name, is_number=True) for name in numbers]
    yield table("By NodePool, dearest first", columns, map(_pool, one.pools))
    columns = [Column(title="type"), Column(title="nodes", is_number=True), Column(title="$ per hour", is_number=True)]
    rows = [(each.name, f"{each.nodes:,}", f"{each.usd_per_hour:.4f}") for each in one.types]
    yield folding(f"{count(len(rows), 'instance type')} at the end", table("Instance types at the end", columns, rows))
    by_pool = groupby(one.nodes, key=lambda node: node.pool)
    lists = [_nodes(pool, list(nodes), one.ended) for pool, nodes in by_pool]
    if lists:
        yield folding(f"{count(len(one.nodes), 'node')} at the end", *lists, is_open=len(lists) == 1)


def _pool(one: Pool) -> Sequence[str]:
    kinds = ", ".join(f"{number} {kind}" for kind, number in one.by_capacity.items())
    numbers = (
        f"{one.nodes:,}",
        f"{one.usd_per_hour:.4f}",
        f"{one.usd:.2f}",
        f"{one.launched:,}",
        f"{one.terminated:,}",
    )
    return one.name or "unknown", kinds or "-", *numbers


def _nodes(pool: str, nodes: Sequence[Node], now: datetime) -> Markup:
    columns = [Column(title=one) for one in ("node", "type", "zone")]
    columns += [Column(title="$ per hour", is_number=True), Column(title="age", is_number=True)]
    columns += [Column(title="why it stays, or goes")]
    name = pool or "unknown"
    rows = (_node(one, now) for one in nodes)
    return folding(f"Nodes of {name}: {len(nodes):,}", table(f"Nodes of NodePool {name}", columns, rows))


def _node(one: Node, now: datetime) -> Sequence[str]:
    kind = " ".join(filter(None, (one.instance_type or "unknown", one.capacity_type)))
    old = age(now - one.launched_at) if one.launched_at is not None else "-"
    price = f"{one.usd_per_hour:.4f}" if one.usd_per_hour else "-"
    return (
        words(one.name or "not joined yet", one.claim),
        kind,
        one.zone or "-",
        price,
        old,
        words(one.verdict, one.why),
    )


def _blocked(one: Report) -> Iterator[Markup]:
    yield tag("h2", "What is blocked, and why")
    if not (one.cycles or one.is_live):
        yield tag("p", UNKNOWN, class_="no")
        return
    if not (one.blocked_pods or one.blocked_nodes):
        yield tag("p", "Nothing: no pod waits without a place, and of no node it is said why it stays.")
    if one.blocked_pods:
        yield _groups("Pods without a place", "pods", one.blocked_pods)
    if one.blocked_nodes:
        yield _groups("Nodes that stay", "nodes", one.blocked_nodes)


def _groups(caption: str, what: str, groups: Sequence[Group]) -> Markup:
    columns = (Column(title=what, is_number=True), Column(title="why"), Column(title="which"))
    rows = (
        (
            f"{len(one.names):,}",
            joined((one.what, *(tag("div", why, class_="why") for why in one.why))),
            _names(one.names),
        )
        for one in groups
    )
    return table(caption, columns, rows)


def _names(names: Sequence[str]) -> Markup:
    if len(names) <= NAMED:
        return joined((", ".join(names),))
    return folding(some(names, 3), ", ".join(names))


def _decisions(one: Report) -> Iterator[Markup]:
    yield tag("h2", "Decisions")
    if not one.decisions:
        yield tag("p", "None.")
        return
    shown = one.decisions[:MOST]
    rest = len(one.decisions) - len(shown)
    caption = "Newest first, in UTC" + (f"; {rest:,} earlier ones are left out (-o json has them)" if rest else "")
    columns = (Column(title="when"), Column(title="who"), Column(title="what, and why"))
    rows = (
        (
            instant(each.at),
            each.function,
            words(tag("span", each.what, class_="no") if each.is_failed else each.what, each.why),
        )
        for each in shown
    )
    yield table(caption, columns, rows)


def _troubles(one: Report) -> Iterator[Markup]:
    if one.problems:
        yield tag("h2", "Problems at the end")
        columns = (Column(title="kind"), Column(title="name"), Column(title="what is wrong"))
        yield table(
            "Objects that were left out or told of", columns, ((p.kind, p.name, p.message) for p in one.problems)
        )
    if one.failures:
        yield tag("h2", "Cycles that failed")
        columns = (Column(title="times", is_number=True), Column(title="last"), Column(title="error"))
        yield table("By error", columns, ((f"{each.times:,}", instant(each.last), each.error) for each in one.failures))


def instant(at: datetime) -> str:
    """Answer *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def report_document(one: Report) -> dict[str, Any]:
    """Answer what a program reads: stable keys in camelCase, instants in UTC, USD."""
    found: dict[str, Any] = _camel(msgspec.to_builtins(one, builtin_types=(datetime,)))
    found["problems"] = [{"kind": one.kind, "name": one.name, "message": one.message} for one in one.problems]
    for pool, known in zip(found["pools"], one.pools, strict=True):
        pool["byCapacity"] = known.by_capacity
    return found


def _camel(some: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(some, dict):
        return {_key(key): _camel(value) for key, value in some.items()}
    if isinstance(some, list | tuple):
        return [_camel(one) for one in some]
    if isinstance(some, datetime):
        return some.astimezone(UTC)
    return round(some, 9) if isinstance(some, float) else some


def _key(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
