"""`joiner group`: show what the clusters of a group use of their limit, and remove clusters that are gone."""

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cli.group.session import GroupView

DESCRIPTION: Final = """Show what the clusters of a group use of their limit in USD per hour, or remove a cluster that
does not exist any more. docs/guide/groups.md describes groups."""
SHOW_DESCRIPTION: Final = """Show the limit of a group in USD per hour, and what each cluster uses of it: running,
in-flight and reserved nodes, with volumes."""
FORGET_DESCRIPTION: Final = """Remove a cluster from a group. Its last known amount then no longer counts against the
limit. Do this only if the nodes of the cluster are gone, or if its setting `group` is removed: an active cluster joins
the group again within a minute, and until then other clusters may use its amount."""
SHOW_EXAMPLES: Final = """examples:
  joiner group show --group batch --table arn:aws:dynamodb:us-east-1:123456789012:table/joiner-groups
  joiner group show -o json | jq '.clusters[] | select(.silent)'    with $JOINER_GROUP and $JOINER_GROUP_TABLE
"""
FORGET_EXAMPLES: Final = """examples:
  joiner group forget 123456789012/us-east-1/old --group batch --table ARN
  joiner group forget 123456789012/us-east-1/old --group batch --table ARN --force
"""
NOTES: Final = """
`show` needs the permission dynamodb:GetItem on the table, `forget` also dynamodb:PutItem.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 shown or removed, 1 the group could not be read or written, or the cluster is still active, 2 wrong usage,
130 interrupted
"""
EXAMPLES: Final = f"{SHOW_EXAMPLES}{FORGET_EXAMPLES.partition(chr(10))[2]}{NOTES}"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=_require_action, usage=parser.error)
    actions = parser.add_subparsers(metavar="ACTION")
    show = _add_action(actions, "show", "show what each cluster uses", SHOW_DESCRIPTION, f"{SHOW_EXAMPLES}{NOTES}")
    show.set_defaults(run=_run_show)
    forget = _add_action(
        actions, "forget", "remove a cluster from a group", FORGET_DESCRIPTION, f"{FORGET_EXAMPLES}{NOTES}"
    )
    forget.add_argument("member", metavar="CLUSTER", help="the cluster as `joiner group show` lists it")
    forget.add_argument("--force", action="store_true", help="also if the cluster was active in the last 15 minutes")
    forget.set_defaults(run=_run_forget)


def _add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    description: str,
    epilog: str,
) -> argparse.ArgumentParser:
    from cli.cluster.arguments import add_output_argument  # noqa: PLC0415 - only for its help

    parser = actions.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(usage=parser.error)
    parser.add_argument("--group", default="", metavar="NAME", help="name of the group (default: $JOINER_GROUP)")
    parser.add_argument(
        "--table", default="", metavar="ARN", help="ARN of the shared DynamoDB table (default: $JOINER_GROUP_TABLE)"
    )
    add_output_argument(parser)
    return parser


def _require_action(args: argparse.Namespace) -> int:
    args.usage("ACTION is missing: show or forget")
    return 2


def _run_show(args: argparse.Namespace) -> int:
    from cli.group.session import open_group, read_group  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.stderr import print_errors  # noqa: PLC0415

    try:
        with open_group(args) as (table, group):
            _print_view(read_group(table, group), args)
    except InputError as error:
        return print_errors("group", [str(error)])
    return 0


def _run_forget(args: argparse.Namespace) -> int:
    from cli.group.session import forget_member, open_group, read_group  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.stderr import print_errors  # noqa: PLC0415

    try:
        with open_group(args) as (table, group):
            forget_member(table, group, args.member, force=args.force)
            _print_view(read_group(table, group), args)
    except InputError as error:
        return print_errors("group", [str(error)])
    return 0


def _print_view(view: "GroupView", args: argparse.Namespace) -> None:
    import sys  # noqa: PLC0415 - as above

    from cli.group.page import build_group_document, render_group  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415

    if args.output != "table":
        sys.stdout.write(encode_output(build_group_document(view), args.output))
        return
    sys.stdout.write("\n".join(render_group(view)) + "\n")
