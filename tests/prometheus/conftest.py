"""A real Prometheus for the tests here; they run only on request, as those on a control plane."""

from tests.controlplane.fixtures import pytest_collection_modifyitems, pytest_configure
from tests.prometheus.fixtures import prometheus

__all__ = ["prometheus", "pytest_collection_modifyitems", "pytest_configure"]
