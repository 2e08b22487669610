"""Real control planes for the tests here; without being asked for (tests/controlplane/fixtures.py) they do not run."""

import pytest

from tests.controlplane import fixtures
from tests.controlplane.fixtures import api_plane, cluster, pytest_configure, real_kube

__all__ = ["api_plane", "cluster", "pytest_configure", "real_kube"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for, and begin with what takes longest, whatever fixtures have made of the order."""
    fixtures.pytest_collection_modifyitems(config, items)
    items.sort(key=lambda item: item.path.name != "test_main_job.py")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded as `told`: what they say while they run is captured where workers run them."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, text in getattr(report, "user_properties", ()):
                if name == "told" and report.when == "call":
                    terminalreporter.write_line(str(text))
