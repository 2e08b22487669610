"""What a Python file defines: names with their kind, first lines of docstrings, banned words in its texts."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.unit.conventions.rules import BANNED_TEXT, Name

_CONSTANT: Final = re.compile(r"_*[A-Z][A-Z0-9_]*")
_ENUMS: Final = frozenset(("Enum", "Flag", "IntEnum", "IntFlag", "StrEnum"))
_ACCESSORS: Final = frozenset(("cached_property", "deleter", "getter", "overload", "property", "setter"))
_MAX_LINES_OF_SHORT_LOOP: Final = 2


def scan_file(path: str, text: str, *, skips_words: bool = False) -> list[Name]:
    """Return what the file at *path* with the source *text* defines; with *skips_words*, no banned words."""
    scan = _Scan(path)
    scan.run(ast.parse(text))
    if not skips_words and BANNED_TEXT.search(text):
        scan.names += _find_banned_words(path, text, scan.docstrings, scan.strings)
    return scan.names


class _Scan:
    """One pass over a syntax tree. A method `add_*` records a node and returns the children that are left to visit."""

    def __init__(self, path: str) -> None:
        """Start without names."""
        self.path = path
        self.names: list[Name] = []
        self.docstrings: list[ast.expr] = []
        self.strings: list[ast.expr] = []
        """String literals that are no docstrings."""
        self._kind_by_target: dict[ast.expr, str] = {}
        """Fields and constants; every other target is a variable."""

    def run(self, tree: ast.Module) -> None:
        """Record all names of *tree*."""
        self._add_constants(tree.body)
        unvisited: list[ast.AST] = [*tree.body]
        while unvisited:
            node = unvisited.pop()
            add = _ADD_METHODS.get(type(node))
            unvisited += _list_children(node) if add is None else add(self, node)

    def _add(self, kind: str, name: str, node: ast.AST) -> None:
        self.names.append(Name(kind=kind, name=name, path=self.path, line=getattr(node, "lineno", 0)))

    def _add_constants(self, body: Iterable[ast.stmt]) -> None:
        for target, value in _list_assignments(body):
            if _CONSTANT.fullmatch(target.id):
                self._kind_by_target[target] = "number" if _is_number(value) else "constant"

    def add_name(self, node: ast.Name) -> Sequence[ast.AST]:
        """Record the name if it is assigned."""
        if isinstance(node.ctx, ast.Store):
            self._add(self._kind_by_target.get(node, "variable"), node.id, node)
        return ()

    def add_attribute(self, node: ast.Attribute) -> Sequence[ast.AST]:
        """Record a field if it is assigned to `self`."""
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self":
            self._add("field", node.attr, node)
        return (node.value,)

    def add_parameter(self, node: ast.arg) -> Sequence[ast.AST]:
        """Record a parameter."""
        self._add("parameter", node.arg, node)
        return ()

    def add_string(self, node: ast.Constant | ast.JoinedStr) -> Sequence[ast.AST]:
        """Remember where a string is."""
        if isinstance(node, ast.JoinedStr) or isinstance(node.value, str):
            self.strings.append(node)
        return ()

    def add_statement(self, node: ast.Expr) -> Sequence[ast.AST]:
        """Record a docstring, of a field too, by its first line."""
        if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
            return (node.value,)
        self.docstrings.append(node.value)
        self._add("docstring", node.value.value.strip().partition("\n")[0], node)
        return ()

    def add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Sequence[ast.AST]:
        """Record a function, unless it is a property or Python chose its name."""
        is_special = node.name.startswith("__") and node.name.endswith("__")
        if not is_special and _ACCESSORS.isdisjoint(map(_get_last_name, node.decorator_list)):
            self._add("function", node.name, node)
        return [*node.decorator_list, *_list_children(node.args), *node.body]

    def add_class(self, node: ast.ClassDef) -> Sequence[ast.AST]:
        """Record a class; the targets in its body are fields."""
        self._add("class", node.name, node)
        self._kind_by_target |= {target: "field" for target, _ in _list_assignments(node.body)}
        if _ENUMS.isdisjoint(map(_get_last_name, node.bases)):
            self._add_constants(node.body)
        return _list_children(node)

    def add_lambda(self, node: ast.Lambda) -> Sequence[ast.AST]:
        """Leave out the parameters: a lambda is short."""
        return (node.body,)

    def add_comprehension(self, node: ast.comprehension) -> Sequence[ast.AST]:
        """Leave out the targets: a comprehension is short."""
        return (node.iter, *node.ifs)

    def add_loop(self, node: ast.For | ast.AsyncFor) -> Sequence[ast.AST]:
        """Leave out the target of a loop with a body of one line."""
        is_short = (node.end_lineno or 0) - node.lineno < _MAX_LINES_OF_SHORT_LOOP
        return [child for child in _list_children(node) if child is not node.target or not is_short]

    def add_annotated(self, node: ast.AnnAssign) -> Sequence[ast.AST]:
        """Leave out the annotation."""
        return (node.target, node.value) if node.value else (node.target,)

    def add_import(self, node: ast.alias) -> Sequence[ast.AST]:
        """Record what `import ... as` binds."""
        if node.asname:
            self._add("variable", node.asname, node)
        return ()

    def add_capture(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> Sequence[ast.AST]:
        """Record what `except ... as` and patterns of `match` bind."""
        if node.name:
            self._add("variable", node.name, node)
        return _list_children(node)

    def add_mapping_pattern(self, node: ast.MatchMapping) -> Sequence[ast.AST]:
        """Record what a pattern binds to the remaining items."""
        if node.rest:
            self._add("variable", node.rest, node)
        return _list_children(node)


_ADD_METHODS: Final[Mapping[type[ast.AST], Callable[[_Scan, Any], Sequence[ast.AST]]]] = {
    ast.AnnAssign: _Scan.add_annotated,
    ast.AsyncFor: _Scan.add_loop,
    ast.AsyncFunctionDef: _Scan.add_function,
    ast.Attribute: _Scan.add_attribute,
    ast.ClassDef: _Scan.add_class,
    ast.Constant: _Scan.add_string,
    ast.ExceptHandler: _Scan.add_capture,
    ast.Expr: _Scan.add_statement,
    ast.For: _Scan.add_loop,
    ast.FunctionDef: _Scan.add_function,
    ast.JoinedStr: _Scan.add_string,
    ast.Lambda: _Scan.add_lambda,
    ast.MatchAs: _Scan.add_capture,
    ast.MatchMapping: _Scan.add_mapping_pattern,
    ast.MatchStar: _Scan.add_capture,
    ast.Name: _Scan.add_name,
    ast.alias: _Scan.add_import,
    ast.arg: _Scan.add_parameter,
    ast.comprehension: _Scan.add_comprehension,
}


def _list_children(node: ast.AST) -> list[ast.AST]:
    children: list[ast.AST] = []
    for value in vars(node).values():
        if isinstance(value, ast.AST):
            children.append(value)
        elif isinstance(value, list):
            children += [item for item in value if isinstance(item, ast.AST)]
    return children


def _list_assignments(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    for statement in body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target, statement.value
        elif isinstance(statement, ast.Assign):
            yield from ((target, statement.value) for target in statement.targets if isinstance(target, ast.Name))


def _get_last_name(node: ast.expr) -> str:
    """Return `c` of `a.b.c`, and an empty string for anything but names."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_number(value: ast.expr | None) -> bool:
    """Return whether *value* is a number or a timedelta, or is computed with one."""
    match value:
        case ast.Constant(value=number):
            return isinstance(number, (int, float)) and not isinstance(number, bool)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.Call(func=function):
            return _get_last_name(function) == "timedelta"
        case ast.BinOp(left=first, right=second):
            return not (_is_sequence(first) or _is_sequence(second)) and (_is_number(first) or _is_number(second))
        case _:
            return False


def _is_sequence(value: ast.expr) -> bool:
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes))
    return is_text or isinstance(value, (ast.JoinedStr, ast.List, ast.Tuple))


def _find_banned_words(path: str, text: str, docstrings: Sequence[ast.expr], strings: Sequence[ast.expr]) -> list[Name]:
    """Return the banned words in docstrings and comments; columns of syntax trees are bytes of UTF-8."""
    words: list[Name] = []
    for number, line in enumerate(text.split("\n"), 1):
        for match in BANNED_TEXT.finditer(line):
            column = len(line[: match.start()].encode())
            hashes = [len(line[: sign.start()].encode()) for sign in re.finditer("#", line[: match.start()])]
            is_comment = any(not _is_within((*docstrings, *strings), number, sign) for sign in hashes)
            if is_comment or _is_within(docstrings, number, column):
                words.append(Name(kind="text", name=match[0], path=path, line=number))
    return words


def _is_within(nodes: Iterable[ast.expr], line: int, column: int) -> bool:
    return any(
        (node.lineno, node.col_offset) <= (line, column) < (node.end_lineno or 0, node.end_col_offset or 0)
        for node in nodes
    )
