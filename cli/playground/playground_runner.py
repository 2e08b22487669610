"""The run of a playground: starts the control plane and the embedded cloud, prepares the cluster, stops everything."""

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

from cli.demo.timeline import Timeline
from cli.playground.session import PlaygroundSession
from cli.terminal.text import Palette
from shared.errors import Fault
from shared.model.core.formatting import format_elapsed
from sim.aws_http.server import EmbeddedAws
from sim.lambda_runtime.stack_template.synthesis import WATCH_SETTINGS, SynthesisError, synthesize_template
from sim.playground.playground import Playground
from sim.playground.reporter import PlaygroundReporter
from sim.scenarios.scenario import ManagedNode, Scenario
from sim.time.real_clock import RealTimeClock

EXAMPLES_FOLDER: Final = Path(__file__).resolve().parents[2] / "examples" / "playground"
CRD_TIMEOUT: Final = timedelta(minutes=5)
FUNCTIONS_GROUP: Final = "joiner:functions"
SYSTEM_NODE: Final = ManagedNode(labels={"eks.amazonaws.com/nodegroup": "system"})


class CannotPlay(Exception):
    """The playground cannot start; the message says what is missing."""


def run_playground(args: argparse.Namespace) -> int:
    """Run until the user ends it and return 0; return 1 if it could not start or the control plane ended."""
    try:
        manifests = [manifest for path in args.apply for manifest in _read_manifests(path)]
        with ExitStack() as stack:
            return _run_playground(args, manifests, stack)
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped during the start\n")
    except (CannotPlay, Fault, SynthesisError) as error:
        return _report_failure(str(error))
    return 0


def _run_playground(args: argparse.Namespace, manifests: list[dict[str, Any]], stack: ExitStack) -> int:
    with _interrupt_on_sigterm():
        plane, token = _start_control_plane(stack)
        clock = RealTimeClock(lambda: datetime.now(UTC))
        playground = Playground(
            clock,
            functions_kube=plane.get_client(token),
            admin_kube=plane.get_client(),
            endpoint=plane.endpoint,
            certificate_authority=plane.certificate_authority,
            seed=args.seed,
            template=synthesize_template(settings=WATCH_SETTINGS),
        )
        aws = stack.enter_context(EmbeddedAws(playground.cloud))
        playground.drive.lock = aws.lock
        _prepare_cluster(playground, manifests)
        kubeconfig = plane.processes.folder / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(plane.build_kubeconfig(), encoding="utf-8")
    sys.stdout.write(_render_welcome(kubeconfig, aws.url, _build_kubectl_hint()))
    timeline = Timeline(Scenario(name="playground", says="events in real time", acts=()), _build_palette())
    attended = PlaygroundSession(
        playground, PlaygroundReporter(playground, timeline.print_moment), plane.processes.describe_dead
    )
    with _stop_on_signals(playground):
        playground.invoke_schedules()
        playground.drive.run(attended.poll, timedelta(seconds=args.seconds) if args.seconds is not None else None)
    sys.stdout.write("\nstopping\n")
    return _report_failure(attended.crash_message) if attended.crash_message else 0


def _start_control_plane(stack: ExitStack) -> tuple[Any, str]:
    """Start a control plane that ends with *stack*; return it and the token of the functions.

    Raises:
        CannotPlay: it cannot be built or started, or this is not a checkout.
    """
    try:
        # Only a checkout has these modules: the deployed package contains neither a control plane nor its tests.
        from tests.controlplane.binaries import NoPrograms  # noqa: PLC0415
        from tests.controlplane.commands import User  # noqa: PLC0415
        from tests.controlplane.plane import ControlPlane, NotStarted  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CannotPlay(
            f"{error.name} is missing: the playground needs a checkout of the repository with its development "
            "dependencies (`make setup`, then `make playground`)"
        ) from error
    functions = User(name=FUNCTIONS_GROUP, groups=(FUNCTIONS_GROUP,))
    try:
        plane = stack.enter_context(ControlPlane(users=[functions], say=_print_progress))
    except (NoPrograms, NotStarted) as error:
        raise CannotPlay("\n".join([str(error), *getattr(error, "__notes__", ())])) from error
    return plane, plane.get_token(functions)


