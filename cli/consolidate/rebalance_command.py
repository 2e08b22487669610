"""`joiner rebalance --plan`: the cost of the ideal fleet, the cost gaps, and the steps to reach it."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    from cli.consolidate.cost_gaps import RebalancePlan
    from cli.planning.table import TableOptions
    from cli.terminal.text import Palette
    from shared.model.cluster import ClusterSnapshot

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
OutputFormat = Literal["table", "json", "yaml"]
PLAN_REQUIRED_MESSAGE: Final = (
    "Joiner rebalances by itself, by consolidation: there is nothing to start; --plan says what it would do"
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.consolidate.command import add_disruption_settings  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("--plan", action="store_true", help="required: nothing is changed")
    add_sources(parser)
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print every step, with every name")
    add_disruption_settings(parser)
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """Read, plan and print; return 1 if something could not be read."""
    import sys  # noqa: PLC0415 - --help needs none of it

    from msgspec.structs import replace  # noqa: PLC0415

    from cli.consolidate.command import parse_options_and_terms, read_cluster_and_catalog  # noqa: PLC0415
    from cli.consolidate.cost_gaps import plan_rebalance  # noqa: PLC0415
    from cli.planning.arguments import get_catalog_source  # noqa: PLC0415
    from cli.planning.cluster_source import announce_current_context  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.stderr import print_errors, show_progress  # noqa: PLC0415

    if not args.plan:
        args.usage(PLAN_REQUIRED_MESSAGE)
    options, settings = parse_options_and_terms(args)
    try:
        is_live = announce_current_context(args, "rebalance")
        source = get_catalog_source(args, is_live=is_live)
        planning_input, cluster = read_cluster_and_catalog(args, source)
    except InputError as error:
        return print_errors("rebalance", [str(error)])
    with show_progress("looking for the best fleet") as report_progress:
        rebalance_plan = plan_rebalance(cluster, options, replace(settings, frees_limits=not is_live), report_progress)
    sys.stdout.write(_render_output(rebalance_plan, cluster, planning_input.notes, args))
    sys.stdout.flush()
    return print_errors(
        "rebalance",
        [*planning_input.read_errors, *(planning_input.describe_problem(problem) for problem in cluster.problems)],
    )


def _render_output(
    rebalance_plan: "RebalancePlan", cluster: "ClusterSnapshot", notes: tuple[str, ...], args: argparse.Namespace
) -> str:
    import sys  # noqa: PLC0415 - --help needs none of it

    from cli.consolidate.page import list_caveats  # noqa: PLC0415
    from cli.planning.table import TableOptions  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    notes = (*notes, *list_caveats(cluster, rebalance_plan.before))
    if args.output != "table":
        return encode_output(build_rebalance_document(rebalance_plan, cluster, notes), args.output)
    layout = TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)
    return "\n".join(render_rebalance_page(rebalance_plan, notes, choose_palette(sys.stdout), layout)) + "\n"


def build_rebalance_document(
    rebalance_plan: "RebalancePlan", cluster: "ClusterSnapshot", notes: tuple[str, ...]
) -> dict[str, Any]:
    """Return the document that programs read."""
    from cli.consolidate.page import build_step_documents  # noqa: PLC0415 - --help needs none of it

    return {
        "today": {
            "nodes": rebalance_plan.before.node_count,
            "usdPerHour": round(rebalance_plan.before.price_usd_per_hour, 9),
        },
        "after": {"usdPerHour": round(rebalance_plan.after_usd_per_hour, 9)},
        "ideal": {"usdPerHour": round(rebalance_plan.ideal_usd_per_hour, 9)},
        "gap": [
            {"cause": gap.cause, "usdPerHour": round(gap.usd_per_hour, 9), "says": gap.explanation}
            for gap in rebalance_plan.gaps
        ],
        "steps": build_step_documents(rebalance_plan.steps, cluster),
        "notes": list(notes),
    }


def render_rebalance_page(
    rebalance_plan: "RebalancePlan", notes: tuple[str, ...], palette: "Palette", layout: "TableOptions"
) -> Iterator[str]:
    """Yield the lines that people read."""
    from cli.consolidate.page import HOURS_PER_MONTH, render_steps  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.text import align_columns, truncate_text, wrap_text  # noqa: PLC0415
    from shared.model.core.formatting import format_count  # noqa: PLC0415

    if not rebalance_plan.before.node_count:
        yield "no node there belongs to a NodePool: there is nothing to rebalance"
        yield from _render_notes(notes, palette, layout)
        return
    today, best = rebalance_plan.before.price_usd_per_hour, rebalance_plan.ideal_usd_per_hour
    above = f", {100 * (today / best - 1):.0f} % above the best" if best > 0 and today > best else ", which is the best"
    head = f"${today:.4f} per hour for {format_count(rebalance_plan.before.node_count, 'node')}{above}"
    yield from (palette.colorize("bold", line) for line in wrap_text(head, layout.width, ""))
    yield ""
    rows = [("today", f"{today:.4f}", "", format_count(rebalance_plan.before.node_count, "node"))]
    rows += [
        (
            "steps now",
            _format_reduction(today - rebalance_plan.after_usd_per_hour),
            "",
            "disruption does them by itself: see below",
        )
    ]
    rows += [("after them", f"{rebalance_plan.after_usd_per_hour:.4f}", "", "")]
    rows += [(gap.cause, _format_reduction(gap.usd_per_hour), "", gap.explanation) for gap in rebalance_plan.gaps]
    rows += [("best", f"{best:.4f}", "", f"${HOURS_PER_MONTH * (today - best):,.0f} per month less than today")]
    cells = align_columns([("", "$/H", "", ""), *((name, price, "", "") for name, price, _, _ in rows)], left_columns=1)
    yield palette.colorize("bold", cells[0])
    cell_width = max(map(len, cells))
    yield from (
        truncate_text(f"{line:{cell_width}}  {row[3]}".rstrip(), layout.width)
        for line, row in zip(cells[1:], rows, strict=True)
    )
    yield from ("", *render_steps(rebalance_plan.steps, palette, layout)) if rebalance_plan.steps else ()
    yield from _render_notes(notes, palette, layout)


def _render_notes(notes: tuple[str, ...], palette: "Palette", layout: "TableOptions") -> Iterator[str]:
    from cli.terminal.text import wrap_text  # noqa: PLC0415 - --help needs none of it

    yield from (
        palette.colorize("dim", line) for note in notes for line in wrap_text(f"note: {note}", layout.width, "")
    )


def _format_reduction(amount: float) -> str:
    """Return an amount that is subtracted.

    >>> _format_reduction(0.5), _format_reduction(0.0)
    ('-0.5000', '-')
    """
    return f"{-amount:.4f}" if abs(amount) > 1e-9 else "-"  # noqa: PLR2004 - less than is printed
