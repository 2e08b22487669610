"""Folders are small, files are short, and their names use the words of the glossary."""

import re

import pytest

from tests.unit.conventions.baseline import drop_exceptions, find_differences, find_unused_exceptions, read_baseline
from tests.unit.conventions.rules import ROOT, Breach, read_exceptions
from tests.unit.conventions.tree import GLOSSARY, LAYOUT_RULE_IDS, find_breaches_of_layout

SOURCES = frozenset(("AWS", "DB", "K", "KA", "OR", "SE", "k8s"))


@pytest.fixture(scope="module")
def breaches() -> list[Breach]:
    return find_breaches_of_layout(ROOT)


@pytest.mark.parametrize("rule", LAYOUT_RULE_IDS)
def test_layout_rule_breaches_match_the_baseline(breaches: list[Breach], rule: str) -> None:
    remaining_breaches = drop_exceptions(breaches, read_exceptions())
    if messages := find_differences(rule, remaining_breaches, read_baseline()):
        pytest.fail("\n".join(messages), pytrace=False)


def test_every_layout_rule_exception_is_needed(breaches: list[Breach]) -> None:
    exceptions = [exception for exception in read_exceptions() if exception.rule in LAYOUT_RULE_IDS]
    assert find_unused_exceptions(breaches, exceptions) == [], "remove these lines from exceptions.txt"


def test_glossary_terms_are_unique_sorted_and_have_a_source() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|(?: (.+?) )?\s*\|$", (ROOT / GLOSSARY).read_text(), re.MULTILINE)
    terms = [term.lower() for term, *_ in rows[1:]]
    assert terms == sorted(set(terms))
    assert {source for _, _, cell, _ in rows[1:] for source in cell.split(", ")} <= SOURCES
