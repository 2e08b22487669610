"""The rules for names, sentences and files. Their words are in `rules.toml`, the exceptions in `exceptions.txt`."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

FOLDER: Final = Path(__file__).parent
ROOT: Final = Path(__file__).parents[3]
RULES_IN_TESTS: Final = ("banned-variable",)
_WORDS: Final[dict[str, Any]] = tomllib.loads((FOLDER / "rules.toml").read_text())
_VARIABLES: Final = frozenset(word for words in _WORDS["variables"].values() for word in words)
_FUNCTIONS: Final[dict[str, Any]] = _WORDS["functions"]
_VERBS: Final = frozenset((*_FUNCTIONS["verbs"], *_FUNCTIONS["prefixes"]))
_PREDICATES: Final = frozenset(_FUNCTIONS["predicates"])
_CONSTANTS: Final = {name: frozenset(words) for name, words in _WORDS["constants"].items()}
_UNITS_AND_LIMITS: Final = frozenset[str]().union(
    _CONSTANTS["limit_words"], _CONSTANTS["time_words"], _CONSTANTS["unit_words"]
)
REPLACED_WORDS: Final[dict[str, str]] = _WORDS["replaced"]
_ANSWER: Final = re.compile(r"Answers?\b")
TEXT_ADVICE: Final[Mapping[str, str]] = dict(_WORDS["text"]["instead"])
"""What to write, by the pattern of a word that is banned in docstrings and comments."""
PROSE_ADVICE: Final[Mapping[str, str]] = {**TEXT_ADVICE, **dict(_WORDS["prose"]["instead"])}
"""What to write, by the pattern of words that are banned in strings and pages."""
BANNED_TEXT: Final = re.compile(rf"\b(?:{'|'.join(TEXT_ADVICE)})\b", re.IGNORECASE)
TEST_NAME_ADVICE: Final[Mapping[str, str]] = {**REPLACED_WORDS, **_WORDS["test_names"]["instead"]}
BANNED_PROSE: Final = re.compile(rf"\b(?:{'|'.join(PROSE_ADVICE)})\b", re.IGNORECASE)
_WORD_IN_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
MAX_MODULES_PER_FOLDER: Final[int] = _WORDS["files"]["max_modules_per_folder"]
MAX_LINES_PER_FILE: Final[int] = _WORDS["files"]["max_lines_per_file"]
VAGUE_MODULES: Final[dict[str, str]] = _WORDS["files"]["vague_modules"]


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """A name that a file defines, or a piece of its text."""

    kind: str
    """variable, parameter, field, function, class, constant, number (a constant with a number), docstring or text."""
    name: str
    path: str
    """Relative to the root of the repository."""
    line: int


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A place that breaks a rule."""

    rule: str
    path: str
    line: int
    name: str
    message: str
    """What is wrong, and what to do."""
    count: int = 1
    """How many breaches this is: lines above the limit, for example."""

    def __str__(self) -> str:
        """Return the line for a report: where, what, the rule, what to do."""
        return f"{self.path}:{self.line}: {self.name}: [{self.rule}] {self.message}"


def _check_variable(name: str) -> str:
    if name.strip("_") not in _VARIABLES or name.startswith("__"):
        return ""
    return "does not say what it holds; write the noun: `pod`, `existing_node`, `problems`, `node_by_name`"


def _check_function(name: str) -> str:
    first, _, remainder = name.strip("_").partition("_")
    second = remainder.partition("_")[0]
    if first in _PREDICATES or (second != "of" and not _VERBS.isdisjoint((first, f"{first}_{second}"))):
        return ""
    instead = _FUNCTIONS["instead"].get(first, "")
    hint = (
        f"instead of `{first}`: {instead}"
        if instead
        else "`build_`, `find_`, `compute_`; a predicate: `is_`, `has_`, `can_`"
    )
    return f"a function begins with a verb from the list in rules.toml; {hint}"


