"""Tests of `make flaky`: the seeded order, the summary, and a run that finds a test that depends on its order."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.flaky_tests import __main__ as flaky_tests
from tests.flaky_tests.seeded_order import shuffle_items
from tests.flaky_tests.summary import RunResult, render_summary

ORDER_DEPENDENT_TESTS = """
seen = []

def test_first():
    seen.append("first")

def test_second():
    assert seen == ["first"]
"""


@dataclass(frozen=True)
class Item:
    nodeid: str


ITEMS: list[Any] = [Item(f"tests/test_{file}.py::test_{number}") for file in "abcd" for number in range(6)]


def list_ids(seed: int, items: list[Any] = ITEMS) -> list[str]:
    return [item.nodeid for item in shuffle_items(items, seed)]


def test_order_depends_on_the_seed_alone() -> None:
    assert list_ids(1) == list_ids(1, ITEMS[::-1])
    assert len({tuple(list_ids(seed)) for seed in range(5)}) == 5
    assert sorted(list_ids(1)) == sorted(item.nodeid for item in ITEMS)


def test_tests_of_a_file_stay_together_and_have_the_same_order_in_a_run_of_this_file() -> None:
    ids = list_ids(3)
    files = [test.partition("::")[0] for test in ids]
    assert all(files[start : start + 6] == [files[start]] * 6 for start in range(0, 24, 6))
    assert list_ids(3, ITEMS[6:12]) == [test for test in ids if test.startswith("tests/test_b.py")]


def make_result(seed: int, *failed_tests: str) -> RunResult:
    return RunResult(
        seed=seed, exit_code=1 if failed_tests else 0, failed_tests=failed_tests, output="3 passed in 0.1s\n"
    )


def test_summary_lists_each_failed_test_with_its_seeds_and_the_command_that_repeats_it() -> None:
    results = [make_result(4, "a.py::test_x"), make_result(5), make_result(6, "a.py::test_x", "b.py::test_y")]
    assert render_summary(results) == (
        "2 tests failed at least once:\n"
        "  a.py::test_x: 2 of 3 runs, seeds 4, 6\n"
        "  b.py::test_y: 1 of 3 runs, seed 6\n"
        "To repeat the first: make flaky N=1 FLAKY_SEED=4 TESTS=a.py\n"
    )
    assert render_summary([make_result(1)]) == "no test failed in 1 run\n"
    assert results[0].last_line == "3 passed in 0.1s"


def test_run_finds_a_test_that_depends_on_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_order.py"
    path.write_text(ORDER_DEPENDENT_TESTS)
    failing = [seed for seed in range(1, 9) if list_ids(seed, make_items(path))[0].endswith("second")]
    passing = [seed for seed in range(1, 9) if seed not in failing]
    results = [flaky_tests.run_tests([str(path)], seed, workers=0) for seed in (failing[0], passing[0])]
    assert [result.exit_code for result in results] == [1, 0], results
    assert [len(result.failed_tests) for result in results] == [1, 0]
    assert results[0].failed_tests[0].endswith("test_order.py::test_second")
    monkeypatch.setattr(flaky_tests, "run_tests", lambda _tests, seed, _workers: make_result(seed, *"a" * (seed % 2)))
    assert (flaky_tests.main(["--runs", "2"]), flaky_tests.main(["--runs", "1", "--first-seed", "2"])) == (1, 0)


def make_items(path: Path) -> list[Any]:
    return [Item(f"{path.name}::test_{name}") for name in ("first", "second")]


def test_run_that_cannot_start_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = RunResult(seed=1, exit_code=4, failed_tests=(), output="ERROR: file or directory not found: tests/none")
    monkeypatch.setattr(flaky_tests, "run_tests", lambda *_: result)
    assert flaky_tests.main(["tests/none"]) == flaky_tests.EXIT_NOT_RUN
    assert "file or directory not found: tests/none" in capsys.readouterr().out
