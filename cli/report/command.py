"""`joiner report`: one page about the fleet, what it cost, what was decided, and what is blocked and why."""

import argparse
from typing import Final, Literal, get_args

DESCRIPTION: Final = """Write a self-contained HTML page: nodes and cost over time, launches and terminations, every
decision with its reason, unschedulable pods, nodes that cannot be disrupted, and savings. The data comes from the
journal and, with --context, from a live cluster. The page needs no network, follows the light or dark mode of the
browser, and can be printed."""
EXAMPLES: Final = """examples:
  joiner report --journal examples/journal       the example journal, as report.html
  joiner report week.html --since 168h           the last week, from the bucket in $JOINER_BUCKET_NAME (default: a day)
  joiner report - --context prod > now.html      with the current nodes and pods of a live cluster
  joiner report -o json --journal examples/journal | jq '.nodePools[] | {name, nodes, usdPerHour, usd}'

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 written, 1 part of the input could not be read, or the file not be written (see stderr), 2 wrong usage,
130 interrupted
"""
Output = Literal["html", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.journal.arguments import (  # noqa: PLC0415 - the list of commands needs none of it
        add_cluster_arguments,
        add_journal_arguments,
    )

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="output file (default: report.html; - with -o json or yaml)"
    )
    add_journal_arguments(parser)
    add_cluster_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="html", help="output format")


def run(args: argparse.Namespace) -> int:
    """Read the journal, build and write the report; return 1 if a source could not be read or the file not written."""
    from cli.report.session import write_report  # noqa: PLC0415 - --help needs none of it

    return write_report(args)
