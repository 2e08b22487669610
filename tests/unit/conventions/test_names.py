"""Names, docstrings and comments follow the rules in `rules.toml`."""

import pytest

from tests.unit.conventions.baseline import drop_exceptions, find_differences, find_unused_exceptions, read_baseline
from tests.unit.conventions.rules import ROOT, Breach, read_exceptions
from tests.unit.conventions.tree import NAME_RULE_IDS, find_breaches_of_names


@pytest.fixture(scope="module")
def breaches() -> list[Breach]:
    return find_breaches_of_names(ROOT)


@pytest.mark.parametrize("rule", NAME_RULE_IDS)
def test_name_rule_breaches_match_the_baseline(breaches: list[Breach], rule: str) -> None:
    remaining_breaches = drop_exceptions(breaches, read_exceptions())
    if messages := find_differences(rule, remaining_breaches, read_baseline()):
        pytest.fail("\n".join(messages), pytrace=False)


def test_every_name_rule_exception_is_needed(breaches: list[Breach]) -> None:
    exceptions = [exception for exception in read_exceptions() if exception.rule in NAME_RULE_IDS]
    assert find_unused_exceptions(breaches, exceptions) == [], "remove these lines from exceptions.txt"
