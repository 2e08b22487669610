"""YAML as Kubernetes reads it, with the line of each document, and of each mistake what probably is meant.

A parser stops at the first mistake. So a stream with one is taken apart at its ``---``, and the documents that can be
read count.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final, TypeAlias

import yaml

Tell = Callable[[int, str], None]
"""Hears a line, and what is wrong with it."""
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_END: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_TEMPLATE: Final = "this is a template: render it first, with `helm template` for example"
_FIXES: Final = (
    ("\\t", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "quote a value that holds `: `, or correct the indentation of this line"),
    ("anchors repeat", "write the parts out"),
    ("undefined alias", "quote a value that begins with *"),
    ("cannot start any token", "quote a value that begins with @, ` or %"),
    ("expected node content", "close the bracket, or write the value"),
    ("control characters", "remove the character"),
    ("end of stream", "close the quote or bracket"),
    ("expected ',' or", "close the quote or bracket"),
    ("unhashable key", "quote a value that begins with {"),
    ("could not determine a constructor", "remove the tag, the word that begins with !"),
)
_SLIPS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (
        re.compile(r"""^ *- +((?:"[^"]*"|'[^']*')(?: *, *(?:"[^"]*"|'[^']*'))+) *$"""),
        lambda slip: (
            f"several values in one item of a list: write [{slip[1]}] in its place, or each on a line of its own"
        ),
    ),
    (
        re.compile(r"""^ *-? *([\w./-]+): +((?:"[^"]*"|'[^']*')(?: *, *(?:"[^"]*"|'[^']*'))+) *$"""),
        lambda slip: f"several values without brackets: write `{slip[1]}: [{slip[2]}]`",
    ),
    (
        re.compile(r"^.*<<-? *['\"]?\w+['\"]?.*$"),
        lambda _: "this is a line for a shell: leave out all but what stands between it and its last word",
    ),
    (
        re.compile(r"^ *-? *(key): +([^\s:#]+): +([^\s#]+) *$"),
        lambda slip: (
            f"two colons on one line: write `{slip[1]}: {slip[2]}`, and below it `values: [{slip[3]}]` for example"
        ),
    ),
)
"""What people wrote in articles, and others copied."""
_FEWEST_PARTS: Final = 100_000
_PARTS_PER_LETTER: Final = 10
DEEPEST: Final = 100
Keys: TypeAlias = tuple[str | int, ...]
"""Where a field stands in its document."""
_INDENT: Final = "correct the indentation: a key stands under the other keys of its object, with `: ` behind it"


class _Loader(_BASE):  # type: ignore[misc] # whichever of the two there is
    """The safe loader; what looks like a date stays text, as in Kubernetes."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in some if tag != "tag:yaml.org,2002:timestamp"]
    for first, some in _BASE.yaml_implicit_resolvers.items()
}


def read_yaml(text: str, tell: Tell) -> Iterator[tuple[int, Any]]:
    """Iterate over the documents in *text*, with their first line; what cannot be read is told, and left out."""
    for first, value, _ in _read(text, tell):
        yield first, value


def read_marked(text: str, tell: Tell) -> Iterator[tuple[str, Any, dict[Keys, int]]]:
    """Iterate over the documents in *text*: as they are written, what they say, and the line of each field."""
    lines = text.splitlines()
    for first, value, node in _read(text, tell):
        above = first - 1 - node.start_mark.line
        # A block ends where the next thing begins.
        last = above + node.end_mark.line + (node.end_mark.column > 0)
        yield "\n".join(lines[first - 1 : last]).rstrip() + "\n", value, dict(_lines(node, (), above + 1))


def _lines(node: yaml.Node, path: Keys, above: int) -> Iterator[tuple[Keys, int]]:
    """Iterate over the paths in *node*, with the lines on which their keys stand."""
    if not path:
        yield path, above + node.start_mark.line
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), above + key.start_mark.line
            yield from _lines(value, (*path, key.value), above)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield (*path, place), above + value.start_mark.line
            yield from _lines(value, (*path, place), above)


def _read(text: str, tell: Tell) -> list[tuple[int, Any, yaml.Node]]:
    try:
        return list(_documents(text, 0))
    except yaml.YAMLError:
        return [one for first, part in _parts(text) for one in _part(first, part, tell)]


def _is_tree(value: object, most: int) -> bool:
    """Whether *value*, written out, has at most as many parts as a person could have meant."""
    left, stack = most, [(value, 0)]
    while stack and left:
        part, depth = stack.pop()
        if depth > DEEPEST:
            return False
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        stack.extend((one, depth + 1) for one in inner)
        left -= 1
    return not stack


def _parts(text: str) -> Iterator[tuple[int, str]]:
    starts = [0, *(match.start() for match in _END.finditer(text)), len(text)]
    first = 0
    for start, end in pairwise(starts):
        yield first, text[start:end]
        first += text.count("\n", start, end)


def _part(first: int, text: str, tell: Tell) -> list[tuple[int, Any, yaml.Node]]:
    try:
        return list(_documents(text, first))
    except yaml.YAMLError as error:
        line, what = _mistake(text, error)
        tell(first + line, what)
        return []


def _documents(text: str, first: int) -> Iterator[tuple[int, Any, yaml.Node]]:
    most = max(_FEWEST_PARTS, _PARTS_PER_LETTER * len(text))  # a few anchors may stand for billions
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            if not _is_tree(value, most):
                raise yaml.constructor.ConstructorError(
                    None, None, "its anchors repeat it without end", node.start_mark
                )
            yield first + node.start_mark.line + 1, value, node
    finally:
        loader.dispose()


def _mistake(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Answer the line, counted from 1, and the words."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    before = text.count("\n", 0, getattr(error, "position", 0))
    line = 1 + (mark.line if mark is not None else before)
    said = getattr(error, "problem", None) or str(error).splitlines()[0]
    lines = text.splitlines()
    around = "\n".join(lines[max(0, line - 2) : line])
    if "{{" in around:
        return line, f"{said}: {_TEMPLATE}"
    for number in range(max(1, line - 1), min(line, len(lines)) + 1):
        for pattern, fix in _SLIPS:
            if (slip := pattern.match(lines[number - 1])) is not None:
                return number, f"{said}: {fix(slip)}"
    known = said + ("\\t" if re.search(r"^ *\t", around, re.MULTILINE) else "")
    return line, f"{said}: {next((fix for sign, fix in _FIXES if sign in known), _INDENT)}"
