"""`joiner resume`: take back what `joiner pause` said."""

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
    """Add what the command says of itself, and its arguments."""
    from cli.pause import add_where  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_where(parser)
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """Take the pause back, print what is paused still; answer 1 if something could not be read or written."""
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.kubeconfig import reach  # noqa: PLC0415
    from cli.pause import show, what_of  # noqa: PLC0415
    from cli.pausing import places, seen, taken_back, write  # noqa: PLC0415
    from cli.telling import tell  # noqa: PLC0415
    from cli.writing import writing  # noqa: PLC0415

    try:
        reached = reach(chosen.kubeconfig, chosen.context)
        kube = writing(reached)
        cluster = seen(kube, reached.context, datetime.now(UTC))
        what = () if chosen.everything else what_of(chosen)
        for pool in places(chosen.nodepool, cluster):
            write(kube, pool, taken_back(what, cluster.taken_at))
        show(seen(kube, reached.context, cluster.taken_at), chosen)
    except InputError as error:
        return tell("resume", [str(error)])
    return 0
