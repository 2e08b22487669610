"""The command line, from its own parsers: what `--help` says, the same under every version of Python."""

import argparse
from collections.abc import Iterator
from typing import Final

from cli.main import COMMANDS, EXAMPLES, GROUPS, parser_for
from docs.reference.markdown import code, page, table

HEADS: Final = ("", "What it does")
Parser = argparse.ArgumentParser


def pages() -> dict[str, str]:
    """Answer the page of all commands."""
    parts = (_section(below(parser_for(name))[name], name) for name in sorted(COMMANDS))
    about = "`joiner COMMAND --help` says the same. In a checkout it is `.venv/bin/joiner`."
    return {
        "commands.md": page("Commands", about, table(("", "Command", ""), _list()), f"```text\n{EXAMPLES}```", *parts)
    }


def below(parser: Parser) -> dict[str, Parser]:
    """Answer the parsers of commands below *parser*, by name."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            return dict(action.choices)
    return {}


def _list() -> Iterator[tuple[str, str, str]]:
    """Iterate over the commands, by what they are for."""
    grouped = {name: group for group, names in GROUPS.items() for name in names}
    for name in sorted(COMMANDS, key=lambda one: ([*grouped, one].index(one), one)):
        yield grouped.get(name, ""), f"[`joiner {name}`](#joiner-{name})", COMMANDS[name]


def _section(parser: Parser, *names: str) -> str:
    """Answer a section on the command of these *names*, and on what is below it."""
    texts = [f"{'#' * (len(names) + 1)} joiner {' '.join(names)}", _flowing(parser.description or "")]
    rows = [row for action in parser._actions if (row := _row(action))]  # noqa: SLF001 - as above
    texts += [table(HEADS, rows)] if rows else []
    texts += [f"```text\n{parser.epilog.strip()}\n```"] if parser.epilog else []
    texts += [_section(one, *names, name) for name, one in below(parser).items()]
    return "\n\n".join(text.strip("\n") for text in texts if text)


def _row(action: argparse.Action) -> tuple[str, str] | None:
    if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction | argparse._SubParsersAction):  # noqa: SLF001 - as above
        return None
    value = _value(action)
    names = [f"{name} {value}".strip() for name in action.option_strings] or [value]
    return ", ".join(code(name) for name in names), _flowing((action.help or "") % vars(action))


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    given = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    return f"[{given}]" if action.nargs == "?" else str(given)


def _flowing(text: str) -> str:
    """Answer *text* in one line, and what would be Markdown as itself."""
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")
