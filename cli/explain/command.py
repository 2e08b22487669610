"""`joiner explain`: why an object is in its state, from the journal and optionally from the live cluster."""

import argparse
import sys
from typing import Final, Literal, get_args

from cli.explain.kinds import EXPLAIN_KINDS
from cli.terminal.stderr import print_errors

DESCRIPTION: Final = """Explain the state of a pod, node, NodePool, NodeClaim or disruption command: why a pod is
unschedulable or on its node, why a node was launched with its instance type, why it was removed or is kept, what
happened when, and what it cost. The answers come from the journal, in which Joiner's functions record every decision
and its result. The command reads the journal from the bucket of a deployment, or offline from a copy in a folder."""
EXAMPLES: Final = """examples:
  joiner explain nodepool default --journal examples/journal     an example journal, offline
  joiner explain pod training --journal examples/journal         an unschedulable pod of the Deployment training
  joiner explain node ip-10-0-32-4 --journal examples/journal
  joiner explain pod shop/cart-0 --since 2h                      from the bucket in $JOINER_BUCKET_NAME
  joiner explain node ip-10-0-64-5 --context                     and the current state in your cluster
  joiner explain node i-0a31911b38b3d1a82 --journal s3://joiner-prod-bucket --context prod
  joiner explain command emptiness-e0ae10abb2af -o json | jq .history

NAME can be short:
  pod               name without namespace, or the name of a Deployment, StatefulSet, DaemonSet or Job: an unschedulable
                    pod of the workload if there is one, otherwise the pod with the newest decision
  node, nodeclaim   name up to the first dot, IP address, instance ID, provider ID, or the name of the other object

From a bucket, the command reads the last day unless --since says otherwise; from a folder, everything. Ages in a
folder's journal are relative to its last cycle unless --now is given. Unreadable entries are reported on stderr.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 explained, 1 object not found, or part of the input could not be read (see stderr), 2 wrong usage,
130 interrupted
"""
Output = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    from cli.journal.arguments import (  # noqa: PLC0415 - the list of commands needs none of it
        add_cluster_arguments,
        add_journal_arguments,
    )

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("kind", choices=tuple(EXPLAIN_KINDS), help="kind of the object")
    parser.add_argument("name", metavar="NAME", help="name of the object")
    add_journal_arguments(parser)
    add_cluster_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="output format")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print the complete history")


def run(args: argparse.Namespace) -> int:
    """Read, explain, print; return 1 if nothing is known, or an input cannot be read."""
    from cli.explain.answers import explain_object  # noqa: PLC0415 - --help needs none of it
    from cli.explain.evidence import UnknownObject, build_evidence  # noqa: PLC0415
    from cli.explain.page import (  # noqa: PLC0415
        build_explanation_document,
        describe_journal_coverage,
        render_explanation,
    )
    from cli.journal.sources import read_journal_and_cluster  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    try:
        journal, live = read_journal_and_cluster(args)
    except InputError as error:
        return print_errors("explain", [str(error)])
    evidence = build_evidence(journal, live)
    print_errors("explain", journal.messages)
    try:
        explanation = explain_object(evidence, args.kind, args.name)
    except UnknownObject as error:
        is_bucket = args.since is None and journal.source.startswith("s3://")
        since_hint = "; only the last day was read: --since 168h reads a week" if is_bucket else ""
        since_hint = "; a longer --since reads more" if args.since is not None else since_hint
        return print_errors("explain", [f"{error} ({describe_journal_coverage(evidence)}{since_hint})"])
    if args.output == "table":
        output = render_explanation(
            explanation, evidence, choose_palette(sys.stdout), get_terminal_width(sys.stdout), is_whole=args.is_whole
        )
    else:
        output = encode_output(build_explanation_document(explanation, evidence), args.output)
    sys.stdout.write(output)
    return 1 if journal.messages else 0
