"""`joiner doctor`: whether a cluster and its account are ready for Joiner, and whether Joiner is healthy."""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cli.cluster.arguments import add_account_arguments, add_cluster_arguments, add_output_argument
from cli.cluster.eks_name import parse_eks_name
from cli.terminal.stderr import print_errors
from shared.stack_name import format_stack_name

if TYPE_CHECKING:
    from cli.cluster.kubeconfig import ClusterConnection
    from cli.doctor.checks.finding import CheckResult
    from cli.facts.model import AccountFacts, DoctorFacts, KubernetesFacts

DESCRIPTION: Final = """Check everything that Joiner needs, before and after its installation: API server, access
entries, CRDs, RBAC, other autoscalers, subnets, images, volumes, quotas, an EC2 launch (dry run), and the functions,
schedules, queues, prices and leaked resources of the installation. With --preflight: check what a first deployment
needs, with your credentials. Each finding names the problem and the fix. doctor only reads: it creates and changes
nothing."""
EXAMPLES: Final = """examples:
  joiner doctor                                  check the cluster of the current context, and its account
  joiner doctor --preflight --cluster prod       before the first deployment: check what the deployment needs
  joiner doctor --cluster prod --region eu-west-1
  joiner doctor --context prod --no-account      check only the cluster
  joiner doctor -f objects.json                  check objects from a file
  joiner doctor -o json | jq '.findings[] | select(.level == "fail")'

levels:
  ok      the check passed
  later   the installation creates this; Joiner is not installed yet
  unseen  could not be read, for example because of a missing permission
  warn    works now, but needs attention
  fail    does not work

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 every check is ok or later, 1 a check failed, 2 wrong usage, 3 a warning or an unseen part,
130 interrupted
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_cluster_arguments(parser, default=None)
    add_account_arguments(parser)
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="read objects from files (`kubectl get -o json`) instead of a live cluster",
    )
    parser.add_argument("--no-account", action="store_true", help="skip all checks of the AWS account")
    parser.add_argument(
        "--preflight",
        action="store_true",
        dest="is_preflight",
        help="check only what a deployment needs: account, cluster, tags, tools, and your permissions to deploy",
    )
    add_output_argument(parser)
    parser.add_argument("--wide", action="store_true", help="do not wrap lines")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="list all passed checks")
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """Collect facts, check them, print the findings; return the exit code."""
    if args.filename and (args.context is not None or args.kubeconfig is not None):
        args.usage("-f cannot be used with --context or --kubeconfig")
    if args.is_preflight and args.no_account:
        args.usage("--preflight cannot be used with --no-account")
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it

    messages: list[str] = []
    try:
        facts, skipped_parts = _collect_facts(args, messages)
        findings = _run_preflight(facts) if args.is_preflight else _run_checks(facts)
    except InputError as error:
        return print_errors("doctor", [*messages, str(error)])
    from cli.doctor.page import compute_exit_code  # noqa: PLC0415

    sys.stdout.write(_render_output(findings, skipped_parts, facts.now, args))
    sys.stdout.flush()
    return print_errors("doctor", messages) or compute_exit_code(findings)


def _run_checks(facts: "DoctorFacts") -> "list[tuple[str, CheckResult]]":
    from cli.doctor.checks.all_checks import run_checks  # noqa: PLC0415

    return list(run_checks(facts))


def _run_preflight(facts: "DoctorFacts") -> "list[tuple[str, CheckResult]]":
    """Read the remaining facts of a preflight, and check all.

    Raises:
        InputError: The EKS cluster is unknown.
    """
    from cli.aws.session import open_clients  # noqa: PLC0415
    from cli.doctor.preflight.account import read_preflight_facts  # noqa: PLC0415
    from cli.doctor.preflight.preflight_checks import run_preflight_checks  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415

    if facts.account is None:
        raise InputError("the EKS cluster is unknown: add --cluster NAME")
    with open_clients(facts.account.region) as (clients, _):
        return list(run_preflight_checks(read_preflight_facts(clients, facts, facts.account)))


def _render_output(
    findings: "list[tuple[str, CheckResult]]", skipped_parts: list[str], now: datetime, args: argparse.Namespace
) -> str:
    from cli.doctor.page import build_findings_document, render_findings_page  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    if args.output != "table":
        return encode_output(build_findings_document(findings, skipped_parts, now), args.output)
    width = None if args.wide else get_terminal_width(sys.stdout)
    return render_findings_page(findings, skipped_parts, choose_palette(sys.stdout), width, is_whole=args.is_whole)


def _collect_facts(args: argparse.Namespace, messages: list[str]) -> "tuple[DoctorFacts, list[str]]":
    """Read all selected parts; return the facts and the parts that are skipped.

    Raises:
        InputError: A named file or kubeconfig cannot be read, or nothing is selected.
    """
    from cli.facts.model import DoctorFacts  # noqa: PLC0415
    from shared.crds.definitions import load_shipped_crds  # noqa: PLC0415

    now, skipped_parts = datetime.now(UTC), list[str]()
    connection = None if args.filename else _connect(args, skipped_parts)
    kubernetes = _read_kubernetes(args, connection, now, messages)
    account = _read_account(args, connection, kubernetes, now, skipped_parts)
    facts = DoctorFacts(now=now, kubernetes=kubernetes, account=account, shipped_crds=load_shipped_crds())
    return _add_waiting_gangs(facts, connection), skipped_parts


def _add_waiting_gangs(facts: "DoctorFacts", connection: "ClusterConnection | None") -> "DoctorFacts":
    """Return *facts* with the gangs that wait for nodes, if the setting gangs is on and a live cluster is read."""
    settings, kubernetes = facts.stack.settings if facts.stack is not None else None, facts.kubernetes
    if settings is None or settings.gangs == "off" or connection is None or kubernetes is None:
        return facts
    from msgspec.structs import replace  # noqa: PLC0415 - --help needs none of it

    from cli.facts.cluster import read_waiting_gangs  # noqa: PLC0415 - as above

    gangs = read_waiting_gangs(connection.kube, kubernetes, facts.now)
    return replace(facts, kubernetes=replace(kubernetes, waiting_gangs=gangs))


def _connect(args: argparse.Namespace, skipped_parts: list[str]) -> "ClusterConnection | None":
    """Connect to the selected cluster; return None if the current context is another cluster than --cluster.

    Raises:
        InputError: The named context gives no access, or there is neither a context nor --cluster.
    """
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415 - the client library takes half a second
    from cli.terminal.errors import InputError  # noqa: PLC0415

    try:
        connection = connect_to_cluster(args.kubeconfig or "", args.context or "")
    except InputError as error:
        if args.context is not None or args.kubeconfig is not None or not args.cluster:
            raise
        skipped_parts.append(f"the cluster: {error}")
        return None
    eks_cluster = parse_eks_name(connection.cluster)
    cluster_name = eks_cluster.name if eks_cluster else connection.cluster
    if args.context is None and args.cluster and cluster_name != args.cluster:
        skipped_parts.append(
            f"the cluster: the current context is {connection.cluster}; select {args.cluster} with --context"
        )
        return None
    return connection


def _read_kubernetes(
    args: argparse.Namespace, connection: "ClusterConnection | None", now: datetime, messages: list[str]
) -> "KubernetesFacts | None":
    from cli.facts.cluster import read_cluster_facts, read_file_facts  # noqa: PLC0415
    from shared.crds.definitions import load_shipped_crds  # noqa: PLC0415

    if args.filename:
        return read_file_facts(args.filename, now, messages.append)
    return None if connection is None else read_cluster_facts(connection, now, load_shipped_crds())


def _read_account(
    args: argparse.Namespace,
    connection: "ClusterConnection | None",
    kubernetes: "KubernetesFacts | None",
    now: datetime,
    skipped_parts: list[str],
) -> "AccountFacts | None":
    """Read the account, unless --no-account is given or the EKS cluster's name is unknown.

    Raises:
        InputError: The region is unknown.
    """
    eks_cluster = parse_eks_name(connection.cluster) if connection is not None else None
    cluster = args.cluster or (eks_cluster.name if eks_cluster else "")
    if args.no_account or not cluster:
        skipped_parts.append(
            "the account" if args.no_account else "the account: the EKS cluster is unknown; add --cluster NAME"
        )
        return None
    from cli.aws.session import open_clients  # noqa: PLC0415
    from cli.facts.account import read_account_facts  # noqa: PLC0415 - botocore takes a fifth of a second
    from cli.facts.model import ReadFailure  # noqa: PLC0415
    from cli.facts.quota_families import select_quotas  # noqa: PLC0415

    node_classes = kubernetes.node_classes if kubernetes is not None else ()
    node_pools = kubernetes.node_pools if kubernetes is not None else ()
    region = args.region or (eks_cluster.region if eks_cluster else "")
    with open_clients(region) as (clients, _):
        return read_account_facts(
            clients,
            cluster,
            args.stack or format_stack_name(cluster),
            () if args.is_preflight or isinstance(node_classes, ReadFailure) else node_classes,
            now,
            select_quotas(() if isinstance(node_pools, ReadFailure) else node_pools),
        )
