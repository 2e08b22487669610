"""How a fleet stands, for people and for programs."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from cli.installation import Installation
from cli.installation_page import installation_document, installation_lines
from cli.paused import paused_documents, paused_lines
from cli.plan_totals import HOURS_PER_MONTH
from cli.standing import Pool, Standing
from cli.tables import Look
from cli.text import Palette, aligned, count, cut, folded, some
from shared.model.resources import CPU, MEMORY, Resources, amount_text, quantities_from, resources
from shared.model.units import instant_text

_HEAD: Final = ("POOL", "READY", "COMING", "GOING", "CAPACITY", "CPU", "MEMORY", "$/H", "LIMIT")
_LEFT: Final = 1
NAMED: Final = 3


def document(one: Standing, beside: Installation | None) -> dict[str, Any]:
    """Answer what a program reads of a fleet and of the installation *beside* it."""
    return {
        "at": instant_text(one.at),
        "installation": installation_document(beside),
        "usdPerHour": None if one.usd_per_hour is None else round(one.usd_per_hour, 9),
        "pods": {"running": one.running, "waiting": len(one.waiting)},
        "pools": [_pool(pool, priced=one.usd_per_hour is not None) for pool in one.pools],
        "others": one.others,
        "paused": paused_documents(one.held),
        "waiting": [{"pod": pod, "why": why} for pod, why in one.waiting],
        "trouble": [{"kind": each.kind, "name": each.name, "what": each.what, "why": each.why} for each in one.trouble],
    }


def page(one: Standing, beside: Installation | None, palette: Palette, look: Look) -> str:
    """Answer what a person reads."""
    parts = (
        _summary(one, palette, look),
        installation_lines(beside, one.at, palette, look.width),
        paused_lines(one.held, one.at, palette, look.width),
        _pools(one, palette, look),
        _waiting(one, palette, look),
        _trouble(one, palette, look),
    )
    blocks = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _pool(pool: Pool, *, priced: bool) -> dict[str, Any]:
    kinds = dict(pool.by_capacity)
    return {
        "name": pool.name,
        "ready": pool.is_ready,
        "nodes": {"ready": pool.ready, "coming": pool.coming, "going": pool.going},
        "onDemand": kinds.get("on-demand", 0),
        "reserved": kinds.get("reserved", 0),
        "spot": kinds.get("spot", 0),
        **{
            name: {"requested": _quantity(pool.requested, name), "allocatable": _quantity(pool.allocatable, name)}
            for name in (CPU, MEMORY)
        },
        "usdPerHour": round(pool.usd_per_hour, 9) if priced else None,
        "limits": {name: [amount_text(name, used), amount_text(name, most)] for name, used, most in pool.limits},
    }


def _quantity(some: Resources, name: str) -> str:
    return quantities_from(resources({name: some[name]})).get(name, "0")


def _summary(one: Standing, palette: Palette, look: Look) -> Iterator[str]:
    nodes = sum(pool.ready + pool.coming + pool.going for pool in one.pools)
    price = ""
    if one.usd_per_hour is not None:
        price = f", ${one.usd_per_hour:.2f} per hour, ${HOURS_PER_MONTH * one.usd_per_hour:,.0f} per month"
    more = f" and {count(one.others, 'node')} of no NodePool" if one.others else ""
    pods = f"{count(one.running, 'pod')} with a node, {len(one.waiting) or 'none'} without"
    first, *rest = folded(f"{count(nodes, 'node')}{price}{more}; {pods}", look.width, "")
    yield from (palette.paint("bold", first), *rest)


def _pools(one: Standing, palette: Palette, look: Look) -> Iterator[str]:
    if not one.pools:
        return
    ranked = sorted(one.pools, key=lambda pool: (-pool.usd_per_hour, -pool.ready, pool.name))
    rows = [_HEAD, *(_row(pool, priced=one.usd_per_hour is not None) for pool in ranked[: look.most])]
    head, *lines = (cut(line, look.width) for line in aligned(rows, left=_LEFT))
    yield palette.paint("bold", head)
    for pool, line in zip(ranked, lines, strict=False):
        yield line if pool.is_ready else palette.paint("yellow", line)
    if len(ranked) > len(lines):
        yield palette.paint("dim", f"… and {count(len(ranked) - len(lines), 'more NodePool')} (--all shows them)")


def _row(pool: Pool, *, priced: bool) -> tuple[str, ...]:
    kinds = ", ".join(f"{number} {kind}" for kind, number in pool.by_capacity)
    fullest = max(pool.limits, key=lambda one: (one[1] / one[2] if one[2] else 1.0, one[0]), default=None)
    limit = "-"
    if fullest is not None:
        name, used, most = fullest
        limit = f"{name} {amount_text(name, used)} of {amount_text(name, most)}"
    return (
        pool.name,
        *(str(number or "-") for number in (pool.ready, pool.coming, pool.going)),
        kinds or "-",
        *(_share(pool, name) for name in (CPU, MEMORY)),
        f"{pool.usd_per_hour:.4f}" if priced else "-",
        limit,
    )


def _share(pool: Pool, name: str) -> str:
    whole = pool.allocatable[name]
    return f"{100 * pool.requested[name] / whole:.0f}% of {amount_text(name, whole)}" if whole else "-"


def _waiting(one: Standing, palette: Palette, look: Look) -> Iterator[str]:
    if not one.waiting:
        return
    yield palette.paint("bold", "WAITING")
    each = [((pod,), why) for pod, why in one.waiting]
    found = each if look.most is None else list(_alike(one.waiting))
    for pods, why in found[: look.most]:
        yield cut(f"  {_those(pods, why)}", look.width)
    hidden = sum(len(pods) for pods, _ in found[len(found) if look.most is None else look.most :])
    if hidden:
        yield palette.paint("dim", f"  … and {count(hidden, 'more pod')} (--all)")


def _alike(waiting: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Iterate over the reasons why pods wait, those of most pods first, and over the pods of each."""
    found: dict[str, list[str]] = {}
    for pod, why in waiting:
        found.setdefault(why, []).append(pod)
    for why, pods in sorted(found.items(), key=lambda one: (-len(one[1]), one[0])):
        yield tuple(pods), why


def _those(pods: tuple[str, ...], why: str) -> str:
    """Say which pods wait, and why: the reason first where they are many, names may be cut."""
    told = f": {why}" if why else ""
    return f"{pods[0]}{told}" if len(pods) == 1 else f"{count(len(pods), 'pod')}{told} ({some(pods, NAMED)})"


def _trouble(one: Standing, palette: Palette, look: Look) -> Iterator[str]:
    if not one.trouble:
        return
    yield palette.paint("bold", "TROUBLE")
    for each in one.trouble[: look.most]:
        words = f"{each.kind} {each.name}: {each.what}{f': {each.why}' if each.why else ''}"
        yield palette.paint("red", cut(f"  {words}", look.width))
    yield from _rest(len(one.trouble), "more", palette, look)


def _rest(number: int, what: str, palette: Palette, look: Look) -> Iterator[str]:
    if look.most is not None and number > look.most:
        yield palette.paint("dim", f"  … and {number - look.most:,} {what}{'s' if what != 'more' else ''} (--all)")
