"""Real control planes for the tests here; without being asked for (tests/controlplane/fixtures.py) they do not run."""

from tests.controlplane.fixtures import (
    api_plane,
    cluster,
    pytest_collection_modifyitems,
    pytest_configure,
    real_kube,
)

__all__ = ["api_plane", "cluster", "pytest_collection_modifyitems", "pytest_configure", "real_kube"]
