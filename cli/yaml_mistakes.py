"""What is wrong with a text that is no YAML, or is YAML and hardly meant so: the line, and what probably is meant."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import yaml

_QUOTED: Final = r"""(?:"[^"]*"|'[^']*')"""
_TEMPLATE: Final = "this is a template: render it first, with `helm template` for example"
_MARKS: Final = re.compile(r"\{\{|\{%|%\{|<%")
"""How templates begin what is to be filled in: of Helm, Jinja, Terraform and Ruby."""
_SEPARATOR: Final = "write three hyphens, `---`, at the beginning of a line between two documents"
_SHELL: Final = "this is a line for a shell: remove it"
_LEFT_OUT: Final = "`...` stands for what was left out: write that, or remove the line"
_FIXES: Final = (
    ("\\t", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "quote a value that holds `: `, or correct the indentation of this line"),
    ("anchors repeat", "write the parts out"),
    ("nested too deeply", "no object of Kubernetes is: remove it"),
    ("undefined alias", "quote a value that begins with *; what an anchor of another document holds, write out"),
    ("alphabetic or numeric character", "quote a value that begins with * or &"),
    ("cannot start any token", "quote a value that begins with @, ` or %"),
    ("expected node content", "close the bracket, or write the value"),
    ("control characters", "remove the character"),
    ("end of stream", "close the quote or bracket"),
    ("expected ',' or", "close the quote or bracket"),
    ("could not find expected ':'", "write `name: value`: here, or above, a line has no colon"),
    ("unhashable key", "quote a value that begins with {"),
    ("could not determine a constructor", "remove the tag, the word that begins with !"),
)
_INDENT: Final = "correct the indentation: a key stands under the other keys of its object, with `: ` behind it"
_SLIPS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (
        re.compile(rf"^ *- +({_QUOTED}(?: *,? *{_QUOTED})+) *,? *$"),
        lambda slip: (
            f"several values in one item of a list: write {_listed(slip[1])} in its place, or each on a line of its own"
        ),
    ),
    (
        re.compile(rf"^ *-? *([\w./-]+): +({_QUOTED}(?: *,? *{_QUOTED})+) *,? *$"),
        lambda slip: f"several values without brackets: write `{slip[1]}: {_listed(slip[2])}`",
    ),
    (
        re.compile(r"^.*<<[-~]? *['\"]?\w+['\"]?.*$"),
        lambda _: (
            "this is a line for a shell, or for Terraform: leave out all but what stands between it and its last word"
        ),
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
        lambda _: "several fields on one line: write each on a line of its own, or all of them within { and }",
    ),
    (re.compile(r"^ *-? *([\w./-]+) *= *([^=\s]+) *$"), lambda slip: f"no `=`: write `{slip[1]}: {slip[2]}`"),
    (
        re.compile(r"^ *-? *(\w+):([^\s:/][^\s:]*) *$"),
        lambda slip: f"no space behind the colon: write `{slip[1]}: {slip[2]}`",
    ),
    (re.compile(r"^ *(?:- *)?(?:\.\.\.+|\u2026) *$"), lambda _: _LEFT_OUT),
    (re.compile(r"^ *(?:-{4,}|--|[\u2012-\u2015]-?|[=_*]{2,}) *$"), lambda _: _SEPARATOR),
    (re.compile(r"^ +--- *$"), lambda _: _SEPARATOR),
    (re.compile(r"^ *[\u2012-\u2015\u2212] "), lambda _: "this is a dash, no hyphen: write a plain `-`"),
    (re.compile(r"^ *[*\u2022\u25aa\u25cf\u25e6\u00b7] +[\w\"']"), lambda _: "this is a bullet: write a plain `-`"),
    (
        re.compile(r"^[^#\"'\[{]*[\[{][^\"']*(\$\{[^\"'{}]*\})"),
        lambda slip: f'within {{ }} or [ ] this wants quotes: write "{slip[1]}", or what it stands for',
    ),
    (re.compile(r"^[^#]*\uff1a"), lambda _: "this is a wide colon: write a plain `: `"),
)
"""What people wrote in articles, and others copied."""
_WORD: Final = r"(?:kubectl|helm|cat|type|less|vim?|nano|echo|export|aws|eksctl|curl|sudo|terraform|k|oc)\b"
"""What a line for a shell begins with."""
ALIEN: Final = (
    (re.compile(r"(?m)^ *(?:```|~~~)"), "this is Markdown: leave out all but what stands between two fences"),
    (
        re.compile(r"(?m)^ *</?(?:pre|code|div|span|p|html|br)\b|&(?:quot|lt|gt|amp|nbsp|#x?[0-9a-fA-F]+);"),
        "this is HTML: write the text of it, as a browser shows it",
    ),
    (
        re.compile(r"""(?m)^(?:resource|module|data|locals|variable)\b.*\{ *$"""),
        "this is Terraform: write the manifest as YAML",
    ),
    (re.compile(r"(?m)^\$ "), _SHELL),
    (
        re.compile(rf"(?m)^(?:[%\u276f\u279c] ?|PS [A-Z]:[^>\n]*> ?|\[?\w{{1,40}}@[^$#%\n]{{1,200}}[$#%] ?){_WORD}"),
        _SHELL,
    ),
    (re.compile(r"(?m)^(?:kubectl|helm|cat|echo|export|aws|eksctl|curl|sudo|terraform) [^:\n]*$"), _SHELL),
    (re.compile(r"(?m)^ *(?://|/\*)"), "this is a comment of another language: write # before it, or remove it"),
    (re.compile(r"(?m)^ *> ?\w[\w.]*:"), "this is a quotation, as in a letter: remove the > before each line"),
    (re.compile(r"(?m)\A *1(?:[.:|)]? *\| *|[.:|)]?[ \t]+)\w"), "the numbers of the lines came along: remove them"),
    (
        re.compile(r"(?m)^\+ *-? *[\w\"]"),
        "this is a difference: remove the lines with -, and the sign + before the others",
    ),
)
"""What is no YAML at all, by a line of it."""
_CURLY: Final = re.compile("^[^#]*(?:[\u201c-\u201f]|(?<!\\w)\u2018|\u2019(?!\\w))")
_PAIRS: Final = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|(?:^|\s)#.*$""")
ODD: Final = re.compile("[\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]")
"""Spaces that are none, and what nobody sees: pages in a browser are full of them."""
_MERGE: Final = "<<"
_FLAT: Final = (
    "what belongs to `metadata` stands beside it, as if the indentation were lost: write two spaces before it, and "
    "before all that belongs to another field"
)
_TOP: Final = ("apiVersion", "kind")
_NEAR: Final = 12
"""Lines within which a quote that is open is the reason."""


