"""`joiner nodeclass`: what an EC2NodeClass resolves to in an account, before a node is launched from it."""

import argparse
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from cli.aws.session import describe_fault, find_discovery_cluster, open_apis
from cli.inputs.environment import read_environment_settings
from cli.inputs.files import add_filename
from cli.inputs.node_classes import read_node_classes
from cli.node_class.override_command import add_to as add_override_actions
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from shared.errors import Fault
from shared.model.karpenter.node_class import EC2NodeClass
from shared.settings import Settings

if TYPE_CHECKING:
    from cli.node_class.resolution import ResolvedNodeClass

DESCRIPTION: Final = """Show what EC2NodeClasses select in an AWS account: subnets, security groups, AMIs, the instance
profile, and the matching instance types with allocatable resources and prices. Check with EC2 DryRun calls whether
launches would be refused. Read-only."""
EXAMPLES: Final = """examples:
  joiner nodeclass resolve -f examples/nodeclass/al2023.yaml --embedded        no account is needed
  joiner nodeclass resolve -f nodeclass.yaml --cluster prod --region eu-west-1
  joiner nodeclass resolve -f nodeclass.yaml --embedded --user-data            with the user data of the instances
  joiner nodeclass resolve -f nodeclass.yaml --embedded -o json | jq '.[].amis'
  kubectl get ec2nodeclasses -o json | joiner nodeclass resolve -f - --cluster prod

exit codes: 0 all EC2NodeClasses would be Ready, 1 an EC2NodeClass would not be Ready (the message has the field and the
fix) or something could not be read, 2 wrong usage, 130 interrupted
"""
_EMBEDDED_INSTANCE_PROFILE: Final = "joiner-nodes"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_require_action, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    resolve = actions.add_parser(
        "resolve",
        help="show what EC2NodeClasses select in an AWS account",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_override_actions(actions)
    resolve.set_defaults(run=run, usage=resolve.error)
    add_filename(resolve, "EC2NodeClasses (JSON or YAML)")
    resolve.add_argument("--embedded", action="store_true", help="use simulated AWS APIs; no account is needed")
    resolve.add_argument("--cluster", metavar="NAME", help="name of the EKS cluster (default: $CLUSTER_NAME)")
    resolve.add_argument("--region", default="", help="AWS region (default: that of your credentials)")
    resolve.add_argument(
        "--instance-profile",
        metavar="NAME",
        help="instance profile for EC2NodeClasses with spec.role (default: $JOINER_INSTANCE_PROFILE)",
    )
    resolve.add_argument(
        "--prices", default="", metavar="FILE", help="price list to use if the AWS Price List API is unreachable"
    )
    resolve.add_argument("--no-dry-run", action="store_true", help="do not check launch permissions with DryRun calls")
    resolve.add_argument("--user-data", action="store_true", help="print the user data, too")
    resolve.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table", help="output format")
    resolve.add_argument("--all", action="store_true", dest="is_whole", help="print all instance types")


def run(args: argparse.Namespace) -> int:
    """Read, query and print; return 1 if a class would not be Ready, or something could not be read or queried."""
    if not args.filename:
        args.usage("no EC2NodeClass: name a file with -f")
    messages: list[str] = []
    now = datetime.now(UTC)
    try:
        node_classes = read_node_classes(args.filename, now, messages.append)
        cluster = _choose_cluster_name(args, node_classes)
        resolved_classes, queried_at = _query_account(args, node_classes, cluster, messages)
    except (InputError, Fault, ValueError) as error:
        text = describe_fault(error, embedded=True) if isinstance(error, Fault) else str(error)
        return print_errors("nodeclass", dict.fromkeys((*messages, text)))
    from cli.node_class import page  # noqa: PLC0415 - --help needs none of it

    if args.output == "table":
        render = partial(page.render_node_class, is_whole=args.is_whole, with_user_data=args.user_data)
        sys.stdout.write("\n".join(render(item, queried_at) for item in resolved_classes))
    else:
        build_document = partial(page.build_node_class_document, with_user_data=args.user_data)
        sys.stdout.write(encode_output([build_document(item, queried_at) for item in resolved_classes], args.output))
    sys.stdout.flush()
    for resolved_class in resolved_classes:
        messages.extend(page.list_blocking_conditions(resolved_class, queried_at))
        sys.stderr.writelines(f"joiner nodeclass: note: {line}\n" for line in page.list_warnings(resolved_class))
    return print_errors("nodeclass", dict.fromkeys(messages))


def _require_action(args: argparse.Namespace) -> int:
    args.usage("which ACTION? resolve, approve or reject")
    raise AssertionError("argparse has left")


def _choose_cluster_name(args: argparse.Namespace, node_classes: Iterable[EC2NodeClass]) -> str:
    name: str = args.cluster or os.environ.get("CLUSTER_NAME", "")
    if name:
        return name
    if not args.embedded:
        args.usage("the cluster is unknown: write --cluster NAME, or --embedded")
    return find_discovery_cluster(node_classes)


def _query_account(
    args: argparse.Namespace, node_classes: tuple[EC2NodeClass, ...], cluster: str, messages: list[str]
) -> tuple[tuple["ResolvedNodeClass", ...], datetime]:
    from cli.aws.market import load_price_list  # noqa: PLC0415 - --help needs none of it
    from cli.node_class.resolution import resolve_node_classes  # noqa: PLC0415

    chosen_settings = read_environment_settings()
    profile = args.instance_profile or os.environ.get("JOINER_INSTANCE_PROFILE", "")
    account = open_apis(args.region, embedded=args.embedded, cluster=cluster)
    with (
        show_progress(f"resolving {', '.join(node_class.name for node_class in node_classes)}"),
        account as apis,
    ):
        settings = Settings(
            cluster_name=cluster,
            region=apis.region,
            instance_profile=profile or (_EMBEDDED_INSTANCE_PROFILE if args.embedded else ""),
            feature_gates=chosen_settings.feature_gates,
            vm_memory_overhead_percent=chosen_settings.vm_memory_overhead_percent,
            reserved_enis=chosen_settings.reserved_enis,
            aws_feature_gates=chosen_settings.aws_feature_gates,
        )
        price_list = load_price_list(args.prices, apis.region)
        uses_dry_run = not args.no_dry_run and not chosen_settings.disable_dry_run
        return resolve_node_classes(
            node_classes, apis, settings, messages.append, price_list=price_list, uses_dry_run=uses_dry_run
        ), apis.queried_at
