"""`joiner replay`: repeat a recorded decision with the current code or with other objects."""

import argparse
from typing import Final, Literal, get_args

DESCRIPTION: Final = """Repeat a recorded decision with the same input and the installed version of Joiner, or with
changed objects. The command prints the recorded decision, the replayed decision, and each difference with its reason.
It reads the journal and the decision records from the bucket of a deployment or from a folder, and changes nothing."""
EXAMPLES: Final = """examples:
  joiner replay --list --journal examples/journal        the cycles of the example journal that can be replayed
  joiner replay latest --journal examples/journal        the last cycle with the installed version of Joiner
  joiner replay provision 2026-11-21T08:02 --journal examples/journal --with examples/replay/larger.yaml
                                                         the same pods with a different NodePool
  joiner replay provision 08:02 --journal examples/journal --without nodepool/default
  joiner replay disrupt latest --since 6h -o json | jq .differences       from the bucket in $JOINER_BUCKET_NAME

CYCLE is one of:
  a function and a time in UTC, or the beginning of the time; with an offset: 2026-11-21T09:05+01:00
  the request ID of the invocation, or the key of the journal entry, as `joiner explain -o json` prints them
  latest (default)

A deployment stores decision records unless the setting snapshots is off: the input of each decision, and answers
received while deciding, such as EC2's answers to launches and what an EC2NodeClass resolves to. User data of launch
templates and the sources of the catalog are not stored and not replayed.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 same decision, or cycles listed; 1 cycle not found, or part of the input could not be read (see stderr);
2 wrong usage; 3 different decision; 130 interrupted
"""
DECIDING_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")
"""The functions that make decisions."""
OutputFormat = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.journal.arguments import add_journal_arguments  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("cycle", nargs="*", metavar="CYCLE", help="cycle to replay (default: latest)")
    parser.add_argument("--list", action="store_true", dest="is_list", help="list the cycles that can be replayed")
    parser.add_argument("--function", choices=DECIDING_FUNCTIONS, help="only cycles of this function")
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        dest="added",
        help="apply these manifests to the recorded cluster first; can be repeated",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="KIND/NAME",
        help="remove this object from the recorded cluster first; can be repeated",
    )
    parser.add_argument("--instance-types", metavar="FILE", help="use this catalog instead of the recorded catalog")
    add_journal_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="output format")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="do not shorten long lists")


def run(args: argparse.Namespace) -> int:
    """Find the cycle, replay and print it; return 0 if the decision is the same, 3 if it is not."""
    from cli.replay.session import run_replay  # noqa: PLC0415 - --help needs none of it

    return run_replay(args)
