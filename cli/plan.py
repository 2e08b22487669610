"""`joiner plan`: what would be done for the pods that wait."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec.structs import replace

from cli.inputs import InputError, catalogue_in, objects_in, yaml_module
from cli.planned import Planned, document, table
from cli.text import Palette
from shared.model.cluster import Cluster
from shared.model.units import parse_instant
from shared.scheduling.placement import Options, Unschedulable
from shared.scheduling.solve import solve
from shared.snapshot.documents import cluster_from_documents

DESCRIPTION: Final = """Say where each pod that waits would go: on a node that is there, or on which new ones, for how
much; or why it can go nowhere. Nothing is contacted, nothing is changed."""
EXAMPLES: Final = """examples:
  joiner plan -f cluster.json --instance-types catalogue.json
  kubectl get nodes,pods,ds,pv,pvc,sc,csinodes,pdb,ns,nodepools,ec2nodeclasses,nodeclaims -A -o json |
    joiner plan -f - --instance-types catalogue.json
  joiner plan -f manifests/ -f pools.yaml --instance-types catalogue.json -o json | jq .totals

exit codes: 0 done (a pod without a place is an answer), 1 something could not be read (it is named; the rest is
planned), 2 wrong usage
"""
Output = Literal["table", "json", "yaml"]
PreferencePolicy = Literal["Respect", "Ignore"]
MinValuesPolicy = Literal["Strict", "BestEffort"]


def add_to(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add the command."""
    parser = commands.add_parser(
        "plan",
        help="where pending pods would go, and for how much",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE|DIR|-",
        help="objects as `kubectl get -o json` prints them, or manifests; may be given several times",
    )
    parser.add_argument("--instance-types", required=True, metavar="CATALOGUE", help="what the cloud sells, and prices")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument(
        "--preference-policy",
        choices=get_args(PreferencePolicy),
        help="whether preferences of pods are tried first (default: $PREFERENCE_POLICY, else Respect)",
    )
    parser.add_argument(
        "--min-values-policy",
        choices=get_args(MinValuesPolicy),
        help="whether minValues may be given up (default: $MIN_VALUES_POLICY, else Strict)",
    )
    parser.add_argument(
        "--assume-unschedulable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="take a pod without node and without PodScheduled condition for one that waits",
    )
    parser.add_argument(
        "--now", type=_instant, metavar="TIME", help="the time of the snapshot, like 2026-11-21T08:00:00Z"
    )
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """Read, plan, print; answer 1 if something could not be read."""
    options = _options(chosen)
    told: list[str] = []
    began = perf_counter()
    try:
        if chosen.output == "yaml":
            yaml_module("-o yaml")
        catalogue = catalogue_in(chosen.instance_types)
    except InputError as error:
        _tell([str(error)])
        return 1
    objects = objects_in(chosen.filename, told.append)
    cluster = cluster_from_documents(
        objects, chosen.now or datetime.now(UTC), assume_unschedulable=chosen.assume_unschedulable
    )
    cluster = replace(cluster, catalogue=catalogue)
    decoded = perf_counter()
    placement = solve(cluster, options=options)
    planned = Planned(
        cluster=cluster,
        placement=placement,
        unreadable=tuple(unreadable(cluster)),
        decode_seconds=decoded - began,
        solve_seconds=perf_counter() - decoded,
    )
    sys.stdout.write(text(planned, chosen.output, Palette(enabled=sys.stdout.isatty())))
    told += [f"{one.kind} {one.name}: {one.message}" for one in cluster.problems]
    _tell(told)
    return 1 if told else 0


def _options(chosen: argparse.Namespace) -> Options:
    try:
        return options_from(chosen, os.environ)
    except msgspec.ValidationError as error:
        chosen.usage(str(error))
        raise AssertionError("argparse has left") from error


def options_from(chosen: argparse.Namespace, environ: Mapping[str, str]) -> Options:
    """Answer how to decide: what *chosen* says, else what *environ* says, else Karpenter's defaults.

    Raises:
        ValidationError: a variable has none of the values that it may have.
    """
    asked = {
        "preference_policy": chosen.preference_policy or environ.get("PREFERENCE_POLICY"),
        "min_values_policy": chosen.min_values_policy or environ.get("MIN_VALUES_POLICY"),
    }
    said = {name: value for name, value in asked.items() if value}
    return msgspec.convert(said | {"readiness": "Assumed"}, Options)


def unreadable(cluster: Cluster) -> Iterable[Unschedulable]:
    """Answer a verdict for each pod without a node that could not be read."""
    for one in cluster.problems:
        if one.kind == "Pod" and not one.node:
            yield Unschedulable(pod=one.name, reason="InvalidPod", message=one.message)


def text(planned: Planned, output: Output, palette: Palette) -> str:
    """Answer *planned* in the form that was asked for.

    Raises:
        InputError: that is YAML, and PyYAML is not installed.
    """
    if output == "table":
        return table(planned, palette)
    encoded = msgspec.json.encode(document(planned))
    if output == "json":
        return msgspec.json.format(encoded, indent=1).decode() + "\n"
    return str(yaml_module("-o yaml").safe_dump(msgspec.json.decode(encoded), sort_keys=False))


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stderr.write(f"joiner plan: {line}\n")


def _instant(text: str) -> datetime:
    """Read an instant.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        return parse_instant(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
