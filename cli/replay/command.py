"""`joiner replay`: repeat a recorded decision with the current code or with other objects."""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from cli.explain.journal import Journal
    from cli.replay.cycle_lookup import RecordStore
    from cli.replay.page import ReplayResult
    from shared.model.cloud_provider.instance_type import Catalog

DESCRIPTION: Final = """Make a decision of the journal again, from what it was made from: by the code that is installed
here, and, if you like, with other objects. Prints what was decided then, what would be decided now, and each
difference with its why. Nothing is contacted but the bucket, and nothing is done."""
EXAMPLES: Final = """examples:
  joiner demo --journal demo                     play the demo and keep its bucket; then
  joiner replay --list --journal demo            which cycles can be decided again
  joiner replay latest --journal demo            the last of them, as it was
  joiner replay provision 2026-11-21T08:05 --journal demo --with nodepool.yaml
                                                 the same pods, had the NodePool been so
  joiner replay provision 08:05:00 --journal demo --without nodepool/default
  joiner replay disrupt latest --since 6h -o json | jq .differences      from $JOINER_BUCKET_NAME

CYCLE is what `joiner explain` prints: a function and an instant in UTC (or its beginning, or with its offset, like
2026-11-21T09:05+01:00), the request id, the key of the entry; or `latest`. A bucket keeps what decisions were made
from, and what was heard on the way (EC2's answers to launches, what an EC2NodeClass selects), for as long as its
journal, unless joiner:snapshots is off. Never made again: user data of launch templates, and the catalogue itself.

-o json has cycle, function, at, trigger, snapshot, catalogue, code: then, now; changed; notes; limits
(what was not decided again, or not compared); same (true, false),
reordered, cut (why it need not come out the same); then and now: newNodes, usdPerHour (each at its cheapest), actions
and verdicts as the journal has them; differences: of (action, verdict), how (then: only then; now: only now; changed),
what, then, now. With --list a list: cycle, function, at, code, decided.

exit codes: 0 the same decision (or listed), 1 there is no such cycle, or something could not be read (it is named),
2 wrong usage, 3 another decision, 130 interrupted
"""
DECIDING_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")
"""The functions that make decisions."""
OutputFormat = Literal["table", "json", "yaml"]
_EXIT_ERROR: Final = 1
_EXIT_DIFFERENT_DECISION: Final = 3


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.explain.command import add_journal_arguments  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("cycle", nargs="*", metavar="CYCLE", help="which cycle (default: latest)")
    parser.add_argument(
        "--list", action="store_true", dest="is_list", help="print the cycles that can be decided again"
    )
    parser.add_argument("--function", choices=DECIDING_FUNCTIONS, help="only cycles of this one")
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        dest="added",
        help="as if these manifests had been applied before; may be given several times",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="KIND/NAME",
        help="as if this object had not been there; may be given several times",
    )
    parser.add_argument("--instance-types", metavar="FILE", help="another catalogue than the one that was decided with")
    add_journal_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")


def run(args: argparse.Namespace) -> int:
    """Find the cycle, decide again and print; return 0 if the decision is the same, 3 if it is not."""
    from cli.explain.command import get_journal_source  # noqa: PLC0415
    from cli.replay.cycle_lookup import UnknownCycle  # noqa: PLC0415
    from cli.replay.page import build_replay_document, render_replay  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415

    source = get_journal_source(args)
    messages: list[str] = []
    try:
        journal = _read_journal(args, source)
        print_errors("replay", journal.messages)
        if args.is_list:
            return _print_cycles(args, journal)
        replay_result = _replay_cycle(args, journal, messages)
    except (InputError, UnknownCycle) as error:
        print_errors("replay", [*messages, str(error)])
        return _EXIT_ERROR
    print_errors("replay", messages)
    if args.output == "table":
        sys.stdout.write(
            render_replay(
                replay_result, choose_palette(sys.stdout), get_terminal_width(sys.stdout), is_whole=args.is_whole
            )
        )
    else:
        sys.stdout.write(encode_output(build_replay_document(replay_result), args.output))
    if messages:
        return _EXIT_ERROR
    return 0 if replay_result.comparison.is_same else _EXIT_DIFFERENT_DECISION


