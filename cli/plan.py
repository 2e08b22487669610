"""`joiner plan`: what would be done for the pods that wait."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, Literal, get_args

import msgspec
from msgspec.structs import replace

from cli.catalogues import HOW, catalogue_at
from cli.encoding import encoded
from cli.explained import explain, verdict_document
from cli.files import InputError
from cli.look import Looked, current_and_told, look_at
from cli.planned import Planned, document
from cli.progress import progress
from cli.sources import add_money, add_sources, catalogue_of, instant
from cli.tables import Look, table
from cli.telling import tell
from cli.text import count, palette_of, width_of
from cli.verdicts import page
from shared.model.cluster import Cluster
from shared.scheduling.headroom import plan
from shared.scheduling.placement import Options, Unschedulable
from shared.snapshot.features import featured

DESCRIPTION: Final = """Say where each pod that waits would go: on a node that is there, or on which new ones, for how
much; or why it can go nowhere. Nothing is changed. Files are planned with as they are; with --context or --kubeconfig
a cluster is asked for its objects (it is only listed, never written to), and files are what would be applied to it.
Without any of these it is the current context's cluster."""
EXAMPLES: Final = f"""examples:
  joiner plan -f examples/plan --instance-types examples/catalogue.json
  joiner plan -f manifests/ -f pools.yaml --instance-types catalogue.json -o json | jq .totals
  kubectl get nodes,pods,ds,pv,pvc,sc,csinodes,pdb,ns,nodepools,ec2nodeclasses,nodeclaims -A -o json |
    joiner plan -f - --instance-types catalogue.json
  joiner plan                                    what your current cluster would get now
  joiner plan --context prod -f web.yaml         and what it would get if web.yaml were applied
  joiner plan -f pods.yaml --instance-types catalogue.json --pod shop/cart-0      why there, or why nowhere

Deployments, StatefulSets, ReplicaSets and Jobs count as the pods that they would still make.

{HOW}
  Without it a live cluster's is $JOINER_BUCKET_NAME if that is set, else aws.

exit codes: 0 done (a pod without a place is an answer), 1 something could not be read (it is named; the rest is
planned), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
PreferencePolicy = Literal["Respect", "Ignore"]
MinValuesPolicy = Literal["Strict", "BestEffort"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    _add_output(parser)
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
    add_money(parser)
    parser.add_argument(
        "--assume-unschedulable",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="take a pod without node and without PodScheduled condition for one that waits (default: in files yes, in "
        "a live cluster no)",
    )
    parser.add_argument(
        "--now", type=instant, metavar="TIME", help="the time of the snapshot, like 2026-11-21T08:00:00Z"
    )
    parser.set_defaults(run=run, usage=parser.error)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--pod", metavar="NAME", help="print the verdict on one pod in full, as [NAMESPACE/]NAME")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole, with every name")


def run(chosen: argparse.Namespace) -> int:
    """Read, plan, print; answer 1 if something could not be read."""
    options = _options(chosen)
    now = chosen.now or datetime.now(UTC)
    try:
        is_live = current_and_told(chosen, "plan")
        source = catalogue_of(chosen, is_live=is_live)
        looked, planned = _planned(chosen, source, options, now)
        shown = _shown(chosen, planned)
    except InputError as error:
        tell("plan", [str(error)])
        return 1
    sys.stdout.write(shown)
    sys.stdout.flush()
    told = [*looked.told, *(looked.placed(one) for one in planned.cluster.problems)]
    tell("plan", told)
    return 1 if told else 0


def _planned(chosen: argparse.Namespace, source: str, options: Options, now: datetime) -> tuple[Looked, Planned]:
    """Read what there is, and decide.

    Raises:
        InputError: there is no catalogue, or a live cluster cannot be read.
    """
    began = perf_counter()
    looked = look_at(chosen, now)
    catalogue, problems = catalogue_at(source, looked.cluster, looked.hints, now)
    cluster = replace(
        looked.cluster, catalogue=catalogue, problems=tuple(sorted({*looked.cluster.problems, *problems}))
    )
    cluster = with_features(cluster)
    decoded = perf_counter()
    waiting = sum(pod.is_provisionable() for pod in cluster.pods)
    with progress(f"planning for {count(waiting, 'pod')}"):
        placement = plan(cluster, options=options).placement
    planned = Planned(
        cluster=cluster,
        placement=placement,
        options=options,
        unreadable=tuple(unreadable(cluster)),
        notes=looked.notes,
        decode_seconds=decoded - began,
        solve_seconds=perf_counter() - decoded,
    )
    return looked, planned


def with_features(cluster: Cluster) -> Cluster:
    """Answer *cluster* with what features that are on make of it.

    Raises:
        InputError: $FEATURE_GATES or $SCHEDULER_CONFIG cannot be read.
    """
    try:
        return featured(cluster, os.environ.get("FEATURE_GATES", ""), os.environ.get("SCHEDULER_CONFIG", ""))
    except ValueError as error:
        raise InputError(f"$FEATURE_GATES or $SCHEDULER_CONFIG: {error}") from None


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
        "hints": chosen.hints or environ.get("JOINER_HINTS"),
        "node_cost_usd_per_hour": chosen.node_cost or environ.get("JOINER_NODE_COST_USD_PER_HOUR"),
        "volume_usd_per_gib_month": chosen.volume_price or environ.get("JOINER_VOLUME_USD_PER_GIB_MONTH"),
    }
    said = {name: value for name, value in asked.items() if value}
    return msgspec.convert(said | {"readiness": "Assumed"}, Options, strict=False)


def unreadable(cluster: Cluster) -> Iterable[Unschedulable]:
    """Answer a verdict for each pod without a node that could not be read."""
    for one in cluster.problems:
        if one.kind == "Pod" and not one.node and one.name != "*":
            yield Unschedulable(pod=one.name, reason="InvalidPod", message=one.message)


def _shown(chosen: argparse.Namespace, planned: Planned) -> str:
    """Answer what is printed.

    Raises:
        InputError: there is no such pod.
    """
    palette = palette_of(sys.stdout)
    look = Look(width=None if chosen.wide else width_of(sys.stdout), is_whole=chosen.is_whole)
    if chosen.pod is not None:
        verdict = explain(planned, chosen.pod)
        return (
            page(verdict, palette, look)
            if chosen.output == "table"
            else encoded(verdict_document(verdict), chosen.output)
        )
    return table(planned, palette, look) if chosen.output == "table" else encoded(document(planned), chosen.output)
