"""`joiner explain`: why an object is in its state, from the journal and optionally from the live cluster."""

import argparse
import sys
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.explain.kinds import EXPLAIN_KINDS
from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from cli.explain.evidence import Evidence

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
  joiner explain pod web-2mh2mqfd6w-44ks7 --trace --journal examples/journal       where the time went until it ran
  joiner explain pod shop/cart-0 --trace --context prod --otlp http://localhost:4318   and export the trace

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
    parser.add_argument(
        "--trace",
        action="store_true",
        dest="is_trace",
        help="of a pod: print the steps from Pending to Running with their durations; with --context, the times of the "
        "Pod, Node and NodeClaim are included",
    )
    parser.add_argument(
        "--otlp",
        metavar="ENDPOINT",
        help="with --trace: also send the trace to ENDPOINT/v1/traces with OTLP/HTTP in JSON, like "
        "http://localhost:4318; repeated exports of a pod have the same trace ID",
    )


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

    if args.is_trace and args.kind != "pod":
        args.usage(f"--trace needs a pod, not a {args.kind}: joiner explain pod NAME --trace")
    if args.otlp is not None and not args.is_trace:
        args.usage("--otlp needs --trace: joiner explain pod NAME --trace --otlp ENDPOINT")
    try:
        journal, live = read_journal_and_cluster(args)
    except InputError as error:
        return print_errors("explain", [str(error)])
    evidence = build_evidence(journal, live)
    print_errors("explain", journal.messages)
    try:
        if args.is_trace:
            return _print_trace(args, evidence)
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


def _print_trace(args: argparse.Namespace, evidence: "Evidence") -> int:
    """Print the trace of a pod, and export it if an endpoint is given; return 1 if the endpoint refuses it."""
    from cli.explain.evidence import find_full_name  # noqa: PLC0415 - --help needs none of it
    from cli.explain.page import describe_journal_coverage  # noqa: PLC0415
    from cli.explain.pod_trace.build_trace import build_pod_trace  # noqa: PLC0415
    from cli.explain.pod_trace.waterfall import build_trace_document, render_waterfall  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    trace = build_pod_trace(evidence, find_full_name(evidence, "pod", args.name))
    if args.output == "table":
        coverage = describe_journal_coverage(evidence)
        output = render_waterfall(trace, coverage, choose_palette(sys.stdout), get_terminal_width(sys.stdout))
    else:
        output = encode_output(build_trace_document(trace), args.output)
    sys.stdout.write(output)
    if args.otlp is not None:
        from cli.explain.pod_trace.otlp_document import build_otlp_document  # noqa: PLC0415
        from cli.explain.pod_trace.otlp_export import export_trace  # noqa: PLC0415
        from cli.terminal.errors import InputError  # noqa: PLC0415

        try:
            url = export_trace(args.otlp, build_otlp_document(trace))
        except InputError as error:
            return print_errors("explain", [str(error)])
        sys.stderr.write(f"trace exported to {url}\n")
    return 1 if evidence.journal.messages else 0
