"""Tests of kinds that are not served: which of the two reasons applies, and how to fix it."""

from typing import cast

import msgspec
import pytest

from shared.errors import NotFound, Throttled
from shared.ports.kubernetes import Kube
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.kubernetes.unserved_resources import build_unserved_problem

POOLS = next(one for one in RESOURCE_KINDS if one.field == "node_pools")
GROUP = {"versions": [{"version": "v1"}, {"version": "v2"}, {"version": "v3"}]}


class Discovery:
    """The discovery documents of an API server."""

    def __init__(self, documents: dict[str, object]) -> None:
        """Store *documents* by path."""
        self.documents = documents

    def read(self, path: str) -> bytes:
        if path not in self.documents:
            raise NotFound(path)
        document = self.documents[path]
        if isinstance(document, Exception):
            raise document
        return document if isinstance(document, bytes) else msgspec.json.encode(document)


def get_problem_message(documents: dict[str, object]) -> str:
    problem = build_unserved_problem(cast("Kube", Discovery(documents)), POOLS)
    assert (problem.kind, problem.name) == ("CustomResourceDefinition", "nodepools.karpenter.sh")
    assert problem.message.endswith("until then Joiner does not act on missing objects")
    return problem.message


def make_discovery_document(*names: str) -> dict[str, object]:
    return {"resources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    "documents",
    [
        {},
        {"/apis/karpenter.sh": GROUP},
        {"/apis/karpenter.sh": GROUP, "/apis/karpenter.sh/v1": make_discovery_document("nodepools")},
        {
            "/apis/karpenter.sh": GROUP,
            "/apis/karpenter.sh/v2": make_discovery_document("nodeclaims", "nodepools/status"),
        },
        {"/apis/karpenter.sh": GROUP, "/apis/karpenter.sh/v2": b"{"},
        {"/apis/karpenter.sh": b"[]"},
        {"/apis/karpenter.sh": Throttled("later")},
    ],
)
def test_crd_without_any_served_version_is_reported_as_not_installed(documents: dict[str, object]) -> None:
    assert get_problem_message(documents).startswith(
        "nodepools.karpenter.sh is not installed: apply the CustomResourceDefinitions;"
    )


def test_crd_served_in_other_versions_is_reported_with_these_versions() -> None:
    documents: dict[str, object] = {"/apis/karpenter.sh": GROUP}
    documents |= {f"/apis/karpenter.sh/{version}": make_discovery_document("nodepools") for version in ("v2", "v3")}
    message = get_problem_message(documents)
    assert "is served as v2, v3, not as v1, which Joiner reads: serve v1 too" in message
    assert "or update Joiner" in message
