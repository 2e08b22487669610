"""Read YAML as Kubernetes does, with the line of each document, and with a likely fix for each error.

A parser stops at the first error. If a stream has an error, it is split at each ``---``, and the valid documents are
returned.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from cli.inputs.yaml_mistakes import explain_yaml_error, find_oddities

LineErrorReporter = Callable[[int, str], None]
"""Called with a line number and an error message."""
_BASE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SEPARATOR_PATTERN: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_MIN_PARTS_LIMIT: Final = 100_000
_MAX_PARTS_PER_CHARACTER: Final = 10
MAX_DEPTH: Final = 100
_MAX_DIGITS: Final = 1000
_MAX_PARSER_DEPTH: Final = 10 * MAX_DEPTH
"""Depth at which parsing is refused; values deeper than `MAX_DEPTH` are refused later, with a better message."""
_OPEN_BRACKET_PATTERN: Final = re.compile(r"[\[{](?![^\[\]{}\n]*[\]}])")
"""An opening bracket that is not closed on its line before another one is opened."""
_DEEP_BLOCK_PATTERN: Final = re.compile(r"(?:[-?] ){1000}")
DocumentPath: TypeAlias = tuple[str | int, ...]
"""The path of a field in its document."""
_TEXT_TAGS: Final = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


class _Loader(_BASE_LOADER):  # type: ignore[misc] # whichever of the two there is
    """The safe loader, except that dates and `=` remain text, as in Kubernetes."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXT_TAGS]
    for first, resolvers in _BASE_LOADER.yaml_implicit_resolvers.items()
}


def _construct_integer(loader: Any, node: yaml.ScalarNode) -> int | str:  # noqa: ANN401 - as above
    """Construct an integer; a number with more than `_MAX_DIGITS` digits remains text, because Python refuses it."""
    return node.value if len(node.value) > _MAX_DIGITS else loader.construct_yaml_int(node)  # type: ignore[no-any-return]


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_integer)


def read_yaml(text: str, tell: LineErrorReporter) -> Iterator[tuple[int, Any]]:
    """Yield the documents in *text*, each with its first line; documents with errors are reported and omitted."""
    for first, value, _ in _read_documents(text, tell):
        yield first, value


class MarkedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document with the positions of its fields."""

    text: str
    """As written, with comments."""
    value: Any
    lines: Mapping[DocumentPath, int]
    """Line of the key of each field, counted from 1."""
    plain: Mapping[DocumentPath, str]
    """The text of values that are read as numbers, booleans or null."""


def read_marked_documents(text: str, tell: LineErrorReporter) -> Iterator[MarkedDocument]:
    """Yield the documents in *text*; invalid YAML and likely mistakes are reported and omitted."""
    lines = text.splitlines()
    for first, value, node in _read_documents(text, tell):
        above = first - 1 - node.start_mark.line
        if odd := dict.fromkeys(find_oddities(node, above + 1)):
            for line, message in odd:
                tell(line, message)
            continue
        # A block ends where the next node begins.
        last = above + node.end_mark.line + (node.end_mark.column > 0)
        yield MarkedDocument(
            text="\n".join(lines[first - 1 : last]).rstrip() + "\n",
            value=value,
            lines=dict(_iterate_lines(node, (), above + 1)),
            plain=dict(_iterate_plain_values(node, ())),
        )


def _iterate_plain_values(node: yaml.Node, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _iterate_plain_values(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield from _iterate_plain_values(value, (*path, place))
    elif not node.tag.endswith(":str"):
        yield path, node.value


def _iterate_lines(node: yaml.Node, path: DocumentPath, above: int) -> Iterator[tuple[DocumentPath, int]]:
    """Yield the paths in *node*, with the lines of their keys."""
    if not path:
        yield path, above + node.start_mark.line
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), above + key.start_mark.line
            yield from _iterate_lines(value, (*path, key.value), above)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield (*path, place), above + value.start_mark.line
            yield from _iterate_lines(value, (*path, place), above)


def _read_documents(text: str, tell: LineErrorReporter) -> list[tuple[int, Any, yaml.Node]]:
    try:
        return list(_parse_documents(text, 0))
    except yaml.YAMLError:
        return [document for first, part in _split_documents(text) for document in _read_part(first, part, tell)]


def _is_within_limits(value: object, max_parts: int) -> bool:
    """Return whether *value*, anchors expanded, has at most *max_parts* parts and `MAX_DEPTH` levels."""
    remaining_parts, stack = max_parts, [(value, 0)]
    while stack and remaining_parts:
        part, depth = stack.pop()
        if depth > MAX_DEPTH:
            return False
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        stack.extend((child, depth + 1) for child in inner)
        remaining_parts -= 1
    return not stack


def _split_documents(text: str) -> Iterator[tuple[int, str]]:
    starts = [0, *(match.start() for match in _SEPARATOR_PATTERN.finditer(text)), len(text)]
    first = 0
    for start, end in pairwise(starts):
        yield first, text[start:end]
        first += text.count("\n", start, end)


def _read_part(first: int, text: str, tell: LineErrorReporter) -> list[tuple[int, Any, yaml.Node]]:
    try:
        return list(_parse_documents(text, first))
    except yaml.YAMLError as error:
        line, message = explain_yaml_error(text, error)
        tell(first + line, message)
        return []


def _check_depth(text: str) -> None:
    """Check that *text* is not nested so deeply that the parser would overflow its stack.

    Brackets within strings do not count.

    Raises:
        yaml.YAMLError: with the position.
    """
    depth, open_brackets = 0, len(_OPEN_BRACKET_PATTERN.findall(text))
    if open_brackets <= _MAX_PARSER_DEPTH and _DEEP_BLOCK_PATTERN.search(text) is None:
        return
    for event in yaml.parse(text, Loader=_BASE_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_PARSER_DEPTH:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=event.start_mark)  # type: ignore[arg-type] # as above


def _parse_documents(text: str, first: int) -> Iterator[tuple[int, Any, yaml.Node]]:
    max_parts = max(_MIN_PARTS_LIMIT, _MAX_PARTS_PER_CHARACTER * len(text))  # few anchors can expand to billions
    _check_depth(text)
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            if not _is_within_limits(value, max_parts):
                raise yaml.constructor.ConstructorError(None, None, "its anchors repeat endlessly", node.start_mark)
            yield first + node.start_mark.line + 1, value, node
    finally:
        loader.dispose()
