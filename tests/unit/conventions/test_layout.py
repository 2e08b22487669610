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
def test_no_folder_and_no_file_has_more_breaches_of_a_rule_than_its_baseline(breaches: list[Breach], rule: str) -> None:
    remaining_breaches = drop_exceptions(breaches, read_exceptions())
    if messages := find_differences(rule, remaining_breaches, read_baseline()):
        pytest.fail("\n".join(messages), pytrace=False)


def test_every_exception_is_needed(breaches: list[Breach]) -> None:
    exceptions = [exception for exception in read_exceptions() if exception.rule in LAYOUT_RULE_IDS]
    assert find_unused_exceptions(breaches, exceptions) == [], "remove these lines from exceptions.txt"


def test_the_glossary_has_each_term_once_in_alphabetical_order_with_its_source() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|(?: (.+?) )?\s*\|$", (ROOT / GLOSSARY).read_text(), re.MULTILINE)
    terms = [term.lower() for term, *_ in rows[1:]]
    assert terms == sorted(set(terms))
    assert {source for _, _, cell, _ in rows[1:] for source in cell.split(", ")} <= SOURCES
