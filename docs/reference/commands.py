"""The reference page of the command line, generated from its parsers.

It has the text of `--help`, but is the same in every Python version.
"""

import argparse
from collections.abc import Iterator
from typing import Final

from cli.commands import COMMAND_GROUPS, COMMANDS
from cli.main import EXAMPLES, build_parser
from docs.reference.markdown import format_code, render_page, render_table

TABLE_HEADS: Final = ("", "What it does")
Parser = argparse.ArgumentParser


def render_command_pages() -> dict[str, str]:
    """Render the page of all commands, by file name."""
    parts = (_render_section(get_subparsers(build_parser(name))[name], name) for name in sorted(COMMANDS))
    introduction = (
        "`joiner COMMAND --help` prints the same text. In a checkout, the command is `.venv/bin/joiner`.\n\n"
        "[Output of commands](output.md) lists the fields of `-o json` and `-o yaml`."
    )
    return {
        "commands.md": render_page(
            "Commands",
            introduction,
            render_table(("", "Command", ""), _list_commands()),
            f"```text\n{EXAMPLES}```",
            *parts,
        )
    }


def get_subparsers(parser: Parser) -> dict[str, Parser]:
    """Return the parsers of the subcommands of *parser*, by name."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            return dict(action.choices)
    return {}


def _list_commands() -> Iterator[tuple[str, str, str]]:
    """Yield the table rows of the commands, sorted by group."""
    grouped = {name: group for group, names in COMMAND_GROUPS.items() for name in names}
    for name in sorted(COMMANDS, key=lambda command: ([*grouped, command].index(command), command)):
        yield grouped.get(name, ""), f"[`joiner {name}`](#joiner-{name})", COMMANDS[name]


def _render_section(parser: Parser, *names: str) -> str:
    """Render the section of the command *names*, with sections of its subcommands."""
    texts = [f"{'#' * (len(names) + 1)} joiner {' '.join(names)}", _escape_text(parser.description or "")]
    rows = [row for action in parser._actions if (row := _build_row(action))]  # noqa: SLF001 - as above
    texts += [render_table(TABLE_HEADS, rows)] if rows else []
    texts += [f"```text\n{parser.epilog.strip()}\n```"] if parser.epilog else []
    texts += [_render_section(subparser, *names, name) for name, subparser in get_subparsers(parser).items()]
    return "\n\n".join(text.strip("\n") for text in texts if text)


def _build_row(action: argparse.Action) -> tuple[str, str] | None:
    if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction | argparse._SubParsersAction):  # noqa: SLF001 - as above
        return None
    value = _format_value(action)
    names = [f"{name} {value}".strip() for name in action.option_strings] or [value]
    return ", ".join(format_code(name) for name in names), _escape_text((action.help or "") % vars(action))


def _format_value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    value_text = action.metavar or (
        f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper()
    )
    return f"[{value_text}]" if action.nargs == "?" else str(value_text)


def _escape_text(text: str) -> str:
    """Return *text* as one line, with Markdown characters escaped."""
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")