def _prepare_cluster(playground: Playground, manifests: list[dict[str, Any]]) -> None:
    """Create the managed node, the CRDs, the RBAC of the functions, and *manifests*."""
    kubectl = playground.kubectl
    kubectl.apply_crds()
    if not playground.drive.run(kubectl.has_crds, CRD_TIMEOUT):
        raise CannotPlay(f"the API server does not serve the CRDs after {format_elapsed(CRD_TIMEOUT)}")
    kubectl.apply_rbac()
    playground.start_managed_node(SYSTEM_NODE)
    kubectl.apply_all(manifests)


def _build_kubectl_hint() -> str:
    """Return the line that makes `kubectl` available in another terminal; "" if it is installed."""
    from tests.controlplane.binaries import find_programs  # noqa: PLC0415 - as above

    kubectl_folder = find_programs()
    if shutil.which("kubectl"):
        return ""
    return (
        f"  export PATH=$PATH:{kubectl_folder}\n"
        if kubectl_folder
        else "  (kubectl: https://kubernetes.io/docs/tasks/tools)\n"
    )


def _render_welcome(kubeconfig: Path, aws: str, kubectl: str) -> str:
    """Return the first steps for new users."""
    examples_path = os.path.relpath(EXAMPLES_FOLDER)
    return f"""
AWS endpoint   {aws}   EC2, SSM, EKS and pricing, with any credentials:
               aws --region us-east-1 --endpoint-url {aws} ec2 describe-instances
               The queues, table and bucket of the functions are internal: the endpoint does not show them.
kubeconfig     {kubeconfig}

Three things to try. In another terminal, first:
  export KUBECONFIG={kubeconfig}
{kubectl}
  1  kubectl apply -f {examples_path}/nodepool.yaml        a NodePool and its EC2NodeClass
     kubectl get nodepools,ec2nodeclasses
  2  kubectl apply -f {examples_path}/web.yaml && kubectl scale deployment web --replicas=20
     kubectl get nodeclaims,nodes --watch          a node joins for the pending pods
  3  interrupt                                     typed here: EC2 interrupts the busiest Spot node

Type `help` for all commands. Ctrl-C stops everything.

"""


def _read_manifests(path: Path) -> list[dict[str, Any]]:
    """Return the documents in the file at *path*.

    Raises:
        CannotPlay: it cannot be read.
    """
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CannotPlay(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotPlay(f"{path}: {' '.join(str(error).split())}") from error
    for document in documents:
        if document is not None and not (
            isinstance(document, dict) and {"apiVersion", "kind", "metadata"} <= document.keys()
        ):
            raise CannotPlay(f"{path}: a document has no apiVersion, kind or metadata")
    return [manifest for manifest in documents if manifest is not None]


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Make SIGTERM end the start of the playground in the same way as Ctrl-C."""

    def raise_interrupt(*_: int | FrameType | None) -> None:
        raise KeyboardInterrupt

    previous_handler = signal.signal(signal.SIGTERM, raise_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


@contextmanager
def _stop_on_signals(playground: Playground) -> Iterator[None]:
    """Make Ctrl-C, SIGTERM and SIGHUP stop *playground* in order; a second signal interrupts it immediately."""

    def handle_signal(*_: int | FrameType | None) -> None:
        if playground.drive.is_stopped:
            raise KeyboardInterrupt
        playground.drive.stop()

    previous_handlers = {
        number: signal.signal(number, handle_signal) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _build_palette() -> Palette:
    return Palette(enabled=sys.stdout.isatty())


def _print_progress(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _report_failure(message: str) -> int:
    sys.stderr.write(f"joiner playground: {message}\n")
    return 1
