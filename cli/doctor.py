"""`joiner doctor`: whether a cluster and its account are fit for Joiner, and whether Joiner is well."""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.eks_names import eks_name
from cli.telling import tell

if TYPE_CHECKING:
    from cli.checks.facts import Account, Facts, Kubernetes
    from cli.checks.findings import Finding
    from cli.kubeconfig import Reached

DESCRIPTION: Final = """Look at everything that Joiner needs, before and after it is installed: is the API server
reached, by whom, are nodes and functions let in, are our kinds defined, who else scales, subnets, images, volumes,
quotas, a launch asked with DryRun, and of the installation its functions, schedules, queues, prices and leaks. Each
line says what is wrong and what to do. Nothing is made or changed. What could not be seen is neither well nor gone."""
EXAMPLES: Final = """examples:
  joiner doctor                                  the current context's EKS cluster and its account
  joiner doctor --cluster prod --region eu-west-1
  joiner doctor --context prod --no-account      the cluster only
  joiner doctor -f objects.json                  what kubectl wrote to files
  joiner doctor -o json | jq '.findings[] | select(.level == "fail")'

levels: ok; later (made by the installation, which is not there yet); unseen (could not be looked at); warn; fail.

-o json and yaml: at, counts {ok, later, unseen, warn, fail}, findings (group, check, level, what, remedy; "" where all
is well), notAsked. Names of checks and levels stay.

exit codes: 0 all is well, or is made by the installation; 1 something is wrong; 2 wrong usage; 3 something is to be
looked at, or could not be seen; 130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    where = parser.add_argument
    where("--context", metavar="NAME", help="which cluster (default: the current context, or that of --cluster)")
    where("--kubeconfig", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)")
    where("--cluster", metavar="NAME", default="", help="the EKS cluster (default: as the kubeconfig names it)")
    where("--region", default="", help="default: that of the cluster's ARN, or of your credentials")
    where("--stack", metavar="NAME", default="", help="the installation (default: joiner-<cluster>)")
    where(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="objects as `kubectl get -o json` prints them, instead of a live cluster",
    )
    where("--no-account", action="store_true", help="ask AWS nothing")
    where("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    where("--wide", action="store_true", help="fold nothing, however narrow the terminal")
    where("--all", action="store_true", dest="is_whole", help="print every line that says all is well")
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """Look, judge, print; answer how it is."""
    if chosen.filename and (chosen.context is not None or chosen.kubeconfig is not None):
        chosen.usage("files or a live cluster: -f does not go with --context and --kubeconfig")
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it

    told: list[str] = []
    try:
        facts, unasked = _gathered(chosen, told)
    except InputError as error:
        return tell("doctor", [*told, str(error)])
    from cli.checks.every import examine  # noqa: PLC0415
    from cli.doctor_page import status  # noqa: PLC0415

    found = list(examine(facts))
    sys.stdout.write(_shown(found, unasked, facts.now, chosen))
    sys.stdout.flush()
    return tell("doctor", told) or status(found)


def _shown(found: "list[tuple[str, Finding]]", unasked: list[str], now: datetime, chosen: argparse.Namespace) -> str:
    from cli.doctor_page import document, page  # noqa: PLC0415
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    if chosen.output != "table":
        return encoded(document(found, unasked, now), chosen.output)
    width = None if chosen.wide else width_of(sys.stdout)
    return page(found, unasked, palette_of(sys.stdout), width, is_whole=chosen.is_whole)


def _gathered(chosen: argparse.Namespace, told: list[str]) -> "tuple[Facts, list[str]]":
    """Look at all that is asked for, and say what is not.

    Raises:
        InputError: a file or a kubeconfig that is named cannot be read, or nobody says what to look at.
    """
    from cli.checks.facts import Facts  # noqa: PLC0415
    from cli.doctor_cluster import shipped  # noqa: PLC0415

    now, unasked = datetime.now(UTC), list[str]()
    reached = None if chosen.filename else _reached(chosen, unasked)
    kubernetes = _kubernetes(chosen, reached, now, told)
    account = _account(chosen, reached, kubernetes, now, unasked)
    return Facts(now=now, kubernetes=kubernetes, account=account, shipped=shipped()), unasked


def _reached(chosen: argparse.Namespace, unasked: list[str]) -> "Reached | None":
    """Answer the cluster that is meant; where none is named and the current one is another, none.

    Raises:
        InputError: the one that is named gives no way in, or there is neither context nor --cluster.
    """
    from cli.files import InputError  # noqa: PLC0415
    from cli.kubeconfig import reach  # noqa: PLC0415 - the client library takes half a second

    try:
        reached = reach(chosen.kubeconfig or "", chosen.context or "")
    except InputError as error:
        if chosen.context is not None or chosen.kubeconfig is not None or not chosen.cluster:
            raise
        unasked.append(f"the cluster: {error}")
        return None
    known = eks_name(reached.cluster)
    named = known.name if known else reached.cluster
    if chosen.context is None and chosen.cluster and named != chosen.cluster:
        unasked.append(
            f"the cluster: the current context is of {reached.cluster}: name that of {chosen.cluster}, --context"
        )
        return None
    return reached


def _kubernetes(
    chosen: argparse.Namespace, reached: "Reached | None", now: datetime, told: list[str]
) -> "Kubernetes | None":
    from cli.doctor_cluster import of_cluster, of_files, shipped  # noqa: PLC0415

    if chosen.filename:
        return of_files(chosen.filename, now, told.append)
    return None if reached is None else of_cluster(reached, now, shipped())


def _account(
    chosen: argparse.Namespace,
    reached: "Reached | None",
    kubernetes: "Kubernetes | None",
    now: datetime,
    unasked: list[str],
) -> "Account | None":
    """Ask the account, unless that is not wanted or it is not known which cluster of it.

    Raises:
        InputError: the region is not known.
    """
    known = eks_name(reached.cluster) if reached is not None else None
    cluster = chosen.cluster or (known.name if known else "")
    if chosen.no_account or not cluster:
        unasked.append("the account" if chosen.no_account else "the account: which cluster is it there? --cluster NAME")
        return None
    from cli.checks.facts import Unseen  # noqa: PLC0415
    from cli.checks.families import wanted  # noqa: PLC0415
    from cli.clouds import opened  # noqa: PLC0415
    from cli.doctor_account import of_account  # noqa: PLC0415 - botocore takes a fifth of a second

    classes = kubernetes.node_classes if kubernetes is not None else ()
    pools = kubernetes.node_pools if kubernetes is not None else ()
    region = chosen.region or (known.region if known else "")
    with opened(region, embedded=False) as (clients, _):
        return of_account(
            clients,
            cluster,
            chosen.stack or f"joiner-{cluster}",
            () if isinstance(classes, Unseen) else classes,
            now,
            wanted(() if isinstance(pools, Unseen) else pools),
        )
