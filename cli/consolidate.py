"""`joiner consolidate`: what disruption would do, step by step."""

import argparse
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, get_args

import msgspec
from msgspec.structs import replace

from cli.catalogues import HOW, catalogue_at
from cli.consolidated import Report, document, doubts, page, so_far
from cli.encoding import encoded
from cli.files import InputError
from cli.look import Looked, current_and_told, look_at
from cli.plan import MinValuesPolicy, Output, PreferencePolicy, options_from, with_features
from cli.progress import progress
from cli.sources import add_money, add_sources, catalogue_of, instant
from cli.steps import REASONS, Bounds, consolidate
from cli.tables import Look
from cli.telling import tell
from cli.text import palette_of, width_of
from shared.disruption.terms import Terms, terms_from
from shared.model.cluster import Cluster
from shared.scheduling.placement import Options
from shared.settings import Gates, gates_from

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

{HOW}
  Without it a live cluster's is $JOINER_BUCKET_NAME if that is set, else aws.

exit codes: 0 done (a node that stays is an answer), 1 something could not be read (it is named; the rest is decided
on), 2 wrong usage, 130 interrupted (what was found by then is printed)
"""
INTERRUPTED: Final = 130
_UNTIL: Final = re.compile(r"\s*\$/h\s*(?P<how><=?)\s*(?P<price>[0-9]+(?:\.[0-9]+)?)\s*")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole, with every name")
    _add_bounds(parser)
    add_settings(parser)
    parser.set_defaults(run=run, usage=parser.error)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add what the functions are told by their deployment, and the time."""
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
        type=instant,
        metavar="TIME",
        help="the time of the snapshot, like 2026-11-21T08:00:00Z: budgets read it",
    )


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason", action="append", choices=REASONS, help="only steps for this reason; may be given several times"
    )
    parser.add_argument("--steps", type=_positive, metavar="N", help="no more than so many sweeps")
    parser.add_argument("--max-steps", type=_positive, metavar="N", help="no more than so many steps")
    parser.add_argument("--until", type=_until, metavar="'$/h<12'", help="stop as soon as the fleet costs so little")


def run(chosen: argparse.Namespace) -> int:
    """Read, decide, print; answer 1 if something could not be read."""
    options, terms = options_and_terms(chosen)
    try:
        is_live = current_and_told(chosen, "consolidate")
        source = catalogue_of(chosen, is_live=is_live)
        looked, report = _reported(chosen, source, options, replace(terms, frees_limits=not is_live))
    except InputError as error:
        tell("consolidate", [str(error)])
        return 1
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    shown = (
        page(report, palette_of(sys.stdout), look)
        if chosen.output == "table"
        else encoded(document(report), chosen.output)
    )
    sys.stdout.write(shown)
    sys.stdout.flush()
    told = [*looked.told, *(looked.placed(one) for one in report.cluster.problems)]
    tell("consolidate", told)
    if report.found.stopped == "interrupted":
        return INTERRUPTED
    return 1 if told else 0


def _reported(chosen: argparse.Namespace, source: str, options: Options, terms: Terms) -> tuple[Looked, Report]:
    """Read what there is, and decide.

    Raises:
        InputError: there is no catalogue, or a live cluster cannot be read.
    """
    began = perf_counter()
    looked, cluster = read(chosen, source)
    decoded = perf_counter()
    bounds = Bounds(
        reasons=chosen.reason or REASONS,
        most_steps=chosen.max_steps,
        most_sweeps=chosen.steps,
        until=chosen.until,
    )
    with progress("looking for what may go") as say:
        found = consolidate(cluster, options, terms, bounds, lambda steps, price: say(so_far(steps, price)))
    report = Report(
        cluster=cluster,
        found=found,
        notes=(*looked.notes, *doubts(cluster, found.before)),
        decode_seconds=decoded - began,
        decide_seconds=perf_counter() - decoded,
    )
    return looked, report


def read(chosen: argparse.Namespace, source: str) -> tuple[Looked, Cluster]:
    """Read what there is, and what *source* sells.

    Raises:
        InputError: there is no catalogue, or a live cluster cannot be read.
    """
    now = chosen.now or datetime.now(UTC)
    looked = look_at(chosen, now)
    catalogue, problems = catalogue_at(source, looked.cluster, looked.hints, now)
    every = tuple(sorted({*looked.cluster.problems, *problems}))
    return looked, with_features(replace(looked.cluster, catalogue=catalogue, problems=every))


def options_and_terms(chosen: argparse.Namespace) -> tuple[Options, Terms]:
    """Answer how pods are placed and what disruption is held to, as flags and environment say."""
    try:
        gates = gates_from(chosen.feature_gates or os.environ.get("FEATURE_GATES", ""))
        return options_from(chosen, os.environ), _terms(gates)
    except (msgspec.ValidationError, ValueError) as error:
        chosen.usage(str(error))
        raise AssertionError("argparse has left") from error


def _terms(gates: Gates) -> Terms:
    """Answer what the deployment says about disruption, as far as the environment has it.

    Raises:
        ValueError: it cannot be read.
    """
    names = ("JOINER_DISRUPTION_BUDGETS", "JOINER_DISRUPTION_TIME_ZONE")
    budgets, zone = (os.environ.get(name, "") for name in names)
    terms = terms_from(budgets, zone, spot_to_spot=gates.spot_to_spot_consolidation)
    if terms.problem:
        raise ValueError(terms.problem)
    return terms


def _until(text: str) -> Callable[[float], bool]:
    """Read a condition on the price.

    Raises:
        ArgumentTypeError: it is none.
    """
    match = _UNTIL.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not like '$/h<12'")
    most, is_strict = float(match["price"]), match["how"] == "<"
    return lambda price: round(price, 9) < most if is_strict else round(price, 9) <= most


def _positive(text: str) -> int:
    """Read a number.

    Raises:
        ArgumentTypeError: it is not one, or less.
    """
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