def _read_journal(args: argparse.Namespace, source: str) -> "Journal":
    """Read the part of the journal at *source* that is needed.

    Raises:
        InputError: it cannot be read.
    """
    from cli.explain.journal import load_journal  # noqa: PLC0415 - --help needs none of it
    from cli.replay.cycle_lookup import compute_lookback, parse_cycle_query  # noqa: PLC0415

    now = args.now or datetime.now(UTC)
    since = args.since or compute_lookback(parse_cycle_query(args.cycle, ""), now)
    return load_journal(source, now, since if source.startswith("s3://") else args.since, is_now=args.now is not None)


def _print_cycles(args: argparse.Namespace, journal: "Journal") -> int:
    from cli.replay.cycle_list import build_cycle_documents, render_cycle_list  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415
    from shared.model.core.formatting import format_count  # noqa: PLC0415

    cycles = [
        cycle for cycle in journal.cycles if cycle.entry.snapshot and args.function in (None, cycle.entry.function)
    ]
    if args.output == "table" and not cycles:
        print_errors(
            "replay", [f"{journal.source}: {format_count(len(journal.cycles), 'cycle')}, and none can be decided again"]
        )
        output = ""
    elif args.output == "table":
        output = render_cycle_list(
            cycles, choose_palette(sys.stdout), get_terminal_width(sys.stdout), is_whole=args.is_whole
        )
    else:
        output = encode_output(build_cycle_documents(cycles), args.output)
    sys.stdout.write(output)
    return _EXIT_ERROR if journal.messages else 0


def _replay_cycle(args: argparse.Namespace, journal: "Journal", messages: list[str]) -> "ReplayResult":
    """Find the cycle and decide again; errors in files are added to *messages*.

    Raises:
        InputError: something cannot be read.
        UnknownCycle: there is no such cycle.
    """
    from cli.replay.changes import apply_changes  # noqa: PLC0415
    from cli.replay.cycle_lookup import RecordStore, parse_cycle_query, select_cycle  # noqa: PLC0415
    from cli.replay.differences import compare_decisions  # noqa: PLC0415
    from cli.replay.page import ReplayResult  # noqa: PLC0415
    from cli.replay.recorded_account import load_recorded_selections, with_node_class_answers  # noqa: PLC0415
    from cli.replay.rerun import LISTS_READ, build_cluster, build_recorded_decision, replay_decision  # noqa: PLC0415
    from cli.replay.selectors import RecordedSelections  # noqa: PLC0415
    from cli.terminal.stderr import show_progress  # noqa: PLC0415 - --help needs none of it
    from shared.decide.scheduling.templates.node_overlays import apply_overlays  # noqa: PLC0415
    from shared.report.journal.decision_record import compute_code_digest  # noqa: PLC0415

    cycle = select_cycle(journal, parse_cycle_query(args.cycle, args.function or ""))
    store, entry = RecordStore(journal.source), cycle.entry
    with show_progress(f"deciding {entry.function} {entry.at:%Y-%m-%d %H:%M:%S} again"):
        snapshot = store.load_record(entry.snapshot)
        catalog, notes = _load_catalog(args.instance_types, store, snapshot.catalog_key)
        cluster = build_cluster(snapshot, catalog)
        recorded_account = (
            load_recorded_selections(journal, store, cycle, snapshot)
            if args.added
            else RecordedSelections(now=cluster.taken_at)
        )
        reads = LISTS_READ.get(entry.function)
        changes = apply_changes(cluster, recorded_account, args.added, args.without, messages.append, reads)
        changed_snapshot = with_node_class_answers(snapshot, changes, recorded_account)
        new_decision = replay_decision(
            entry, changed_snapshot, apply_overlays(changes.cluster), store.load_overlaid_catalog(snapshot)
        )
    return ReplayResult(
        cycle=cycle,
        record=snapshot,
        changes=changes,
        comparison=compare_decisions(build_recorded_decision(entry, snapshot), new_decision),
        code=compute_code_digest(),
        notes=notes,
    )


def _load_catalog(
    catalog_path: "str | None", store: "RecordStore", key: str
) -> "tuple[Catalog | None, tuple[str, ...]]":
    from cli.planning.catalog_source import load_catalog_file  # noqa: PLC0415 - --help needs none of it

    if catalog_path:
        return load_catalog_file(catalog_path), (f"sold is what {catalog_path} says",)
    return (store.load_catalog(key) if key else None), ()
