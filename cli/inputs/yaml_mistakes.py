"""Explanations for text that is invalid YAML, or valid but probably a mistake: the line, and a likely fix."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import yaml

_QUOTED_TEXT: Final = r"""(?:"[^"]*"|'[^']*')"""
_TEMPLATE_HINT: Final = "this is a template: render it first, for example with `helm template`"
_TEMPLATE_MARK_PATTERN: Final = re.compile(r"\{\{|\{%|%\{|<%")
"""Opening marks of templates: Helm, Jinja, Terraform and Ruby."""
_SEPARATOR_HINT: Final = "write three hyphens, `---`, at the beginning of a line between two documents"
_SHELL_HINT: Final = "this is a shell command: remove the line"
_ELLIPSIS_HINT: Final = "`...` marks omitted text: write the omitted text, or remove the line"
_HINTS_BY_ERROR: Final = (
    ("\\t", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "quote a value that contains `: `, or correct the indentation of this line"),
    ("anchors repeat", "write the values instead of aliases"),
    ("nested too deeply", "no Kubernetes object is: remove it"),
    ("undefined alias", "quote a value that begins with *; an alias cannot refer to an anchor in another document"),
    ("alphabetic or numeric character", "quote a value that begins with * or &"),
    ("cannot start any token", "quote a value that begins with @, ` or %"),
    ("expected node content", "close the bracket, or write the value"),
    ("control characters", "remove the character"),
    ("end of stream", "close the quote or bracket"),
    ("expected ',' or", "close the quote or bracket"),
    ("could not find expected ':'", "write `name: value`: this line, or a line above it, has no colon"),
    ("unhashable key", "quote a value that begins with {"),
    ("could not determine a constructor", "remove the tag (the word that begins with !)"),
)
_INDENTATION_HINT: Final = "correct the indentation: align the keys of an object, and write `: ` after each key"
_SLIP_HINTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (
        re.compile(rf"^ *- +({_QUOTED_TEXT}(?: *,? *{_QUOTED_TEXT})+) *,? *$"),
        lambda slip: (
            f"several values in one list item: write {_format_flow_list(slip[1])} instead, "
            "or each value on a separate line"
        ),
    ),
    (
        re.compile(rf"^ *-? *([\w./-]+): +({_QUOTED_TEXT}(?: *,? *{_QUOTED_TEXT})+) *,? *$"),
        lambda slip: f"several values without brackets: write `{slip[1]}: {_format_flow_list(slip[2])}`",
    ),
    (
        re.compile(r"^.*<<[-~]? *['\"]?\w+['\"]?.*$"),
        lambda _: "this is a heredoc of a shell or of Terraform: keep only the text between this line and its end mark",
    ),
    (
        re.compile(r"^ *-? *(key): +([^\s:#]+): +([^\s#]+) *$"),
        lambda slip: (
            f"two colons on one line: write `{slip[1]}: {slip[2]}`, "
            f"and below it `values: [{slip[3].strip('[]')}]` for example"
        ),
    ),
    (
        re.compile(r"^ *- *(?:key|name|effect) *: *\S+?,? +(?:operator|value|values|effect) *:"),
        lambda _: "several fields on one line: write each field on a separate line, or all of them between { and }",
    ),
    (
        re.compile(r"^ *-? *([\w./-]+) *= *([^=\s]+) *$"),
        lambda slip: f"`=` instead of a colon: write `{slip[1]}: {slip[2]}`",
    ),
    (
        re.compile(r"^ *-? *(\w+):([^\s:/][^\s:]*) *$"),
        lambda slip: f"no space after the colon: write `{slip[1]}: {slip[2]}`",
    ),
    (re.compile(r"^ *(?:- *)?(?:\.\.\.+|\u2026) *$"), lambda _: _ELLIPSIS_HINT),
    (re.compile(r"^ *(?:-{4,}|--|[\u2012-\u2015]-?|[=_*]{2,}) *$"), lambda _: _SEPARATOR_HINT),
    (re.compile(r"^ +--- *$"), lambda _: _SEPARATOR_HINT),
    (re.compile(r"^ *[\u2012-\u2015\u2212] "), lambda _: "this is a dash instead of a hyphen: write a plain `-`"),
    (re.compile(r"^ *[*\u2022\u25aa\u25cf\u25e6\u00b7] +[\w\"']"), lambda _: "this is a bullet: write a plain `-`"),
    (
        re.compile(r"^[^#\"'\[{]*[\[{][^\"']*(\$\{[^\"'{}]*\})"),
        lambda slip: f'unquoted variable between {{ }} or [ ]: write "{slip[1]}", or its value',
    ),
    (re.compile(r"^[^#]*\uff1a"), lambda _: "this is a full-width colon: write a plain `: `"),
)
"""Mistakes that are common in published articles, and in manifests copied from there."""
_SHELL_COMMAND: Final = r"(?:kubectl|helm|cat|type|less|vim?|nano|echo|export|aws|eksctl|curl|sudo|terraform|k|oc)\b"
"""The first word of a shell command."""
FOREIGN_TEXT_HINTS: Final = (
    (re.compile(r"(?m)^ *(?:```|~~~)"), "this is Markdown: keep only the text between the code fences"),
    (
        re.compile(r"(?m)^ *</?(?:pre|code|div|span|p|html|br)\b|&(?:quot|lt|gt|amp|nbsp|#x?[0-9a-fA-F]+);"),
        "this is HTML: write the text as a browser shows it",
    ),
    (
        re.compile(r"""(?m)^(?:resource|module|data|locals|variable)\b.*\{ *$"""),
        "this is Terraform: write the manifest as YAML",
    ),
    (re.compile(r"(?m)^\$ "), _SHELL_HINT),
    (
        re.compile(
            rf"(?m)^(?:[%\u276f\u279c] ?|PS [A-Z]:[^>\n]*> ?|\[?\w{{1,40}}@[^$#%\n]{{1,200}}[$#%] ?){_SHELL_COMMAND}"
        ),
        _SHELL_HINT,
    ),
    (re.compile(r"(?m)^(?:kubectl|helm|cat|echo|export|aws|eksctl|curl|sudo|terraform) [^:\n]*$"), _SHELL_HINT),
    (re.compile(r"(?m)^ *(?://|/\*)"), "this is a comment of another language: begin it with #, or remove it"),
    (re.compile(r"(?m)^ *> ?\w[\w.]*:"), "this is a quotation of an email: remove the > before each line"),
    (re.compile(r"(?m)\A *1(?:[.:|)]? *\| *|[.:|)]?[ \t]+)\w"), "this text has line numbers: remove them"),
    (
        re.compile(r"(?m)^\+ *-? *[\w\"]"),
        "this is a diff: remove the lines with -, and the + before the others",
    ),
)
"""Text in other languages than YAML, detected by a line."""
_CURLY_QUOTE_PATTERN: Final = re.compile("^[^#]*(?:[\u201c-\u201f]|(?<!\\w)\u2018|\u2019(?!\\w))")
_CLOSED_QUOTE_PATTERN: Final = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|(?:^|\s)#.*$""")
INVISIBLE_PATTERN: Final = re.compile("[\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]")
"""Invisible characters, and spaces other than the ASCII space; common in text copied from a browser."""
_MERGE_KEY: Final = "<<"
_LOST_INDENTATION_HINT: Final = (
    "the fields of `metadata` have lost their indentation: write two spaces before them, and before all other "
    "nested fields"
)
_TOP_LEVEL_KEYS: Final = ("apiVersion", "kind")
_MAX_OPEN_QUOTE_LINES: Final = 12
"""Maximum distance in lines between an open quote and the error that it causes."""


