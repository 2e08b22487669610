"""`joiner lint`: mistakes in manifests, found before they are applied to a cluster."""

import argparse
import sys
from typing import Any, Final, get_args

from cli.planning.arguments import OutputFormat
from cli.terminal.output_format import encode_output
from shared.model.core.formatting import format_count

DESCRIPTION: Final = """Check manifests without a cluster, and report what an API server would reject, drop silently or
interpret in another way than intended: invalid YAML, misspelled fields and annotations, unquoted values, unknown
instance types, zones and label values, invalid quantities, missing EC2NodeClasses, limits below the smallest instance,
NodePools that are never used, taints without tolerations, and nodes that expire too soon."""
EXAMPLES: Final = """examples:
  joiner lint -f karpenter/
  joiner lint -f nodepool.yaml -f workloads/ --instance-types examples/catalogue.json
  kubectl get nodepools,ec2nodeclasses -o yaml | joiner lint -f -
  joiner lint -f . -o json | jq -r '.[] | select(.level == "error") | .location'

Instance types are checked against --instance-types, or else against the list of the installed AWS SDK. Zones are
checked against --instance-types, or else by their form and region.

exit codes: 0 no findings or only warnings, 1 an error, or a file that could not be read, 2 wrong usage, 130 interrupted
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "-f", "--filename", action="append", default=[], metavar="FILE|DIR|-", help="manifests, YAML or JSON"
    )
    parser.add_argument(
        "--instance-types",
        metavar="FILE",
        help="catalog to check instance types, zones and limits against (`joiner catalog build`)",
    )
    parser.add_argument(
        "--honor-cluster-autoscaler-annotations",
        choices=("on", "off"),
        dest="honor",
        help="the setting of the deployment: whether Joiner respects the annotations of Cluster Autoscaler "
        "(default: $JOINER_HONOR_CLUSTER_AUTOSCALER_ANNOTATIONS; if it is not set, findings are for both values)",
    )
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="output format")


def run(args: argparse.Namespace) -> int:
    """Read the manifests, check them and print the findings; return 1 if there is an error."""
    if not args.filename:
        args.usage("no input: add -f FILE")
    from cli.convert.reading.sources import read_objects  # noqa: PLC0415 - --help needs none of it
    from cli.inputs.environment import read_honor_setting  # noqa: PLC0415
    from cli.lint.finding import LintFinding  # noqa: PLC0415
    from cli.lint.rules import lint_objects  # noqa: PLC0415
    from cli.planning.catalog_source import load_catalog_file  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415

    unread_messages: list[str] = []
    catalog = None
    if args.instance_types is not None:
        try:
            catalog = load_catalog_file(args.instance_types)
        except InputError as error:
            unread_messages.append(str(error))
    source_objects = list(read_objects(args.filename, unread_messages.append))
    lint_findings = lint_objects(source_objects, catalog, args.honor or read_honor_setting())
    unread_findings = [
        LintFinding(level="error", location=line, kind="", name="", field="", message="") for line in unread_messages
    ]
    if args.output != "table":
        sys.stdout.write(encode_output([*unread_findings, *lint_findings], args.output))
    else:
        sys.stdout.writelines(f"{line}\n" for line in unread_messages)
        sys.stdout.writelines(f"{_format_finding(lint_finding)}\n" for lint_finding in lint_findings)
    sys.stdout.flush()
    errors = len(unread_messages) + sum(lint_finding.level == "error" for lint_finding in lint_findings)
    warnings = len(unread_messages) + len(lint_findings) - errors
    sys.stderr.write(f"joiner lint: {format_count(errors, 'error')}, {format_count(warnings, 'warning')}\n")
    return 1 if errors else 0


def _format_finding(lint_finding: Any) -> str:  # noqa: ANN401 - a Finding, whose module is imported late
    field = f"{lint_finding.field}: " if lint_finding.field else ""
    subject = f"{lint_finding.kind} {lint_finding.name}"
    return f"{lint_finding.location}: {lint_finding.level}: {subject}: {field}{lint_finding.message}"
