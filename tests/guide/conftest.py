"""Pages that are followed need a real control plane; without being asked for they are not."""

from tests.controlplane.fixtures import pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_collection_modifyitems", "pytest_configure"]