def _listed(text: str) -> str:
    return f"[{', '.join(re.findall(_QUOTED, text))}]"


def mistake(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Answer the line of *error* in *text*, counted from 1, and the words."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    before = text.count("\n", 0, getattr(error, "position", 0))
    line = 1 + (mark.line if mark is not None else before)
    said = getattr(error, "problem", None) or str(error).splitlines()[0]
    lines = text.splitlines()
    around = "\n".join(lines[max(0, line - 2) : line])
    if _MARKS.search(around):
        return line, f"{said}: {_TEMPLATE}"
    number, why = _slip(lines, line) or _alien(lines) or _open(lines[:line], said) or (line, "")
    if why:
        return number, f"{said}: {why}"
    if "mapping values" in said and (bare := _bare(lines[: line - 1])):
        return bare, f"{said}: this line has no colon: write `name: value`, or remove it"
    known = said + ("\\t" if re.search(r"^ *\t", around, re.MULTILINE) else "")
    return line, f"{said}: {next((fix for sign, fix in _FIXES if sign in known), _INDENT)}"


def _slip(lines: list[str], line: int) -> tuple[int, str] | None:
    """Answer what is copied wrongly on *line*, or on the one before it."""
    for number in range(max(1, line - 1), min(line, len(lines)) + 1):
        if (odd := ODD.search(lines[number - 1])) is not None:
            return number, unseen(odd[0])
        for pattern, fix in _SLIPS:
            if (slip := pattern.match(lines[number - 1])) is not None:
                return number, fix(slip)
    return None


def _bare(lines: list[str]) -> int:
    """Answer the number of the last of *lines* if it is words at its margin, which no key is; 0 if it is not."""
    number = next((number for number in range(len(lines), 0, -1) if lines[number - 1].strip()), 0)
    text = lines[number - 1] if number else "#"
    return 0 if text[0] in " #-\"'[{|>" or ":" in text or text.startswith("...") else number


def _alien(lines: list[str]) -> tuple[int, str] | None:
    for number, text in enumerate(lines, 1):
        for pattern, why in ALIEN:
            if pattern.search(text):
                return number, why
    return None


def _open(lines: list[str], said: str) -> tuple[int, str] | None:
    """Answer the last of *lines* with a quote that nobody closes; it is near, unless the text just ends."""
    least = 0 if "end of stream" in said else len(lines) - _NEAR
    for number in range(len(lines), max(least, 0), -1):
        text = lines[number - 1]
        if _CURLY.match(text):
            return number, "a word processor made these quotes: write plain ones"
        if '"' in _PAIRS.sub("", text):
            return number, "close the quote"
    return None


def unseen(character: str) -> str:
    """Say what to do about *character*, which looks like a space or like nothing."""
    return f"holds U+{ord(character):04X}, which looks like a space, or like nothing: write plain spaces, or none"


def oddities(node: yaml.Node, above: int) -> Iterator[tuple[int, str]]:
    """Iterate over what can be read and is hardly meant so: the line, counted from *above*, and the words."""
    whole = _whole(node, above) if isinstance(node, yaml.MappingNode) else None
    yield from _oddities(node, above) if whole is None else (whole,)


def _whole(node: yaml.MappingNode, above: int) -> tuple[int, str] | None:
    """Answer what is wrong with a document as a whole, which would be told of many of its lines."""
    lines: dict[str, list[int]] = {}
    for key, _ in node.value:
        lines.setdefault(str(key.value), []).append(above + key.start_mark.line)
    if all(len(lines.get(key, ())) > 1 for key in _TOP):
        begins = min(lines[key][1] for key in _TOP)
        return begins, "another object begins here: write `---` on a line of its own above it"
    if "name" in lines and any(str(key.value) == "metadata" and value.value == "" for key, value in node.value):
        return lines["metadata"][0], _FLAT
    return None


def _oddities(node: yaml.Node, above: int) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            yield from _oddities(inner, above)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, inner in node.value:
            name, line = str(key.value), above + key.start_mark.line
            if not _stands_in(key, node):
                continue
            if name != _MERGE and name in seen:
                yield (
                    line,
                    f"`{name}` stands here again, first on line {seen[name]}: write one of them, with both values",
                )
            seen.setdefault(name, line)
            yield from _odd_scalar(key, above, name)
            yield from _oddities(inner, above)
    else:
        yield from _odd_scalar(node, above, f"{node.value[:1]}{node.value[-1:]}")


def _stands_in(key: yaml.Node, node: yaml.Node) -> bool:
    """Whether *key* is written there, and not merged from elsewhere."""
    start, at, end = ((mark.line, mark.column) for mark in (node.start_mark, key.start_mark, node.end_mark))
    return start <= at < end


def _odd_scalar(node: yaml.Node, above: int, text: str) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.ScalarNode) and not node.style and (odd := ODD.search(text)) is not None:
        yield above + node.start_mark.line, unseen(odd[0])
