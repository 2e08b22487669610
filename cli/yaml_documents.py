"""YAML as Kubernetes reads it, with the line of each document, and of each mistake what probably is meant.

A parser stops at the first mistake. So a stream with one is taken apart at its ``---``, and the documents that can be
read count.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from cli.yaml_mistakes import mistake, oddities

Tell = Callable[[int, str], None]
"""Hears a line, and what is wrong with it."""
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_END: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_FEWEST_PARTS: Final = 100_000
_PARTS_PER_LETTER: Final = 10
DEEPEST: Final = 100
_DIGITS: Final = 1000
_PIT: Final = 10 * DEEPEST
"""How deep somebody may get whom nobody understands, and is told of by `DEEPEST`."""
_OPENED: Final = re.compile(r"[\[{](?![^\[\]{}\n]*[\]}])")
"""A bracket that is not closed on its line, before another is opened."""
_STAIRS: Final = re.compile(r"(?:[-?] ){1000}")
Keys: TypeAlias = tuple[str | int, ...]
"""Where a field stands in its document."""


_TEXTS: Final = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")


class _Loader(_BASE):  # type: ignore[misc] # whichever of the two there is
    """The safe loader; what looks like a date stays text, as in Kubernetes, and so does `=`."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in some if tag not in _TEXTS]
    for first, some in _BASE.yaml_implicit_resolvers.items()
}


def _whole_number(loader: Any, node: yaml.ScalarNode) -> int | str:  # noqa: ANN401 - as above
    """Read what is no number of any field as the text that it is: nobody counts so far, and Python does not either."""
    return node.value if len(node.value) > _DIGITS else loader.construct_yaml_int(node)  # type: ignore[no-any-return]


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def read_yaml(text: str, tell: Tell) -> Iterator[tuple[int, Any]]:
    """Iterate over the documents in *text*, with their first line; what cannot be read is told, and left out."""
    for first, value, _ in _read(text, tell):
        yield first, value


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """One document, and where everything in it stands."""

    text: str
    """As it is written, comments included."""
    value: Any
    lines: Mapping[Keys, int]
    """On which lines the keys of its fields stand, counted from 1."""
    plain: Mapping[Keys, str]
    """How values are written that are read as numbers, truth values or nothing."""


def read_marked(text: str, tell: Tell) -> Iterator[Marked]:
    """Iterate over the documents in *text*; what is no YAML, or hardly meant as it reads, is told, and left out."""
    lines = text.splitlines()
    for first, value, node in _read(text, tell):
        above = first - 1 - node.start_mark.line
        if odd := dict.fromkeys(oddities(node, above + 1)):
            for line, why in odd:
                tell(line, why)
            continue
        # A block ends where the next thing begins.
        last = above + node.end_mark.line + (node.end_mark.column > 0)
        yield Marked(
            text="\n".join(lines[first - 1 : last]).rstrip() + "\n",
            value=value,
            lines=dict(_lines(node, (), above + 1)),
            plain=dict(_plain(node, ())),
        )


def _plain(node: yaml.Node, path: Keys) -> Iterator[tuple[Keys, str]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _plain(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield from _plain(value, (*path, place))
    elif not node.tag.endswith(":str"):
        yield path, node.value


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
        line, what = mistake(text, error)
        tell(first + line, what)
        return []


def _refuse_pit(text: str) -> None:
    """Refuse what is nested so deeply that a reader would not come up again; brackets within texts are none.

    Raises:
        yaml.YAMLError: with the place.
    """
    depth, opened = 0, len(_OPENED.findall(text))
    if opened <= _PIT and _STAIRS.search(text) is None:
        return
    for event in yaml.parse(text, Loader=_BASE):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _PIT:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=event.start_mark)  # type: ignore[arg-type] # as above


def _documents(text: str, first: int) -> Iterator[tuple[int, Any, yaml.Node]]:
    most = max(_FEWEST_PARTS, _PARTS_PER_LETTER * len(text))  # a few anchors may stand for billions
    _refuse_pit(text)
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
