"""What the tab key is answered: commands, options, files, and names that the cluster knows."""

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.lexers import split_line

from cli.main import COMMANDS, HELP, parser_for

PATIENCE: Final = 2.0
"""Seconds that a person waits for names."""
Completer = Callable[..., Iterable[str]]
_FILES: Final = ("FILE", "DIR", "CATALOGUE", "JOURNAL", "PATH", "FOLDER")
"""In the metavar of what is a file."""


def complete() -> NoReturn:
    """Answer what may follow in the line that the shell hands over, and leave."""
    line = os.environ.get("COMP_LINE", "")
    words = split_line(line, int(os.environ.get("COMP_POINT", len(line))))[3][1:]
    command = next((one for one in words if not one.startswith("-")), "")
    parser = parser_for(command, described=True)
    for one in _parsers(parser):
        for action in one._actions:  # noqa: SLF001 - argparse tells nobody else
            if action.choices is None:
                action.completer = _completer(action)  # type: ignore[attr-defined]
    _help(parser)
    argcomplete.autocomplete(parser, always_complete_options=False, default_completer=_nothing)  # type: ignore[arg-type]
    raise SystemExit(0)


def _parsers(parser: argparse.ArgumentParser) -> Iterable[argparse.ArgumentParser]:
    """Iterate over *parser* and those of its commands."""
    yield parser
    for action in parser._actions:  # noqa: SLF001 - argparse tells nobody else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.values()


def _help(parser: argparse.ArgumentParser) -> None:
    """Let `help` be followed by the commands."""
    for action in parser._actions:  # noqa: SLF001 - argparse tells nobody else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            own = action.add_parser(HELP, help="what a command does, with examples")
            own.add_argument("of", choices=tuple(COMMANDS))


def _completer(action: argparse.Action) -> Completer:
    named = {"context": _contexts, "nodepool": _named("node_pools"), "node": _named("nodes"), "name": _of_kind}
    if action.dest in named:
        return named[action.dest]
    said = action.metavar if isinstance(action.metavar, str) else ""
    return FilesCompleter() if any(word in said for word in _FILES) else _nothing


def _nothing(**_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
    """Answer no words: what an option wants is anybody's guess."""
    return []


def _contexts(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
    """Answer the contexts of the kubeconfig; none if it cannot be read."""
    from cli.contexts import contexts  # noqa: PLC0415
    from cli.files import InputError  # noqa: PLC0415 - only who asks for names waits

    try:
        return [one for one in contexts(getattr(parsed_args, "kubeconfig", "") or "") if one.startswith(prefix)]
    except InputError:
        return []


def _named(field: str) -> Completer:
    """Answer what completes the names of a kind."""

    def names(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
        return [one for one in _known(field, parsed_args) if one.startswith(prefix)]

    return names


def _of_kind(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:  # noqa: ANN401 - argcomplete's
    """Answer the names of the kind that stands before."""
    fields = {"node": "nodes", "nodepool": "node_pools", "nodeclaim": "node_claims", "nodeclass": "node_classes"}
    field = fields.get(str(getattr(parsed_args, "kind", "")))
    return [one for one in _known(field, parsed_args) if one.startswith(prefix)] if field else []


def _known(field: str, chosen: argparse.Namespace) -> tuple[str, ...]:
    """Answer the names of a kind, as the cluster that is meant has them; none if it does not say so soon."""
    from cli.files import InputError  # noqa: PLC0415 - only who asks for names waits
    from cli.kubeconfig import reach  # noqa: PLC0415
    from shared.errors import Fault  # noqa: PLC0415
    from shared.snapshot.kinds import LISTINGS  # noqa: PLC0415

    path = next(one.path for one in LISTINGS if one.field == field)
    try:
        kube = reach(getattr(chosen, "kubeconfig", "") or "", getattr(chosen, "context", "") or "").kube
        return kube.names(path, PATIENCE)
    except (InputError, Fault):
        return ()
