"""`joiner completion`: prints the script that enables shell completion."""

import argparse
import sys
from typing import Final

DESCRIPTION: Final = """Print the completion script for a shell. It completes commands, options, files and contexts,
and the names of NodePools and nodes if the cluster responds within two seconds."""
EXAMPLES: Final = """examples:
  source <(joiner completion bash)               for this shell; add the line to ~/.bashrc for all shells
  source <(joiner completion zsh)                the same for zsh; in ~/.zshrc, add the line after compinit
  joiner completion fish > ~/.config/fish/completions/joiner.fish

exit codes: 0 success, 2 wrong usage
"""
SHELLS: Final = ("bash", "zsh", "fish")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from argcomplete import shellcode  # type: ignore[attr-defined,unused-ignore]  # noqa: PLC0415 - --help needs none

    sys.stdout.write(f"{shellcode(['joiner'], shell=args.shell).strip()}\n")
    return 0
