"""Mutants: copies of a module with one small change each, made by the operators of cosmic-ray.

A sample takes places in the code first and then one mutant of each place. A plus has eleven mutants and a `not` has
one; a sample of mutants would mostly test arithmetic.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

LEFT_OUT: Final = {
    "core/RemoveDecorator": "most decorators are caches: without one, the results are equal",
    "core/ReplaceComparisonOperator_Is_Eq": "equal for None and for members of an enum",
    "core/ReplaceComparisonOperator_IsNot_NotEq": "equal for None and for members of an enum",
    "core/ReplaceComparisonOperator_Eq_Is": "depends on how Python interns values, not on tests",
    "core/ReplaceComparisonOperator_NotEq_IsNot": "depends on how Python interns values, not on tests",
}
"""Operators that are not used, with the reason."""
_TOKENS_BEFORE_DECLARATIONS: Final = {"annassign": (":",), "tfpdef": (":",), "funcdef": ("->",), "classdef": ("(",)}
"""By the type of a syntax node: after these tokens, it has an annotation or the options of a class."""
_PARAMETER_NODES: Final = ("parameters", "param")

Place = tuple[str, tuple[int, int], tuple[int, int]]
"""A module, and the first and last position (line and column) in it."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one module: the *occurrence*-th place that the operator can change."""

    module: str
    operator: str
    occurrence: int
    start: tuple[int, int]
    end: tuple[int, int]
    definition: str
    """The function or class that contains the change; "" for the module itself."""

    def render(self, source: str) -> str:
        """Return the changed text of the module, whose text is *source*."""
        text = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        if not isinstance(text, str):
            message = f"{self.module}:{self.start[0]}: {self.operator} changes nothing at occurrence {self.occurrence}"
            raise ValueError(message)  # noqa: TRY004 - the source is not the one that was scanned
        return text


def list_mutants(module: str, source: str) -> Iterator[Mutant]:
    """Yield all mutants of *module*, except for those of declarations: see `is_declaration`."""
    nodes = list(ast_nodes(get_ast(source)))
    for name in list_operators():
        operator = get_operator(name)()
        places = ((node, *positions) for node in nodes for positions in operator.mutation_positions(node))
        for occurrence, (node, start, end) in enumerate(places):
            if not is_declaration(node):
                definition = ASTQuery(node).get_definition_name() or ""
                yield Mutant(
                    module=module, operator=name, occurrence=occurrence, start=start, end=end, definition=definition
                )


@cache
def list_operators() -> tuple[str, ...]:
    """Return the names of the operators of cosmic-ray that need no arguments and are not in `LEFT_OUT`."""
    return tuple(name for name in operator_names() if name not in LEFT_OUT and not get_operator(name).arguments())


def is_declaration(node: Any) -> bool:
    """Return whether *node*, of parso's syntax tree, is in a type annotation or in the options of a class.

    mypy notices the former, and the latter (frozen, keywords only) protect against errors of callers, which mypy
    notices too. The star and the slash between parameters are declarations as well; the operators take them for
    arithmetic.
    """
    child, parent = node, node.parent
    if parent is not None and parent.type in _PARAMETER_NODES and node.type == "operator":
        return True
    while parent is not None:
        previous = parent.children[parent.children.index(child) - 1]
        if previous in _TOKENS_BEFORE_DECLARATIONS.get(parent.type, ()):
            return True
        child, parent = parent, parent.parent
    return False


def sample_mutants(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return one mutant for each of at most *count* random places, in the order of modules and lines."""
    mutants_by_place: dict[Place, list[Mutant]] = {}
    for mutant in mutants:
        mutants_by_place.setdefault((mutant.module, mutant.start, mutant.end), []).append(mutant)
    random = Random(seed)  # noqa: S311 - not for cryptography
    places = sorted(mutants_by_place)
    sampled_places = sorted(random.sample(places, min(count, len(places))))
    return [random.choice(mutants_by_place[place]) for place in sampled_places]


@dataclass(frozen=True, kw_only=True)
class Change:
    """The lines that a mutant changes, without their indentation; it identifies a mutant in `survivors.toml`."""

    module: str
    definition: str
    before: str
    after: str


def find_change(mutant: Mutant, source: str) -> Change:
    """Return what *mutant* changes in *source*."""
    lines = render_diff(mutant, source).splitlines()[2:]
    return Change(
        module=mutant.module,
        definition=mutant.definition,
        before=_join_lines(lines, "-"),
        after=_join_lines(lines, "+"),
    )


def _join_lines(lines: Iterable[str], prefix: str) -> str:
    return "\n".join(line.removeprefix(prefix).strip() for line in lines if line.startswith(prefix))


def render_diff(mutant: Mutant, source: str) -> str:
    """Return a unified diff of *source* and the mutant, with one line of context."""
    before, after = source.splitlines(), mutant.render(source).splitlines()
    return "\n".join(difflib.unified_diff(before, after, mutant.module, mutant.module, n=1, lineterm=""))


Sources = Mapping[str, str]
"""The text of each module by its path."""


def draw_sample(sources: Sources, count: int, seed: int) -> Sequence[Mutant]:
    """Return a sample of *count* mutants of all modules."""
    mutants = (mutant for module in sorted(sources) for mutant in list_mutants(module, sources[module]))
    return sample_mutants(mutants, count, seed)


def read_sources(root: Path, modules: Iterable[str]) -> Sources:
    """Return the texts of *modules* below *root*."""
    return {module: (root / module).read_text(encoding="utf-8") for module in modules}
