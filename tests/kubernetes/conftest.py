"""Real control planes for the tests here; without being asked for (tests/controlplane/fixtures.py) they do not run."""

from collections.abc import Generator

import pytest

from tests.controlplane import fixtures
from tests.controlplane.fixtures import api_plane, cluster, pytest_configure, real_kube
from tests.kubernetes.arena import Arena

__all__ = ["api_plane", "cluster", "pytest_configure", "real_kube"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for, and begin with what takes longest, whatever fixtures have made of the order."""
    fixtures.pytest_collection_modifyitems(config, items)
    items.sort(key=lambda item: item.path.name != "test_main_job.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of what failed what Joiner did last: in real time the same does not happen twice."""
    report = yield
    arenas = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Arena)]
    for one in arenas if report.failed else ():
        logged = [str(line)[:300] for line in one.playground.lines[-20:]]
        report.sections.append(("what happened", "\n".join([*one.said[-120:], *logged])))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded as `told`: what they say while they run is captured where workers run them."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, text in getattr(report, "user_properties", ()):
                if name == "told" and report.when == "call":
                    terminalreporter.write_line(str(text))
