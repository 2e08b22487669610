"""`joiner resume`: remove what `joiner pause` paused."""

import argparse
from datetime import UTC, datetime
from typing import Final

DESCRIPTION: Final = """Take back what is paused by people: in the whole cluster, or in the NodePools that are named;
all of it, or only what is named. A pause that a NodePool has of its own stays when the whole cluster's is taken back. A
setting of the deployment (joiner:disruption-paused) is taken back by a deployment, and what paused by itself goes on by
itself: `joiner doctor` tells of it, and the NodePools' events say when."""
EXAMPLES: Final = """examples:
  joiner resume                                  the whole cluster's pause is over
  joiner resume --nodepool batch                 that of one NodePool is
  joiner resume --reason Drifted                 drift goes on, all else stays paused
  joiner resume --launches --context prod
  kubectl annotate namespace kube-system joiner.dev/disruption-paused-      the same without joiner

-o json and yaml: at, paused (what is paused still): a list of nodePool (null: all), what, by, since, until, because.

exit codes: 0 done (nothing may have been paused), 1 something could not be read or written (it is named), 2 wrong
usage, 130 interrupted
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.pause.command import add_target_arguments  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_target_arguments(parser)
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """Remove the pause and print the remaining pauses; return 1 if a read or a write failed."""
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.cluster.writable_client import build_write_client  # noqa: PLC0415
    from cli.pause.annotations import (  # noqa: PLC0415
        build_resume_change,
        choose_pause_targets,
        read_pause_targets,
        write_pauses,
    )
    from cli.pause.command import get_selected_reasons, print_pauses  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import print_errors  # noqa: PLC0415

    try:
        reached = connect_to_cluster(args.kubeconfig, args.context)
        kube = build_write_client(reached)
        cluster = read_pause_targets(kube, reached.context, datetime.now(UTC))
        reasons = () if args.everything else get_selected_reasons(args)
        for pool in choose_pause_targets(args.nodepool, cluster):
            write_pauses(kube, pool, build_resume_change(reasons, cluster.taken_at))
        print_pauses(read_pause_targets(kube, reached.context, cluster.taken_at), args)
    except InputError as error:
        return print_errors("resume", [str(error)])
    return 0
