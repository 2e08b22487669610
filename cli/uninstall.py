"""`joiner uninstall`: an empty cluster and account, before the stack is destroyed."""

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from cli.kubeconfig import Reached
    from cli.uninstalling import Doomed
    from cli.writing import WritingKube

DESCRIPTION: Final = """Take all nodes of ours out of a cluster, in order: launches pause, NodePools and NodeClaims are
deleted, nodes drain (PodDisruptionBudgets and do-not-disrupt are honoured), their instances end; then say how the stack
goes. Before anything is done it is listed, and asked for. Interrupted, it goes on where it was when it is run again.
EC2NodeClasses, definitions and the stack stay: `npx cdk destroy` takes them out as joiner:on-destroy says. Nothing is
done where a Karpenter is at work: NodePools are its own then."""
EXAMPLES: Final = """examples:
  joiner uninstall --dry-run                     what would go, and what is in its way
  joiner uninstall --context prod                asks first
  joiner uninstall --context prod --yes --timeout 2h -o json

Pods of the nodes that go wait until other nodes have room for them. What holds a node (a PodDisruptionBudget, a pod
that says do-not-disrupt) holds it here as well, until terminationGracePeriod is over: it is told.

-o json and yaml: empty (nothing is left), nodePools, nodeClaims, nodes (names), pods (how many), held (what keeps
nodes), others (NodePools that are not ours), next (commands that are left to do).

exit codes: 0 nothing is left (or --dry-run), 1 something is left, or could not be read or deleted (it is named), 2
wrong usage, or nobody was there to be asked, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
LATER: Final = "what was asked for goes on, launches stay paused (`joiner resume --launches`): run it again to go on"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.sources import duration  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("--context", default="", metavar="NAME", help="which cluster (default: the current context)")
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="where contexts are (default: $KUBECONFIG, ~/.kube/config)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and do nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--timeout", type=duration, default=timedelta(hours=1), metavar="1h", help="wait no longer (default: 1h)"
    )
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.set_defaults(run=run, usage=parser.error)


def run(chosen: argparse.Namespace) -> int:
    """List, ask, do, wait; answer 1 if something is left."""
    from cli.files import InputError  # noqa: PLC0415 - --help needs none of it
    from cli.kubeconfig import reach  # noqa: PLC0415
    from cli.writing import writing  # noqa: PLC0415

    try:
        reached = reach(chosen.kubeconfig, chosen.context)
        return _run(writing(reached), reached, chosen)
    except InputError as error:
        return tell("uninstall", [str(error)])


def _run(kube: "WritingKube", reached: "Reached", chosen: argparse.Namespace) -> int:
    from cli import uninstalling as doing  # noqa: PLC0415 - --help needs none of it
    from cli.files import InputError  # noqa: PLC0415

    is_page = chosen.output == "table"
    what = doing.doomed(doing.look(kube, reached.context))
    if is_page:
        sys.stdout.writelines(f"{line}\n" for line in _listed(what, reached.context))
    if chosen.dry_run or what.is_empty:
        return _end(what, reached, chosen)
    holder = doing.keeper(kube, kube.answered_at or datetime.now(UTC))
    if holder:
        raise InputError(f"a Karpenter is at work ({holder}): NodePools are its own; scale it to zero first")
    if not chosen.yes and not _asked(reached.context, chosen):
        return tell("uninstall", ["nothing was done"])
    say = _say if is_page else _whisper
    try:
        left = _done(kube, reached, say, chosen.timeout)
    except KeyboardInterrupt:
        tell("uninstall", [LATER])
        raise
    return _end(left, reached, chosen)


def _done(kube: "WritingKube", reached: "Reached", say: Any, most: timedelta) -> "Doomed":  # noqa: ANN401 - any ear
    """Take every step.

    Raises:
        InputError: one of them cannot be taken.
    """
    from cli import uninstalling as doing  # noqa: PLC0415 - --help needs none of it
    from cli.writing import whoami  # noqa: PLC0415

    doing.pause_launches(kube, whoami(kube), kube.answered_at or datetime.now(UTC))
    say("launches are paused")

    def again() -> "Doomed":
        """Look, and ask for the end of what came meanwhile."""
        left = doing.doomed(doing.look(kube, reached.context))
        for one in doing.delete(kube, left):
            say(f"{one} is asked to go")
        return left

    left = doing.wait(again, say, time.sleep, most)
    if left.is_empty:
        doing.resume_launches(kube, kube.answered_at or datetime.now(UTC))
    return left


def _end(left: "Doomed", reached: "Reached", chosen: argparse.Namespace) -> int:
    from cli.encoding import encoded  # noqa: PLC0415 - --help needs none of it

    commands = list(_next(reached))
    if chosen.output != "table":
        sys.stdout.write(encoded(document(left, commands), chosen.output))
    elif left.is_empty:
        sys.stdout.write("nothing of ours is left in the cluster; what is left to do:\n")
        sys.stdout.writelines(f"  {one}\n" for one in commands)
    if left.is_empty or chosen.dry_run:
        return 0
    held = [f"held: {one}" for one in left.held]
    return tell("uninstall", [f"time is up; left are {left.words()}: run it again to go on", *held])


def document(left: "Doomed", commands: list[str]) -> dict[str, Any]:
    """Answer what a program reads."""
    return {
        "empty": left.is_empty,
        "nodePools": [one.name for one in left.pools],
        "nodeClaims": [one.name for one in left.claims],
        "nodes": [one.name for one in left.rows],
        "pods": left.pods,
        "held": list(left.held),
        "others": list(left.others),
        "next": commands,
    }


def _listed(what: "Doomed", where: str) -> Iterator[str]:
    from cli.text import some  # noqa: PLC0415 - --help needs none of it

    if not what.is_empty:
        yield f"of {where} would go: {what.words()}"
        yield from (f"  {kind}: {some([one.name for one in metas], 10)}" for kind, metas in _kinds(what) if metas)
    yield from (f"  in its way: {one}" for one in what.held)
    yield from (f"  stays, for it is not ours: NodePool {name}" for name in what.others)


def _kinds(what: "Doomed") -> tuple[tuple[str, Any], ...]:
    return ("NodePools", what.pools), ("NodeClaims", what.claims), ("nodes", what.rows)


def _next(reached: "Reached") -> Iterator[str]:
    from cli.eks_names import eks_name  # noqa: PLC0415

    known = eks_name(reached.cluster)
    cluster = known.name if known else "CLUSTER"
    yield f"npx cdk destroy -c joiner:cluster={cluster}"
    yield f"joiner audit --cluster {cluster}"


def _asked(where: str, chosen: argparse.Namespace) -> bool:
    """Ask whoever is there; who is not there cannot say yes."""
    if not sys.stdin.isatty():
        chosen.usage("nobody is there to be asked: --yes does it, --dry-run says what it would do")
    sys.stderr.write(f"take all of it out of {where}? write yes: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() == "yes"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _whisper(line: str) -> None:
    """Standard output is for a program: *line* is for who looks on."""
    if sys.stderr.isatty():
        sys.stderr.write(f"joiner uninstall: {line}\n")
