"""One pod's verdict as a page that a person reads."""

from collections.abc import Iterator

from cli.explained import Verdict, offering_text
from cli.tables import Look
from cli.text import Palette, aligned, count, folded, some

_INDENT = " " * 12


def page(verdict: Verdict, palette: Palette, look: Look) -> str:
    """Answer what is told of *verdict*."""
    lines = [palette.paint("bold", f"pod {verdict.pod}") + (f", of {verdict.workload}" if verdict.workload else "")]
    if verdict.requests:
        lines += _entry("asks for", ", ".join(f"{amount} {name}" for name, amount in verdict.requests.items()), look)
    lines += _place(verdict, palette, look)
    if verdict.constraints:
        lines += ["constrained by", *_constraints(verdict, look)]
    if verdict.kind == "NewNode" and verdict.pools:
        lines += ["other pools", *_pools(verdict, look)]
    for one in verdict.undecided:
        lines += _entry("open", one, look)
    return "\n".join(lines) + "\n"


def _entry(title: str, words: str, look: Look) -> list[str]:
    """Answer *words* behind *title*, their further lines under them."""
    first, *rest = folded(words, look.width, _INDENT, "")
    return [f"{title:<12}{first.lstrip()}", *rest]


def _place(verdict: Verdict, palette: Palette, look: Look) -> Iterator[str]:
    match verdict.kind:
        case "NewNode":
            yield from _entry(
                "goes to", f"{verdict.node}, a new node of pool {verdict.node_pool}, {_company(verdict, look)}", look
            )
            if verdict.offering is not None:
                types = some(verdict.instance_types, None if look.is_whole else 5)
                number = len(verdict.instance_types)
                rank = (
                    f"the cheapest of {count(number, 'type')} ({types})" if number > 1 else "the only type that is left"
                )
                yield from _entry("bought as", f"{offering_text(verdict.offering)}: {rank}", look)
            steps = " → ".join(f"{number:,} {step}" for step, number in verdict.funnel)
            yield from _entry("types", steps, look)
        case "ExistingNode":
            yield from _entry(
                "goes to", f"{verdict.node}, a node that is there or on its way, {_company(verdict, look)}", look
            )
            yield from _entry("costs", "nothing more" + _paid(verdict), look)
        case "NotWaiting":
            yield from _entry("no plan", verdict.reason, look)
        case _:
            yield palette.paint("yellow", f"goes nowhere: {verdict.reason}")
            yield from _pools(verdict, look)


def _company(verdict: Verdict, look: Look) -> str:
    others = (
        count(len(verdict.beside), "other pod") + f" ({some(verdict.beside, look.named)})" if verdict.beside else ""
    )
    daemons = count(verdict.daemon_pods, "daemon pod") if verdict.daemon_pods else ""
    company = " and ".join(filter(None, (others, daemons)))
    return f"with {company}" if company else "alone"


def _paid(verdict: Verdict) -> str:
    if verdict.offering is None:
        return ""
    known = verdict.offering.price_usd_per_hour
    priced = offering_text(verdict.offering) if known else verdict.offering.instance_type
    return f": the node ({priced}) is paid for"


def _constraints(verdict: Verdict, look: Look) -> Iterator[str]:
    rows = []
    for one in verdict.constraints:
        values = one.requirement.get("values")
        listed = (
            f" [{some([str(value) for value in values], None if look.is_whole else 6)}]"
            if isinstance(values, list)
            else ""
        )
        rows.append((f"  {one.requirement['key']} {one.requirement['operator']}{listed}", " and ".join(one.made_by)))
    for (what, who), line in zip(rows, aligned(rows, left=2), strict=True):
        if look.width is None or len(line) <= look.width:
            yield line
        else:
            yield from folded(what.strip(), look.width, "  ")
            yield from folded(who, look.width, " " * 6)


def _pools(verdict: Verdict, look: Look) -> Iterator[str]:
    for pools, words in verdict.pools:
        names = pools.split(", ") if pools else []
        whose = f"{'pool' if len(names) == 1 else 'pools'} {some(names, look.named)}: " if names else ""
        yield from folded(whose + words, look.width, "  ")
