"""`joiner convert`: manifests of older Karpenters -> those of karpenter.sh/v1, with a line of why for each change."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from cli.encoding import encoded

if TYPE_CHECKING:
    from cli.conversion.convert import Conversion, Note

DESCRIPTION: Final = """Turn Provisioners (v1alpha5, v1alpha4), AWSNodeTemplates (v1alpha1), NodePools, EC2NodeClasses
and NodeClaims (v1beta1), the ConfigMaps karpenter-global-settings and config-logging, and what pods say to Karpenter
into karpenter.sh/v1 with the same meaning. Objects go to standard output, what was changed and why to standard error.
What has no equivalent is refused, with a remedy, and left out; other kinds pass as they are. Name all files at once:
the kubelet's configuration of a pool moves to the node class that it names."""
EXAMPLES: Final = """examples:
  joiner convert -f provisioner.yaml -f nodetemplate.yaml > v1.yaml
  joiner convert -f karpenter/ --role KarpenterNodeRole-prod | kubectl apply --dry-run=server -f -
  kubectl get provisioners,awsnodetemplates -o yaml | joiner convert -f - --settings knobs.json
  joiner convert -f old.yaml -o json | jq '.notes[] | select(.level == "refused")'

exit codes: 0 everything was converted or passed as it was, 1 something was refused or could not be read (it is named,
with line and remedy), 2 wrong usage, 130 interrupted
"""
Output = Literal["yaml", "json"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "-f", "--filename", action="append", default=[], metavar="FILE|DIR|-", help="manifests, YAML or JSON"
    )
    parser.add_argument("--role", default="", metavar="NAME", help="of nodes, where no instance profile is named")
    parser.add_argument("--settings", metavar="FILE", help="write the knobs of the stack there, as cdk.json has them")
    parser.add_argument(
        "-o",
        "--output",
        choices=get_args(Output),
        default="yaml",
        help="yaml: objects, notes on standard error; json: one document with objects, knobs and notes",
    )


def run(chosen: argparse.Namespace) -> int:
    """Read, convert, print; answer 1 if something was refused or could not be read."""
    if not chosen.filename:
        chosen.usage("what is to be converted? name a file with -f")
    from cli.conversion.convert import convert  # noqa: PLC0415 - --help needs none of it
    from cli.conversion.sources import written_in  # noqa: PLC0415

    unread: list[str] = []
    done = convert(written_in(chosen.filename, unread.append), chosen.role)
    if chosen.settings is not None:
        _write(chosen.settings, done, unread)
    sys.stdout.write(_json(done, unread) if chosen.output == "json" else _yaml(done))
    sys.stdout.flush()
    for line in unread:
        sys.stderr.write(f"joiner convert: {line}\n")
    if chosen.output == "yaml":
        for note in done.notes:
            sys.stderr.write(f"joiner convert: {_line(note)}\n")
    return 1 if unread or any(note.level == "refused" for note in done.notes) else 0


def _write(file: str, done: "Conversion", unread: list[str]) -> None:
    try:
        Path(file).write_bytes(msgspec.json.format(msgspec.json.encode(done.knobs), indent=2) + b"\n")
    except OSError as error:
        unread.append(f"{file}: {error.strerror}: name a file that can be written")


def _line(note: "Note") -> str:
    level = "" if note.level == "changed" else f"{note.level}: "
    field = f"{note.field}: " if note.field else ""
    return f"{note.where}: {level}{note.kind} {note.name}: {field}{note.message}"


def _yaml(done: "Conversion") -> str:
    from cli.conversion.writing import written  # noqa: PLC0415 - who has JSON need not wait for YAML

    return "---\n".join(one.text or written(one.value) for one in done.objects)


def _json(done: "Conversion", unread: Iterable[str]) -> str:
    value = {
        "objects": [one.value for one in done.objects],
        "knobs": dict(done.knobs),
        "notes": done.notes,
        "unread": list(unread),
    }
    return encoded(value, "json")
