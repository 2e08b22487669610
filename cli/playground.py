"""`joiner playground`: a cluster to play with. A real control plane, an embedded cloud, the deployed handlers."""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Final

import yaml

from cli.attended import ORDERS, Attended
from cli.demo import Timeline
from cli.text import Palette
from shared.errors import Fault
from sim.lambdas.template import SynthesisError
from sim.playground import Playground
from sim.playground_told import Commentary
from sim.realtime import RealTimeClock
from sim.scenario import Managed, Scenario

EXAMPLES: Final = Path(__file__).resolve().parent.parent / "examples" / "playground"
DESCRIPTION: Final = """Start a real Kubernetes control plane on this machine, an embedded EC2 whose instances join it
as nodes, and the very handlers that would be deployed, on their schedules, in real time. Nothing is contacted; prices
are synthetic. Ctrl-C ends all of it and leaves nothing. The control plane is built from source once, which needs Go
and some minutes."""
SERVED_WITHIN: Final = timedelta(minutes=5)
GROUP: Final = "joiner:functions"
SYSTEM: Final = Managed(labels={"eks.amazonaws.com/nodegroup": "system"})


class CannotPlay(Exception):
    """There is nothing to play with; the message says what is missing."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    orders = "\n".join(f"  {name:18} {says}" for name, says in ORDERS.items())
    parser.description = DESCRIPTION
    parser.epilog = (
        f"what may be typed while it runs:\n{orders}\n\nexamples:\n  joiner playground\n"
        "  joiner playground --apply examples/playground/nodepool.yaml --apply examples/playground/web.yaml\n"
        "  joiner playground --for 120 </dev/null\n\n"
        "exit codes: 0 ended by you or by --for, 1 something is missing or the control plane ended, 2 wrong usage"
    )
    parser.add_argument(
        "--apply", type=Path, action="append", default=[], metavar="FILE", help="manifests to begin with (YAML)"
    )
    parser.add_argument("--seed", type=int, default=0, help="another cloud: prices, instance ids, delays")
    parser.add_argument("--for", type=float, dest="seconds", metavar="SECONDS", help="end by itself after so long")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Play until somebody ends it, and answer 0; 1 if it could not begin or the control plane ended by itself."""
    try:
        manifests = [one for path in chosen.apply for one in _manifests(path)]
        with ExitStack() as stack:
            return _play(chosen, manifests, stack)
    except KeyboardInterrupt:
        sys.stderr.write("\nended before it began\n")
    except (CannotPlay, Fault, SynthesisError) as error:
        return _refuse(str(error))
    return 0


def _play(chosen: argparse.Namespace, manifests: list[dict[str, Any]], stack: ExitStack) -> int:
    from sim.http.server import EmbeddedAws  # noqa: PLC0415 - moto takes more than a second, and only this needs it

    with _interruptible():
        plane, token = _control_plane(stack)
        clock = RealTimeClock(lambda: datetime.now(UTC))
        playground = Playground(
            clock,
            functions=plane.client(token),
            people=plane.client(),
            endpoint=plane.endpoint,
            certificate_authority=plane.certificate_authority,
            seed=chosen.seed,
        )
        aws = stack.enter_context(EmbeddedAws(playground.cloud))
        playground.drive.lock = aws.lock
        _furnish(playground, manifests)
        kubeconfig = plane.processes.folder / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(plane.kubeconfig(), encoding="utf-8")
    sys.stdout.write(_welcome(kubeconfig, aws.url, _kubectl()))
    timeline = Timeline(Scenario(name="playground", says="what happens, as it happens", acts=()), _palette())
    attended = Attended(playground, Commentary(playground, timeline.tell), plane.processes.died)
    with _stopping(playground):
        playground.drive.run(attended.tend, timedelta(seconds=chosen.seconds) if chosen.seconds is not None else None)
    sys.stdout.write("\nending\n")
    return _refuse(attended.died) if attended.died else 0


