"""Real control planes for the tests here; they run only on request (tests/controlplane/fixtures.py)."""

from collections.abc import Generator

import pytest

from tests.controlplane import fixtures
from tests.controlplane.fixtures import api_plane, cluster, pytest_configure, real_kube
from tests.kubernetes.arena import Arena

__all__ = ["api_plane", "cluster", "pytest_configure", "real_kube"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that were not requested, and start with the longest ones, whatever order the fixtures imply."""
    fixtures.pytest_collection_modifyitems(config, items)
    items.sort(key=lambda item: item.path.name != "test_main_job.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add Joiner's last actions to the report of a failure: in real time a failure does not repeat itself."""
    report = yield
    arenas = [argument for argument in getattr(item, "funcargs", {}).values() if isinstance(argument, Arena)]
    for arena in arenas if report.failed else ():
        logged = [str(line)[:300] for line in arena.playground.log_lines[-20:]]
        report.sections.append(("what happened", "\n".join([*arena.timeline_lines[-120:], *logged])))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded as `told`: their output is captured where workers run them."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, text in getattr(report, "user_properties", ()):
                if name == "told" and report.when == "call":
                    terminalreporter.write_line(str(text))
