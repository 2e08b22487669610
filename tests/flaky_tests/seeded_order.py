"""pytest plugin of `make flaky`: shuffles the tests by a seed, and writes the ids of failed tests to a file.

All workers of pytest-xdist get the same order, because it depends on the seed and the ids alone.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("flaky tests")
    group.addoption(
        "--order-seed", type=int, default=None, help="shuffle files, and the tests within each, by this seed"
    )
    group.addoption("--failures-file", type=Path, default=None, help="write the ids of failed tests to this file")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the collected tests if a seed is set."""
    seed = config.getoption("--order-seed")
    if seed is not None:
        items[:] = shuffle_items(items, seed)


def shuffle_items(items: Sequence[pytest.Item], seed: int) -> list[pytest.Item]:
    """Return *items* in an order that depends on *seed*; tests of a file stay together, for the fixtures of modules.

    The order within a file depends on the seed and the file alone: a run of this file repeats it.
    """
    items_by_file: dict[str, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: item.nodeid):
        items_by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
    files = sorted(items_by_file)
    Random(seed).shuffle(files)  # noqa: S311 - not for cryptography
    for file in files:
        Random(f"{seed} {file}").shuffle(items_by_file[file])  # noqa: S311 - not for cryptography
    return [item for file in files for item in items_by_file[file]]


class FailureRecorder:
    """Appends the id of each failed test to a file, once per failed phase."""

    def __init__(self, path: Path) -> None:
        """Write to *path*."""
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failed setup, call or teardown."""
        if report.failed:
            self._append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported."""
        if report.failed:
            self._append(report.nodeid)

    def _append(self, test_id: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{test_id}\n")


def pytest_configure(config: pytest.Config) -> None:
    """Record failures in the main process; the workers report to it."""
    path = config.getoption("--failures-file")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureRecorder(path))
