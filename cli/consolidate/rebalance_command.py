"""`joiner rebalance --plan`: the cost of the ideal fleet, the cost gaps, and the steps to reach it."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from cli.consolidate.command import add_disruption_arguments, parse_options_and_settings
from cli.consolidate.cost_gaps import RebalancePlan, plan_rebalance
from cli.consolidate.page import build_step_documents, list_caveats, render_notes, render_steps
from cli.plan.command import read_input_with_features
from cli.planning.arguments import LIVE_CATALOG_HELP, get_catalog_source
from cli.planning.cluster_source import default_to_current_context
from cli.planning.table import TableOptions, choose_table_options
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, choose_palette, wrap_text
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_usd_per_hour, format_usd_per_month
from shared.model.core.units import HOURS_PER_MONTH

DESCRIPTION: Final = """Show what the nodes cost, the lowest cost that Joiner's planner finds for the same pods, what
causes the difference, and the steps that disruption would take now. Read-only, and --plan is required: consolidation
runs continuously, so there is no command that starts a rebalance."""
EXAMPLES: Final = f"""examples:
  joiner rebalance --plan                        the current context's cluster
  joiner rebalance --plan -f examples/cluster --instance-types examples/catalogue.json       offline
  joiner rebalance --plan -o json | jq '.gap[] | {{cause, usdPerHour}}'
  joiner consolidate                             all details of the steps, and why each other node is kept

This lowest cost is without constraints; that of `joiner consolidate` is with all constraints in force, so it is higher
or equal.

The difference is split by cause: each constraint is removed in addition to those above it, in the order pauses,
budgets, consolidateAfter, protection, policies. Then all pods are rescheduled at once (steps), and again without the
limits of NodePools (limits). Drift and reserved capacity are not considered.

{LIVE_CATALOG_HELP}

exit codes: 0 done, 1 some input could not be read (the message names it), 2 wrong usage (--plan is missing),
130 interrupted
"""
PLAN_REQUIRED_MESSAGE: Final = (
    "write --plan: consolidation runs continuously, so this command only shows the plan and starts nothing"
)
_COSTS: Final = TableLayout(headings=("", "$/H", ""), alignment="<>~", is_folded=True, min_flexible_width=24)
_MIN_SHOWN_USD: Final = 1e-9


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("--plan", action="store_true", help="required: only show the plan")
    add_disruption_arguments(parser)
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """Read, plan and print; return 1 if something could not be read."""
    if not args.plan:
        args.usage(PLAN_REQUIRED_MESSAGE)
    options, settings = parse_options_and_settings(args)
    try:
        is_live = default_to_current_context(args, "rebalance")
        planning_input = read_input_with_features(args, get_catalog_source(args, is_live=is_live))
    except InputError as error:
        return print_errors("rebalance", [str(error)])
    cluster = planning_input.cluster
    with show_progress("searching for the cheapest nodes") as report_progress:
        plan = plan_rebalance(cluster, options, replace(settings, frees_limits=not is_live), report_progress)
    notes = (*planning_input.notes, *list_caveats(cluster, plan.before))
    if args.output == "table":
        lines = render_rebalance_page(plan, notes, choose_palette(sys.stdout), choose_table_options(args))
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        sys.stdout.write(encode_output(build_rebalance_document(plan, cluster, notes), args.output))
    sys.stdout.flush()
    return print_errors("rebalance", planning_input.list_errors())


def build_rebalance_document(plan: RebalancePlan, cluster: ClusterSnapshot, notes: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON and YAML output."""
    return {
        "before": {"nodes": plan.before.node_count, "usdPerHour": round(plan.before.price_usd_per_hour, 9)},
        "after": {"usdPerHour": round(plan.after_usd_per_hour, 9)},
        "lowestWithoutConstraints": {"usdPerHour": round(plan.ideal_usd_per_hour, 9)},
        "gap": [
            {"cause": gap.cause, "usdPerHour": round(gap.usd_per_hour, 9), "message": gap.explanation}
            for gap in plan.gaps
        ],
        "steps": build_step_documents(plan.steps, cluster),
        "notes": list(notes),
    }


def render_rebalance_page(
    plan: RebalancePlan, notes: tuple[str, ...], palette: Palette, layout: TableOptions
) -> Iterator[str]:
    """Yield the lines that people read."""
    if not plan.before.node_count:
        yield "no NodePool has a node: nothing to rebalance"
        yield from render_notes(notes, palette, layout)
        return
    today, lowest = plan.before.price_usd_per_hour, plan.ideal_usd_per_hour
    nodes_text = format_count(plan.before.node_count, "node")
    distance = f"{today / lowest - 1:.0%} above " if today > lowest > 0 else ""
    head = f"{format_usd_per_hour(today)} for {nodes_text}: {distance}the lowest cost without constraints"
    yield from (palette.colorize("bold", line) for line in wrap_text(head, layout.width, ""))
    yield ""
    saved = format_usd_per_month(HOURS_PER_MONTH * (today - lowest))
    rows = [
        ("today", f"{today:.4f}", nodes_text),
        (
            "next steps",
            _format_reduction(today - plan.after_usd_per_hour),
            "disruption takes these steps automatically",
        ),
        ("after these", f"{plan.after_usd_per_hour:.4f}", ""),
        *((gap.cause, _format_reduction(gap.usd_per_hour), gap.explanation) for gap in plan.gaps),
        ("lowest", f"{lowest:.4f}", f"without the constraints above; saves {saved}"),
    ]
    yield from render_table(_COSTS, rows, palette, layout.width)
    yield from ("", *render_steps(plan.steps, palette, layout)) if plan.steps else ()
    yield from render_notes(notes, palette, layout)


def _format_reduction(amount_usd: float) -> str:
    """Return an amount that is subtracted.

    >>> _format_reduction(0.5), _format_reduction(0.0)
    ('-0.5000', '-')
    """
    return f"{-amount_usd:.4f}" if abs(amount_usd) > _MIN_SHOWN_USD else "-"
