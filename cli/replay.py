"""`joiner replay`: a stored decision, made again by today's code or with other objects."""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from cli.explain_journals import Journal
    from cli.replay_cycles import Store
    from cli.replay_page import Replayed
    from shared.model.catalogue import Catalogue

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
FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")
"""Those that decide."""
Output = Literal["table", "json", "yaml"]
_TROUBLE: Final = 1
_ANOTHER: Final = 3


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.explain import add_journal_to  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.set_defaults(run=run, usage=parser.error)
    parser.add_argument("cycle", nargs="*", metavar="CYCLE", help="which cycle (default: latest)")
    parser.add_argument(
        "--list", action="store_true", dest="is_list", help="print the cycles that can be decided again"
    )
    parser.add_argument("--function", choices=FUNCTIONS, help="only cycles of this one")
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
    add_journal_to(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")


def run(chosen: argparse.Namespace) -> int:
    """Find it, decide it again, print; answer 0 if it comes out the same, 3 if it does not."""
    from cli.encoding import encoded  # noqa: PLC0415 - --help needs none of it
    from cli.explain import source_of  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415
    from cli.replay_cycles import Unknown  # noqa: PLC0415
    from cli.replay_page import document, page  # noqa: PLC0415
    from cli.telling import tell  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415

    source = source_of(chosen)
    told: list[str] = []
    try:
        journal = _journal(chosen, source)
        tell("replay", journal.told)
        if chosen.is_list:
            return _list(chosen, journal)
        one = _replayed(chosen, journal, told)
    except (InputError, Unknown) as error:
        tell("replay", [*told, str(error)])
        return _TROUBLE
    tell("replay", told)
    if chosen.output == "table":
        sys.stdout.write(page(one, palette_of(sys.stdout), width_of(sys.stdout), is_whole=chosen.is_whole))
    else:
        sys.stdout.write(encoded(document(one), chosen.output))
    if told:
        return _TROUBLE
    return 0 if one.compared.is_same else _ANOTHER


def _journal(chosen: argparse.Namespace, source: str) -> "Journal":
    """Read what is asked for of the journal at *source*.

    Raises:
        InputError: it cannot be read.
    """
    from cli.explain_journals import journal_at  # noqa: PLC0415 - --help needs none of it
    from cli.replay_cycles import asked_for, since_of  # noqa: PLC0415

    now = chosen.now or datetime.now(UTC)
    since = chosen.since or since_of(asked_for(chosen.cycle, ""), now)
    return journal_at(source, now, since if source.startswith("s3://") else chosen.since, is_now=chosen.now is not None)


def _list(chosen: argparse.Namespace, journal: "Journal") -> int:
    from cli.encoding import encoded  # noqa: PLC0415 - --help needs none of it
    from cli.replay_list import listed, listing  # noqa: PLC0415
    from cli.telling import tell  # noqa: PLC0415
    from cli.text import count, palette_of, width_of  # noqa: PLC0415

    some = [one for one in journal.cycles if one.entry.snapshot and chosen.function in (None, one.entry.function)]
    if chosen.output == "table" and not some:
        tell("replay", [f"{journal.source}: {count(len(journal.cycles), 'cycle')}, and none can be decided again"])
        shown = ""
    elif chosen.output == "table":
        shown = listing(some, palette_of(sys.stdout), width_of(sys.stdout), is_whole=chosen.is_whole)
    else:
        shown = encoded(listed(some), chosen.output)
    sys.stdout.write(shown)
    return _TROUBLE if journal.told else 0


def _replayed(chosen: argparse.Namespace, journal: "Journal", told: list[str]) -> "Replayed":
    """Find the cycle and decide it again; what is wrong with files joins *told*.

    Raises:
        InputError: something of it cannot be read.
        Unknown: there is no such cycle.
    """
    from cli.progress import progress  # noqa: PLC0415 - --help needs none of it
    from cli.replay_changes import changed  # noqa: PLC0415
    from cli.replay_cycles import Store, asked_for, found  # noqa: PLC0415
    from cli.replay_differences import compared  # noqa: PLC0415
    from cli.replay_known import known_at, with_found  # noqa: PLC0415
    from cli.replay_page import Replayed  # noqa: PLC0415
    from cli.replay_selectors import Known  # noqa: PLC0415
    from cli.replayed import READS, cluster_of, decided_again, decided_then  # noqa: PLC0415
    from shared.report.code import code_digest  # noqa: PLC0415
    from shared.scheduling.overlays import overlaid  # noqa: PLC0415

    cycle = found(journal, asked_for(chosen.cycle, chosen.function or ""))
    store, entry = Store(journal.source), cycle.entry
    with progress(f"deciding {entry.function} {entry.at:%Y-%m-%d %H:%M:%S} again"):
        snapshot = store.snapshot(entry.snapshot)
        catalogue, notes = _catalogue(chosen.instance_types, store, snapshot.catalogue)
        cluster = cluster_of(snapshot, catalogue)
        known = known_at(journal, store, cycle, snapshot) if chosen.added else Known(now=cluster.taken_at)
        reads = READS.get(entry.function)
        changes = changed(cluster, known, chosen.added, chosen.without, told.append, reads)
        meant = with_found(snapshot, changes, known)
        again = decided_again(entry, meant, overlaid(changes.cluster), store.overlaid(snapshot))
    return Replayed(
        cycle=cycle,
        snapshot=snapshot,
        changed=changes,
        compared=compared(decided_then(entry, snapshot), again),
        code=code_digest(),
        notes=notes,
    )


def _catalogue(named: "str | None", store: "Store", key: str) -> "tuple[Catalogue | None, tuple[str, ...]]":
    from cli.catalogues import catalogue_in  # noqa: PLC0415 - --help needs none of it

    if named:
        return catalogue_in(named), (f"sold is what {named} says",)
    return (store.catalogue(key) if key else None), ()