def _control_plane(stack: ExitStack) -> tuple[Any, str]:
    """Start a control plane that ends with *stack*; answer it and the token of the functions.

    Raises:
        CannotPlay: it cannot be built or started, or this is no checkout.
    """
    try:
        # Only a checkout has it: what is deployed neither ships a control plane nor the tests that it is made for.
        from tests.controlplane.binaries import NoPrograms  # noqa: PLC0415
        from tests.controlplane.commands import User  # noqa: PLC0415
        from tests.controlplane.plane import ControlPlane, NotStarted  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CannotPlay(
            f"{error.name} is missing: the playground needs a checkout of the repository with its development "
            "dependencies (`make setup`, then `make playground`)"
        ) from error
    functions = User(name=GROUP, groups=(GROUP,))
    try:
        plane = stack.enter_context(ControlPlane(users=[functions], say=_say))
    except (NoPrograms, NotStarted) as error:
        raise CannotPlay("\n".join([str(error), *getattr(error, "__notes__", ())])) from error
    return plane, plane.token_of(functions)


def _furnish(playground: Playground, manifests: list[dict[str, Any]]) -> None:
    """Put into the cluster what was there before Joiner, our definitions, the rights of the functions, *manifests*."""
    desk = playground.desk
    desk.define()
    if not playground.drive.run(desk.is_defined, SERVED_WITHIN):
        raise CannotPlay(f"the API server does not serve our CustomResourceDefinitions after {SERVED_WITHIN}")
    desk.grant()
    playground.start_managed_node(SYSTEM)
    desk.apply_all(manifests)


def _kubectl() -> str:
    """Answer what makes `kubectl` a command of the other terminal: the one that was built, if there is no other."""
    from tests.controlplane.binaries import found  # noqa: PLC0415 - as above

    built = found()
    if shutil.which("kubectl"):
        return ""
    return f"  export PATH=$PATH:{built}\n" if built else "  (kubectl: https://kubernetes.io/docs/tasks/tools)\n"


def _welcome(kubeconfig: Path, aws: str, kubectl: str) -> str:
    """Answer what somebody needs to know who is here for the first time."""
    here = os.path.relpath(EXAMPLES)
    return f"""
AWS endpoint   {aws}   EC2, SSM, EKS and pricing, with any credentials:
               aws --region us-east-1 --endpoint-url {aws} ec2 describe-instances
               The functions' queues, table and bucket are inside this process, and cannot be looked at there.
kubeconfig     {kubeconfig}

Three things to try. In another terminal, first:
  export KUBECONFIG={kubeconfig}
{kubectl}
  1  kubectl apply -f {here}/nodepool.yaml        a NodePool and the EC2NodeClass it names
     kubectl get nodepools,ec2nodeclasses
  2  kubectl apply -f {here}/web.yaml && kubectl scale deployment web --replicas=20
     kubectl get nodeclaims,nodes --watch          within a minute a node comes for the pods that wait
  3  interrupt                                     typed here: EC2 takes the busiest spot node back

`help` here lists what else may be typed. Ctrl-C ends everything.

"""


def _manifests(path: Path) -> list[dict[str, Any]]:
    """Answer the documents in the file at *path*.

    Raises:
        CannotPlay: it cannot be read.
    """
    try:
        found = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CannotPlay(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotPlay(f"{path}: {' '.join(str(error).split())}") from error
    for one in found:
        if one is not None and not (isinstance(one, dict) and {"apiVersion", "kind", "metadata"} <= one.keys()):
            raise CannotPlay(f"{path}: a document has no apiVersion, kind or metadata")
    return [one for one in found if one is not None]


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a termination end what is being started as Ctrl-C does."""

    def interrupt(*_: int | FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _stopping(playground: Playground) -> Iterator[None]:
    """Let Ctrl-C, a termination or a closed terminal end *playground* in order; a second one does not wait."""

    def stop(*_: int | FrameType | None) -> None:
        if playground.drive.stopped:
            raise KeyboardInterrupt
        playground.drive.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _palette() -> Palette:
    return Palette(enabled=sys.stdout.isatty())


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _refuse(why: str) -> int:
    sys.stderr.write(f"joiner playground: {why}\n")
    return 1