def _format_flow_list(text: str) -> str:
    return f"[{', '.join(re.findall(_QUOTED_TEXT, text))}]"


def explain_yaml_error(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Return the line of *error* in *text*, counted from 1, and the message with a fix."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    before = text.count("\n", 0, getattr(error, "position", 0))
    line = 1 + (mark.line if mark is not None else before)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    lines = text.splitlines()
    around = "\n".join(lines[max(0, line - 2) : line])
    if _TEMPLATE_MARK_PATTERN.search(around):
        return line, f"{problem}: {_TEMPLATE_HINT}"
    number, hint = (
        _find_slip(lines, line) or _find_foreign_text(lines) or _find_open_quote(lines[:line], problem) or (line, "")
    )
    if hint:
        return number, f"{problem}: {hint}"
    if "mapping values" in problem and (bare := _find_line_without_colon(lines[: line - 1])):
        return bare, f"{problem}: this line has no colon: write `name: value`, or remove it"
    symptoms = problem + ("\\t" if re.search(r"^ *\t", around, re.MULTILINE) else "")
    return line, f"{problem}: {next((fix for sign, fix in _HINTS_BY_ERROR if sign in symptoms), _INDENTATION_HINT)}"


def _find_slip(lines: list[str], line: int) -> tuple[int, str] | None:
    """Return the number of *line* or of the one before it, with the fix, if that line has a common mistake."""
    for number in range(max(1, line - 1), min(line, len(lines)) + 1):
        if (odd := INVISIBLE_PATTERN.search(lines[number - 1])) is not None:
            return number, describe_invisible_character(odd[0])
        for pattern, fix in _SLIP_HINTS:
            if (slip := pattern.match(lines[number - 1])) is not None:
                return number, fix(slip)
    return None


def _find_line_without_colon(lines: list[str]) -> int:
    """Return the number of the last nonempty line if it is unindented text without a colon, else 0."""
    number = next((number for number in range(len(lines), 0, -1) if lines[number - 1].strip()), 0)
    text = lines[number - 1] if number else "#"
    return 0 if text[0] in " #-\"'[{|>" or ":" in text or text.startswith("...") else number


def _find_foreign_text(lines: list[str]) -> tuple[int, str] | None:
    for number, text in enumerate(lines, 1):
        for pattern, hint in FOREIGN_TEXT_HINTS:
            if pattern.search(text):
                return number, hint
    return None


def _find_open_quote(lines: list[str], problem: str) -> tuple[int, str] | None:
    """Return the last of *lines* with an unclosed quote, and the fix.

    Only the last `_MAX_OPEN_QUOTE_LINES` lines are searched, unless the text ends within the quote.
    """
    first_line = 0 if "end of stream" in problem else len(lines) - _MAX_OPEN_QUOTE_LINES
    for number in range(len(lines), max(first_line, 0), -1):
        text = lines[number - 1]
        if _CURLY_QUOTE_PATTERN.match(text):
            return number, "these are typographic quotes: write plain quotes"
        if '"' in _CLOSED_QUOTE_PATTERN.sub("", text):
            return number, "close the quote"
    return None


def describe_invisible_character(character: str) -> str:
    """Return the message for *character*, which looks like a space or is invisible."""
    return f"contains U+{ord(character):04X}, an invisible character or special space: write plain spaces, or none"


def find_oddities(node: yaml.Node, above: int) -> Iterator[tuple[int, str]]:
    """Yield the line, counted from *above*, and the message for valid YAML that is probably a mistake."""
    document_problem = _find_document_problem(node, above) if isinstance(node, yaml.MappingNode) else None
    yield from _iterate_oddities(node, above) if document_problem is None else (document_problem,)


def _find_document_problem(node: yaml.MappingNode, above: int) -> tuple[int, str] | None:
    """Return a problem of the document as a whole, which would otherwise be reported for many of its lines."""
    lines: dict[str, list[int]] = {}
    for key, _ in node.value:
        lines.setdefault(str(key.value), []).append(above + key.start_mark.line)
    if all(len(lines.get(key, ())) > 1 for key in _TOP_LEVEL_KEYS):
        second_object_line = min(lines[key][1] for key in _TOP_LEVEL_KEYS)
        return second_object_line, "another object begins here: write a line `---` above it"
    if "name" in lines and any(str(key.value) == "metadata" and value.value == "" for key, value in node.value):
        return lines["metadata"][0], _LOST_INDENTATION_HINT
    return None


def _iterate_oddities(node: yaml.Node, above: int) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            yield from _iterate_oddities(inner, above)
    elif isinstance(node, yaml.MappingNode):
        line_by_name: dict[str, int] = {}
        for key, inner in node.value:
            name, line = str(key.value), above + key.start_mark.line
            if not _is_written_in(key, node):
                continue
            if name != _MERGE_KEY and name in line_by_name:
                first_line = line_by_name[name]
                yield line, f"duplicate key `{name}`, first on line {first_line}: merge both into one"
            line_by_name.setdefault(name, line)
            yield from _find_invisible_characters(key, above, name)
            yield from _iterate_oddities(inner, above)
    else:
        yield from _find_invisible_characters(node, above, f"{node.value[:1]}{node.value[-1:]}")


def _is_written_in(key: yaml.Node, node: yaml.Node) -> bool:
    """Return whether *key* is written in *node*, and not merged from another node."""
    start, at, end = ((mark.line, mark.column) for mark in (node.start_mark, key.start_mark, node.end_mark))
    return start <= at < end


def _find_invisible_characters(node: yaml.Node, above: int, text: str) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.ScalarNode) and not node.style and (odd := INVISIBLE_PATTERN.search(text)) is not None:
        yield above + node.start_mark.line, describe_invisible_character(odd[0])
