"""`joiner nodeclass`: what an EC2NodeClass comes to in an account, before anything is launched from it."""

import argparse
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.clouds import discovered_cluster, opened, said
from cli.encoding import encoded
from cli.files import InputError
from cli.node_classes import node_classes_in
from cli.progress import progress
from cli.telling import tell
from shared.errors import Fault
from shared.model.nodeclasses import EC2NodeClass
from shared.settings import Settings

if TYPE_CHECKING:
    from cli.nodeclass_account import Resolved

DESCRIPTION: Final = """Ask an account, or the embedded cloud, what each EC2NodeClass of the files comes to: subnets and
security groups, images and the types they are for, instance profile, types with what pods get of them and what they
cost, and what EC2 would refuse of a launch (asked with DryRun). Nothing is made or changed."""
EXAMPLES: Final = """examples:
  joiner nodeclass resolve -f examples/nodeclass/al2023.yaml --embedded        no account is needed
  joiner nodeclass resolve -f nodeclass.yaml --cluster prod --region eu-west-1
  joiner nodeclass resolve -f nodeclass.yaml --embedded --user-data            what a machine would be told
  joiner nodeclass resolve -f nodeclass.yaml --embedded -o json | jq '.[].amis'
  kubectl get ec2nodeclasses -o json | joiner nodeclass resolve -f - --cluster prod

exit codes: 0 every class would be Ready, 1 one would not (it is named, with field and remedy) or something could not be
read or asked, 2 wrong usage, 130 interrupted
"""
_EMBEDDED_PROFILE: Final = "joiner-nodes"
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_nothing, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    resolve = actions.add_parser(
        "resolve",
        help="subnets, groups, images, types and prices, user data",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    resolve.set_defaults(run=run, usage=resolve.error)
    resolve.add_argument(
        "-f", "--filename", action="append", default=[], metavar="FILE|DIR|-", help="EC2NodeClasses, JSON or YAML"
    )
    resolve.add_argument("--embedded", action="store_true", help="ask the embedded cloud, over HTTP, no account")
    resolve.add_argument("--cluster", metavar="NAME", help="the EKS cluster (default: $CLUSTER_NAME)")
    resolve.add_argument("--region", default="", help="default: that of your credentials")
    resolve.add_argument(
        "--instance-profile",
        metavar="NAME",
        help="what the stack made for classes that name a role (default: $JOINER_INSTANCE_PROFILE)",
    )
    resolve.add_argument(
        "--prices", default="", metavar="FILE", help="a price list, for when the pricing service cannot be asked"
    )
    resolve.add_argument("--no-dry-run", action="store_true", help="do not ask EC2 whether it would let us launch")
    resolve.add_argument("--user-data", action="store_true", help="print what a machine would be told, too")
    resolve.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    resolve.add_argument("--all", action="store_true", dest="is_whole", help="print every instance type")


def run(chosen: argparse.Namespace) -> int:
    """Read, ask, print; answer 1 if a class would not be Ready, or something could not be read or asked."""
    if not chosen.filename:
        chosen.usage("which node class? name a file with -f")
    told: list[str] = []
    now = datetime.now(UTC)
    try:
        classes = node_classes_in(chosen.filename, now, told.append)
        cluster = _cluster_name(chosen, classes)
        resolved, at = _asked(chosen, classes, cluster, told)
    except (InputError, Fault, ValueError) as error:
        return tell(
            "nodeclass", dict.fromkeys((*told, said(error, embedded=True) if isinstance(error, Fault) else str(error)))
        )
    sys.stdout.write(_shown(chosen, resolved, at))
    sys.stdout.flush()
    from cli.nodeclass_tables import complaints, warnings  # noqa: PLC0415 - --help needs none of it

    told.extend(line for one in resolved for line in complaints(one, at))
    for line in (line for one in resolved for line in warnings(one)):
        sys.stderr.write(f"joiner nodeclass: note: {line}\n")
    return tell("nodeclass", dict.fromkeys(told))


def _nothing(chosen: argparse.Namespace) -> int:
    chosen.usage("say what: resolve")
    raise AssertionError("argparse has left")


def _cluster_name(chosen: argparse.Namespace, classes: Iterable[EC2NodeClass]) -> str:
    named: str = chosen.cluster or os.environ.get("CLUSTER_NAME", "")
    if named:
        return named
    if not chosen.embedded:
        chosen.usage("which cluster? write --cluster NAME, or --embedded")
    return discovered_cluster(classes)


def _asked(
    chosen: argparse.Namespace, classes: tuple[EC2NodeClass, ...], cluster: str, told: list[str]
) -> tuple[tuple["Resolved", ...], datetime]:
    from cli.account import price_list_in  # noqa: PLC0415 - botocore takes a fifth of a second
    from cli.nodeclass_account import resolve_all  # noqa: PLC0415

    profile = chosen.instance_profile or os.environ.get("JOINER_INSTANCE_PROFILE", "")
    cloud = opened(chosen.region, embedded=chosen.embedded, cluster=cluster)
    with progress(f"asking about {', '.join(one.name for one in classes)}"), cloud as (clients, now):
        settings = Settings(
            cluster_name=cluster,
            region=clients.region,
            instance_profile=profile or (_EMBEDDED_PROFILE if chosen.embedded else ""),
            feature_gates=os.environ.get("FEATURE_GATES", ""),
            vm_memory_overhead_percent=os.environ.get("VM_MEMORY_OVERHEAD_PERCENT", "0.075"),
            reserved_enis=os.environ.get("RESERVED_ENIS", "0"),
            aws_feature_gates=os.environ.get("AWS_FEATURE_GATES", ""),
        )
        listed = price_list_in(chosen.prices, clients.region)
        rehearses = not chosen.no_dry_run and os.environ.get("DISABLE_DRY_RUN", "false") != "true"
        return resolve_all(classes, clients, settings, now, told.append, listed=listed, rehearses=rehearses), now


def _shown(chosen: argparse.Namespace, resolved: Iterable["Resolved"], at: datetime) -> str:
    from cli.nodeclass_tables import document, page  # noqa: PLC0415 - --help needs none of it

    if chosen.output == "table":
        pages = (page(one, at, is_whole=chosen.is_whole, tells=chosen.user_data) for one in resolved)
        return "\n".join(pages)
    return encoded([document(one, at, tells=chosen.user_data) for one in resolved], chosen.output)
