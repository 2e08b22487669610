"""The table of requirements names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = [line for line in (ROOT / "docs" / "requirements.md").read_text().splitlines() if re.match(r"\| \d", line)]


def test_rows_are_sorted_and_each_number_is_there_once() -> None:
    numbers = [int(line.split("|")[1]) for line in ROWS]
    assert numbers == sorted(set(numbers))


def test_every_row_names_a_test_and_every_test_that_is_named_exists() -> None:
    for line in ROWS:
        references = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert references, line
        for path, name in references:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
