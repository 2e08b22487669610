"""`joiner completion`: the script that lets a shell complete what is typed."""

import argparse
import sys
from typing import Final

DESCRIPTION: Final = """Print the script that lets a shell complete commands, options, files, and the names of contexts,
NodePools and nodes: these are asked of the cluster that the line names, if it answers within two seconds."""
EXAMPLES: Final = """examples:
  source <(joiner completion bash)               in this shell; in ~/.bashrc for every one
  source <(joiner completion zsh)                the same in ~/.zshrc, behind compinit
  joiner completion fish > ~/.config/fish/completions/joiner.fish

exit codes: 0 printed, 2 wrong usage
"""
SHELLS: Final = ("bash", "zsh", "fish")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("shell", choices=SHELLS, help="for which shell")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print it."""
    from argcomplete import shellcode  # type: ignore[attr-defined,unused-ignore]  # noqa: PLC0415 - --help needs none

    sys.stdout.write(f"{shellcode(['joiner'], shell=chosen.shell).strip()}\n")
    return 0
