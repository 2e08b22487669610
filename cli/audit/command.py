"""`joiner audit`: Joiner's resources in the account and the cluster, and the leaked ones without an owner."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cli.cluster.arguments import add_account_arguments, add_cluster_arguments, add_output_argument
from cli.terminal.stderr import print_errors
from shared.stack_name import format_stack_name

if TYPE_CHECKING:
    from cli.audit.assets import Asset, AuditEvidence
    from cli.terminal.text import Palette

DESCRIPTION: Final = """List Joiner's resources in the account and in the cluster, and report leaked resources:
instances without a NodeClaim, NodeClaims without an instance, nodes without both, objects held by finalizers, volumes
and network interfaces of terminated instances, launch templates, queues and instance profiles of a deleted
installation, and commands that do not finish. For each leaked resource, audit shows the reason, age and cost, and the
command that removes it. audit only reads: run the commands yourself."""
EXAMPLES: Final = """examples:
  joiner audit                                   audit the cluster of the current context, and its account
  joiner audit --cluster prod --region eu-west-1 --all
  joiner audit -o json | jq -r '.assets[] | select(.leaked) | .fix'

Owners are found by tags (eks:eks-cluster-name, karpenter.sh/nodepool, and cluster.k8s.amazonaws.com/name of the VPC
CNI) and by names. Volumes of PersistentVolumes are yours and are not audited. Prices are those of the newest
catalog; volumes have the price of gp3 in us-east-1.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 no leaked resources, 1 leaked resources or a part that could not be read, 2 wrong usage, 130 interrupted
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_cluster_arguments(parser)
    add_account_arguments(parser)
    add_output_argument(parser)
    parser.add_argument("--all", action="store_true", dest="is_whole", help="list all resources, not only leaked ones")
    parser.add_argument("--wide", action="store_true", help="do not cut lines")
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """Collect, evaluate, print; return 1 if a resource is leaked or a part cannot be read."""
    from cli.audit.assets import describe_unseen_parts  # noqa: PLC0415 - --help needs none of it
    from cli.audit.rules import list_assets  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415

    try:
        evidence = _collect_evidence(args)
    except InputError as error:
        return print_errors("audit", [str(error)])
    assets = list_assets(evidence)
    sys.stdout.write(_render_output(assets, evidence, args))
    sys.stdout.flush()
    warning_status = print_errors(
        "audit", [f"cannot be read: {message}" for message in describe_unseen_parts(evidence)]
    )
    return 1 if warning_status or any(asset.is_leaked for asset in assets) else 0


def _collect_evidence(args: argparse.Namespace) -> "AuditEvidence":
    """Read the cluster and the account.

    Raises:
        InputError: The cluster or region is unknown, or the named context gives no access.
    """
    from cli.audit.evidence import collect_evidence  # noqa: PLC0415 - --help needs none of it
    from cli.aws.session import open_clients  # noqa: PLC0415
    from cli.cluster.eks_name import parse_eks_name  # noqa: PLC0415
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415

    connection = None
    try:
        connection = connect_to_cluster(args.kubeconfig, args.context)
    except InputError:
        if args.context or args.kubeconfig or not args.cluster:
            raise
    eks_cluster = parse_eks_name(connection.cluster) if connection is not None else None
    cluster = args.cluster or (eks_cluster.name if eks_cluster else "")
    if not cluster:
        raise InputError("the kubeconfig does not name the EKS cluster: add --cluster NAME")
    if eks_cluster and eks_cluster.name != cluster and not args.context:
        connection = None
    with open_clients(args.region or (eks_cluster.region if eks_cluster else "")) as (clients, _):
        return collect_evidence(
            clients, connection, cluster, args.stack or format_stack_name(cluster), datetime.now(UTC)
        )


def _render_output(assets: "tuple[Asset, ...]", evidence: "AuditEvidence", args: argparse.Namespace) -> str:
    from cli.audit.assets import build_asset_document, describe_unseen_parts  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415
    from shared.model.core.units import format_instant  # noqa: PLC0415

    leaked_assets = [asset for asset in assets if asset.is_leaked]
    if args.output != "table":
        report = {
            "at": format_instant(evidence.now),
            "cluster": evidence.cluster_name,
            "leaked": len(leaked_assets),
            "usdPerHour": round(sum(asset.usd_per_hour for asset in leaked_assets), 9),
            "unreadable": list(describe_unseen_parts(evidence)),
            "assets": [build_asset_document(asset) for asset in assets],
        }
        return encode_output(report, args.output)
    width = None if args.wide else get_terminal_width(sys.stdout)
    listed_assets = assets if args.is_whole else tuple(leaked_assets)
    return (
        "\n".join(
            _render_page(
                assets,
                listed_assets,
                choose_palette(sys.stdout),
                width,
                is_partial=any(describe_unseen_parts(evidence)),
            )
        )
        + "\n"
    )


def _render_page(
    assets: "tuple[Asset, ...]",
    listed_assets: "tuple[Asset, ...]",
    palette: "Palette",
    width: int | None,
    *,
    is_partial: bool,
) -> Iterator[str]:
    from cli.status.top_page import format_short_age  # noqa: PLC0415
    from cli.terminal.table import TableLayout, render_table  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.text import wrap_text  # noqa: PLC0415
    from shared.model.core.formatting import format_count, format_usd_per_hour  # noqa: PLC0415 - --help needs none of it

    leaked_assets = [asset for asset in assets if asset.is_leaked]
    price = sum(asset.usd_per_hour for asset in leaked_assets)
    headline = (
        f"{format_count(len(leaked_assets), 'leaked resource')}, {format_usd_per_hour(price)}"
        if leaked_assets
        else "no leaked resources"
    )
    headline += " in the parts that could be read" if is_partial else ""
    summary = f"{headline}; Joiner's resources: {_format_counts_by_kind(assets) or 'none'}"
    yield from (palette.colorize("bold", line) for line in wrap_text(summary, width, ""))
    if not listed_assets:
        return
    layout = TableLayout(headings=("KIND", "NAME", "AGE", "COST", "OWNER"), alignment="<<>>~", min_flexible_width=20)
    rows = [
        (
            *(asset.kind, asset.name, format_short_age(asset.age)),
            format_usd_per_hour(asset.usd_per_hour) if asset.usd_per_hour else "-",
            asset.owner or f"leaked: {asset.leak_reason}",
        )
        for asset in listed_assets
    ]
    colors = ["red" if asset.is_leaked else "" for asset in listed_assets]
    heading, *lines = render_table(layout, rows, palette, width, colors=colors)
    yield heading
    for asset, line in zip(listed_assets, lines, strict=True):
        yield line
        if asset.is_leaked:
            yield f"    To fix: {asset.fix}"


def _format_counts_by_kind(assets: "Iterable[Asset]") -> str:
    count_by_kind = Counter(asset.kind for asset in assets)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(count_by_kind.items()))
