"""The table of requirements names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = [line for line in (ROOT / "docs" / "requirements.md").read_text().splitlines() if re.match(r"\| \d", line)]


def test_requirement_numbers_are_sorted_and_unique() -> None:
    numbers = [int(line.split("|")[1]) for line in ROWS]
    assert numbers == sorted(set(numbers))


def test_every_requirement_names_an_existing_test() -> None:
    for line in ROWS:
        references = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert references, line
        for path, name in references:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
