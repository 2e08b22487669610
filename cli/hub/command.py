"""`joiner hub`: show the clusters of several accounts and regions in one table."""

import argparse
import sys
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from cli.hub.session import HubView

DESCRIPTION: Final = """Show many clusters, also of several accounts and regions, in one table: nodes, price per hour,
cost of the day and of the month, pending pods, pauses, drifted nodes, versions, and the age of the last journal entry.
The command reads what Joiner stored in the bucket of each cluster, all clusters at the same time. It reads no cluster,
and writes nothing. With --daily, it prints one report for all clusters instead: what each cost on a day, and how it is
now; --topic also sends it to an SNS topic. docs/guide/hub.md describes the hub file FILE and the IAM role for other
accounts."""
EXAMPLES: Final = """examples:
  joiner hub examples/hub.yaml                   the example journal, offline
  joiner hub clusters.yaml                       all clusters of the file, from their buckets
  joiner hub clusters.yaml --daily               the report of yesterday (UTC), in Markdown
  joiner hub clusters.yaml --daily 2026-11-20 -o json
  joiner hub clusters.yaml --daily --topic arn:aws:sns:us-east-1:123456789012:reports
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

exit codes: 0 all clusters shown, 1 the file is invalid, a cluster or a part of it could not be read (a report was sent
nevertheless, and names it), or the report could not be sent, 2 wrong usage, 130 interrupted
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
    parser.add_argument(
        "--daily",
        nargs="?",
        const="",
        type=_parse_day,
        metavar="DAY",
        help="print the daily report of all clusters: Markdown, or JSON or YAML with -o (default: yesterday, UTC)",
    )
    parser.add_argument("--topic", metavar="ARN", help="with --daily: also send the report to this SNS topic")
    parser.add_argument("--wide", action="store_true", help="do not truncate lines")
    add_output_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Read and print; return 1 if the file is invalid, a cluster could not be read completely, or nothing was sent."""
    from cli.hub.hub_file import read_hub_file  # noqa: PLC0415 - --help needs none of it
    from cli.hub.session import read_hub  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.stderr import print_errors  # noqa: PLC0415

    if args.topic and args.daily is None:
        args.usage("--topic is used with --daily only")
    now = args.now or datetime.now(UTC)
    day = None if args.daily is None else args.daily or (now.astimezone(UTC) - timedelta(days=1)).date()
    try:
        view = read_hub(read_hub_file(args.file), now, day)
        if day is None:
            _print_table(view, args)
        else:
            _print_report(view, day, args)
    except InputError as error:
        return print_errors("hub", str(error).splitlines())
    messages = [
        f"{row.cluster.name}: {message}" for row in view.rows if row.summary for message in row.summary.messages
    ]
    is_incomplete = any(row.error or (row.day_costs and row.day_costs.error) for row in view.rows)
    return print_errors("hub", messages) or int(is_incomplete)


def _print_table(view: "HubView", args: argparse.Namespace) -> None:
    from cli.hub.page import build_hub_document, render_hub  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    if args.output == "table":
        width = None if args.wide else get_terminal_width(sys.stdout)
        sys.stdout.write("\n".join(render_hub(view, choose_palette(sys.stdout), width)) + "\n")
    else:
        sys.stdout.write(encode_output(build_hub_document(view), args.output))


def _print_report(view: "HubView", day: date, args: argparse.Namespace) -> None:
    from cli.hub.daily_report import (  # noqa: PLC0415 - --help needs none of it
        build_daily_document,
        format_daily_subject,
        render_daily_report,
    )
    from cli.hub.report_delivery import send_report  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415

    markdown = "\n".join(render_daily_report(view, day)) + "\n"
    is_markdown = args.output == "table"
    sys.stdout.write(markdown if is_markdown else encode_output(build_daily_document(view, day), args.output))
    if args.topic:
        send_report(args.topic, format_daily_subject(view, day), markdown)


def _parse_day(text: str) -> date | Literal[""]:
    """Parse a day; "" is yesterday.

    Raises:
        ArgumentTypeError: *text* is no day.
    """
    try:
        return date.fromisoformat(text) if text else ""
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day: write it as in 2026-11-20") from None
