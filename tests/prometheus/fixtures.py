"""The fixture of a real Prometheus, which is built and started only on request, like a control plane."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prometheus.binaries import ensure_prometheus, get_program
from tests.prometheus.server import PrometheusServer


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that receives remote writes."""
    server = PrometheusServer(find_program(), tmp_path_factory.mktemp("prometheus"))
    yield server
    server.stop()


def find_program() -> Path:
    """Return the program; skip the test if this computer cannot build it."""
    if not get_program().exists() and shutil.which("go") is None:
        pytest.skip("Prometheus is built from source, and `go` is not on PATH: install Go 1.26 or newer")
    return ensure_prometheus()
