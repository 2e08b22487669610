"""Rules for sentences that a person reads: strings of the programs, pages of the documentation, and names of tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.unit.conventions.rules import BANNED_PROSE, PROSE_ADVICE, TEST_NAME_ADVICE, Breach, find_advice
from tests.unit.conventions.tree import GLOSSARY, PACKAGES, list_python_files

_MARKUP: Final = " \n-*|>#"
MAX_WORDS_PER_SENTENCE: Final = 40
PROSE_RULE_IDS: Final = ("banned-prose", "long-sentence", "test-name")
PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")
_UNCHECKED_PAGES: Final = (GLOSSARY, "docs/_build/")
"""The glossary lists the old words; the built site is not a source."""
_CODE_BLOCK: Final = re.compile(r"^(`{3,}).*?^\1$|<[^>\n]+>|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_INLINE_CODE: Final = re.compile(r"`[^`\n]*(?:\n[^`\n]+)?`")
_BLOCK_END: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\.) ?)|\|")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?:;])\s+")
_TEST: Final = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)


def find_breaches_of_prose(root: Path) -> list[Breach]:
    """Return the banned words in strings and pages, and the sentences of pages that are too long."""
    breaches: list[Breach] = []
    for name in list_python_files(root, PACKAGES):
        breaches += find_breaches_in_program(name, (root / name).read_text())
    for name in list_python_files(root, ["tests"]):
        breaches += find_breaches_in_test_names(name, (root / name).read_text())
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_UNCHECKED_PAGES):
            breaches += find_breaches_in_page(name, path.read_text())
    return breaches


def find_breaches_in_page(path: str, text: str) -> list[Breach]:
    """Return the breaches in a page of Markdown; code is not checked."""
    text = _CODE_BLOCK.sub(_keep_lines, text)
    return [*_find_long_sentences(path, text), *_find_banned(path, _INLINE_CODE.sub(_keep_lines, text))]


def find_breaches_in_program(path: str, text: str) -> list[Breach]:
    """Return the banned words in the strings of a Python file; docstrings have a rule of their own."""
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        breach
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if " " in node.value.strip()
        for breach in _find_banned(path, node.value, node.lineno)
    ]


def find_breaches_in_test_names(path: str, text: str) -> list[Breach]:
    """Return the words in names of tests that are not the field's words; a pronoun hides the subject of a test."""
    return [
        Breach(
            rule="test-name",
            path=path,
            line=1 + text.count("\n", 0, match.start(1)),
            name=match[1],
            message=f"`{word}`: write {TEST_NAME_ADVICE[word]}",
        )
        for match in _TEST.finditer(text)
        for word in match[1].split("_")
        if word in TEST_NAME_ADVICE
    ]


def _find_banned(path: str, text: str, first_line: int = 1) -> Iterator[Breach]:
    for match in BANNED_PROSE.finditer(text):
        line = first_line + text.count("\n", 0, match.start())
        message = f"write: {find_advice(match[0], PROSE_ADVICE)}"
        yield Breach(rule="banned-prose", path=path, line=line, name=match[0], message=message)


def _find_long_sentences(path: str, text: str) -> Iterator[Breach]:
    for block, line in _split(_BLOCK_END, text):
        for sentence, offset in _split(_SENTENCE_END, block):
            count = len(sentence.split())
            if count > MAX_WORDS_PER_SENTENCE:
                words = " ".join(sentence.split()[:6])
                message = f"{count} words, at most {MAX_WORDS_PER_SENTENCE}: split the sentence"
                yield Breach(rule="long-sentence", path=path, line=1 + line + offset, name=words, message=message)


def _split(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int]]:
    """Yield the parts of *text* between the matches of *pattern*, each with the number of lines before it."""
    start = 0
    for end in (*(match.start() for match in pattern.finditer(text)), len(text)):
        part = text[start:end].lstrip(_MARKUP)
        yield part, text.count("\n", 0, end - len(part))
        start = end


def _keep_lines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n") or "code"
