"""`joiner audit`: Joiner's resources in the account and the cluster, and the leaked ones without an owner."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from cli.audit.assets import Asset, AuditEvidence
    from cli.terminal.text import Palette

DESCRIPTION: Final = """List what is ours in the account and in the cluster, and above all what nothing accounts for:
instances without NodeClaim, NodeClaims without instance, Nodes of neither, what finalizers hold, volumes and network
interfaces that instances left behind, launch templates, queues and instance profiles of an installation that is gone,
commands that go on for hours. For each: why, how old, what it costs, and the command that removes it, which is printed
and not run."""
EXAMPLES: Final = """examples:
  joiner audit                                   the current context's EKS cluster and its account
  joiner audit --cluster prod --region eu-west-1 --all
  joiner audit -o json | jq -r '.assets[] | select(.leaked) | .remedy'

What belongs to whom is told by tags (eks:eks-cluster-name, karpenter.sh/nodepool; of the VPC's network plugin
cluster.k8s.amazonaws.com/name) and names. Volumes of PersistentVolumes are yours, and are not looked at. Prices are
those of the newest catalogue; a volume's is that of gp3 in us-east-1.

-o json and yaml: at, cluster, leaked (how many), usdPerHour (of what is leaked), unseen (what could not be looked at),
assets: a list of kind, name, leaked, owner, why, remedy, ageSeconds, usdPerHour.

exit codes: 0 all is accounted for, 1 something is leaked, or could not be looked at (it is named), 2 wrong usage,
130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_argument = parser.add_argument
    add_argument("--context", default="", metavar="NAME", help="which cluster (default: the current context)")
    add_argument(
        "--kubeconfig", default="", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )
    add_argument("--cluster", metavar="NAME", default="", help="the EKS cluster (default: as the kubeconfig names it)")
    add_argument("--region", default="", help="default: that of the cluster's ARN, or of your credentials")
    add_argument("--stack", metavar="NAME", default="", help="the installation (default: joiner-<cluster>)")
    add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    add_argument("--all", action="store_true", dest="is_whole", help="print what is accounted for, too")
    add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
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
        "audit", [f"could not be looked at: {message}" for message in describe_unseen_parts(evidence)]
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
        raise InputError("which EKS cluster is it? the kubeconfig does not say: write --cluster NAME")
    if eks_cluster and eks_cluster.name != cluster and not args.context:
        connection = None
    with open_clients(args.region or (eks_cluster.region if eks_cluster else ""), embedded=False) as (clients, _):
        return collect_evidence(clients, connection, cluster, args.stack or f"joiner-{cluster}", datetime.now(UTC))


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
            "unseen": list(describe_unseen_parts(evidence)),
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
    from cli.terminal.text import align_columns, truncate_text, wrap_text  # noqa: PLC0415 - --help needs none of it
    from shared.model.core.formatting import format_count  # noqa: PLC0415 - --help needs none of it

    leaked_assets = [asset for asset in assets if asset.is_leaked]
    price = sum(asset.usd_per_hour for asset in leaked_assets)
    headline = (
        f"{format_count(len(leaked_assets), 'thing')} that nothing accounts for, ${price:.4f} per hour"
        if leaked_assets
        else "no leak"
    )
    headline += " in what could be looked at" if is_partial else ""
    summary = f"{headline}; of ours there are {_format_counts_by_kind(assets) or 'no things'}"
    yield from (palette.colorize("bold", line) for line in wrap_text(summary, width, ""))
    if not listed_assets:
        return
    rows = [("KIND", "NAME", "AGE", "$/H", "OWNER")]
    rows += [
        (
            *(asset.kind, asset.name, format_short_age(asset.age)),
            f"{asset.usd_per_hour:.4f}" if asset.usd_per_hour else "-",
            asset.owner or f"none: {asset.leak_reason}",
        )
        for asset in listed_assets
    ]
    front_columns = align_columns([row[:-1] for row in rows], left_columns=2)
    front_width = max(map(len, front_columns))
    lines = [
        truncate_text(f"{line:{front_width}}  {row[-1]}", width) for line, row in zip(front_columns, rows, strict=True)
    ]
    yield palette.colorize("bold", lines[0])
    for asset, line in zip(listed_assets, lines[1:], strict=True):
        yield palette.colorize("red", line) if asset.is_leaked else line
        if asset.is_leaked:
            yield f"    {asset.remedy}"


def _format_counts_by_kind(assets: "Iterable[Asset]") -> str:
    count_by_kind = Counter(asset.kind for asset in assets)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(count_by_kind.items()))