def _check_docstring(first_line: str) -> str:
    if not _ANSWER.match(first_line):
        return ""
    return "a docstring does not begin with Answer; write `Return ...`, `Compute ...`, `Yield ...`"


def find_advice(word: str, advice: Mapping[str, str]) -> str:
    """Return what to write instead of *word*; "" if no pattern of *advice* matches it."""
    return next((text for pattern, text in advice.items() if re.fullmatch(pattern, word, re.IGNORECASE)), "")


def _check_text(word: str) -> str:
    instead = find_advice(word, TEXT_ADVICE)
    return f"not a word of our docstrings and comments; instead: {instead}" if instead else ""


def _check_quantity(name: str) -> str:
    if name.strip("_") not in _CONSTANTS["bare_quantities"]:
        return ""
    return "says how much, but not of what; name the limit and its unit: `MAX_CANDIDATES_PER_COMMAND`, `LEASE_TTL`"


def _check_unit(name: str) -> str:
    words = name.strip("_").split("_")
    if words[0] in _CONSTANTS["code_words"] or not _UNITS_AND_LIMITS.isdisjoint(words) or _check_quantity(name):
        return ""
    return (
        "a number without a unit; end in `_SECONDS`, `_TTL`, `_RATIO`, `_COUNT`, or say what it limits: `MAX_`, `MIN_`"
    )


def _check_replaced(name: str) -> str:
    old_words = [word for word in map(str.lower, _WORD_IN_NAME.findall(name)) if word in REPLACED_WORDS]
    return "; ".join(f"`{word}` is now `{REPLACED_WORDS[word]}`: see docs/glossary.md" for word in old_words)


class NameRule(msgspec.Struct, frozen=True):
    """A rule that looks at each name alone."""

    kinds: tuple[str, ...]
    check: Callable[[str], str]
    """The message about a name that breaks the rule; empty if it is fine."""


VARIABLE_KINDS: Final = ("variable", "parameter", "field")
NAME_RULES: Final[Mapping[str, NameRule]] = {
    "banned-variable": NameRule(VARIABLE_KINDS, cache(_check_variable)),
    "function-verb": NameRule(("function",), cache(_check_function)),
    "answer-docstring": NameRule(("docstring",), _check_docstring),
    "banned-word": NameRule(("text",), _check_text),
    "bare-quantity": NameRule(("constant", "number"), _check_quantity),
    "unit-of-number": NameRule(("number",), _check_unit),
    "replaced-word": NameRule((*VARIABLE_KINDS, "function", "class", "constant", "number"), cache(_check_replaced)),
}


def find_name_breaches(names: Iterable[Name], rules: Iterable[str] = NAME_RULES) -> list[Breach]:
    """Return the breaches of those *rules* that look at each name alone."""
    rules_by_kind: dict[str, list[str]] = {}
    for rule in rules:
        for kind in NAME_RULES[rule].kinds:
            rules_by_kind.setdefault(kind, []).append(rule)
    return [
        Breach(rule=rule, path=name.path, line=name.line, name=name.name, message=message)
        for name in names
        for rule in rules_by_kind.get(name.kind, ())
        if (message := NAME_RULES[rule].check(name.name))
    ]


class RuleException(msgspec.Struct, frozen=True):
    """A line of `exceptions.txt`: a rule, a path and a name that it does not hold for. `*` stands for anything."""

    rule: str
    path: str
    name: str

    def matches(self, breach: Breach) -> bool:
        """Return whether the exception allows *breach*."""
        return self.rule == breach.rule and fnmatchcase(breach.name, self.name) and fnmatchcase(breach.path, self.path)


def read_exceptions() -> tuple[RuleException, ...]:
    """Return the exceptions, in the order of the file."""
    lines = (line.partition("#")[0].split() for line in (FOLDER / "exceptions.txt").read_text().splitlines())
    return tuple(RuleException(*fields) for fields in lines if fields)
