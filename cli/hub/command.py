"""`joiner hub`: show the clusters of several accounts and regions in one table."""

import argparse
import sys
from datetime import UTC, datetime
from typing import Final

DESCRIPTION: Final = """Show many clusters, also of several accounts and regions, in one table: nodes, price per hour,
cost of the day and of the month, pending pods, pauses, drifted nodes, versions, and the age of the last journal entry.
The command reads what Joiner stored in the bucket of each cluster, all clusters at the same time. It reads no cluster,
and writes nothing. docs/guide/hub.md describes the hub file FILE and the IAM role for other accounts."""
EXAMPLES: Final = """examples:
  joiner hub examples/hub.yaml                   the example journal, offline
  joiner hub clusters.yaml                       all clusters of the file, from their buckets
  joiner hub clusters.yaml -o json | jq '.clusters[] | select(.error) | .name'
  joiner hub clusters.yaml -o json | jq '[.clusters[].monthUsd // 0] | add'

A hub file:
  clusters:
    - name: prod
      bucket: joiner-prod-bucket
      region: us-east-1
    - name: batch
      bucket: joiner-batch-bucket
      region: eu-west-1
      role: arn:aws:iam::444455556666:role/joiner-hub
      external-id: joiner-hub

Fleet values are those of the newest decision (fleetAt in -o json). `?` is unknown. `joiner status` shows a cluster as
it is now.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 all clusters shown, 1 the file is invalid, or a cluster or a part of it could not be read, 2 wrong usage,
130 interrupted
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    from cli.cluster.arguments import add_output_argument  # noqa: PLC0415 - only for its help
    from cli.planning.arguments import parse_time_argument  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("file", metavar="FILE", help="the hub file, YAML: the clusters and their buckets")
    parser.add_argument(
        "--now", type=parse_time_argument, metavar="TIME", help="time of the view, like 2026-11-21T09:09:00Z"
    )
    parser.add_argument("--wide", action="store_true", help="do not truncate lines")
    add_output_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Read and print; return 1 if the file is invalid or a cluster could not be read completely."""
    from cli.hub.hub_file import read_hub_file  # noqa: PLC0415 - --help needs none of it
    from cli.hub.page import build_hub_document, render_hub  # noqa: PLC0415
    from cli.hub.session import read_hub  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    try:
        view = read_hub(read_hub_file(args.file), args.now or datetime.now(UTC))
    except InputError as error:
        return print_errors("hub", str(error).splitlines())
    if args.output == "table":
        width = None if args.wide else get_terminal_width(sys.stdout)
        sys.stdout.write("\n".join(render_hub(view, choose_palette(sys.stdout), width)) + "\n")
    else:
        sys.stdout.write(encode_output(build_hub_document(view), args.output))
    messages = [
        f"{row.cluster.name}: {message}" for row in view.rows if row.summary for message in row.summary.messages
    ]
    return print_errors("hub", messages) or int(any(row.error for row in view.rows))
