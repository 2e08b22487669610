"""`joiner lint`: what is wrong with manifests, before a cluster sees them."""

import argparse
import sys
from typing import Any, Final, Literal, get_args

from cli.encoding import encoded
from cli.text import count

DESCRIPTION: Final = """Read manifests as an API server would, and say what it would refuse, silently drop or take in
another sense than was meant: YAML that does not parse, misspelt fields and annotations, values without quotes, ids
under `name`, limits into which no type fits, pools that are never used, taints that nobody tolerates, nodes that
expire at once."""
EXAMPLES: Final = """examples:
  joiner lint -f karpenter/
  joiner lint -f nodepool.yaml -f workloads/ --instance-types examples/catalogue.json
  kubectl get nodepools,ec2nodeclasses -o yaml | joiner lint -f -
  joiner lint -f . -o json | jq -r '.[] | select(.level == "error") | .where'

exit codes: 0 nothing, or warnings only; 1 an error was found, or something could not be read; 2 wrong usage;
130 interrupted
"""
Output = Literal["text", "json"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument(
        "-f", "--filename", action="append", default=[], metavar="FILE|DIR|-", help="manifests, YAML or JSON"
    )
    parser.add_argument("--instance-types", metavar="FILE", help="a catalogue, to compare limits with what is sold")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="text", help="what is printed")


def run(chosen: argparse.Namespace) -> int:
    """Read, look, print; answer 1 if there is an error."""
    if not chosen.filename:
        chosen.usage("what is to be looked at? name a file with -f")
    from cli.catalogues import catalogue_in  # noqa: PLC0415
    from cli.conversion.sources import written_in  # noqa: PLC0415 - --help needs none of it
    from cli.files import InputError  # noqa: PLC0415
    from cli.findings import Finding  # noqa: PLC0415
    from cli.linting import findings  # noqa: PLC0415

    unread: list[str] = []
    catalogue = None
    if chosen.instance_types is not None:
        try:
            catalogue = catalogue_in(chosen.instance_types)
        except InputError as error:
            unread.append(str(error))
    found = findings(list(written_in(chosen.filename, unread.append)), catalogue)
    broken = [Finding(level="error", where=line, kind="", name="", field="", message="") for line in unread]
    if chosen.output == "json":
        sys.stdout.write(encoded([*broken, *found], chosen.output))
    else:
        sys.stdout.writelines(f"{line}\n" for line in unread)
        sys.stdout.writelines(f"{_line(one)}\n" for one in found)
    sys.stdout.flush()
    errors = len(unread) + sum(one.level == "error" for one in found)
    warnings = len(unread) + len(found) - errors
    sys.stderr.write(f"joiner lint: {count(errors, 'error')}, {count(warnings, 'warning')}\n")
    return 1 if errors else 0


def _line(one: Any) -> str:  # noqa: ANN401 - a Finding, whose module is imported late
    field = f"{one.field}: " if one.field else ""
    return f"{one.where}: {one.level}: {one.kind} {one.name}: {field}{one.message}"
