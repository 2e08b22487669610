"""Shell completion: commands, options, files, and names from the cluster."""

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.lexers import split_line

from cli.commands import COMMANDS, HELP_COMMAND
from cli.main import build_parser

NAME_QUERY_TIMEOUT_SECONDS: Final = 2.0
"""The longest acceptable delay of a completion."""
Completer = Callable[..., Iterable[str]]
_FILE_METAVARS: Final = ("FILE", "DIR", "CATALOGUE", "JOURNAL", "PATH", "FOLDER")
"""An option whose metavar contains one of these words takes a file."""


def print_completions() -> NoReturn:
    """Print the completions of the command line that the shell passes, and exit."""
    line = os.environ.get("COMP_LINE", "")
    words = split_line(line, int(os.environ.get("COMP_POINT", len(line))))[3][1:]
    command = next((word for word in words if not word.startswith("-")), "")
    parser = build_parser(command, with_help_lines=True)
    for subparser in _list_parsers(parser):
        for action in subparser._actions:  # noqa: SLF001 - argparse has no public attribute for it
            if action.choices is None:
                action.completer = _choose_completer(action)  # type: ignore[attr-defined]
    _add_help_command(parser)
    argcomplete.autocomplete(parser, always_complete_options=False, default_completer=_complete_nothing)  # type: ignore[arg-type]
    raise SystemExit(0)


def _list_parsers(parser: argparse.ArgumentParser) -> Iterable[argparse.ArgumentParser]:
    """Yield *parser* and the parsers of its commands."""
    yield parser
    for action in parser._actions:  # noqa: SLF001 - argparse has no public attribute for it
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.values()


def _add_help_command(parser: argparse.ArgumentParser) -> None:
    """Add the `help` command, which takes the name of a command."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public attribute for it
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            help_parser = action.add_parser(HELP_COMMAND, help="print the help of a command, with examples")
            help_parser.add_argument("of", choices=tuple(COMMANDS))


def _choose_completer(action: argparse.Action) -> Completer:
    completers_by_option = {
        "context": _complete_contexts,
        "nodepool": _build_name_completer("node_pools"),
        "node": _build_name_completer("nodes"),
        "name": _complete_names_of_kind,
    }
    if action.dest in completers_by_option:
        return completers_by_option[action.dest]
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return FilesCompleter() if any(word in metavar for word in _FILE_METAVARS) else _complete_nothing


def _complete_nothing(**_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
    """Return no completions: the possible values are unknown."""
    return []


def _complete_contexts(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
    """Return the matching contexts of the kubeconfig; none if it cannot be read."""
    from cli.cluster.contexts import list_contexts  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - only needed to complete names

    try:
        return [name for name in list_contexts(getattr(parsed_args, "kubeconfig", "") or "") if name.startswith(prefix)]
    except InputError:
        return []


def _build_name_completer(field: str) -> Completer:
    """Return a completer for the names of a kind."""

    def complete_names(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
        return [name for name in _list_names(field, parsed_args) if name.startswith(prefix)]

    return complete_names


def _complete_names_of_kind(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
    """Return the matching names of the kind that precedes the name."""
    fields = {"node": "nodes", "nodepool": "node_pools", "nodeclaim": "node_claims", "nodeclass": "node_classes"}
    field = fields.get(str(getattr(parsed_args, "kind", "")))
    return [name for name in _list_names(field, parsed_args) if name.startswith(prefix)] if field else []


def _list_names(field: str, args: argparse.Namespace) -> tuple[str, ...]:
    """Return the names of a kind in the selected cluster; none if the cluster does not respond in time."""
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - only needed to complete names
    from shared.errors import Fault  # noqa: PLC0415
    from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS  # noqa: PLC0415

    path = next(listing.path for listing in RESOURCE_KINDS if listing.field == field)
    try:
        kube = connect_to_cluster(getattr(args, "kubeconfig", "") or "", getattr(args, "context", "") or "").kube
        return kube.list_names(path, NAME_QUERY_TIMEOUT_SECONDS)
    except (InputError, Fault):
        return ()
