"""`joiner playground`: try Joiner on a real control plane with an embedded cloud and the deployed handlers."""

import argparse
from pathlib import Path
from typing import Final

from cli.playground.session_commands import PLAYGROUND_COMMANDS

DESCRIPTION: Final = """Start a real Kubernetes control plane on this machine, a simulated EC2 whose instances join as
nodes, and the deployed function handlers, on their schedules in real time. The playground works offline; prices are
synthetic. Ctrl-C stops and removes everything. The first start builds the control plane from source, which needs Go and
takes about 10 minutes."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    orders = "\n".join(f"  {name:18} {says}" for name, says in PLAYGROUND_COMMANDS.items())
    parser.description = DESCRIPTION
    parser.epilog = (
        f"commands while the playground runs:\n{orders}\n\nexamples:\n  joiner playground\n"
        "  joiner playground --apply examples/playground/nodepool.yaml --apply examples/playground/web.yaml\n"
        "  joiner playground --for 120 </dev/null\n\n"
        "exit codes: 0 stopped by you or by --for, 1 cannot start, or the control plane stopped, 2 wrong usage"
    )
    parser.add_argument(
        "--apply", type=Path, action="append", default=[], metavar="FILE", help="manifests to apply at the start (YAML)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of prices, instance IDs and delays")
    parser.add_argument("--for", type=float, dest="seconds", metavar="SECONDS", help="stop after this time")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until the user ends it and return 0; return 1 if it could not start or the control plane ended."""
    from cli.playground.playground_runner import run_playground  # noqa: PLC0415 - --help needs none of it

    return run_playground(args)
