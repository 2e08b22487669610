"""Strings and pages follow the rules in `rules.toml`."""

import pytest

from tests.unit.conventions.baseline import drop_exceptions, find_differences, find_unused_exceptions, read_baseline
from tests.unit.conventions.prose import (
    MAX_WORDS_PER_SENTENCE,
    PROSE_RULE_IDS,
    find_breaches_in_page,
    find_breaches_in_program,
    find_breaches_in_test_names,
    find_breaches_of_prose,
)
from tests.unit.conventions.rules import ROOT, Breach, read_exceptions


@pytest.fixture(scope="module")
def breaches() -> list[Breach]:
    return find_breaches_of_prose(ROOT)


@pytest.mark.parametrize("rule", PROSE_RULE_IDS)
def test_prose_rule_breaches_match_the_baseline(breaches: list[Breach], rule: str) -> None:
    remaining_breaches = drop_exceptions(breaches, read_exceptions())
    if messages := find_differences(rule, remaining_breaches, read_baseline()):
        pytest.fail("\n".join(messages), pytrace=False)


def test_every_prose_rule_exception_is_needed(breaches: list[Breach]) -> None:
    exceptions = [exception for exception in read_exceptions() if exception.rule in PROSE_RULE_IDS]
    assert find_unused_exceptions(breaches, exceptions) == [], "remove these lines from exceptions.txt"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A knob for the dearest\nnodes.", ["knob:1", "dearest:1"]),
        ("Title\n\n1 pods wait.", ["1 pods:3"]),
        ("`knob` and [the page](knob.md) and\n```sh\nknob\n```\n", []),
        ("21 pods, 1 pod and a doorknob", []),
    ],
)
def test_banned_words_in_a_page_are_found_outside_code(text: str, words: list[str]) -> None:
    breaches = find_breaches_in_page("page.md", text)
    assert [f"{breach.name}:{breach.line}" for breach in breaches if breach.rule == "banned-prose"] == words


def test_program_strings_are_checked_but_docstrings_names_and_keys_are_not() -> None:
    text = '"""A knob."""\nknob = {"knob": f"turn the knob {1}"}\n\n\ndef turn():\n    """A knob."""\n'
    [breach] = find_breaches_in_program("program.py", text)
    assert (breach.name, breach.line, breach.message) == ("knob", 2, "write: setting")


def test_banned_word_in_a_test_name_is_reported_with_its_line() -> None:
    [breach] = find_breaches_in_test_names(
        "test.py", "\n\ndef test_a_machine_is_deleted() -> None: ...\ndef test_node(): ...\n"
    )
    assert (breach.name, breach.line, breach.message) == (
        "test_a_machine_is_deleted",
        3,
        "`machine`: write instance or node",
    )


@pytest.mark.parametrize("end", [". ", ".\n\n", "\n- ", " | ", "; "])
def test_long_sentence_is_reported_and_two_short_sentences_are_not(end: str) -> None:
    words = " ".join(["word"] * MAX_WORDS_PER_SENTENCE)
    assert find_breaches_in_page("page.md", f"{words}{end}{words}") == []
    [breach] = find_breaches_in_page("page.md", f"Title\n\n{words} more{end}{words}")
    assert (breach.rule, breach.line) == ("long-sentence", 3)
