"""`joiner top`: the nodes, dearest first, refreshed."""

import argparse
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from cli.installation import Installation
    from cli.watching import Drawn, View
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Show the nodes of NodePools, dearest first: what each costs, how much of it is requested, how it
is, and what keeps it from being removed; of an EKS cluster also that its installation only plans, or a function is
late. In a terminal it is refreshed until q or Ctrl-C; elsewhere, with --once or with files it is printed once. Nothing
is written: a cluster and an account are only asked."""
EXAMPLES: Final = """examples:
  joiner top                                     your current cluster; q leaves
  joiner top --context prod --nodepool batch --sort cpu --reverse        the emptiest nodes of one NodePool first
  joiner top --once --wide                       every column, whole, and leave
  joiner top -o json | jq '.nodes[] | select(.keptBy.reason == "PodBlocksEviction") | .node'
  joiner top -f cluster.json --instance-types catalogue.json

keys: $ price, c cpu, m memory, p pods, a age, n name, o NodePool, t type, s state, b what keeps it: sort by it, and
again: the other way round; arrows, j, k, page up and down, space: other rows; q: leave

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, usdPerHour (null without prices), nodes: a list of node, nodePool, state (ready, coming, going,
not ready, drifted), instanceType, capacityType, zone, usdPerHour, cpu {requested, allocatable}, memory, pods (without
those of DaemonSets), ageSeconds, keptBy {reason, message} (null: nothing speaks against its removal).

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
SORTS: Final = ("price", "cpu", "memory", "pods", "age", "name", "pool", "type", "state", "keeps")
LETTERS: Final = dict(zip(("$", "c", "m", "p", "a", "n", "o", "t", "s", "b"), SORTS, strict=True))


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.installation import add_account_to  # noqa: PLC0415 - the list of commands needs none of it
    from cli.sources import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_to(parser)
    parser.add_argument("--sort", choices=SORTS, default="price", help="what comes first (default: what costs most)")
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only its nodes; may be given several times"
    )
    parser.add_argument("--once", action="store_true", help="print it and leave")
    parser.add_argument("--every", type=_seconds, default=5.0, metavar="SECONDS", help="between two looks (default: 5)")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal; with --once")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(chosen: argparse.Namespace) -> int:
    """Look, and show; answer 1 if something could not be read."""
    from cli.look import Watched, current_unless_named  # noqa: PLC0415 - --help needs none of it
    from cli.text import is_terminal  # noqa: PLC0415

    current_unless_named(chosen)
    once = chosen.once or chosen.wide or chosen.filename or chosen.output != "table"
    if once or not is_terminal():
        return _once(chosen)
    from cli.watching import watch  # noqa: PLC0415 - it knows terminals, which not every system has

    looking = Watched(chosen)
    return watch(lambda: looking()[1:], lambda found, view: _drawn(*found, view, chosen), chosen.every)


def _once(chosen: argparse.Namespace) -> int:
    import sys  # noqa: PLC0415 - --help needs none of it

    from cli.encoding import encoded  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415
    from cli.look import Watched  # noqa: PLC0415
    from cli.ranked import ranked, rows_of  # noqa: PLC0415
    from cli.telling import tell  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415
    from cli.top_page import document, lines  # noqa: PLC0415

    try:
        looked, cluster, beside = Watched(chosen)()
    except InputError as error:
        return tell("top", [str(error)])
    rows = ranked(
        rows_of(cluster, chosen.nodepool, beside.settings if beside else None), chosen.sort, is_reversed=chosen.reverse
    )
    if chosen.output == "table":
        width = None if chosen.wide else width_of(sys.stdout)
        sys.stdout.write("\n".join(lines(cluster, beside, rows, palette_of(sys.stdout), width)) + "\n")
    else:
        sys.stdout.write(encoded(document(cluster, rows), chosen.output))
    unknown = sorted(set(chosen.nodepool) - {one.name for one in cluster.node_pools})
    told = [f"NodePool {name}: there is none" for name in unknown]
    return tell("top", [*told, *looked.told, *(looked.placed(one) for one in cluster.problems)])


def _drawn(cluster: "Cluster", beside: "Installation | None", view: "View", chosen: argparse.Namespace) -> "Drawn":
    """Answer as many lines as have room: what stands on top, some of the rows, and the keys."""
    import sys  # noqa: PLC0415 - --help needs none of it

    from cli.ranked import ranked, rows_of  # noqa: PLC0415
    from cli.text import cut, palette_of  # noqa: PLC0415
    from cli.top_page import lines  # noqa: PLC0415

    sort, is_reversed = _order(chosen, view.keys)
    rows = ranked(rows_of(cluster, chosen.nodepool, beside.settings if beside else None), sort, is_reversed=is_reversed)
    palette = palette_of(sys.stdout)
    every = lines(cluster, beside, rows, palette, view.columns)
    head, body = every[: len(every) - len(rows)], every[len(every) - len(rows) :]
    room = max(view.lines - len(head) - 1, 1)
    last = max(0, len(body) - room)
    first = min(view.first, last)
    shown = body[first : first + room]
    which = f"{first + 1}-{first + len(shown)} of {len(body)}" if body else "none"
    order = f"{sort}{' reversed' if is_reversed else ''}"
    foot = f"{which} by {order} · sort $ c m p a n o t s b · move ↑ ↓ space · q quits"
    return [*head, *shown, *[""] * (room - len(shown)), palette.paint("dim", cut(foot, view.columns))], last


def _order(chosen: argparse.Namespace, keys: tuple[str, ...]) -> tuple[str, bool]:
    """Answer by what the rows are sorted, and whether the other way round, once *keys* were pressed."""
    sort, is_reversed = chosen.sort, chosen.reverse
    for key in keys:
        wanted = LETTERS.get(key, sort)
        is_reversed = not is_reversed if key in LETTERS and wanted == sort else is_reversed and wanted == sort
        sort = wanted
    return sort, is_reversed


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 1 <= found <= 3600:  # noqa: PLR2004 - a second, an hour
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 3600")
    return found
