"""`joiner consolidate`: the disruption commands that Joiner would execute, step by step."""

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, get_args

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
from cli.plan.command import OutputFormat, build_options, with_features
from cli.planning.arguments import add_money, add_sources, get_catalog_source, parse_time_argument
from cli.planning.catalog_source import CATALOG_HELP, load_catalog
from cli.planning.cluster_source import PlanningInput, announce_current_context, read_planning_input
from cli.planning.table import TableOptions
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.text import choose_palette, get_terminal_width
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings, parse_disruption_settings
from shared.model.cluster import ClusterSnapshot
from shared.model.core.feature_gates import FeatureGates, parse_feature_gates
from shared.model.decisions.placement import SchedulingOptions
from shared.settings import ChosenSettings, MinValuesPolicy, PreferencePolicy

DESCRIPTION: Final = """Say which nodes disruption would take away, step by step, with nothing else changing, until it
would take no more: what each step saves, and what stands in the way of the others. Nothing is changed. Files are read
as they are; with --context or --kubeconfig a cluster is asked for its objects (it is only listed, never written to).
Without any of these it is the current context's cluster."""
EXAMPLES: Final = f"""examples:
  joiner consolidate -f cluster.json --instance-types catalogue.json
  joiner consolidate                             what would become of your current cluster
  joiner consolidate --context prod --reason Empty --reason Drifted
  joiner consolidate -f cluster.json --instance-types catalogue.json --until '$/h<12' -o json | jq .after
  joiner consolidate --steps 1                   the next sweep only

{CATALOG_HELP}
  Without it a live cluster's is $JOINER_BUCKET_NAME if that is set, else aws.

exit codes: 0 done (a node that stays is an answer), 1 something could not be read (it is named; the rest is decided
on), 2 wrong usage, 130 interrupted (what was found by then is printed)
"""
INTERRUPTED_EXIT_CODE: Final = 130
_PRICE_LIMIT_PATTERN: Final = re.compile(r"\s*\$/h\s*(?P<how><=?)\s*(?P<price>[0-9]+(?:\.[0-9]+)?)\s*")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole, with every name")
    _add_limits(parser)
    add_disruption_settings(parser)
    parser.set_defaults(run=run, usage=parser.error)


def add_disruption_settings(parser: argparse.ArgumentParser) -> None:
    """Add the settings that the functions get from their deployment, and the time."""
    parser.add_argument("--preference-policy", choices=get_args(PreferencePolicy), help="as for `joiner plan`")
    parser.add_argument("--min-values-policy", choices=get_args(MinValuesPolicy), help="as for `joiner plan`")
    add_money(parser)
    parser.add_argument(
        "--feature-gates",
        metavar="NAME=BOOL,…",
        help="like SpotToSpotConsolidation=true (default: $FEATURE_GATES)",
    )
    parser.add_argument(
        "--assume-unschedulable",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="take a pod without node and without PodScheduled condition for one that waits",
    )
    parser.add_argument(
        "--now",
        type=parse_time_argument,
        metavar="TIME",
        help="the time of the snapshot, like 2026-11-21T08:00:00Z: budgets read it",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason",
        action="append",
        choices=DISRUPTION_REASONS,
        help="only steps for this reason; may be given several times",
    )
    parser.add_argument("--steps", type=_parse_positive_int, metavar="N", help="no more than so many sweeps")
    parser.add_argument("--max-steps", type=_parse_positive_int, metavar="N", help="no more than so many steps")
    parser.add_argument(
        "--until", type=_parse_price_limit, metavar="'$/h<12'", help="stop as soon as the fleet costs so little"
    )


