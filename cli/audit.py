"""`joiner audit`: everything of ours in account and cluster, and what nothing accounts for."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from cli.audit_facts import Asset, Evidence
    from cli.text import Palette

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
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    where = parser.add_argument
    where("--context", default="", metavar="NAME", help="which cluster (default: the current context)")
    where("--kubeconfig", default="", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)")
    where("--cluster", metavar="NAME", default="", help="the EKS cluster (default: as the kubeconfig names it)")
    where("--region", default="", help="default: that of the cluster's ARN, or of your credentials")
    where("--stack", metavar="NAME", default="", help="the installation (default: joiner-<cluster>)")
    where("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    where("--all", action="store_true", dest="is_whole", help="print what is accounted for, too")
    where("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """Look, judge, print; answer 1 if something is leaked or could not be looked at."""
    from cli.audit_facts import unseen  # noqa: PLC0415 - --help needs none of it
    from cli.audited import audited  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415

    try:
        seen = _seen(chosen)
    except InputError as error:
        return tell("audit", [str(error)])
    found = audited(seen)
    sys.stdout.write(_shown(found, seen, chosen))
    sys.stdout.flush()
    hidden = tell("audit", [f"could not be looked at: {one}" for one in unseen(seen)])
    return 1 if hidden or any(one.is_leaked for one in found) else 0


def _seen(chosen: argparse.Namespace) -> "Evidence":
    """Look at cluster and account.

    Raises:
        InputError: nobody says which cluster or region, or the context that is named gives no way in.
    """
    from cli.audit_look import evidence  # noqa: PLC0415 - --help needs none of it
    from cli.clouds import opened  # noqa: PLC0415
    from cli.eks_names import eks_name  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415
    from cli.kubeconfig import reach  # noqa: PLC0415

    reached = None
    try:
        reached = reach(chosen.kubeconfig, chosen.context)
    except InputError:
        if chosen.context or chosen.kubeconfig or not chosen.cluster:
            raise
    known = eks_name(reached.cluster) if reached is not None else None
    cluster = chosen.cluster or (known.name if known else "")
    if not cluster:
        raise InputError("which EKS cluster is it? the kubeconfig does not say: write --cluster NAME")
    if known and known.name != cluster and not chosen.context:
        reached = None
    with opened(chosen.region or (known.region if known else ""), embedded=False) as (clients, _):
        return evidence(clients, reached, cluster, chosen.stack or f"joiner-{cluster}", datetime.now(UTC))


def _shown(found: "tuple[Asset, ...]", seen: "Evidence", chosen: argparse.Namespace) -> str:
    from cli.audit_facts import document, unseen  # noqa: PLC0415 - --help needs none of it
    from cli.encoding import encoded  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415
    from shared.model.units import instant_text  # noqa: PLC0415

    leaked = [one for one in found if one.is_leaked]
    if chosen.output != "table":
        told = {
            "at": instant_text(seen.now),
            "cluster": seen.name,
            "leaked": len(leaked),
            "usdPerHour": round(sum(one.usd_per_hour for one in leaked), 9),
            "unseen": list(unseen(seen)),
            "assets": [document(one) for one in found],
        }
        return encoded(told, chosen.output)
    width = None if chosen.wide else width_of(sys.stdout)
    shown = found if chosen.is_whole else tuple(leaked)
    return "\n".join(_page(found, shown, palette_of(sys.stdout), width, is_partial=any(unseen(seen)))) + "\n"


def _page(
    found: "tuple[Asset, ...]", shown: "tuple[Asset, ...]", palette: "Palette", width: int | None, *, is_partial: bool
) -> Iterator[str]:
    from cli.text import aligned, count, cut, folded  # noqa: PLC0415 - --help needs none of it
    from cli.top_page import short_age  # noqa: PLC0415

    leaked = [one for one in found if one.is_leaked]
    price = sum(one.usd_per_hour for one in leaked)
    what = f"{count(len(leaked), 'thing')} that nothing accounts for, ${price:.4f} per hour" if leaked else "no leak"
    what += " in what could be looked at" if is_partial else ""
    head = f"{what}; of ours there are {_counted(found) or 'no things'}"
    yield from (palette.paint("bold", line) for line in folded(head, width, ""))
    if not shown:
        return
    rows = [("KIND", "NAME", "AGE", "$/H", "OWNER")]
    rows += [
        (
            *(one.kind, one.name, short_age(one.age)),
            f"{one.usd_per_hour:.4f}" if one.usd_per_hour else "-",
            one.owner or f"none: {one.why}",
        )
        for one in shown
    ]
    front = aligned([row[:-1] for row in rows], left=2)
    wide = max(map(len, front))
    lines = [cut(f"{line:{wide}}  {row[-1]}", width) for line, row in zip(front, rows, strict=True)]
    yield palette.paint("bold", lines[0])
    for one, line in zip(shown, lines[1:], strict=True):
        yield palette.paint("red", line) if one.is_leaked else line
        if one.is_leaked:
            yield f"    {one.remedy}"


def _counted(found: "Iterable[Asset]") -> str:
    kinds = Counter(one.kind for one in found)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
