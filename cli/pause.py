"""`joiner pause`: hold disruption, or launches, back for a while; without a deployment."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Hold back what Joiner does by its own choice: disruption for some reasons or for all, and new
nodes; in the whole cluster, NodePools of later included, or in some NodePools. What is paused counts from the next tick
on, without a deployment, and ends by itself where --for or --until says when. Without --reason, --launches and --all
the voluntary reasons are paused: Drifted, Empty and Underutilized. Nodes that are draining go on, what was begun and
not drained yet is taken back; interruptions, expiry and (but for Unhealthy) repair go on as well."""
EXAMPLES: Final = """examples:
  joiner pause --for 2h --because "Black Friday"         consolidation, emptiness and drift; not repair
  joiner pause --nodepool batch --reason Drifted          one reason, one NodePool, until `joiner resume`
  joiner pause --launches --context prod                  no new node anywhere; those that are there are used
  joiner pause --all --until 2026-11-22T09:00:00Z         all disruption, repair, and launches
  kubectl annotate namespace kube-system joiner.dev/disruption-paused=Empty,Drifted      the same without joiner

It is written where everybody sees it: in the annotations joiner.dev/disruption-paused and joiner.dev/launches-paused of
the Namespace kube-system, or of a NodePool, with who it was, when, until when and why. Who pauses must be allowed to
get and patch these, and to list NodePools and Namespaces. --for counts by the API server's clock.

-o json and yaml: at, paused: a list of nodePool (null: all), what, by, since, until, because.

exit codes: 0 it is paused, 1 something could not be read or written (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
SKEW: Final = timedelta(minutes=1)
"""More is told."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.sources import duration, instant  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_where(parser)
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--for", dest="lasts", type=duration, metavar="2h", help="how long, like 90m or 2h30m")
    how_long.add_argument("--until", type=instant, metavar="TIME", help="until when, like 2026-11-22T09:00:00Z")
    parser.add_argument("--because", default="", metavar="TEXT", help="why: whoever wonders reads it")
    parser.set_defaults(run=run, usage=parser.error)


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add which cluster, which NodePools, which reasons, and what is printed."""
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only this one; may be given several times"
    )
    parser.add_argument(
        "--reason", type=_reasons, default=(), metavar="REASON,…", help="Drifted, Empty, Underutilized, Unhealthy"
    )
    parser.add_argument("--launches", action="store_true", help="new nodes")
    parser.add_argument("--all", action="store_true", dest="everything", help="every reason, and launches")
    parser.add_argument("--context", default="", metavar="NAME", help="which cluster (default: the current context)")
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")


def run(chosen: argparse.Namespace) -> int:
    """Write the pause, print what is paused now; answer 1 if something could not be read or written."""
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.kubeconfig import reach  # noqa: PLC0415
    from cli.pausing import added, places, seen, write  # noqa: PLC0415
    from cli.telling import tell  # noqa: PLC0415
    from cli.writing import whoami, writing  # noqa: PLC0415
    from shared.model.holds import VOLUNTARY, Hold, plain  # noqa: PLC0415

    try:
        reached = reach(chosen.kubeconfig, chosen.context)
        kube = writing(reached)
        cluster = seen(kube, reached.context, datetime.now(UTC))
        now = cluster.taken_at
        until = now + chosen.lasts if chosen.lasts else chosen.until
        if until is not None and until <= now:
            chosen.usage(f"--until {chosen.until:%FT%TZ} is past: the API server's clock says {now:%FT%TZ}")
        what = what_of(chosen) or VOLUNTARY
        hold = Hold(what=what, until=until, by=whoami(kube), since=now, because=plain(chosen.because))
        for pool in places(chosen.nodepool, cluster):
            write(kube, pool, added(hold, now))
        show(seen(kube, reached.context, now), chosen)
    except InputError as error:
        return tell("pause", [str(error)])
    off = abs(datetime.now(UTC) - now)
    if chosen.until and off > SKEW:
        tell("pause", [f"this machine's clock is {off.seconds} s off the API server's, which is the one that counts"])
    return 0


def what_of(chosen: argparse.Namespace) -> tuple[str, ...]:
    """Answer what is named, sorted; nothing if nothing is."""
    from shared.model.holds import DISRUPTIONS, LAUNCHES  # noqa: PLC0415 - --help needs none of it

    if chosen.everything:
        return tuple(sorted((*DISRUPTIONS, *LAUNCHES)))
    return tuple(sorted({*chosen.reason, *(LAUNCHES if chosen.launches else ())}))


def show(cluster: "Cluster", chosen: argparse.Namespace) -> None:
    """Print what is paused now."""
    import sys  # noqa: PLC0415

    from cli.encoding import encoded  # noqa: PLC0415
    from cli.paused import paused_documents, paused_lines  # noqa: PLC0415
    from cli.text import palette_of, width_of  # noqa: PLC0415
    from shared.model.holds import held_in  # noqa: PLC0415
    from shared.model.units import instant_text  # noqa: PLC0415

    held, _ = held_in(cluster)
    if chosen.output != "table":
        document = {"at": instant_text(cluster.taken_at), "paused": paused_documents(held)}
        sys.stdout.write(encoded(document, chosen.output))
        return
    lines = list(paused_lines(held, cluster.taken_at, palette_of(sys.stdout), width_of(sys.stdout)))
    sys.stdout.write("\n".join(lines or ["nothing is paused"]) + "\n")


def _reasons(text: str) -> tuple[str, ...]:
    from shared.model.holds import DISRUPTIONS, reason  # noqa: PLC0415 - --help needs none of it

    said = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tuple(reason(part, DISRUPTIONS) for part in said or [text])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
