"""`joiner resume`: remove what `joiner pause` paused."""

import argparse
from datetime import UTC, datetime
from typing import Final

DESCRIPTION: Final = """End pauses that users set: in the whole cluster or in some NodePools; all pauses, or only the
selected reasons. Ending the pause of the whole cluster keeps the pauses of single NodePools. A pause in the settings
of the stack (disruption-paused) ends with a deployment. A pause that Joiner sets itself ends automatically: see
`joiner doctor` and the events of the NodePools. With --nodepool and without reasons, a pause because of failures or of
drift ends now: its cause is confirmed with the annotation joiner.dev/disruption-resumed."""
EXAMPLES: Final = """examples:
  joiner resume                                  end the pause of the whole cluster
  joiner resume --nodepool batch                 end the pause of one NodePool
  joiner resume --reason Drifted                 resume drift; other reasons stay paused
  joiner resume --launches --context prod
  kubectl annotate namespace kube-system joiner.dev/disruption-paused-      the same without joiner

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 resumed (also if nothing was paused), 1 an object could not be read or written, 2 wrong usage,
130 interrupted
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
    from cli.pause.annotations import build_resume_change, choose_pause_targets, read_pause_targets, write_pauses  # noqa: PLC0415
    from cli.pause.command import get_selected_reasons, print_pauses  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from shared.model.core.labels import DISRUPTION_RESUMED  # noqa: PLC0415
    from shared.model.core.units import format_instant  # noqa: PLC0415

    try:
        reached = connect_to_cluster(args.kubeconfig, args.context)
        kube = build_write_client(reached)
        cluster = read_pause_targets(kube, reached.context, datetime.now(UTC))
        reasons = () if args.everything else get_selected_reasons(args)
        for pool in choose_pause_targets(args.nodepool, cluster):
            confirmation = {DISRUPTION_RESUMED: format_instant(cluster.taken_at)} if pool and not reasons else {}
            write_pauses(kube, pool, build_resume_change(reasons, cluster.taken_at), confirmation)
        print_pauses(read_pause_targets(kube, reached.context, cluster.taken_at), args)
    except InputError as error:
        return print_errors("resume", [str(error)])
    return 0
