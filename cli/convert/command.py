"""`joiner convert`: converts manifests of older Karpenter versions to karpenter.sh/v1, and explains each change."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.terminal.output_format import encode_output

if TYPE_CHECKING:
    from cli.convert.conversion import ConversionNote, ConversionResult

DESCRIPTION: Final = """Convert older objects to v1 with the same meaning: Provisioners (v1alpha5, v1alpha4),
AWSNodeTemplates (v1alpha1), NodePools, EC2NodeClasses and NodeClaims (v1beta1), the ConfigMaps
karpenter-global-settings and config-logging, and Karpenter's labels and annotations of pods. Objects are written to
standard output, the list of changes to standard error. Objects without an equivalent in v1 are refused, with a fix, and
left out; other kinds are not changed. A missing value becomes a placeholder with a comment. Pass all files at once: the
kubelet configuration of a NodePool moves to its EC2NodeClass."""
EXAMPLES: Final = """examples:
  joiner convert -f provisioner.yaml -f nodetemplate.yaml > v1.yaml
  joiner convert -f karpenter/ --role KarpenterNodeRole-prod | kubectl apply --dry-run=server -f -
  kubectl get provisioners,awsnodetemplates -o yaml | joiner convert -f - --settings settings.yaml
  joiner convert -f old.yaml -o json | jq '.notes[] | select(.level == "refused")'

docs/reference/output.md lists the fields of -o json and -o yaml.
Levels of notes: changed, warning (needs a review), missing (has a placeholder to replace), refused (not converted).

exit codes: 0 everything was converted, 1 something was refused, is missing or could not be read, 2 wrong usage,
130 interrupted
"""
Output = Literal["yaml", "json"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "-f", "--filename", action="append", default=[], metavar="FILE|DIR|-", help="manifests, YAML or JSON"
    )
    parser.add_argument(
        "--role", default="", metavar="NAME", help="IAM role of the nodes, for node classes without an instance profile"
    )
    parser.add_argument(
        "--settings", metavar="FILE", help="write the stack settings to this file, in the format of clusters/NAME.yaml"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=get_args(Output),
        default="yaml",
        help="yaml: objects, with notes on standard error; json: one document",
    )


def run(args: argparse.Namespace) -> int:
    """Read, convert, print; return 1 if an object was refused or an input cannot be read."""
    if not args.filename:
        args.usage("no input: add -f FILE")
    from cli.convert.conversion import convert_objects  # noqa: PLC0415 - --help needs none of it
    from cli.convert.reading.sources import read_objects  # noqa: PLC0415

    read_errors: list[str] = []
    conversion = convert_objects(read_objects(args.filename, read_errors.append), args.role)
    if args.settings is not None:
        _write_settings(args.settings, conversion, read_errors)
    sys.stdout.write(_render_json(conversion, read_errors) if args.output == "json" else _render_yaml(conversion))
    sys.stdout.flush()
    for line in read_errors:
        sys.stderr.write(f"joiner convert: {line}\n")
    if args.output == "yaml":
        for note in conversion.notes:
            sys.stderr.write(f"joiner convert: {_format_note(note)}\n")
    return 1 if read_errors or any(note.level in ("missing", "refused") for note in conversion.notes) else 0


def _write_settings(file: str, conversion: "ConversionResult", errors: list[str]) -> None:
    from cli.convert.reading.yaml_writer import format_yaml  # noqa: PLC0415 - without settings nothing needs it

    try:
        Path(file).write_text(format_yaml(dict(conversion.stack_settings)), encoding="utf-8")
    except OSError as error:
        errors.append(f"{file}: {error.strerror}: choose a writable path")


def _format_note(note: "ConversionNote") -> str:
    level = "" if note.level == "changed" else f"{note.level}: "
    field = f"{note.field}: " if note.field else ""
    return f"{note.location}: {level}{note.kind} {note.name}: {field}{note.message}"


def _render_yaml(conversion: "ConversionResult") -> str:
    from cli.convert.reading.missing_values import add_comments  # noqa: PLC0415 - --help needs none of it
    from cli.convert.reading.yaml_writer import format_yaml  # noqa: PLC0415 - JSON needs no YAML library

    return "---\n".join(manifest.text or add_comments(format_yaml(manifest.value)) for manifest in conversion.objects)


def _render_json(conversion: "ConversionResult", read_errors: Iterable[str]) -> str:
    value = {
        "objects": [manifest.value for manifest in conversion.objects],
        "settings": dict(conversion.stack_settings),
        "notes": conversion.notes,
        "unreadable": list(read_errors),
    }
    return encode_output(value, "json")
