"""`joiner rebalance --plan`: what the best fleet would cost, what lies between, and the steps there."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    from cli.gaps import Rebalanced
    from cli.tables import Look
    from cli.text import Palette
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Say what the fleet costs, what the best fleet for the same pods would cost by our own planner
with all rules, what lies between them, cause by cause, and which steps disruption would take by itself. It only plans,
and --plan is required to say so: Joiner rebalances by itself, by consolidation."""
EXAMPLES: Final = """examples:
  joiner rebalance --plan                        of your current cluster
  joiner rebalance --plan -f cluster.json --instance-types catalogue.json
  joiner rebalance --plan -o json | jq '.gap[] | {cause, usdPerHour}'
  joiner consolidate                             the steps in full, and what keeps every other node

Each cause is lifted on top of those above it, so their order matters: pauses, budgets, consolidateAfter, protection,
policies; then all pods are placed anew. Drift and reserved capacity are as they are. Sources are those of
`joiner consolidate`.

-o json and yaml: today, after, ideal (each usdPerHour; today with nodes), gap (a list of cause, usdPerHour, says),
steps (reason, method, delete, replaceWith, existingNodes, savings, why: as of `joiner consolidate`), notes.

exit codes: 0 done, 1 something could not be read (it is named), 2 wrong usage (--plan is missing), 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
WITHOUT: Final = (
    "Joiner rebalances by itself, by consolidation: there is nothing to start; --plan says what it would do"
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.consolidate import add_settings  # noqa: PLC0415 - the list of commands needs none of it
    from cli.sources import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("--plan", action="store_true", help="required: nothing is changed")
    add_sources(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print every step, with every name")
    add_settings(parser)
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """Read, decide, print; answer 1 if something could not be read."""
    import sys  # noqa: PLC0415 - --help needs none of it

    from msgspec.structs import replace  # noqa: PLC0415

    from cli.consolidate import options_and_terms, read  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415
    from cli.gaps import rebalanced  # noqa: PLC0415
    from cli.look import current_and_told  # noqa: PLC0415
    from cli.progress import progress  # noqa: PLC0415
    from cli.sources import catalogue_of  # noqa: PLC0415
    from cli.telling import tell  # noqa: PLC0415

    if not chosen.plan:
        chosen.usage(WITHOUT)
    options, terms = options_and_terms(chosen)
    try:
        is_live = current_and_told(chosen, "rebalance")
        source = catalogue_of(chosen, is_live=is_live)
        looked, cluster = read(chosen, source)
    except InputError as error:
        return tell("rebalance", [str(error)])
    with progress("looking for the best fleet") as say:
        found = rebalanced(cluster, options, replace(terms, frees_limits=not is_live), say)
    sys.stdout.write(_shown(found, cluster, looked.notes, chosen))
    sys.stdout.flush()
    return tell("rebalance", [*looked.told, *(looked.placed(one) for one in cluster.problems)])


def _shown(found: "Rebalanced", cluster: "Cluster", notes: tuple[str, ...], chosen: argparse.Namespace) -> str:
    import sys  # noqa: PLC0415 - --help needs none of it

    from cli.consolidated import doubts  # noqa: PLC0415
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.tables import Look  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    notes = (*notes, *doubts(cluster, found.before))
    if chosen.output != "table":
        return encoded(document(found, cluster, notes), chosen.output)
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    return "\n".join(page(found, notes, palette_of(sys.stdout), look)) + "\n"


def document(found: "Rebalanced", cluster: "Cluster", notes: tuple[str, ...]) -> dict[str, Any]:
    """Answer what a program reads."""
    from cli.consolidated import step_documents  # noqa: PLC0415 - --help needs none of it

    return {
        "today": {"nodes": found.before.nodes, "usdPerHour": round(found.before.price_usd_per_hour, 9)},
        "after": {"usdPerHour": round(found.after_usd_per_hour, 9)},
        "ideal": {"usdPerHour": round(found.ideal_usd_per_hour, 9)},
        "gap": [{"cause": one.cause, "usdPerHour": round(one.usd_per_hour, 9), "says": one.says} for one in found.gaps],
        "steps": step_documents(found.steps, cluster),
        "notes": list(notes),
    }


def page(found: "Rebalanced", notes: tuple[str, ...], palette: "Palette", look: "Look") -> Iterator[str]:
    """Iterate over the lines that a person reads."""
    from cli.consolidated import HOURS_PER_MONTH, step_lines  # noqa: PLC0415 - --help needs none of it
    from cli.text import aligned, count, cut, folded  # noqa: PLC0415

    if not found.before.nodes:
        yield "no node there belongs to a NodePool: there is nothing to rebalance"
        yield from _notes(notes, palette, look)
        return
    today, best = found.before.price_usd_per_hour, found.ideal_usd_per_hour
    above = f", {100 * (today / best - 1):.0f} % above the best" if best > 0 and today > best else ", which is the best"
    head = f"${today:.4f} per hour for {count(found.before.nodes, 'node')}{above}"
    yield from (palette.paint("bold", line) for line in folded(head, look.width, ""))
    yield ""
    rows = [("today", f"{today:.4f}", "", count(found.before.nodes, "node"))]
    rows += [("steps now", _less(today - found.after_usd_per_hour), "", "disruption does them by itself: see below")]
    rows += [("after them", f"{found.after_usd_per_hour:.4f}", "", "")]
    rows += [(one.cause, _less(one.usd_per_hour), "", one.says) for one in found.gaps]
    rows += [("best", f"{best:.4f}", "", f"${HOURS_PER_MONTH * (today - best):,.0f} per month less than today")]
    cells = aligned([("", "$/H", "", ""), *((name, price, "", "") for name, price, _, _ in rows)], left=1)
    yield palette.paint("bold", cells[0])
    wide = max(map(len, cells))
    yield from (cut(f"{line:{wide}}  {row[3]}".rstrip(), look.width) for line, row in zip(cells[1:], rows, strict=True))
    yield from ("", *step_lines(found.steps, palette, look)) if found.steps else ()
    yield from _notes(notes, palette, look)


def _notes(notes: tuple[str, ...], palette: "Palette", look: "Look") -> Iterator[str]:
    from cli.text import folded  # noqa: PLC0415 - --help needs none of it

    yield from (palette.paint("dim", line) for note in notes for line in folded(f"note: {note}", look.width, ""))


def _less(some: float) -> str:
    """Answer an amount that comes off.

    >>> _less(0.5), _less(0.0)
    ('-0.5000', '-')
    """
    return f"{-some:.4f}" if abs(some) > 1e-9 else "-"  # noqa: PLR2004 - less than is printed