def run(args: argparse.Namespace) -> int:
    """Read, decide, print; return 1 if an input cannot be read."""
    options, terms = parse_options_and_terms(args)
    try:
        is_live = announce_current_context(args, "consolidate")
        source = get_catalog_source(args, is_live=is_live)
        cluster_input, report = _build_report(args, source, options, replace(terms, frees_limits=not is_live))
    except InputError as error:
        print_errors("consolidate", [str(error)])
        return 1
    display = TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)
    output = (
        render_consolidation_page(report, choose_palette(sys.stdout), display)
        if args.output == "table"
        else encode_output(build_consolidation_document(report), args.output, has_api_version=False)
    )
    sys.stdout.write(output)
    sys.stdout.flush()
    messages = [
        *cluster_input.read_errors,
        *(cluster_input.describe_problem(problem) for problem in report.cluster.problems),
    ]
    print_errors("consolidate", messages)
    if report.consolidation.stopped == "interrupted":
        return INTERRUPTED_EXIT_CODE
    return 1 if messages else 0


def _build_report(
    args: argparse.Namespace, source: str, options: SchedulingOptions, terms: DisruptionSettings
) -> tuple[PlanningInput, ConsolidationReport]:
    """Read the inputs, and decide.

    Raises:
        InputError: There is no catalog, or a live cluster cannot be read.
    """
    started_at = perf_counter()
    cluster_input, cluster = read_cluster_and_catalog(args, source)
    decoded_at = perf_counter()
    limits = StepLimits(
        reasons=args.reason or DISRUPTION_REASONS,
        max_steps=args.max_steps,
        max_runs=args.steps,
        until=args.until,
    )
    with show_progress("looking for what may go") as report_progress:
        consolidation = consolidate(
            cluster, options, terms, limits, lambda steps, price: report_progress(format_progress(steps, price))
        )
    report = ConsolidationReport(
        cluster=cluster,
        consolidation=consolidation,
        notes=(*cluster_input.notes, *list_caveats(cluster, consolidation.before)),
        decode_seconds=decoded_at - started_at,
        decide_seconds=perf_counter() - decoded_at,
    )
    return cluster_input, report


def read_cluster_and_catalog(args: argparse.Namespace, source: str) -> tuple[PlanningInput, ClusterSnapshot]:
    """Read the cluster, and the catalog from *source*.

    Raises:
        InputError: There is no catalog, or a live cluster cannot be read.
    """
    now = args.now or datetime.now(UTC)
    cluster_input = read_planning_input(args, now)
    catalog, problems = load_catalog(source, cluster_input.cluster, cluster_input.region_hints, now)
    all_problems = tuple(sorted({*cluster_input.cluster.problems, *problems}))
    return cluster_input, with_features(replace(cluster_input.cluster, catalog=catalog, problems=all_problems))


def parse_options_and_terms(args: argparse.Namespace) -> tuple[SchedulingOptions, DisruptionSettings]:
    """Return the scheduling options and the disruption settings from arguments and environment."""
    try:
        settings = read_environment_settings()
        gates = parse_feature_gates(args.feature_gates or settings.feature_gates)
        return build_options(args, settings), _parse_terms(settings, gates)
    except ValueError as error:
        args.usage(str(error))
        raise AssertionError("argparse has left") from error


def _parse_terms(settings: ChosenSettings, gates: FeatureGates) -> DisruptionSettings:
    """Return the cluster-wide disruption settings of the deployment, as far as the environment contains them.

    Raises:
        ValueError: A setting is invalid.
    """
    terms = parse_disruption_settings(
        settings.disruption_budgets,
        settings.disruption_time_zone,
        spot_to_spot=gates.spot_to_spot_consolidation,
    )
    if terms.problem:
        raise ValueError(terms.problem)
    return terms


def _parse_price_limit(text: str) -> Callable[[float], bool]:
    """Parse a condition on the fleet's price per hour.

    Raises:
        ArgumentTypeError: The text is not a condition like '$/h<12'.
    """
    match = _PRICE_LIMIT_PATTERN.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not like '$/h<12'")
    max_price, is_strict = float(match["price"]), match["how"] == "<"
    return lambda price: round(price, 9) < max_price if is_strict else round(price, 9) <= max_price


def _parse_positive_int(text: str) -> int:
    """Parse a positive number.

    Raises:
        ArgumentTypeError: The text is not a number, or the number is less than 1.
    """
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
