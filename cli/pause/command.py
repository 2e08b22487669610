"""`joiner pause`: pause disruption or launches for a while, without a deployment."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cli.cluster.arguments import add_cluster_arguments, add_output_argument

if TYPE_CHECKING:
    from shared.model.cluster import ClusterSnapshot

DESCRIPTION: Final = """Pause voluntary disruption or launches, in the whole cluster (including future NodePools) or in
some NodePools. A pause takes effect at the next reconcile, without a deployment, and ends at the time given by --for or
--until, or with `joiner resume`. Without --reason, --launches or --all, the reasons Drifted, Empty and Underutilized
are paused. Nodes that are already draining finish draining; other disruption in progress is cancelled. Interruption and
expiration are never paused; repair is paused only by the reason Unhealthy."""
EXAMPLES: Final = """examples:
  joiner pause --for 2h --because "Black Friday"         pause consolidation, emptiness and drift, but not repair
  joiner pause --nodepool batch --reason Drifted         pause drift in one NodePool, until `joiner resume`
  joiner pause --launches --context prod                 launch no new nodes; existing nodes still take pods
  joiner pause --all --until 2026-11-22T09:00:00Z        pause all disruption, repair and launches
  kubectl annotate namespace kube-system --overwrite joiner.dev/disruption-paused=Empty,Drifted
                                                         the same without joiner; replaces its earlier pauses

Pauses are stored in the annotations joiner.dev/disruption-paused and joiner.dev/launches-paused of the Namespace
kube-system or of a NodePool, with the author, the start, the end and the reason. You need the permissions get and patch
on these objects, and list on NodePools and Namespaces. --for counts by the API server's clock.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 paused, 1 an object could not be read or written, 2 wrong usage, 130 interrupted
"""
MAX_CLOCK_SKEW: Final = timedelta(minutes=1)
"""Above this difference between the clocks, a warning is printed."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.planning.arguments import parse_duration_argument, parse_time_argument  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_target_arguments(parser)
    duration = parser.add_mutually_exclusive_group()
    duration.add_argument(
        "--for", dest="lasts", type=parse_duration_argument, metavar="2h", help="duration, such as 90m or 2h30m"
    )
    duration.add_argument("--until", type=parse_time_argument, metavar="TIME", help="end, such as 2026-11-22T09:00:00Z")
    parser.add_argument(
        "--because", default="", metavar="TEXT", help="reason, shown by `joiner resume` and `joiner doctor`"
    )
    parser.set_defaults(run=run, usage=parser.error)


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for cluster, NodePools, reasons and output format."""
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only this NodePool; may be repeated"
    )
    parser.add_argument(
        "--reason",
        type=_parse_reasons,
        default=(),
        metavar="REASON,…",
        help="disruption reasons: Drifted, Empty, Underutilized, Unhealthy",
    )
    parser.add_argument("--launches", action="store_true", help="select launches of new nodes")
    parser.add_argument("--all", action="store_true", dest="everything", help="select all reasons and launches")
    add_cluster_arguments(parser)
    add_output_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Write the pause and print all current pauses; return 1 if something could not be read or written."""
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.cluster.writable_client import build_write_client, get_username  # noqa: PLC0415
    from cli.pause.annotations import build_pause_change, choose_pause_targets, read_pause_targets, write_pauses  # noqa: PLC0415
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
            args.usage(f"--until {args.until:%FT%TZ} is in the past: the API server's clock is {now:%FT%TZ}")
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
        print_errors("pause", [f"the API server's clock counts; this machine's differs by {clock_skew.seconds}s"])
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
        document = {"at": format_instant(cluster.taken_at), "pauses": build_pause_documents(pauses)}
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
