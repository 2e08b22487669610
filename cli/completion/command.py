"""`joiner completion`: prints the script that enables shell completion."""

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
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("shell", choices=SHELLS, help="for which shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from argcomplete import shellcode  # type: ignore[attr-defined,unused-ignore]  # noqa: PLC0415 - --help needs none

    sys.stdout.write(f"{shellcode(['joiner'], shell=args.shell).strip()}\n")
    return 0
