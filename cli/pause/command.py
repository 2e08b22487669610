"""`joiner pause`: pause disruption or launches for a while, without a deployment."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from shared.model.cluster import ClusterSnapshot

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
OutputFormat = Literal["table", "json", "yaml"]
MAX_CLOCK_SKEW: Final = timedelta(minutes=1)
"""Above this difference between the clocks, a warning is printed."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.planning.arguments import (  # noqa: PLC0415 - the list of commands needs none of it
        parse_duration_argument,
        parse_time_argument,
    )

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_target_arguments(parser)
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument(
        "--for", dest="lasts", type=parse_duration_argument, metavar="2h", help="how long, like 90m or 2h30m"
    )
    how_long.add_argument(
        "--until", type=parse_time_argument, metavar="TIME", help="until when, like 2026-11-22T09:00:00Z"
    )
    parser.add_argument("--because", default="", metavar="TEXT", help="why: whoever wonders reads it")
    parser.set_defaults(run=run, usage=parser.error)


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for cluster, NodePools, reasons and output format."""
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only this one; may be given several times"
    )
    parser.add_argument(
        "--reason", type=_parse_reasons, default=(), metavar="REASON,…", help="Drifted, Empty, Underutilized, Unhealthy"
    )
    parser.add_argument("--launches", action="store_true", help="new nodes")
    parser.add_argument("--all", action="store_true", dest="everything", help="every reason, and launches")
    parser.add_argument("--context", default="", metavar="NAME", help="which cluster (default: the current context)")
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="what is printed")


def run(args: argparse.Namespace) -> int:
    """Write the pause and print all current pauses; return 1 if something could not be read or written."""
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.cluster.writable_client import build_write_client, get_username  # noqa: PLC0415
    from cli.pause.annotations import (  # noqa: PLC0415
        build_pause_change,
        choose_pause_targets,
        read_pause_targets,
        write_pauses,
    )
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from shared.model.karpenter.pause import VOLUNTARY_REASONS, Pause, normalize_text  # noqa: PLC0415

    try:
        connection = connect_to_cluster(args.kubeconfig, args.context)
        kube = build_write_client(connection)
        cluster = read_pause_targets(kube, connection.context, datetime.now(UTC))
        now = cluster.taken_at
        until = now + args.lasts if args.lasts else args.until
        if until is not None and until <= now:
            args.usage(f"--until {args.until:%FT%TZ} is past: the API server's clock says {now:%FT%TZ}")
        paused_reasons = get_selected_reasons(args) or VOLUNTARY_REASONS
        hold = Pause(
            reasons=paused_reasons,
            until=until,
            author=get_username(kube),
            since=now,
            because=normalize_text(args.because),
        )
        for pool in choose_pause_targets(args.nodepool, cluster):
            write_pauses(kube, pool, build_pause_change(hold, now))
        print_pauses(read_pause_targets(kube, connection.context, now), args)
    except InputError as error:
        return print_errors("pause", [str(error)])
    clock_skew = abs(datetime.now(UTC) - now)
    if args.until and clock_skew > MAX_CLOCK_SKEW:
        print_errors(
            "pause",
            [f"this machine's clock is {clock_skew.seconds} s off the API server's, which is the one that counts"],
        )
    return 0


def get_selected_reasons(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the selected reasons, sorted; empty if none is selected."""
    from shared.model.karpenter.pause import DISRUPTION_REASONS, LAUNCH_WORDS  # noqa: PLC0415 - --help needs none of it

    if args.everything:
        return tuple(sorted((*DISRUPTION_REASONS, *LAUNCH_WORDS)))
    return tuple(sorted({*args.reason, *(LAUNCH_WORDS if args.launches else ())}))


def print_pauses(cluster: "ClusterSnapshot", args: argparse.Namespace) -> None:
    """Print the current pauses."""
    import sys  # noqa: PLC0415

    from cli.pause.text import build_pause_documents, render_pauses  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415
    from shared.model.core.units import format_instant  # noqa: PLC0415
    from shared.state.pauses import list_active_pauses  # noqa: PLC0415

    pauses, _ = list_active_pauses(cluster)
    if args.output != "table":
        document = {"at": format_instant(cluster.taken_at), "paused": build_pause_documents(pauses)}
        sys.stdout.write(encode_output(document, args.output))
        return
    lines = list(render_pauses(pauses, cluster.taken_at, choose_palette(sys.stdout), get_terminal_width(sys.stdout)))
    sys.stdout.write("\n".join(lines or ["nothing is paused"]) + "\n")


def _parse_reasons(text: str) -> tuple[str, ...]:
    from shared.model.karpenter.pause import DISRUPTION_REASONS, parse_reason  # noqa: PLC0415 - --help needs none of it

    reason_names = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tuple(parse_reason(part, DISRUPTION_REASONS) for part in reason_names or [text])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
