"""`joiner nodeclass approve` and `joiner nodeclass reject`: override the result of a canary."""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cli.cluster.arguments import add_cluster_arguments, add_output_argument

if TYPE_CHECKING:
    from shared.model.karpenter.node_class import EC2NodeClass

APPROVE_DESCRIPTION: Final = """Use an image, or a launch configuration, for all nodes of its EC2NodeClasses: without
waiting for its minimum age and its canary, and although the canary has rejected it. Nodes with another image drift
within the disruption budgets."""
REJECT_DESCRIPTION: Final = """Do not launch nodes with an image: its EC2NodeClasses use the last good image again, and
nodes with the rejected image drift within the disruption budgets. A rejected launch configuration is still used for new
nodes, because the earlier one is not known any more; nodes with the earlier one do not drift."""
EXAMPLES: Final = """examples:
  joiner nodeclass approve ami-0123456789abcdef0                      in all EC2NodeClasses that know the image
  joiner nodeclass reject ami-0123456789abcdef0 --nodeclass default   in one EC2NodeClass
  joiner nodeclass approve 5f70bf18a086007016e948b04aed3b82           a launch configuration, by its hash
  kubectl annotate ec2nodeclass default joiner.dev/canary-rejected=ami-0123456789abcdef0      the same without joiner

The image ids and hashes are in the events and in the condition CanarySucceeded of the EC2NodeClass. Your decision is
stored in the annotations joiner.dev/canary-approved and joiner.dev/canary-rejected; you can write them in your
manifests instead. It takes effect within five minutes. You need the permissions get, list and patch on EC2NodeClasses.

exit codes: 0 stored, 1 an object could not be read or written, 2 wrong usage, 130 interrupted
"""


def add_to(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add both actions."""
    for name, help_text, description in (
        ("approve", "use an image for all nodes, with any result of its canary", APPROVE_DESCRIPTION),
        ("reject", "do not launch nodes with an image", REJECT_DESCRIPTION),
    ):
        parser = actions.add_parser(
            name,
            help=help_text,
            description=description,
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("identity", metavar="IMAGE", help="image id, or hash of a launch configuration")
        parser.add_argument(
            "--nodeclass", action="append", default=[], metavar="NAME", help="only this EC2NodeClass; may be repeated"
        )
        add_cluster_arguments(parser)
        add_output_argument(parser)
        parser.set_defaults(run=run, usage=parser.error, is_approved=name == "approve")


def run(args: argparse.Namespace) -> int:
    """Store the decision and print the EC2NodeClasses; return 1 if one could not be read or written."""
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.cluster.writable_client import build_write_client  # noqa: PLC0415
    from cli.node_class.override import choose_node_classes, read_node_classes, write_override  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from shared.model.karpenter.health.canary import is_identity  # noqa: PLC0415

    if not is_identity(args.identity):
        args.usage(f"{args.identity!r} is neither an image id nor the hash of a launch configuration")
    try:
        connection = connect_to_cluster(args.kubeconfig, args.context)
        kube = build_write_client(connection)
        now = datetime.now(UTC)
        node_classes = read_node_classes(kube, connection.context, now)
        names = [item.name for item in choose_node_classes(node_classes, args.nodeclass, args.identity)]
        for name in names:
            write_override(kube, name, args.identity, is_approved=args.is_approved)
        changed_classes = read_node_classes(kube, connection.context, now)
        _print_node_classes([item for item in changed_classes if item.name in names], args)
    except InputError as error:
        return print_errors("nodeclass", [str(error)])
    return 0


def _print_node_classes(node_classes: "list[EC2NodeClass]", args: argparse.Namespace) -> None:
    from cli.node_class.override import build_document  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415

    documents = [build_document(node_class) for node_class in node_classes]
    if args.output != "table":
        sys.stdout.write(encode_output(documents, args.output))
        return
    for document in documents:
        approved, rejected = (", ".join(document[key]) or "none" for key in ("approved", "rejected"))
        sys.stdout.write(f"EC2NodeClass {document['name']}: approved: {approved}; rejected: {rejected}\n")
