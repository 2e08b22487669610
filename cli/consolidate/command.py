"""`joiner consolidate`: the disruption commands that Joiner would execute, step by step."""

import argparse
import re
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from cli.consolidate.page import (
    ConsolidationReport,
    build_consolidation_document,
    format_progress,
    list_caveats,
    render_consolidation_page,
)
from cli.consolidate.steps import DISRUPTION_REASONS, StepLimits, consolidate
from cli.inputs.environment import read_environment_settings
from cli.plan.command import build_options, read_input_with_features
from cli.planning.arguments import LIVE_CATALOG_HELP, add_planning_arguments, get_catalog_source, parse_usd
from cli.planning.cluster_source import PlanningInput, default_to_current_context
from cli.planning.table import choose_table_options
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.text import choose_palette
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings, parse_disruption_settings
from shared.model.core.feature_gates import parse_feature_gates
from shared.model.decisions.placement import SchedulingOptions

DESCRIPTION: Final = """Simulate disruption (emptiness, drift and consolidation) step by step until no step is left,
assuming that nothing else changes in the cluster. Show what each step saves, and why each remaining node is kept or
blocked. Read-only. The input is a live cluster (by default the current context), or files (-f)."""
EXAMPLES: Final = f"""examples:
  joiner consolidate                             the current context's cluster
  joiner consolidate --context prod --reason Empty --reason Drifted
  joiner consolidate --steps 1                   only what the next disruption run would do
  joiner consolidate -f examples/cluster --instance-types examples/catalogue.json            offline
  joiner consolidate -f cluster.json --instance-types catalog.json --until '$/h<12' -o json | jq .after

Steps are merged to their net change: a node that a later step would remove is not launched, unless budgets or other
rules require separate steps.

The summary compares the result with the lowest cost with all constraints (pauses, budgets, protected pods, policies):
that of rescheduling all movable pods at once. `joiner rebalance --plan` shows the lowest cost without constraints.

{LIVE_CATALOG_HELP}

exit codes: 0 done (also if nodes are kept), 1 some input could not be read (the message names it; the rest is
simulated), 2 wrong usage, 130 interrupted (the steps until then are printed)
"""
INTERRUPTED_EXIT_CODE: Final = 130
_PRICE_LIMIT_PATTERN: Final = re.compile(r"\s*\$/h\s*(?P<operator><=?)\s*(?P<price>[0-9]+(?:\.[0-9]+)?)\s*")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_disruption_arguments(parser)
    parser.add_argument(
        "--reason", action="append", choices=DISRUPTION_REASONS, help="simulate only this disruption reason; repeatable"
    )
    parser.add_argument(
        "--steps", type=_parse_positive_int, metavar="N", help="stop after N disruption runs; a run can have many steps"
    )
    parser.add_argument(
        "--max-steps", type=_parse_positive_int, metavar="N", help="stop after N steps, counted before they are merged"
    )
    parser.add_argument(
        "--until", type=_parse_price_limit, metavar="'$/h<12'", help="stop once the nodes cost less than this per hour"
    )
    parser.set_defaults(run=run, usage=parser.error)


def add_disruption_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the planning arguments and the feature gates."""
    add_planning_arguments(parser)
    parser.add_argument(
        "--feature-gates",
        metavar="NAME=BOOL,…",
        help="for example SpotToSpotConsolidation=true (default: $FEATURE_GATES)",
    )
    parser.add_argument(
        "--eviction-price",
        metavar="USD",
        type=parse_usd,
        help="price of evicting one pod; annotations of NodePools override it (default: $JOINER_EVICTION_PRICE_USD, "
        "else 0)",
    )


def run(args: argparse.Namespace) -> int:
    """Read, simulate, print; return 1 if an input cannot be read."""
    options, settings = parse_options_and_settings(args)
    try:
        is_live = default_to_current_context(args, "consolidate")
        source = get_catalog_source(args, is_live=is_live)
        planning_input, report = _build_report(args, source, options, replace(settings, frees_limits=not is_live))
    except InputError as error:
        return print_errors("consolidate", [str(error)])
    sys.stdout.write(
        render_consolidation_page(report, choose_palette(sys.stdout), choose_table_options(args))
        if args.output == "table"
        else encode_output(build_consolidation_document(report), args.output)
    )
    sys.stdout.flush()
    status = print_errors("consolidate", planning_input.list_errors())
    return INTERRUPTED_EXIT_CODE if report.consolidation.stopped == "interrupted" else status


def _build_report(
    args: argparse.Namespace, source: str, options: SchedulingOptions, settings: DisruptionSettings
) -> tuple[PlanningInput, ConsolidationReport]:
    """Read the input, and simulate.

    Raises:
        InputError: There is no catalog, or a live cluster cannot be read.
    """
    started_at = perf_counter()
    planning_input = read_input_with_features(args, source)
    cluster = planning_input.cluster
    decoded_at = perf_counter()
    limits = StepLimits(
        reasons=args.reason or DISRUPTION_REASONS, max_steps=args.max_steps, max_runs=args.steps, until=args.until
    )
    with show_progress("simulating disruption") as report_progress:
        consolidation = consolidate(
            cluster, options, settings, limits, lambda steps, price: report_progress(format_progress(steps, price))
        )
    return planning_input, ConsolidationReport(
        cluster=cluster,
        consolidation=consolidation,
        notes=(*planning_input.notes, *list_caveats(cluster, consolidation.before)),
        decode_seconds=decoded_at - started_at,
        decide_seconds=perf_counter() - decoded_at,
    )


def parse_options_and_settings(args: argparse.Namespace) -> tuple[SchedulingOptions, DisruptionSettings]:
    """Return the scheduling options and the disruption settings from arguments and environment."""
    try:
        environment = read_environment_settings()
        gates = parse_feature_gates(args.feature_gates or environment.feature_gates)
        settings = parse_disruption_settings(
            environment.disruption_budgets,
            environment.disruption_time_zone,
            spot_to_spot=gates.spot_to_spot_consolidation,
        )
        eviction_price_usd = environment.eviction_price_usd if args.eviction_price is None else args.eviction_price
        settings = replace(settings, eviction_price_usd=eviction_price_usd)
        options = build_options(args, environment)
    except ValueError as error:
        args.usage(str(error))
        raise AssertionError("argparse has left") from error
    if settings.problem:
        args.usage(settings.problem)
    return options, settings


def _parse_price_limit(text: str) -> Callable[[float], bool]:
    """Parse a condition on the fleet's price per hour.

    Raises:
        ArgumentTypeError: The text is not a condition like '$/h<12'.
    """
    match = _PRICE_LIMIT_PATTERN.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a condition like '$/h<12'")
    max_price, is_strict = float(match["price"]), match["operator"] == "<"
    return lambda price: round(price, 9) < max_price if is_strict else round(price, 9) <= max_price


def _parse_positive_int(text: str) -> int:
    """Parse a positive number.

    Raises:
        ArgumentTypeError: The text is not a number, or the number is less than 1.
    """
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)
